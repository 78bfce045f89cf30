// gfx1201: the tile numbers of its kernels. Plain C++, since the launcher reads them too.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX1201_TILES_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX1201_TILES_H_

#include "kernels/arch/gfx1201/limits.h"
#include "kernels/attention/tiles.h"

namespace jax_fa::gfx1201 {

// Each wave reads K and V from global memory, so a tile takes no LDS.
constexpr AttentionTile make_tile(int head_dim, int waves, int query_tiles, int block_kv,
                                  int key_parts) {
  return {head_dim,         waves,        kWaveSize, query_tiles,      block_kv,
          /*tile_bytes=*/0, /*stages=*/0, key_parts, /*query_bytes=*/0};
}

inline constexpr AttentionTile kFlashTiles[] = {
    make_tile(/*head_dim=*/64, /*waves=*/8, /*query_tiles=*/2, /*block_kv=*/64, /*key_parts=*/1),
    make_tile(/*head_dim=*/128, /*waves=*/8, /*query_tiles=*/1, /*block_kv=*/32, /*key_parts=*/1),
    make_tile(/*head_dim=*/256, /*waves=*/8, /*query_tiles=*/1, /*block_kv=*/32, /*key_parts=*/1),
};

// Decode is bound by memory: four waves on the same 16 rows have four times the loads under way.
inline constexpr AttentionTile kDecodeTiles[] = {
    make_tile(/*head_dim=*/64, /*waves=*/4, /*query_tiles=*/1, /*block_kv=*/64, /*key_parts=*/4),
    make_tile(/*head_dim=*/128, /*waves=*/4, /*query_tiles=*/1, /*block_kv=*/32, /*key_parts=*/4),
    make_tile(/*head_dim=*/256, /*waves=*/4, /*query_tiles=*/1, /*block_kv=*/32, /*key_parts=*/4),
};

// With more rows the waves share the loading of K and V; in LDS a tile is its operands as they are
// in registers. The largest head's output leaves no registers for its queries.
constexpr AttentionTile make_wide_tile(int head_dim, int block_kv) {
  constexpr int kWaves = 4;
  const int tile_bytes = block_kv * 2 * head_dim;
  const int query_bytes = head_dim < 256 ? 0 : kWaves * 16 * 2 * head_dim;
  return {head_dim,   kWaves,       kWaveSize,       /*query_tiles=*/1, block_kv,
          tile_bytes, /*stages=*/2, /*key_parts=*/1, query_bytes};
}

inline constexpr AttentionTile kWideDecodeTiles[] = {
    make_wide_tile(/*head_dim=*/64, /*block_kv=*/64),
    make_wide_tile(/*head_dim=*/128, /*block_kv=*/32),
    make_wide_tile(/*head_dim=*/256, /*block_kv=*/16),
};

constexpr AttentionTile flash_tile(int head_dim_tile) {
  return FindTile(kFlashTiles, head_dim_tile);
}
constexpr AttentionTile decode_tile(int head_dim_tile) {
  return FindTile(kDecodeTiles, head_dim_tile);
}
constexpr AttentionTile wide_decode_tile(int head_dim_tile) {
  return FindTile(kWideDecodeTiles, head_dim_tile);
}

// Waves that share a SIMD: its 1536 registers a lane / (the budget of mainloop.h, in granules of
// 24).
constexpr int flash_waves_per_simd(int head_dim_tile) {
  return head_dim_tile == 64 ? 7 : head_dim_tile == 128 ? 9 : 5;
}
// As many waves as LDS holds when the two SIMDs of a CU have half of it (CU mode); registers allow
// as many.
constexpr int decode_waves_per_simd(int head_dim_tile) {
  return head_dim_tile == 64 ? 9 : head_dim_tile == 128 ? 4 : 2;
}
// As many waves as LDS holds, as for decode; registers would allow more.
constexpr int wide_decode_waves_per_simd(int head_dim_tile) { return head_dim_tile < 256 ? 4 : 2; }

}  // namespace jax_fa::gfx1201

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX1201_TILES_H_
