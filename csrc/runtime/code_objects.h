// The code objects embedded in this build.
#ifndef JAX_FA_RUNTIME_CODE_OBJECTS_H_
#define JAX_FA_RUNTIME_CODE_OBJECTS_H_

#include <cstddef>
#include <span>

#include "runtime/runtime.h"

namespace jax_fa {

// The target's ELF image; an error in a build without its kernels.
Status GetCodeObject(const Target& target, std::span<const std::byte>* image);

}  // namespace jax_fa

#endif  // JAX_FA_RUNTIME_CODE_OBJECTS_H_
