// The targets of this package and the code objects embedded in it.
#ifndef JAX_FA_RUNTIME_CODE_OBJECTS_H_
#define JAX_FA_RUNTIME_CODE_OBJECTS_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/runtime.h"

namespace jax_fa {

inline constexpr Target kTargets[] = {Target::kGfx950, Target::kGfx1201};

std::string_view TargetName(Target target);
std::optional<Target> ParseTarget(std::string_view name);

// Compute units of the chip that a target stands for: MI355X, RX 9070 XT.
int ComputeUnits(Target target);

// The target that runs on an architecture as HIP spells it ("gfx950:sramecc+:xnack-").
std::optional<Target> TargetOfArchitecture(std::string_view architecture);

// The code object's ELF image; empty in a build without this target's kernels.
std::span<const std::byte> EmbeddedCodeObject(Target target);

}  // namespace jax_fa

#endif  // JAX_FA_RUNTIME_CODE_OBJECTS_H_
