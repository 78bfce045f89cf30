#include "launch/catalogue.h"

namespace jax_fa {
namespace {

// The spellings of variants.def.
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

const AttentionKernel* FindAttentionKernel(Target target, KernelFamily family, DataType dtype,
                                           int64_t head_dim, bool soft_cap, bool paged) {
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

AttentionTile GetTile(Target target, KernelFamily family, int head_dim_tile) {
  const bool gfx950 = target == Target::kGfx950;
  switch (family) {
    case KernelFamily::kFlash:
      return FindTile(gfx950 ? kGfx950FlashTiles : kGfx1201FlashTiles, head_dim_tile);
    case KernelFamily::kDecode:
      return FindTile(gfx950 ? kGfx950DecodeTiles : kGfx1201DecodeTiles, head_dim_tile);
    case KernelFamily::kWideDecode:
      return gfx950 ? AttentionTile{} : FindTile(kGfx1201WideDecodeTiles, head_dim_tile);
  }
  return {};
}

}  // namespace jax_fa
