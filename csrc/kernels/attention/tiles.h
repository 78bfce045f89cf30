// Tile numbers that the launcher and the kernels must agree on; plain C++ for both sides.
//
// A workgroup makes `block_q` query rows of one head of one sequence and walks the keys in tiles of
// `block_kv`. Its grid is one-dimensional (see FlashGrid); scheduler.h maps ids to work.
#ifndef JAX_FA_KERNELS_ATTENTION_TILES_H_
#define JAX_FA_KERNELS_ATTENTION_TILES_H_

namespace jax_fa {

struct FlashTile {
  int head_dim;     // the widest H that fits
  int waves;        // per workgroup
  int wave_size;    // lanes
  int query_tiles;  // 16-row query tiles per wave
  int block_kv;     // keys per tile
  int tile_bytes;   // LDS bytes of one K or V tile, padding included
  int stages;       // tiles of each of K and V that LDS holds at once

  constexpr int rows_per_wave() const { return 16 * query_tiles; }
  constexpr int block_q() const { return waves * rows_per_wave(); }
  constexpr int threads() const { return waves * wave_size; }
  constexpr int lds_bytes() const { return 2 * stages * tile_bytes; }
};

// gfx950: a tile is block_kv * 2 H bytes in pieces of 1024 B (one LDS-DMA instruction) at a pitch
// of 1056 B, which spreads the rows that one LDS pass touches over the banks.
inline constexpr int kGfx950PieceBytes = 1024;
inline constexpr int kGfx950PiecePitch = 1056;

constexpr FlashTile Gfx950Tile(int head_dim, int query_tiles, int block_kv, int stages) {
  return {head_dim,    /*waves=*/8, /*wave_size=*/64,
          query_tiles, block_kv,    block_kv * 2 * head_dim / kGfx950PieceBytes * kGfx950PiecePitch,
          stages};
}

inline constexpr FlashTile kGfx950Tiles[] = {
    Gfx950Tile(/*head_dim=*/64, /*query_tiles=*/3, /*block_kv=*/64, /*stages=*/2),
    Gfx950Tile(/*head_dim=*/128, /*query_tiles=*/3, /*block_kv=*/64, /*stages=*/2),
    Gfx950Tile(/*head_dim=*/256, /*query_tiles=*/2, /*block_kv=*/32, /*stages=*/2),
};

// gfx1201: K and V come from global memory, so a tile takes no LDS.
constexpr FlashTile Gfx1201Tile(int head_dim, int query_tiles, int block_kv) {
  return {head_dim, /*waves=*/8, /*wave_size=*/32, query_tiles, block_kv, 0, 0};
}

inline constexpr FlashTile kGfx1201Tiles[] = {
    Gfx1201Tile(/*head_dim=*/64, /*query_tiles=*/2, /*block_kv=*/64),
    Gfx1201Tile(/*head_dim=*/128, /*query_tiles=*/1, /*block_kv=*/32),
    Gfx1201Tile(/*head_dim=*/256, /*query_tiles=*/1, /*block_kv=*/32),
};

// The tile of `tiles` made for exactly this head size tile (64, 128, 256).
template <int kCount>
constexpr FlashTile FindTile(const FlashTile (&tiles)[kCount], int head_dim_tile) {
  for (const FlashTile& tile : tiles) {
    if (tile.head_dim == head_dim_tile) return tile;
  }
  return {};
}

// Workgroups of a dense launch, all in the grid's x: query tiles x heads x sequences.
constexpr long long FlashGrid(const FlashTile& tile, int batch, int seqlen_q, int num_heads) {
  const long long query_tiles =
      (static_cast<long long>(seqlen_q) + tile.block_q() - 1) / tile.block_q();
  return query_tiles * num_heads * batch;
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_TILES_H_
