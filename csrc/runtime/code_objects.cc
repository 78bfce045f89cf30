#include "runtime/code_objects.h"

#include <string>

// Begin and end of each image, defined by the sources that csrc/cmake/embed.cmake writes. The list
// of them is written by csrc/cmake/device_code.cmake: JAX_FA_CODE_OBJECT(gfx950) and so on.
#define JAX_FA_CODE_OBJECT(target) \
  extern "C" const std::byte jax_fa_code_object_##target[], jax_fa_code_object_##target##_end[];
#include "code_objects.def"
#undef JAX_FA_CODE_OBJECT

namespace jax_fa {

#define JAX_FA_CODE_OBJECT(target) \
  static_assert(FindTarget(#target) != nullptr, #target " has no row in runtime/targets.h");
#include "code_objects.def"
#undef JAX_FA_CODE_OBJECT

Status GetCodeObject(const Target& target, std::span<const std::byte>* image) {
#define JAX_FA_CODE_OBJECT(embedded)                                               \
  if (target.name == #embedded) {                                                  \
    *image = {jax_fa_code_object_##embedded, jax_fa_code_object_##embedded##_end}; \
    return Status::Ok();                                                           \
  }
#include "code_objects.def"
#undef JAX_FA_CODE_OBJECT
  return Status::Error("this build of jax_fa has no kernels for " + std::string(target.name));
}

}  // namespace jax_fa
