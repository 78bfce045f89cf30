// gfx950: the online softmax of attention/softmax.h in the phases of the schedule of two groups.
//
// What differs: on the common tile the scores of all rows of a lane are scaled first, to
// c s - reference, so that one comparison of one maximum serves them all. Where it passes the
// limit, references move by as much as the scaled scores say. What scaled scores cannot say, since
// their rounding has lost it (first sight of a key, scores far above the reference, rows with a
// base), is taken from raw scores. A limit of -inf sends every tile there: while a row of the wave
// has a base, or has yet to see its first key.
//
// The maximum passes over NaN, for a row's NaN must not hide another row's score.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_SOFTMAX_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_SOFTMAX_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/softmax.h"
#include "kernels/device.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

template <class Config>
class PhasedSoftmax {
  using Scores = ScoreFragments<Config>;
  using Output = OutputFragments<Config>;
  using Probabilities = ProbabilityFragments<Config>;

 public:
  static constexpr float kLimit = Config::kRescaleLimit;
  // Further above the reference than this, a scaled score has lost digits to its rounding.
  static constexpr float kFar = 4096.0f;

  JAX_FA_DEVICE explicit PhasedSoftmax(const Scale& scale) : scale_(scale) {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      reference_[q] = 0.0f;
      base_[q] = 0.0f;
    }
  }

  // --- The common tile ---------------------------------------------------------------------------
  // Raw scores become c s - reference.
  JAX_FA_DEVICE void scale(Scores& scores) const {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      scores.for_each(q, [&](float& score, int) {
        score = __builtin_fmaf(score, scale_.log2, -reference_[q]);
      });
    }
  }
  // The same on tiles of which rows may have a base.
  JAX_FA_DEVICE void scale_from_base(Scores& scores) const {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      scores.for_each(q, [&](float& score, int) {
        score = __builtin_fmaf(score - base_[q], scale_.log2, -reference_[q]);
      });
      arch::fence_schedule();
    }
  }
  // The largest score that this lane holds, of any row.
  JAX_FA_DEVICE static float lane_maximum(const Scores& scores) {
    return maximum_of<0, Config::kQueryTiles>(scores);
  }
  JAX_FA_DEVICE static void exponentiate(Scores& scores, int query_tile, int fragment) {
    JAX_FA_UNROLL for (int r = 0; r < arch::kAccumulatorRows; ++r) {
      const float score = scores.keys[query_tile][fragment][r];
      scores.keys[query_tile][fragment][r] = arch::exp2(score);
    }
  }
  JAX_FA_DEVICE static void pack(const Scores& scores, int query_tile, Probabilities& p) {
    JAX_FA_UNROLL for (int k = 0; k < Config::kKeySteps; ++k) {
      p.step[query_tile][k] = arch::pack_probabilities<typename Config::Element, Config::kHeadDim>(
          &scores.keys[query_tile][k * arch::kScoresPerOperand]);
    }
  }
  JAX_FA_DEVICE void add(const Probabilities& p, int query_tile) {
    sums_.add(query_tile, p.step[query_tile]);
  }

  // --- Rare tiles --------------------------------------------------------------------------------
  // References move so that scaled scores do not pass the limit; scores, sums and output follow.
  JAX_FA_DEVICE void move(Scores& scores, Output& output) {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      const float maximum = row_maximum(scores, q);
      const float raised = reference_[q] + (maximum + Config::kReferenceJump);
      const float reference = maximum > kLimit ? raised : reference_[q];
      const float step = reference - reference_[q];
      reference_[q] = reference;
      rescale(q, arch::exp2(-step), output);
      scores.for_each(q, [&](float& score, int) { score -= step; });
      arch::fence_schedule();
    }
  }

  // References and bases from raw scores, masked; those lose their row's base, and are then to be
  // scaled. Returns the limit of the tiles to come. kFirst: no row has seen a key before.
  template <bool kFirst>
  JAX_FA_DEVICE float move_by_raw_scores(Scores& scores, Output& output) {
    bool settled = true;
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      const float maximum = row_maximum(scores, q);
      const bool seen = !kFirst && !(row_sum(q) == 0.0f);  // a NaN has been seen
      const float passed = __builtin_fmaf(maximum - base_[q], scale_.log2, -reference_[q]);
      const bool moves = seen ? passed > kLimit : maximum > -infinity();
      const bool large = __builtin_fabsf(maximum * scale_.log2) > kLargeScore;
      const float base = large ? maximum : 0.0f;
      const float reference =
          __builtin_fmaf(large ? 0.0f : maximum, scale_.log2, Config::kReferenceJump);
      if constexpr (!kFirst) {
        const float change =
            __builtin_fmaf(base_[q] - base, scale_.log2, reference_[q] - reference);
        rescale(q, (moves & seen) ? arch::exp2(change) : 1.0f, output);
      }
      base_[q] = moves ? base : base_[q];
      reference_[q] = moves ? reference : reference_[q];
      settled &= (base_[q] == 0.0f) & (seen | moves);
      arch::fence_schedule();
    }
    return arch::any_lane(!settled) ? -infinity() : kLimit;
  }

  // --- Afterwards --------------------------------------------------------------------------------
  // The sum of a row's weights; 0 when it has seen no key.
  JAX_FA_DEVICE float row_sum(int query_tile) const { return sums_.total(query_tile); }
  // Natural logarithm of the sum of exp(logit). row_sum is not 0.
  JAX_FA_DEVICE float log_sum_exp(int query_tile) const {
    const float log2_sum = reference_[query_tile] + arch::log2(row_sum(query_tile));
    return __builtin_fmaf(base_[query_tile], scale_.natural, log2_sum * kLn2);
  }

 private:
  // Of query tiles kFirst .. kEnd-1. Three scores an instruction.
  template <int kFirst, int kEnd>
  JAX_FA_DEVICE static float maximum_of(const Scores& scores) {
    constexpr int kPerTile = Config::kScoreTiles * arch::kAccumulatorRows;
    constexpr int kScores = (kEnd - kFirst) * kPerTile;
    const auto score = [&](int i) -> float {
      const auto& tile = scores.keys[kFirst + i / kPerTile];
      return tile[i % kPerTile / arch::kAccumulatorRows][i % arch::kAccumulatorRows];
    };
    float maximum = score(0);
    JAX_FA_UNROLL for (int i = 1; i + 1 < kScores; i += 2) {
      maximum = arch::maximum_number(arch::maximum_number(maximum, score(i)), score(i + 1));
    }
    static_assert(kScores % 2 == 0);
    return arch::maximum_number(maximum, score(kScores - 1));
  }
  JAX_FA_DEVICE static float row_maximum(const Scores& scores, int query_tile) {
    float maximum = scores.keys[query_tile][0][0];
    JAX_FA_UNROLL for (auto& fragment : scores.keys[query_tile]) {
      JAX_FA_UNROLL for (int r = 0; r < arch::kAccumulatorRows; ++r) {
        const float score = fragment[r];
        maximum = arch::maximum_number(maximum, score);
      }
    }
    return arch::row_maximum(maximum);
  }
  JAX_FA_DEVICE void rescale(int query_tile, float factor, Output& output) {
    output.rescale(query_tile, factor);
    sums_.rescale(query_tile, factor);
  }

  Scale scale_;
  float reference_[Config::kQueryTiles];  // log2 units, after the base
  float base_[Config::kQueryTiles];       // raw units
  arch::RowSums<typename Config::Element, Config::kQueryTiles, Config::kKeySteps> sums_;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_SOFTMAX_H_
