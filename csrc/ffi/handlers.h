// The FFI targets of this package, for registration with JAX.
#ifndef JAX_FA_FFI_HANDLERS_H_
#define JAX_FA_FFI_HANDLERS_H_

#include <span>

#include "xla/ffi/api/c_api.h"

namespace jax_fa {

struct Registration {
  const char* target;
  XLA_FFI_Handler* initialize;  // null: the handler is one of CPUs
  XLA_FFI_Handler* execute;
};

std::span<const Registration> Registrations();

}  // namespace jax_fa

#endif  // JAX_FA_FFI_HANDLERS_H_
