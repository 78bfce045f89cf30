#include "launch/catalogue.h"

namespace jax_fa {
namespace {

// The spellings of variants.def.
constexpr DataType bfloat16 = DataType::kBfloat16;
constexpr DataType float16 = DataType::kFloat16;
constexpr bool plain = false;
constexpr bool softcap = true;

constexpr FlashKernel kFlashKernels[] = {
#define JAX_FA_FLASH(name, dtype, head_dim_tile, variant) {#name, dtype, head_dim_tile, variant},
#include "kernels/variants.def"
};

}  // namespace

const FlashKernel* FindFlashKernel(DataType dtype, int64_t head_dim, bool soft_cap) {
  const FlashKernel* best = nullptr;
  for (const FlashKernel& kernel : kFlashKernels) {
    if (kernel.dtype != dtype || kernel.soft_cap != soft_cap) continue;
    if (kernel.head_dim_tile < head_dim) continue;
    if (best == nullptr || kernel.head_dim_tile < best->head_dim_tile) best = &kernel;
  }
  return best;
}

FlashTile GetFlashTile(Target target, const FlashKernel& kernel) {
  return target == Target::kGfx950 ? FindTile(kGfx950Tiles, kernel.head_dim_tile)
                                   : FindTile(kGfx1201Tiles, kernel.head_dim_tile);
}

}  // namespace jax_fa
