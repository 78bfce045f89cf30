// gfx950 (CDNA4): what a kernel may use.
#ifndef JAX_FA_KERNELS_ARCH_GFX950_LIMITS_H_
#define JAX_FA_KERNELS_ARCH_GFX950_LIMITS_H_

#include "kernels/attention/tiles.h"

namespace jax_fa::arch {

inline constexpr int kWaveSize = 64;
inline constexpr int kMaxVgprs = 512;  // per lane and SIMD, shared by the SIMD's waves
inline constexpr int kSimds = 4;       // per CU
inline constexpr int kMaxLdsBytes = 160 * 1024;
inline constexpr int kXcds = 8;  // workgroup ids go round the chip's dies, each with its own L2

constexpr FlashTile flash_tile(int head_dim_tile) { return FindTile(kGfx950Tiles, head_dim_tile); }

// One workgroup of eight waves per CU: each wave may use half of its SIMD's registers.
constexpr int flash_waves_per_simd(int head_dim_tile) {
  return flash_tile(head_dim_tile).waves / kSimds;
}

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX950_LIMITS_H_
