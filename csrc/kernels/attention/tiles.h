// Tile numbers that the launcher and the kernels must agree on; plain C++ for both sides.
//
// A workgroup makes `block_q` query rows of one sequence and head, or, where the heads of a group
// are packed into one tile, of one key head, and walks the keys in tiles of `block_kv`. Its grid is
// one-dimensional (see AttentionGrid); scheduler.h maps ids to work.
#ifndef JAX_FA_KERNELS_ATTENTION_TILES_H_
#define JAX_FA_KERNELS_ATTENTION_TILES_H_

namespace jax_fa {

struct AttentionTile {
  int head_dim;     // the widest H that fits
  int waves;        // per workgroup
  int wave_size;    // lanes
  int query_tiles;  // 16-row query tiles per wave
  int block_kv;     // keys per tile
  int tile_bytes;   // LDS bytes of one K or V tile, padding included
  int stages;       // tiles of each of K and V that LDS holds at once
  int key_parts;    // waves that share their query rows, each with its part of the keys
  int query_bytes;  // LDS bytes of the query rows; 0: they are in registers

  constexpr int rows_per_wave() const { return 16 * query_tiles; }
  constexpr int block_q() const { return waves / key_parts * rows_per_wave(); }
  constexpr int threads() const { return waves * wave_size; }
  // What the waves with parts of the keys leave in LDS for the first of them: output and lse.
  constexpr int part_bytes() const { return query_tiles * (16 * head_dim + wave_size) * 4; }
  constexpr int lds_bytes() const {
    return query_bytes + 2 * stages * tile_bytes +
           waves / key_parts * (key_parts - 1) * part_bytes();
  }
};

// gfx950: a tile is block_kv * 2 H bytes in pieces of 1024 B (one LDS-DMA instruction) at a pitch
// of 1056 B, which spreads the rows that one LDS pass touches over the banks.
inline constexpr int kGfx950PieceBytes = 1024;
inline constexpr int kGfx950PiecePitch = 1056;

constexpr AttentionTile Gfx950Tile(int head_dim, int waves, int query_tiles, int block_kv) {
  const int tile_bytes = block_kv * 2 * head_dim / kGfx950PieceBytes * kGfx950PiecePitch;
  return {head_dim,   waves,        /*wave_size=*/64, query_tiles,      block_kv,
          tile_bytes, /*stages=*/2, /*key_parts=*/1,  /*query_bytes=*/0};
}

inline constexpr AttentionTile kGfx950FlashTiles[] = {
    Gfx950Tile(/*head_dim=*/64, /*waves=*/8, /*query_tiles=*/3, /*block_kv=*/64),
    Gfx950Tile(/*head_dim=*/128, /*waves=*/8, /*query_tiles=*/3, /*block_kv=*/64),
    Gfx950Tile(/*head_dim=*/256, /*waves=*/8, /*query_tiles=*/2, /*block_kv=*/32),
};

// Decode is bound by memory: the waves share the copying, and 64 rows hold what few tokens have.
inline constexpr AttentionTile kGfx950DecodeTiles[] = {
    Gfx950Tile(/*head_dim=*/64, /*waves=*/4, /*query_tiles=*/1, /*block_kv=*/64),
    Gfx950Tile(/*head_dim=*/128, /*waves=*/4, /*query_tiles=*/1, /*block_kv=*/64),
    Gfx950Tile(/*head_dim=*/256, /*waves=*/4, /*query_tiles=*/1, /*block_kv=*/32),
};

// gfx1201: each wave reads K and V from global memory, so a tile takes no LDS.
constexpr AttentionTile Gfx1201Tile(int head_dim, int waves, int query_tiles, int block_kv,
                                    int key_parts) {
  return {head_dim,         waves,        /*wave_size=*/32, query_tiles,      block_kv,
          /*tile_bytes=*/0, /*stages=*/0, key_parts,        /*query_bytes=*/0};
}

inline constexpr AttentionTile kGfx1201FlashTiles[] = {
    Gfx1201Tile(/*head_dim=*/64, /*waves=*/8, /*query_tiles=*/2, /*block_kv=*/64, /*key_parts=*/1),
    Gfx1201Tile(/*head_dim=*/128, /*waves=*/8, /*query_tiles=*/1, /*block_kv=*/32, /*key_parts=*/1),
    Gfx1201Tile(/*head_dim=*/256, /*waves=*/8, /*query_tiles=*/1, /*block_kv=*/32, /*key_parts=*/1),
};

// Decode is bound by memory: four waves on the same 16 rows have four times the loads under way.
inline constexpr AttentionTile kGfx1201DecodeTiles[] = {
    Gfx1201Tile(/*head_dim=*/64, /*waves=*/4, /*query_tiles=*/1, /*block_kv=*/64, /*key_parts=*/4),
    Gfx1201Tile(/*head_dim=*/128, /*waves=*/4, /*query_tiles=*/1, /*block_kv=*/32, /*key_parts=*/4),
    Gfx1201Tile(/*head_dim=*/256, /*waves=*/4, /*query_tiles=*/1, /*block_kv=*/32, /*key_parts=*/4),
};

// With more rows the waves share the copying, as on gfx950; in LDS a tile is its operands as they
// are in registers. The largest head's output leaves no registers for its queries.
constexpr AttentionTile Gfx1201WideTile(int head_dim, int block_kv) {
  constexpr int kWaves = 4;
  const int tile_bytes = block_kv * 2 * head_dim;
  const int query_bytes = head_dim < 256 ? 0 : kWaves * 16 * 2 * head_dim;
  return {head_dim,   kWaves,       /*wave_size=*/32, /*query_tiles=*/1, block_kv,
          tile_bytes, /*stages=*/2, /*key_parts=*/1,  query_bytes};
}

inline constexpr AttentionTile kGfx1201WideDecodeTiles[] = {
    Gfx1201WideTile(/*head_dim=*/64, /*block_kv=*/64),
    Gfx1201WideTile(/*head_dim=*/128, /*block_kv=*/32),
    Gfx1201WideTile(/*head_dim=*/256, /*block_kv=*/16),
};

// Threads of a workgroup of the merge of splits.
inline constexpr int kMergeThreads = 256;

// The tile of `tiles` made for exactly this head size tile (64, 128, 256).
template <int kCount>
constexpr AttentionTile FindTile(const AttentionTile (&tiles)[kCount], int head_dim_tile) {
  for (const AttentionTile& tile : tiles) {
    if (tile.head_dim == head_dim_tile) return tile;
  }
  return {};
}

// Dies of a chip, which workgroup ids go round and each of which has its own L2.
inline constexpr int kGfx950Dies = 8;
inline constexpr int kGfx1201Dies = 1;

// LDS that one workgroup may have.
inline constexpr int kGfx950LdsBytes = 160 * 1024;
inline constexpr int kGfx1201LdsBytes = 64 * 1024;

// Query tiles of a sequence, or, where `seqlen_q` is the packed total of `batch` sequences, slots
// of them all. A token takes `rows_per_token` rows of a tile: the heads of a group when they are
// packed.
constexpr long long QuerySlots(const AttentionTile& tile, bool packed, long long batch,
                               long long seqlen_q, long long rows_per_token) {
  const long long tiles = (seqlen_q * rows_per_token + tile.block_q() - 1) / tile.block_q();
  return packed ? tiles + batch + 1 : tiles;
}

// Workgroups of a launch, all in the grid's x; a token has rows in each of `heads` tiles.
constexpr long long AttentionGrid(const AttentionTile& tile, bool packed, long long batch,
                                  long long seqlen_q, long long rows_per_token, long long heads,
                                  long long num_splits) {
  const long long slots = QuerySlots(tile, packed, batch, seqlen_q, rows_per_token);
  return slots * (packed ? 1 : batch) * heads * num_splits;
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_TILES_H_
