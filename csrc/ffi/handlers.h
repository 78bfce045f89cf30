// The FFI targets of this package, for registration with JAX.
#ifndef JAX_FA_FFI_HANDLERS_H_
#define JAX_FA_FFI_HANDLERS_H_

#include <span>

#include "xla/ffi/api/c_api.h"

namespace jax_fa {

// A target's handlers on one platform. On "cpu" they emulate, on "ROCM" they run on XLA's stream.
struct Registration {
  const char* platform;
  const char* target;
  XLA_FFI_Handler* initialize;  // null: the stage has nothing to do
  XLA_FFI_Handler* execute;
};

std::span<const Registration> Registrations();

}  // namespace jax_fa

#endif  // JAX_FA_FFI_HANDLERS_H_
