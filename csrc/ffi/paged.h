// The FFI target jax_fa_paged: attention over a paged cache of keys and values.
#ifndef JAX_FA_FFI_PAGED_H_
#define JAX_FA_FFI_PAGED_H_

#include "xla/ffi/api/c_api.h"

extern "C" XLA_FFI_Error* jax_fa_paged_initialize(XLA_FFI_CallFrame* call_frame);
extern "C" XLA_FFI_Error* jax_fa_paged_execute(XLA_FFI_CallFrame* call_frame);

#endif  // JAX_FA_FFI_PAGED_H_
