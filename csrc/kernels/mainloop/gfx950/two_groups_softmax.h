// gfx950: the online softmax of attention/softmax.h in the phases of the schedule of two groups.
//
// What differs: on the common tile the scores of all rows of a lane are scaled to c s - reference,
// made weights and packed, and one maximum of the packed weights, two to an instruction's lane,
// tells whether one of them has reached the limit. Then scores are made again from Q and K, and
// references move by them. A limit of zero sends every tile there: while a row of the wave has a
// base, or has yet to see its first key.
//
// A row's NaN reaches every limit, and the scores made again are compared as numbers, so that it
// hides no other row's score.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_SOFTMAX_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_SOFTMAX_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/softmax.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx950/switches.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

// Sums of the weights of a wave's rows, in the matrix block that takes them or behind the packs.
template <class Config, bool kMatrix = target::sums_on_matrix_core(Config::kHeadDim)>
struct WeightSums
    : arch::RowSums<typename Config::Element, Config::kQueryTiles, Config::kKeySteps> {};
template <class Config>
struct WeightSums<Config, false>
    : arch::LaneSums<typename Config::Element, Config::kQueryTiles, Config::kKeySteps> {};

template <class Config>
class PhasedSoftmax {
  using Element = typename Config::Element;
  using Scores = ScoreFragments<Config>;
  using Output = OutputFragments<Config>;
  using Probabilities = ProbabilityFragments<Config>;

 public:
  static constexpr bool kMatrixSums = target::sums_on_matrix_core(Config::kHeadDim);

  // What a weight may not reach, as a pair of elements: 2^kRescaleLimit; nothing, while a row of
  // the wave has a base or has yet to see its first key; or what no weight does.
  static constexpr u32 kForced = 0;
  static constexpr u32 kNoLimit = ~0u;
  static constexpr u32 kLimit =
      __builtin_bit_cast(unsigned short, static_cast<Element>(256.0f)) * 0x10001u;
  static_assert(Config::kRescaleLimit == 8.0f);

  // Otherwise references are the maxima so far, and weights 1 at most.
  static constexpr bool kLazy = target::kLazyReference;
  static constexpr float kMovesFrom = kLazy ? Config::kRescaleLimit : 0.0f;
  static constexpr float kJump = kLazy ? Config::kReferenceJump : 0.0f;

  static constexpr bool kCaps = Config::kSoftCap == SoftCap::kAlways;
  // Capped scores are below 0, hence scaled ones below -reference. Where the element has the range,
  // a reference jumps as far as makes that bound the limit: then no tile needs the test.
  static constexpr bool kBounds = kLazy && kCaps && !__is_same(Element, float16);
  static constexpr float kBoundedFrom = -Config::kRescaleLimit;
  static constexpr float kFarthestJump = 64.0f;

  JAX_FA_DEVICE explicit PhasedSoftmax(const Scale& scale) : scale_(scale) {
    if constexpr (kCaps) {
      scale_.natural = 2 * scale.cap;
      scale_.log2 = arch::uniform(2 * kLog2E * scale.cap);
    }
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) reference_[q] = 0.0f;
  }

  // --- The common tile ---------------------------------------------------------------------------
  // With a cap, scores s become -1 / (e^2x + 1), x = scale k.q / cap. They are raw scores of their
  // own, since cap tanh(x) = cap + 2 cap s. The cap comes before the mask: a capped -inf would be
  // seen again.
  template <int kFirst = 0, int kEnd = Config::kQueryTiles>
  JAX_FA_DEVICE void cap(Scores& scores) const {
    if constexpr (!kCaps) return;
    const auto phase = [&](auto step) {
      JAX_FA_UNROLL for (int q = kFirst; q < kEnd; ++q) {
        scores.for_each(q, [&](float& score, int) { score = step(score); });
      }
      arch::fence_schedule();
    };
    phase([&](float score) { return score * scale_.cap_exponent; });
    phase([](float score) { return arch::exp2(score); });
    phase([](float score) { return -1.0f - score; });
    phase([](float score) { return arch::reciprocal(score); });
  }
  // Raw scores become c s - reference.
  JAX_FA_DEVICE void scale(Scores& scores) const {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      scores.for_each(q, [&](float& score, int) {
        score = __builtin_fmaf(score, scale_.log2, -reference_[q]);
      });
    }
  }
  JAX_FA_DEVICE static void exponentiate(Scores& scores, int query_tile, int fragment) {
    JAX_FA_UNROLL for (int r = 0; r < arch::kAccumulatorRows; ++r) {
      const float score = scores.keys[query_tile][fragment][r];
      scores.keys[query_tile][fragment][r] = arch::exp2(score);
    }
  }
  JAX_FA_DEVICE static void pack(const Scores& scores, int query_tile, Probabilities& p) {
    JAX_FA_UNROLL for (int k = 0; k < Config::kKeySteps; ++k) {
      // Opaque: the compiler would make the halves of a pair again, one by one, for their maximum.
      p.step[query_tile][k] = arch::opaque(arch::pack_probabilities<Element, Config::kHeadDim>(
          &scores.keys[query_tile][k * arch::kScoresPerOperand]));
    }
  }
  // Whether a weight of this lane, of any row, reaches a limit. NaN does.
  JAX_FA_DEVICE static bool reaches_limit(const Probabilities& p, u32 limit) {
    constexpr int kPairs = arch::kOperandElements / 2;
    constexpr int kCount = Config::kQueryTiles * Config::kKeySteps * kPairs;
    const auto pair = [&](int i) -> u32 {
      const auto& operand =
          p.step[i / (Config::kKeySteps * kPairs)][i / kPairs % Config::kKeySteps];
      return __builtin_bit_cast(Vector<u32, kPairs>, operand)[i % kPairs];
    };
    u32 first = pair(0), second = pair(1);  // an instruction's result takes a while
    JAX_FA_UNROLL for (int i = 2; i + 3 < kCount; i += 4) {
      first = arch::maximum3_of_pairs(first, pair(i), pair(i + 1));
      second = arch::maximum3_of_pairs(second, pair(i + 2), pair(i + 3));
    }
    static_assert(kCount % 4 == 0);
    first = arch::maximum3_of_pairs(first, pair(kCount - 2), pair(kCount - 1));
    const u32 maximum = arch::maximum3_of_pairs(first, second, second);
    return (maximum >= limit) | ((maximum & 0xffff) >= (limit & 0xffff));
  }
  JAX_FA_DEVICE void add(const Probabilities& p, int query_tile) {
    sums_.add(query_tile, p.step[query_tile]);
  }

  // --- Rare tiles --------------------------------------------------------------------------------
  // The same as scale(), also where rows have a base.
  JAX_FA_DEVICE void scale_from_base(Scores& scores, int query_tile) const {
    const float base = this->base(query_tile), reference = this->reference(query_tile);
    scores.for_each(query_tile, [&](float& score, int) {
      score = __builtin_fmaf(score - base, scale_.log2, -reference);
    });
    arch::fence_schedule();
  }
  // The reference or base of a query tile's rows from raw scores, masked, which are then to be
  // scaled again. Returns what is the limit of the tiles to come, as far as the lane's row is
  // concerned. kFirst: no row has seen a key before.
  template <bool kFirst>
  JAX_FA_DEVICE u32 move(Scores& scores, Output& output, int q) {
    const float maximum = row_maximum(scores, q);
    const bool seen = !kFirst && !(sums_.so_far(q) == 0.0f);  // a NaN has been seen
    const float old_base = base(q), old_reference = reference(q);
    const float passed = __builtin_fmaf(maximum - old_base, scale_.log2, -old_reference);
    const bool moves = seen ? passed > kMovesFrom : maximum > -infinity();
    const bool large = __builtin_fabsf(maximum * scale_.log2) > kLargeScore;
    const float new_base = large ? maximum : 0.0f;
    const float new_reference = large ? kJump : above(maximum * scale_.log2);
    if constexpr (!kFirst) {
      const float change =
          __builtin_fmaf(old_base - new_base, scale_.log2, old_reference - new_reference);
      const float factor = (moves & seen) ? arch::exp2(change) : 1.0f;
      output.rescale(q, factor);
      sums_.rescale(q, factor);
    }
    reference_[q] = moves ? large ? new_base : new_reference : reference_[q];
    bases_ = moves ? (bases_ & ~(1u << q)) | static_cast<u32>(large) << q : bases_;
    const bool settled = !has_base(q) & (seen | moves);
    return settled ? kBounds && reference_[q] >= kBoundedFrom ? kNoLimit : kLimit : kForced;
  }
  template <bool kFirst>
  JAX_FA_DEVICE u32 move_all(Scores& scores, Output& output) {
    u32 limit = kNoLimit;
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      limit = min_u32(limit, move<kFirst>(scores, output, q));
      arch::fence_schedule();
    }
    return of_wave(limit);
  }
  // The limit of a wave from those of its lanes.
  JAX_FA_DEVICE static u32 of_wave(u32 limit) {
    if (arch::any_lane(limit == kForced)) return kForced;
    return kBounds && !arch::any_lane(limit == kLimit) ? kNoLimit : kLimit;
  }

  // --- Afterwards --------------------------------------------------------------------------------
  // Comes before the others.
  JAX_FA_DEVICE void finish() { sums_.gather(); }
  // The sum of a row's weights; 0 when it has seen no key.
  JAX_FA_DEVICE float row_sum(int query_tile) const { return sums_.total(query_tile); }
  // Natural logarithm of the sum of exp(logit). row_sum is not 0.
  JAX_FA_DEVICE float log_sum_exp(int query_tile) const {
    const float log2_sum = arch::log2(row_sum(query_tile));
    // References lie near half a capped scale below the logits: what is near is taken off first.
    const float half = kCaps ? 0.5f * scale_.log2 : 0.0f, cap = kCaps ? scale_.cap : 0.0f;
    const float above = reference(query_tile) + (has_base(query_tile) ? 0.0f : half);
    const float base_lse = __builtin_fmaf(base(query_tile), scale_.natural, cap);
    return (has_base(query_tile) ? base_lse : 0.0f) + (above + log2_sum) * kLn2;
  }

 private:
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
  // The reference of a row whose largest scaled score is `maximum`.
  JAX_FA_DEVICE static float above(float maximum) {
    const float reference = maximum + kJump;
    if constexpr (!kBounds) return reference;
    return __builtin_fmaxf(reference, __builtin_fminf(maximum + kFarthestJump, kBoundedFrom));
  }

  JAX_FA_DEVICE bool has_base(int q) const { return bases_ & 1u << q; }
  JAX_FA_DEVICE float base(int q) const { return has_base(q) ? reference_[q] : 0.0f; }
  JAX_FA_DEVICE float reference(int q) const { return has_base(q) ? kJump : reference_[q]; }

  Scale scale_;
  float reference_[Config::kQueryTiles];  // log2 units; of a row with a base, that in raw units
  u32 bases_ = 0;                         // bit q: the row of query tile q has a base
  WeightSums<Config> sums_;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_SOFTMAX_H_
