// Online softmax over key tiles, in base 2, with a lazily moved reference.
//
// The weight of a raw score s = k.q is P = 2^(c s - reference), c = log2(e) scale >= 0 (the sign of
// a negative scale, and a zero scale, are taken by the queries when they are loaded). One reference
// per row serves all keys so far. Any reference gives the same softmax as long as P neither
// overflows nor vanishes, so it moves only when a score passes `threshold`, about
// kRescaleLimit / c above the row's maximum at the last move: a wave-wide vote per tile, each lane
// looking at its own scores only, and no combination over lanes on the common tile.
//
// Very large scores: where |c s| > 2^20 the rounding of the reference alone may be many powers of
// two. There the row gets a `base`, its maximum in raw units, which is subtracted from the raw
// scores before they are scaled (exactly, near the maximum). Its threshold is -inf, so that the
// rare path is taken, and the base subtracted, on every tile; common rows have base 0.
//
// Non-finite scores: v_maximum and the exponential hand on a NaN, which ends in the row's sum and
// output and nowhere else. -inf (unseen) weighs 0; a row that has seen nothing keeps its state.
#ifndef JAX_FA_KERNELS_ATTENTION_SOFTMAX_H_
#define JAX_FA_KERNELS_ATTENTION_SOFTMAX_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/config.h"
#include "kernels/device.h"
#include "kernels/params.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

// A row with |c s| above this takes a base: the reference's own rounding reaches 2^-4 there.
inline constexpr float kLargeScore = 1048576.0f;

// The scales of a launch, the same for all rows.
struct Scale {
  float natural;  // logit = natural * score, the score after the cap
  float log2;     // c
  float query;    // exact factor of the queries: 1, or -1 or 0 for a negative or zero scale
  float cap;
  float cap_exponent;  // 2 log2(e) scale / cap

  template <class Config>
  JAX_FA_DEVICE static Scale make(const AttentionParams& params) {
    Scale s;
    s.query = params.scale > 0 ? 1.0f : params.scale < 0 ? -1.0f : 0.0f;
    const float magnitude = params.scale == 0 ? 1.0f : __builtin_fabsf(params.scale);
    s.cap = params.soft_cap;
    const bool capped = s.caps<Config>();
    s.cap_exponent = capped ? arch::uniform(2 * kLog2E * magnitude / params.soft_cap) : 0.0f;
    s.natural = capped ? 1.0f : magnitude;
    s.log2 = arch::uniform(s.natural * kLog2E);
    return s;
  }

  template <class Config>
  JAX_FA_DEVICE bool caps() const {
    return Config::kSoftCap == SoftCap::kAlways ||
           (Config::kSoftCap == SoftCap::kAsked && cap != 0.0f);
  }
};

template <class Config>
class Softmax {
 public:
  JAX_FA_DEVICE explicit Softmax(const Scale& scale)
      : scale_(scale),
        headroom_(arch::uniform((Config::kReferenceJump + Config::kRescaleLimit) / scale.log2)) {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      reference_[q] = 0.0f;
      base_[q] = 0.0f;
      threshold_[q] = -infinity();
    }
  }

  // Raw scores become cap tanh(scale k.q / cap), by tanh(x) = 1 - 2 / (e^2x + 1); without a cap
  // they stay. The cap comes before the mask: a capped -inf would be seen again. The logit's error
  // is about 2^-22 cap.
  JAX_FA_DEVICE void cap(ScoreFragments<Config>& scores) const {
    if (!scale_.template caps<Config>()) return;
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      scores.for_each(q, [&](float& score, int) {
        const float t = arch::reciprocal(arch::exp2(score * scale_.cap_exponent) + 1.0f);
        score = __builtin_fmaf(t, -2 * scale_.cap, scale_.cap);
      });
    }
  }

  // Scores become probabilities; sums gain them; where the reference moves, sums and output follow.
  JAX_FA_DEVICE ProbabilityFragments<Config> update(ScoreFragments<Config>& scores,
                                                    OutputFragments<Config>& output) {
    float maxima[Config::kQueryTiles];
    bool passed = false;
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      maxima[q] = lane_maximum(scores, q);
      passed |= maxima[q] > threshold_[q];
    }
    if (__builtin_expect(arch::any_lane(passed), 0)) move_reference(maxima, scores, output);
    arch::fence_schedule();

    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      scores.for_each(q, [&](float& score, int) {
        score = arch::exp2(__builtin_fmaf(score, scale_.log2, -reference_[q]));
      });
    }
    arch::fence_schedule();

    ProbabilityFragments<Config> p;
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      JAX_FA_UNROLL for (int k = 0; k < Config::kKeySteps; ++k) {
        p.step[q][k] = arch::pack_probabilities<typename Config::Element, Config::kHeadDim>(
            &scores.keys[q][k * arch::kScoresPerOperand]);
      }
      sums_.add(q, p.step[q]);
    }
    return p;
  }

  // The sum of a row's weights; 0 when it has seen no key.
  JAX_FA_DEVICE float row_sum(int query_tile) const { return sums_.total(query_tile); }
  // Natural logarithm of the sum of exp(logit). row_sum is not 0.
  JAX_FA_DEVICE float log_sum_exp(int query_tile) const {
    const float log2_sum = reference_[query_tile] + arch::log2(row_sum(query_tile)) +
                           arch::kPackingLossLog2<typename Config::Element, Config::kHeadDim>;
    return __builtin_fmaf(base_[query_tile], scale_.natural, log2_sum * kLn2);
  }

 private:
  JAX_FA_DEVICE static float lane_maximum(ScoreFragments<Config>& scores, int query_tile) {
    constexpr int kScores = Config::kScoreTiles * arch::kAccumulatorRows;
    const auto score = [&](int i) -> float {
      return scores.keys[query_tile][i / arch::kAccumulatorRows][i % arch::kAccumulatorRows];
    };
    float result = arch::maximum3(score(0), score(1), score(2));
    JAX_FA_UNROLL for (int i = 3; i + 1 < kScores; i += 2) {
      result = arch::maximum3(result, score(i), score(i + 1));
    }
    static_assert(kScores % 2 == 0);
    return arch::maximum(result, score(kScores - 1));
  }

  // The rare path: first sight of a key, a score past a threshold, or a row with a base.
  JAX_FA_DEVICE void move_reference(const float (&maxima)[Config::kQueryTiles],
                                    ScoreFragments<Config>& scores,
                                    OutputFragments<Config>& output) {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      const float maximum = arch::row_maximum(maxima[q]);
      const bool has_base = base_[q] != 0.0f;
      const bool seen = has_base || threshold_[q] != -infinity();
      const float threshold = has_base ? base_[q] + headroom_ : threshold_[q];
      const bool moves = maximum > threshold;
      const bool large = __builtin_fabsf(maximum * scale_.log2) > kLargeScore;
      const float base = large ? maximum : 0.0f;
      const float reference =
          __builtin_fmaf(large ? 0.0f : maximum, scale_.log2, Config::kReferenceJump);
      const float change = __builtin_fmaf(base_[q] - base, scale_.log2, reference_[q] - reference);
      // Nothing has been summed before the first sight: any finite factor does.
      const float factor = moves && seen ? arch::exp2(change) : 1.0f;
      if (moves) {
        base_[q] = base;
        reference_[q] = reference;
        threshold_[q] = large ? -infinity() : maximum + headroom_;
      }
      output.rescale(q, factor);
      sums_.rescale(q, factor);
      scores.for_each(q, [&](float& score, int) { score -= base_[q]; });
    }
  }

  Scale scale_;
  float headroom_;                        // raw scores from a row's maximum to its threshold
  float reference_[Config::kQueryTiles];  // log2 units, after the base
  float threshold_[Config::kQueryTiles];  // raw units
  float base_[Config::kQueryTiles];       // raw units
  arch::RowSums<typename Config::Element, Config::kQueryTiles, Config::kKeySteps> sums_;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_SOFTMAX_H_
