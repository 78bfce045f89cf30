// What a wave carries from tile to tile, as arrays of the chip's fragments.
//
// All are transposed: a lane's column of a fragment is a query row of the wave, so everything that
// belongs to a row (maximum, sum, mask, rescale factor) is lane-local.
#ifndef JAX_FA_KERNELS_TILE_FRAGMENTS_H_
#define JAX_FA_KERNELS_TILE_FRAGMENTS_H_

#include "kernels/arch/arch.h"
#include "kernels/device.h"

namespace jax_fa {

// Q^T, B operands: [query tile][32- or 16-element step of the head].
template <class Config>
struct QueryFragments {
  arch::Operand<typename Config::Element> step[Config::kQueryTiles][Config::kHeadSteps];
};

// S^T: [query tile][16 keys].
template <class Config>
struct ScoreFragments {
  arch::Accumulator keys[Config::kQueryTiles][Config::kScoreTiles];

  // Visits every score of a query tile as visit(score, key), key counted from this lane's first.
  template <class Visit>
  JAX_FA_DEVICE void for_each(int query_tile, Visit visit) {
    JAX_FA_UNROLL for (int f = 0; f < Config::kScoreTiles; ++f) {
      JAX_FA_UNROLL for (int r = 0; r < arch::kAccumulatorRows; ++r) {
        float score = keys[query_tile][f][r];
        visit(score, f * arch::kFragmentDim + r);
        keys[query_tile][f][r] = score;
      }
    }
  }
};

// P^T, B operands: [query tile][keys of one depth step].
template <class Config>
struct ProbabilityFragments {
  arch::Operand<typename Config::Element> step[Config::kQueryTiles][Config::kKeySteps];
};

// O^T, not yet divided by the row sum: [query tile][16 head elements].
template <class Config>
struct OutputFragments {
  arch::Accumulator head[Config::kQueryTiles][Config::kHeadTiles];

  JAX_FA_DEVICE void clear() {
    JAX_FA_UNROLL for (auto& row : head) {
      JAX_FA_UNROLL for (auto& fragment : row) fragment = 0.0f;
    }
  }
  JAX_FA_DEVICE void rescale(int query_tile, float factor) {
    JAX_FA_UNROLL for (auto& fragment : head[query_tile]) fragment *= factor;
  }
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_TILE_FRAGMENTS_H_
