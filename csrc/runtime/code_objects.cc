#include "runtime/code_objects.h"

// Begin and end of each image, defined by the sources that csrc/cmake/embed.cmake writes.
#ifdef JAX_FA_HAVE_GFX950
extern "C" const std::byte jax_fa_code_object_gfx950[], jax_fa_code_object_gfx950_end[];
#endif
#ifdef JAX_FA_HAVE_GFX1201
extern "C" const std::byte jax_fa_code_object_gfx1201[], jax_fa_code_object_gfx1201_end[];
#endif

namespace jax_fa {

std::string_view TargetName(Target target) {
  return target == Target::kGfx950 ? "gfx950" : "gfx1201";
}

int ComputeUnits(Target target) { return target == Target::kGfx950 ? 256 : 64; }

std::optional<Target> ParseTarget(std::string_view name) {
  for (const Target target : kTargets) {
    if (name == TargetName(target)) return target;
  }
  return std::nullopt;
}

std::optional<Target> TargetOfArchitecture(std::string_view architecture) {
  return ParseTarget(architecture.substr(0, architecture.find(':')));
}

std::span<const std::byte> EmbeddedCodeObject(Target target) {
  switch (target) {
    case Target::kGfx950:
#ifdef JAX_FA_HAVE_GFX950
      return {jax_fa_code_object_gfx950, jax_fa_code_object_gfx950_end};
#else
      return {};
#endif
    case Target::kGfx1201:
#ifdef JAX_FA_HAVE_GFX1201
      return {jax_fa_code_object_gfx1201, jax_fa_code_object_gfx1201_end};
#else
      return {};
#endif
  }
  return {};
}

}  // namespace jax_fa
