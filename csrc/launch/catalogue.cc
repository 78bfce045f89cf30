#include "launch/catalogue.h"

#include <algorithm>
#include <span>

namespace jax_fa {
namespace {

// Names by which variants.def spells the types.
constexpr DataType bfloat16 = DataType::kBfloat16;
constexpr DataType float16 = DataType::kFloat16;

constexpr AttentionKernel kAttentionKernels[] = {
#define JAX_FA_FLASH(name, dtype, head_dim_tile, soft_cap, paged) \
  {#name, KernelFamily::kFlash, dtype, head_dim_tile, soft_cap, paged},
#define JAX_FA_DECODE(name, dtype, head_dim_tile, paged) \
  {#name, KernelFamily::kDecode, dtype, head_dim_tile, false, paged},
#define JAX_FA_WIDE_DECODE(name, dtype, head_dim_tile, paged) \
  {#name, KernelFamily::kWideDecode, dtype, head_dim_tile, false, paged},
#include "kernels/variants.def"
};

}  // namespace

const AttentionKernel* FindAttentionKernel(const Target& target, KernelFamily family,
                                           DataType dtype, int64_t head_dim, bool soft_cap,
                                           bool paged) {
  const AttentionKernel* best = nullptr;
  for (const AttentionKernel& kernel : kAttentionKernels) {
    if (kernel.family != family || kernel.dtype != dtype || kernel.paged != paged) continue;
    if (family == KernelFamily::kFlash && kernel.soft_cap != soft_cap) continue;
    if (kernel.head_dim_tile < head_dim) continue;
    if (GetTile(target, family, kernel.head_dim_tile).head_dim == 0) continue;
    if (best == nullptr || kernel.head_dim_tile < best->head_dim_tile) best = &kernel;
  }
  return best;
}

const char* MergeKernelName(DataType dtype) {
#define JAX_FA_MERGE(name, merged_dtype) \
  if (dtype == merged_dtype) return #name;
#include "kernels/variants.def"
  return "";
}

AttentionTile GetTile(const Target& target, KernelFamily family, int head_dim_tile) {
  const auto find = [&](std::span<const AttentionTile> tiles) {
    const auto found = std::ranges::find(tiles, head_dim_tile, &AttentionTile::head_dim);
    return found != tiles.end() ? *found : AttentionTile{};
  };
  switch (family) {
    case KernelFamily::kFlash:
      return find(target.flash_tiles);
    case KernelFamily::kDecode:
      return find(target.decode_tiles);
    case KernelFamily::kWideDecode:
      return find(target.wide_decode_tiles);
  }
  return {};
}

}  // namespace jax_fa
