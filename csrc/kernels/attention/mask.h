// Which keys a row sees, which key tiles a set of rows needs, and which of those need a mask.
//
// Query t of a sequence with diagonal d sees key s when
//   0 <= s < S_b  and  t + d - window_left <= s <= t + d + window_right.
// Indices stay below 2^30 and an open window is kOpenWindow < 2^30, so sums fit in 32 bits.
#ifndef JAX_FA_KERNELS_ATTENTION_MASK_H_
#define JAX_FA_KERNELS_ATTENTION_MASK_H_

#include "kernels/arch/arch.h"
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

  JAX_FA_DEVICE int first_key(int row) const { return max_int(0, row + diagonal - window_left); }
  // One past the last.
  JAX_FA_DEVICE int end_key(int row) const {
    return min_int(key_length, row + diagonal + window_right + 1);
  }
};

// Key tiles [begin, end) hold every key that the rows see; tiles in [full_begin, full_end) are seen
// whole by every row.
struct TileRange {
  int begin = 0;
  int end = 0;
  int full_begin = 0;
  int full_end = 0;

  JAX_FA_DEVICE bool holds(int tile) const { return tile >= begin && tile < end; }
  // Some row's first key lies in or past the tile; some row's last key lies in or before it.
  JAX_FA_DEVICE bool cut_left(int tile) const { return tile < full_begin; }
  JAX_FA_DEVICE bool cut_right(int tile) const { return tile >= full_end; }
};

// Rows first_row .. end_row-1, in tiles of kBlockKv keys; an empty range when they see nothing.
template <int kBlockKv>
JAX_FA_DEVICE TileRange key_tiles(const Mask& mask, int first_row, int end_row) {
  TileRange range;
  if (end_row <= first_row) return range;
  const int begin = mask.first_key(first_row);
  const int end = mask.end_key(end_row - 1);
  if (end <= begin) return range;
  range.begin = begin / kBlockKv;
  range.end = ceil_div(end, kBlockKv);
  range.full_begin = ceil_div(mask.first_key(end_row - 1), kBlockKv);
  range.full_end = max_int(0, mask.end_key(first_row)) / kBlockKv;
  return range;
}

// Sets the scores of unseen keys to -inf. A select, not an addition: an unseen score may be NaN.
// `range` is the wave's, `first_row` its first row. Rare, so nothing of it is kept in registers
// from tile to tile; left and right apart, since a causal diagonal and a tail cut on the right
// only.
template <class Config>
JAX_FA_DEVICE void apply_mask(const Mask& mask, const TileRange& range, int tile, int first_row,
                              ScoreFragments<Config>& scores) {
  const int lane_key = tile * Config::kBlockKv + arch::opaque(arch::accumulator_row());
  const int lane_row = first_row + arch::opaque(arch::fragment_column());
  if (range.cut_right(tile)) {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      const int end = mask.end_key(lane_row + q * arch::kFragmentDim) - lane_key;
      scores.for_each(q, [&](float& score, int key) {
        if (key >= end) score = -infinity();
      });
    }
  }
  if (range.cut_left(tile)) {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      const int begin = mask.first_key(lane_row + q * arch::kFragmentDim) - lane_key;
      scores.for_each(q, [&](float& score, int key) {
        if (key < begin) score = -infinity();
      });
    }
  }
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_MASK_H_
