// The FFI target jax_fa_append: new tokens into the pages of a pool, in place, on CPUs.
#ifndef JAX_FA_FFI_APPEND_H_
#define JAX_FA_FFI_APPEND_H_

#include "xla/ffi/api/c_api.h"

extern "C" XLA_FFI_Error* jax_fa_append_execute(XLA_FFI_CallFrame* call_frame);

#endif  // JAX_FA_FFI_APPEND_H_
