#include "runtime/targets.h"

#include <vector>

namespace jax_fa {
namespace {

constexpr bool AllPositive(int Target::* fact) {
  return std::ranges::all_of(kTargets, [=](const Target& target) { return target.*fact > 0; });
}
static_assert(AllPositive(&Target::compute_units));
static_assert(AllPositive(&Target::dies));
static_assert(AllPositive(&Target::lds_bytes));
static_assert(AllPositive(&Target::packed_rows));

// Whether every target's tiles of a family are in order and fit its LDS. With `required` every
// target must have some.
constexpr bool AllFit(std::span<const AttentionTile> Target::* tiles, bool required) {
  return std::ranges::all_of(kTargets, [=](const Target& target) {
    return !(required && (target.*tiles).empty()) &&
           std::ranges::is_sorted(target.*tiles, {}, &AttentionTile::head_dim) &&
           std::ranges::all_of(target.*tiles, [&](const AttentionTile& tile) {
             return tile.lds_bytes() <= target.lds_bytes && tile.head_dim % kHeadDimMultiple == 0;
           });
  });
}
static_assert(AllFit(&Target::flash_tiles, /*required=*/true));
static_assert(AllFit(&Target::decode_tiles, /*required=*/true));
static_assert(AllFit(&Target::wide_decode_tiles, /*required=*/false));

static_assert(std::ranges::all_of(kArchitectures, [](const Architecture& architecture) {
  return FindTarget(architecture.target) != nullptr;
}));
static_assert(std::ranges::all_of(kTargets, [](const Target& target) {
  return FindArchitecture(target.name) != nullptr;
}));

}  // namespace

std::string TargetNames(std::string_view conjunction, std::string_view also) {
  std::vector<std::string_view> names;
  for (const Target& target : kTargets) names.push_back(target.name);
  if (!also.empty()) names.push_back(also);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0 && i + 1 == names.size()) {
      text.append(" ").append(conjunction).append(" ");
    } else if (i > 0) {
      text += ", ";
    }
    text += names[i];
  }
  return text;
}

}  // namespace jax_fa
