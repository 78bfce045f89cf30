// gfx1201 (RDNA4): what a kernel may use.
#ifndef JAX_FA_KERNELS_ARCH_GFX1201_LIMITS_H_
#define JAX_FA_KERNELS_ARCH_GFX1201_LIMITS_H_

#include "kernels/attention/tiles.h"

namespace jax_fa::arch {

inline constexpr int kWaveSize = 32;
inline constexpr int kMaxLdsBytes = kGfx1201LdsBytes;
inline constexpr int kDies = kGfx1201Dies;

constexpr AttentionTile flash_tile(int head_dim_tile) {
  return FindTile(kGfx1201FlashTiles, head_dim_tile);
}
constexpr AttentionTile decode_tile(int head_dim_tile) {
  return FindTile(kGfx1201DecodeTiles, head_dim_tile);
}
constexpr AttentionTile wide_decode_tile(int head_dim_tile) {
  return FindTile(kGfx1201WideDecodeTiles, head_dim_tile);
}

// Waves that share a SIMD: its 1536 registers a lane / (the budget of mainloop.h, in granules of
// 24).
constexpr int flash_waves_per_simd(int head_dim_tile) {
  return head_dim_tile == 64 ? 7 : head_dim_tile == 128 ? 9 : 5;
}
// As many as LDS holds when the two SIMDs of a CU have half of it (CU mode); registers allow as
// many.
constexpr int decode_waves_per_simd(int head_dim_tile) {
  return head_dim_tile == 64 ? 9 : head_dim_tile == 128 ? 4 : 2;
}
// The same; registers would allow more.
constexpr int wide_decode_waves_per_simd(int head_dim_tile) { return head_dim_tile < 256 ? 4 : 2; }

// Of providers of keys in pages (paged_keys.h): whether PooledKeys are served, or left to the next
// that serves them; whether the head must fill its tile for NearKeys and NearRowKeys.
inline constexpr bool kTakesPooledKeys = false;
inline constexpr bool kNearKeysFillHeads = true;

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX1201_LIMITS_H_
