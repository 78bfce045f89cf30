// gfx1201 main loop: out = softmax(K.Q^T)-weighted V for the query rows of one wave.
//
// Each wave walks its own key tiles; waves share nothing but caches. The operands of a tile, first
// those of K, then those of V, are one stream that is loaded kRingDepth operands ahead of the
// matrix core, across phases and tiles, so that loads are under way in every phase:
//
//   phase      | matrix core         | vector unit               | loads
//   scores     | S^T = K.Q^T         |                           | K, then the first of V
//   softmax    |                     | mask, maximum, exp2, pack | (under way)
//   accumulate | O^T += V^T.P^T      |                           | V, then the first of K of t+1
//
// A wave's matrix and vector instructions cannot overlap on this chip; those of different waves of
// a SIMD fill each other's waits.
//
// Registers per lane, query_tiles x:
//   H              64   128   256
//   rows, keys  32, 64  16, 32  16, 32
//   O              64    64   128      8 per 16 x 16 fragment
//   Q              32    32    64
//   S, P           64    16    16
//   operand ring   16    16    16
//   row state       8     4     4
//   addresses, temporaries: about 20; NearKeys: 2 per fragment of keys and 3; ScatteredKeys: 2 per
//   fragment and a page each
//   at most       216   168   256      7, 9 and 5 waves per SIMD
// With 16 rows a wave (decode.hip): at most 144, 168 and 256; LDS allows 10, 5 and 2 waves per
// SIMD.
#ifndef JAX_FA_KERNELS_ARCH_GFX1201_MAINLOOP_H_
#define JAX_FA_KERNELS_ARCH_GFX1201_MAINLOOP_H_

#include "kernels/arch/arch.h"
#include "kernels/arch/gfx1201/lds.h"
#include "kernels/arch/gfx1201/pooled.h"
#include "kernels/arch/gfx1201/scattered.h"
#include "kernels/attention/config.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/paged_keys.h"
#include "kernels/attention/softmax.h"
#include "kernels/device.h"
#include "kernels/tile/fragments.h"

namespace jax_fa::arch {

template <class Config, class Keys>
class Mainloop {
  using Element = typename Config::Element;
  using KeyReader = KeyOperands<Element, Keys, Config::kScoreTiles>;
  using ValueReader = ValueOperands<Element, Keys>;
  static constexpr int kRingDepth = 4;
  static constexpr int kKeyCount = Config::kScoreTiles * Config::kHeadSteps;  // operands per tile
  static constexpr int kValueCount = Config::kKeySteps * Config::kHeadTiles;
  static_assert((kKeyCount + kValueCount) % kRingDepth == 0, "a tile starts at slot 0");

 public:
  JAX_FA_DEVICE Mainloop(const Keys& keys, u32 /*wave*/)
      : head_bytes_(keys.head_bytes()), keys_(keys), values_(keys) {}

  // `wave` is the key tiles that this wave's rows need; those of the workgroup do not matter here.
  JAX_FA_DEVICE void run(const TileRange& /*workgroup*/, const TileRange& wave, const Mask& mask,
                         const QueryRows<Config>& rows, const QueryFragments<Config>& query,
                         Softmax<Config>& softmax, OutputFragments<Config>& output) {
    if (wave.end <= wave.begin) return;
    if (Keys::kWholeHeadOnly || head_bytes_ == Config::kHeadDim * sizeof(Element)) {
      walk<true>(wave, mask, rows, query, softmax, output);
    } else {
      if constexpr (!Keys::kWholeHeadOnly) walk<false>(wave, mask, rows, query, softmax, output);
    }
  }

 private:
  template <bool kWholeHead>
  JAX_FA_DEVICE void walk(const TileRange& wave, const Mask& mask, const QueryRows<Config>& rows,
                          const QueryFragments<Config>& query, Softmax<Config>& softmax,
                          OutputFragments<Config>& output) {
    // Key fragments in turn: consecutive matrix instructions have different accumulators.
    keys_.start(wave.begin * Config::kBlockKv);
    typename KeyReader::Tile key_tile = keys_.tile(wave.begin * Config::kBlockKv);
    const auto load_key = [&](int i) {
      return keys_.template read<kWholeHead>(key_tile, i % Config::kScoreTiles,
                                             i / Config::kScoreTiles);
    };
    typename ValueReader::Block block;
    const auto load_value = [&](int tile, int i) {
      if (i % Config::kHeadTiles == 0) {
        block = values_.block(key_tile, tile * Config::kBlockKv, i / Config::kHeadTiles);
      }
      return values_.template read<kWholeHead>(block, i % Config::kHeadTiles);
    };

    Operand<Element> ring[kRingDepth];
    JAX_FA_UNROLL for (int i = 0; i < kRingDepth; ++i) ring[i] = load_key(i);
#pragma nounroll
    for (int tile = wave.begin; tile < wave.end; ++tile) {
      keys_.begin_tile();
      values_.begin_tile();
      fence_schedule();
      ScoreFragments<Config> scores;
      JAX_FA_UNROLL for (int i = 0; i < kKeyCount; ++i) {
        const int fragment = i % Config::kScoreTiles, step = i / Config::kScoreTiles;
        JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
          Accumulator& s = scores.keys[q][fragment];
          s = multiply_add(ring[i % kRingDepth], query.step[q][step], step ? s : Accumulator(0.0f));
        }
        fence_schedule();
        const int next = i + kRingDepth;
        ring[i % kRingDepth] =
            next < kKeyCount ? load_key(next) : load_value(tile, next - kKeyCount);
        fence_schedule();
      }

      softmax.cap(scores);
      if (__builtin_expect(wave.cut(tile), 0)) {
        apply_mask<Config>(mask, wave, opaque_uniform(tile), rows, scores);
      }
      const ProbabilityFragments<Config> p = softmax.update(scores, output);
      ValueReader::hide(block);  // or base + offset is formed early, in vector registers
      keys_.fetch((tile + 1) * Config::kBlockKv);
      fence_schedule();

      JAX_FA_UNROLL for (int i = 0; i < kValueCount; ++i) {
        const int slot = (kKeyCount + i) % kRingDepth;
        JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
          Accumulator& o = output.head[q][i % Config::kHeadTiles];
          o = multiply_add(ring[slot], p.step[q][i / Config::kHeadTiles], o);
        }
        fence_schedule();
        const int next = i + kRingDepth;
        // Past the last tile the rows that follow are read, or zeros: nothing outside the operand.
        if (next == kValueCount) key_tile = keys_.tile((tile + 1) * Config::kBlockKv);
        ring[slot] = next < kValueCount ? load_value(tile, next) : load_key(next - kValueCount);
        fence_schedule();
      }
    }
  }

  u32 head_bytes_;
  KeyReader keys_;
  ValueReader values_;
};

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX1201_MAINLOOP_H_
