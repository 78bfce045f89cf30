// The FFI target jax_fa_varlen: attention over packed sequences.
#ifndef JAX_FA_FFI_VARLEN_H_
#define JAX_FA_FFI_VARLEN_H_

#include "xla/ffi/api/c_api.h"

extern "C" XLA_FFI_Error* jax_fa_varlen_initialize(XLA_FFI_CallFrame* call_frame);
extern "C" XLA_FFI_Error* jax_fa_varlen_execute(XLA_FFI_CallFrame* call_frame);

#endif  // JAX_FA_FFI_VARLEN_H_
