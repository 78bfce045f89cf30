// gfx950: the tile numbers of its kernels. Plain C++, since the launcher reads them too.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_TILES_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_TILES_H_

#include "kernels/arch/gfx950/limits.h"
#include "kernels/attention/tiles.h"

namespace jax_fa::gfx950 {

// In LDS a K or V tile is block_kv * 2 H bytes in pieces of 1024 B (one LDS-DMA instruction) at a
// pitch of 1056 B, which spreads the rows that one LDS pass touches over the banks.
inline constexpr int kPieceBytes = 1024;
inline constexpr int kPiecePitch = 1056;

constexpr AttentionTile make_tile(int head_dim, int waves, int query_tiles, int block_kv) {
  const int tile_bytes = block_kv * 2 * head_dim / kPieceBytes * kPiecePitch;
  return {head_dim,   waves,        kWaveSize,       query_tiles,      block_kv,
          tile_bytes, /*stages=*/2, /*key_parts=*/1, /*query_bytes=*/0};
}

inline constexpr AttentionTile kFlashTiles[] = {
    make_tile(/*head_dim=*/64, /*waves=*/8, /*query_tiles=*/3, /*block_kv=*/64),
    make_tile(/*head_dim=*/128, /*waves=*/8, /*query_tiles=*/3, /*block_kv=*/64),
    make_tile(/*head_dim=*/256, /*waves=*/8, /*query_tiles=*/2, /*block_kv=*/32),
};

// Decode is bound by memory: the waves share the copying, and 64 rows hold what few tokens have.
inline constexpr AttentionTile kDecodeTiles[] = {
    make_tile(/*head_dim=*/64, /*waves=*/4, /*query_tiles=*/1, /*block_kv=*/64),
    make_tile(/*head_dim=*/128, /*waves=*/4, /*query_tiles=*/1, /*block_kv=*/64),
    make_tile(/*head_dim=*/256, /*waves=*/4, /*query_tiles=*/1, /*block_kv=*/32),
};

constexpr AttentionTile flash_tile(int head_dim_tile) {
  return FindTile(kFlashTiles, head_dim_tile);
}
constexpr AttentionTile decode_tile(int head_dim_tile) {
  return FindTile(kDecodeTiles, head_dim_tile);
}
// None: every decode tile has 64 rows.
constexpr AttentionTile wide_decode_tile(int /*head_dim_tile*/) { return {}; }

// Two waves on each SIMD, which may use half of its 512 registers a lane: one workgroup of eight
// waves per CU, or two of four, as many as LDS holds.
constexpr int flash_waves_per_simd(int /*head_dim_tile*/) { return 2; }
constexpr int decode_waves_per_simd(int /*head_dim_tile*/) { return 2; }

}  // namespace jax_fa::gfx950

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_TILES_H_
