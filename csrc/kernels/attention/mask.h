// Which keys a row sees, which key tiles a set of rows needs, and which of those need a mask.
//
// Query t of a sequence with diagonal d sees key s when
//   0 <= s < S_b  and  t + d - window_left <= s <= t + d + window_right.
// Indices stay below 2^30 and an open window is kOpenWindow < 2^30, so sums fit in 32 bits.
#ifndef JAX_FA_KERNELS_ATTENTION_MASK_H_
#define JAX_FA_KERNELS_ATTENTION_MASK_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/query.h"
#include "kernels/attention/seqlen.h"
#include "kernels/device.h"
#include "kernels/params.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

struct Mask {
  int diagonal;
  int window_left;
  int window_right;
  int key_length;

  JAX_FA_DEVICE Mask(const AttentionParams& params, const Sequence& sequence)
      : diagonal(sequence.diagonal),
        window_left(params.window_left),
        window_right(params.window_right),
        key_length(sequence.key_length) {}

  JAX_FA_DEVICE int first_key(int token) const {
    return max_int(0, token + diagonal - window_left);
  }
  // One past the last key that the token sees.
  JAX_FA_DEVICE int end_key(int token) const {
    return min_int(key_length, token + diagonal + window_right + 1);
  }
};

// Key tiles [begin, end) hold every key that the rows see; tiles in [full_begin, full_end) are seen
// whole by every row.
struct TileRange {
  int begin = 0;
  int end = 0;
  int full_begin = 0;
  int full_end = 0;

  JAX_FA_DEVICE bool holds(int tile) const {
    return static_cast<u32>(tile - begin) < static_cast<u32>(max_int(0, end - begin));
  }
  // Left: some row's first key lies in or past the tile. Right: some row's last key lies in or
  // before it.
  JAX_FA_DEVICE bool cut_left(int tile) const { return tile < full_begin; }
  JAX_FA_DEVICE bool cut_right(int tile) const { return tile >= full_end; }
  JAX_FA_DEVICE bool cut(int tile) const {  // either, in one comparison
    const u32 full_tiles = max_int(0, full_end - full_begin);
    return static_cast<u32>(tile - full_begin) >= full_tiles;
  }
};

// The key tiles of tokens first_token .. end_token-1; an empty range when they see nothing.
template <int kBlockKv>
JAX_FA_DEVICE TileRange key_tiles(const Mask& mask, int first_token, int end_token) {
  TileRange range;
  if (end_token <= first_token) return range;
  const int begin = mask.first_key(first_token);
  const int end = mask.end_key(end_token - 1);
  if (end <= begin) return range;
  range.begin = begin / kBlockKv;
  range.end = ceil_div(end, kBlockKv);
  range.full_begin = ceil_div(mask.first_key(end_token - 1), kBlockKv);
  range.full_end = max_int(0, mask.end_key(first_token)) / kBlockKv;
  return range;
}

// The `index`th of `count` parts of a range, in order, of sizes that differ by one tile at most.
JAX_FA_DEVICE TileRange part_of(const TileRange& range, int index, int count) {
  const int tiles = max_int(0, range.end - range.begin);
  const int size = tiles / count, longer = tiles % count;
  TileRange part = range;
  part.begin = range.begin + index * size + min_int(index, longer);
  part.end = part.begin + size + (index < longer ? 1 : 0);
  return part;
}

// The tiles of `range` that lie in `part` too.
JAX_FA_DEVICE TileRange intersect(const TileRange& range, const TileRange& part) {
  TileRange both = range;
  both.begin = max_int(range.begin, part.begin);
  both.end = min_int(range.end, part.end);
  return both;
}

// Sets the scores of unseen keys to -inf, by a select and not by an addition, since an unseen score
// may be NaN. `range` and `rows` are the wave's. Few tiles are cut, so nothing of the mask is kept
// in registers from tile to tile; left and right are apart, since a causal diagonal and a tail cut
// on the right only. Query tiles kFirst .. kEnd-1.
template <class Config, int kFirst = 0, int kEnd = Config::kQueryTiles>
JAX_FA_DEVICE void apply_mask(const Mask& mask, const TileRange& range, int tile,
                              const QueryRows<Config>& rows, ScoreFragments<Config>& scores) {
  const int lane_key = tile * Config::kBlockKv + arch::opaque(arch::accumulator_row());
  if (range.cut_right(tile)) {
    JAX_FA_UNROLL for (int q = kFirst; q < kEnd; ++q) {
      const int end = mask.end_key(rows.token(q)) - lane_key;
      scores.for_each(q, [&](float& score, int key) {
        if (key >= end) score = -infinity();
      });
    }
  }
  if (range.cut_left(tile)) {
    JAX_FA_UNROLL for (int q = kFirst; q < kEnd; ++q) {
      const int begin = mask.first_key(rows.token(q)) - lane_key;
      scores.for_each(q, [&](float& score, int key) {
        if (key < begin) score = -infinity();
      });
    }
  }
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_MASK_H_
