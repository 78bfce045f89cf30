// gfx1201: the online softmax of flash kernels, whose instructions take the place of matrix ones.
//
// As in attention/softmax.h a row's weights are P = 2^(c s - reference) with a reference that moves
// seldom. What differs is how it is held and watched:
//   - The sums of products start from minus the reference, in raw units, so that a score leaves the
//     matrix core with its distance from it, and one multiplication, two of them an instruction, is
//     all that comes before the exponential. Where scores are capped, the cap's last multiply-add
//     takes the reference.
//   - No maximum is taken of common tiles. A score too far above the reference shows in the sum of
//     the weights, which is made in any case; then the tile is made again, carefully: with a
//     maximum and the reference moved. Tiles in which a row may see its first key are careful at
//     once, since too low a score shows in no sum.
//
// Very large scores and NaN: as in attention/softmax.h. A row with a base starts its products from
// 0, so that equal scores stay equal, and all tiles of its wave are careful.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX1201_GUARDED_SOFTMAX_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX1201_GUARDED_SOFTMAX_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/config.h"
#include "kernels/attention/softmax.h"
#include "kernels/device.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

// Decode waits for memory. Beside the largest head's output, 64 keys of 32 rows, or the places of
// pages there are no registers for it.
template <class Config>
inline constexpr bool kGuardsSums = !Config::kSplits && !Config::kPaged && Config::kHeadDim == 128;

template <class Config>
  requires(kGuardsSums<Config>)
class Softmax<Config> {
  using Element = typename Config::Element;
  static constexpr bool kCaps = Config::kSoftCap == SoftCap::kAlways;
  static_assert(Config::kSoftCap != SoftCap::kAsked);

 public:
  JAX_FA_DEVICE explicit Softmax(const Scale& scale)
      : scale_(scale),
        jump_(arch::uniform(__builtin_fmaxf(
            -kFarthestJump, __builtin_fminf(Config::kReferenceJump / scale.log2, kFarthestJump)))) {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      start_[q] = 0.0f;
      base_[q] = 0.0f;
      sum_[q] = 0.0f;
    }
  }

  // What a row's sums of products start from.
  JAX_FA_DEVICE arch::Accumulator start(int query_tile) const {
    return kCaps ? arch::Accumulator(0.0f) : start_[query_tile];
  }
  // Not 0 where every tile must be careful.
  JAX_FA_DEVICE u32 has_base() const { return has_base_; }

  // Makes of capped scores their distances from the reference, as Softmax::cap() of the shared
  // file.
  JAX_FA_DEVICE void cap(ScoreFragments<Config>& scores) const {
    if constexpr (!kCaps) return;
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      const float end = scale_.cap + start_[q][0];
      scores.for_each(q, [&](float& score, int) {
        const float t = arch::reciprocal(arch::exp2(score * scale_.cap_exponent) + 1.0f);
        score = __builtin_fmaf(t, -2 * scale_.cap, end);
      });
    }
  }

  // On careful tiles: moves the references of rows whose maximum asks for it; sums, output and the
  // scores at hand follow.
  JAX_FA_DEVICE void move_references(ScoreFragments<Config>& scores,
                                     OutputFragments<Config>& output) {
    bool has_base = false;
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      const float before = start_[q][0];
      // Of scores less the reference, or whole ones of a row with a base.
      const float maximum = arch::row_maximum(lane_maximum(scores, q));
      const float distance = maximum - base_[q];
      const bool seen = row_sum(q) != 0.0f;
      const bool moves =
          maximum > -infinity() && (!seen || distance * scale_.log2 > Config::kRescaleLimit);
      const float score = maximum - before;
      const bool large = __builtin_fabsf(score * scale_.log2) > kLargeScore;
      const float base = moves ? (large ? score : 0.0f) : base_[q];
      const float start = moves ? (large ? 0.0f : -(score + jump_)) : before;
      // By how much distances shrink; rows that keep their reference have 0 here.
      const float by = (base - base_[q]) - (start - before);
      const float factor = moves && seen ? arch::exp2(-by * scale_.log2) : 1.0f;
      scores.for_each(q, [&](float& s, int) { s = (s + (start - before)) - base; });
      base_[q] = base;
      JAX_FA_UNROLL for (int r = 0; r < arch::kAccumulatorRows; ++r) {
        start_[q][r] = arch::opaque(start);  // eight registers, not one that is copied each time
      }
      sum_[q] *= factor;
      output.rescale(q, factor);
      has_base |= base != 0.0f;
    }
    has_base_ = arch::lanes_where(has_base);
  }

  // Distances from the reference become weights, and sums gain them. Not 0, and nothing gained,
  // where a tile that is not careful must be.
  JAX_FA_DEVICE u32 update(ScoreFragments<Config>& scores, u32 careful,
                           ProbabilityFragments<Config>& p) {
    arch::fence_schedule();
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      scores.for_each(q, [&](float& score, int) { score *= scale_.log2; });
    }
    arch::fence_schedule();
    float sum[Config::kQueryTiles];
    bool over = false;
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      scores.for_each(q, [&](float& score, int) { score = arch::exp2(score); });
      JAX_FA_UNROLL for (int k = 0; k < Config::kKeySteps; ++k) {
        p.step[q][k] = arch::pack_probabilities<Element, Config::kHeadDim>(
            &scores.keys[q][k * arch::kScoresPerOperand]);
      }
      sum[q] = arch::add_elements(p.step[q], 0.0f);
      over |= sum[q] > kMostSum;
    }
    const u32 again = careful ? 0 : arch::lanes_where(over);
    if (__builtin_expect(again != 0, 0)) return again;
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) sum_[q] += sum[q];
    return 0;
  }

  // The sum of a row's weights; 0 when it has seen no key.
  JAX_FA_DEVICE float row_sum(int query_tile) const {
    return sum_[query_tile] + arch::other_half(sum_[query_tile]);
  }
  // Natural logarithm of the sum of exp(logit). row_sum is not 0.
  JAX_FA_DEVICE float log_sum_exp(int query_tile) const {
    const float log2_sum =
        arch::log2(row_sum(query_tile)) + arch::kPackingLossLog2<Element, Config::kHeadDim>;
    return __builtin_fmaf(base_[query_tile] - start_[query_tile][0], scale_.natural,
                          log2_sum * kLn2);
  }

 private:
  // The largest of a lane's scores.
  JAX_FA_DEVICE static float lane_maximum(ScoreFragments<Config>& scores, int query_tile) {
    float result = -infinity();
    scores.for_each(query_tile, [&](float& score, int) { result = arch::maximum(result, score); });
    return result;
  }

  // A lane's sum over a tile above which the reference must move: no weight of float16 overflows.
  static constexpr float kMostSum = __is_same(Element, float16) ? 16384.0f : 65536.0f;
  // A scale may be so small that no finite score is far from another.
  static constexpr float kFarthestJump = 0x1p96f;

  Scale scale_;
  float jump_;                                    // raw units
  arch::Accumulator start_[Config::kQueryTiles];  // minus the reference, raw units, eight times
  float base_[Config::kQueryTiles];               // raw units; then `start_` is 0
  float sum_[Config::kQueryTiles];                // of this lane's keys
  u32 has_base_ = 0;                              // the same for all lanes
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX1201_GUARDED_SOFTMAX_H_
