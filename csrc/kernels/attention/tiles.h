// What the launcher and the kernels must agree on: the numbers of a tile and the size of the grid.
// Plain C++ for both sides; mainloop/<target>/tiles.h has the numbers chosen for a target.
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

// How many query tiles a sequence has, or, where `seqlen_q` is the packed total of `batch`
// sequences, how many slots they all have. A token takes `rows_per_token` rows of a tile: the heads
// of a group when they are packed.
constexpr long long QuerySlots(const AttentionTile& tile, bool packed, long long batch,
                               long long seqlen_q, long long rows_per_token) {
  const long long tiles = (seqlen_q * rows_per_token + tile.block_q() - 1) / tile.block_q();
  return packed ? tiles + batch + 1 : tiles;
}

// How many workgroups a launch has, all in the grid's x; a token has rows in each of `heads` tiles.
constexpr long long AttentionGrid(const AttentionTile& tile, bool packed, long long batch,
                                  long long seqlen_q, long long rows_per_token, long long heads,
                                  long long num_splits) {
  const long long slots = QuerySlots(tile, packed, batch, seqlen_q, rows_per_token);
  return slots * (packed ? 1 : batch) * heads * num_splits;
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_TILES_H_
