// gfx950 (CDNA4): what a kernel may use.
#ifndef JAX_FA_KERNELS_ARCH_GFX950_LIMITS_H_
#define JAX_FA_KERNELS_ARCH_GFX950_LIMITS_H_

#include "kernels/attention/tiles.h"

namespace jax_fa::arch {

inline constexpr int kWaveSize = 64;
inline constexpr int kMaxLdsBytes = kGfx950LdsBytes;
inline constexpr int kDies = kGfx950Dies;

constexpr AttentionTile flash_tile(int head_dim_tile) {
  return FindTile(kGfx950FlashTiles, head_dim_tile);
}
constexpr AttentionTile decode_tile(int head_dim_tile) {
  return FindTile(kGfx950DecodeTiles, head_dim_tile);
}

// Two waves on each SIMD, which may use half of its 512 registers a lane: one workgroup of eight
// waves per CU, or two of four, as many as LDS holds.
constexpr int flash_waves_per_simd(int /*head_dim_tile*/) { return 2; }
constexpr int decode_waves_per_simd(int /*head_dim_tile*/) { return 2; }

// Of providers of keys in pages (paged_keys.h): whether PooledKeys are served, or left to the next
// that serves them; whether the head must fill its tile for NearKeys and NearRowKeys.
inline constexpr bool kTakesPooledKeys = true;
inline constexpr bool kNearKeysFillHeads = false;

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX950_LIMITS_H_
