// gfx1201 main loop: out = softmax(K.Q^T)-weighted V for the query rows of one wave, with
// operands straight from memory. staged_mainloop.h is for workgroups whose waves load for each
// other.
//
// Each wave walks its own key tiles; waves share nothing but caches. The operands of a tile, first
// those of K, then those of V, are one stream that is loaded kRingDepth operands ahead of the
// matrix core, across phases and tiles, so that loads are under way in every phase:
//
//   phase      | matrix core         | vector unit               | loads
//   scores     | S^T = K.Q^T         |                           | K, then the first of V
//   softmax    |                     | scale, exp2, pack, sum    | (under way)
//   accumulate | O^T += V^T.P^T      |                           | V, then the first of K of t+1
//
// A wave's matrix and vector instructions cannot overlap on this chip; those of different waves of
// a SIMD fill each other's waits.
//
// Vector instructions for 32 keys of 16 rows, beside 32 matrix ones: at H = 128 without pages
// (guarded_softmax.h says how) to scale 8, to pack 8, to sum 9, to compare sums 1, moves 11;
// elsewhere a maximum 8, to scale 16, to pack 8, to sum 8, others 2. And 16 exponentials, which go
// another way.
//
// A head that ends inside its tile (H = 96) takes a loop of its own number of 16-element steps, so
// that nothing is multiplied, and nothing read, of those that are not there, and each load is found
// as cheaply as in a whole head: only the last step has lanes past the head, for which each
// provider of operands holds a register.
//
// Registers per lane, query_tiles x:
//   H              64   128   256
//   rows, keys  32, 64  16, 32  16, 32
//   O              64    64   128      8 per 16 x 16 fragment
//   Q              32    32    64
//   S, P           64    16    16
//   operand ring   16    16    16
//   row state       8    12     4      H = 128: 8 of them what sums of products start from
//   addresses, temporaries: about 20; NearTwoPageKeys: 3 per fragment of keys and 4;
//   NearRowKeys: 3 per fragment and 2; FarRowKeys: 2 per fragment and a page each
//   at most       216   168   256      7, 9 and 5 waves per SIMD
// With 16 rows a wave (decode.hip): at most 144, 168 and 256; LDS allows 10, 5 and 2 waves per
// SIMD.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX1201_MAINLOOP_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX1201_MAINLOOP_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/config.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/paged_keys.h"
#include "kernels/attention/softmax.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx1201/buffered_keys.h"
#include "kernels/mainloop/gfx1201/far_row_keys.h"
#include "kernels/mainloop/gfx1201/guarded_softmax.h"
#include "kernels/mainloop/gfx1201/near_keys.h"
#include "kernels/mainloop/gfx1201/staged_mainloop.h"
#include "kernels/mainloop/gfx1201/tile_attention.h"
#include "kernels/mainloop/gfx1201/tiles.h"
#include "kernels/tile/fragments.h"

#define JAX_FA_HAS_WIDE_DECODE 1

namespace jax_fa {

template <class Config, class Keys>
class Mainloop {
  using Element = typename Config::Element;
  using KeyReader = KeyOperands<Element, Keys, Config::kScoreTiles>;
  using ValueReader = ValueOperands<Element, Keys>;
  static constexpr bool kWholeHeadOnly = kServedHeads<Keys> == ServedHeads::kWhole;

 public:
  JAX_FA_DEVICE Mainloop(const Keys& keys, u32 /*wave*/)
      : head_bytes_(keys.head_bytes()), keys_(keys), values_(keys) {}

  // `wave` is the key tiles that this wave's rows need; those of the workgroup do not matter here.
  JAX_FA_DEVICE void run(const TileRange& /*workgroup*/, const TileRange& wave, const Mask& mask,
                         const QueryRows<Config>& rows, const QueryFragments<Config>& query,
                         Softmax<Config>& softmax, OutputFragments<Config>& output) {
    if (wave.end <= wave.begin) return;
    choose<kFirstSteps>(wave, mask, rows, query, softmax, output);
  }

 private:
  // A head that ends inside the tile takes a loop of its own number of steps. Decode waits for
  // memory, and rows anywhere for their addresses: they have one loop for all such heads.
  static constexpr bool kCountsSteps = !Config::kSplits && !__is_same(Keys, FarRowKeys);
  // Loops are so many steps apart: the largest head's share of one is small.
  static constexpr int kStepsApart = Config::kHeadDim <= 128 ? 1 : kMaxHeldSteps;
  // The launcher takes the narrowest of the tiles 64, 128 and 256 that holds H.
  static constexpr int kFewestSteps =
      Config::kHeadDim <= 64 ? 1 : Config::kHeadSteps / 2 + kStepsApart;
  static constexpr int kFirstSteps =
      kWholeHeadOnly || !kCountsSteps ? Config::kHeadSteps : kFewestSteps;

  template <int kSteps>
  JAX_FA_DEVICE void choose(const TileRange& wave, const Mask& mask, const QueryRows<Config>& rows,
                            const QueryFragments<Config>& query, Softmax<Config>& softmax,
                            OutputFragments<Config>& output) {
    constexpr int kStepBytes = arch::kFragmentDepth * sizeof(Element);
    constexpr HeadCut kCut =
        kCountsSteps ? HeadCut{.first = kSteps - kStepsApart, .held = true} : kCutAnywhere;
    if constexpr (kSteps < Config::kHeadSteps) {
      if (head_bytes_ <= kSteps * kStepBytes) {
        walk<kSteps, kCut>(wave, mask, rows, query, softmax, output);
      } else {
        choose<kSteps + kStepsApart>(wave, mask, rows, query, softmax, output);
      }
    } else if (kWholeHeadOnly || head_bytes_ == kSteps * kStepBytes) {
      walk<kSteps, kWholeHead>(wave, mask, rows, query, softmax, output);
    } else {
      if constexpr (!kWholeHeadOnly) walk<kSteps, kCut>(wave, mask, rows, query, softmax, output);
    }
  }

  template <int kSteps, HeadCut kCut>
  JAX_FA_DEVICE void walk(const TileRange& wave, const Mask& mask, const QueryRows<Config>& rows,
                          const QueryFragments<Config>& query, Softmax<Config>& softmax,
                          OutputFragments<Config>& output) {
    using Attention = TileAttention<Config, kSteps>;
    if constexpr (kCut.held) {
      keys_.hold(kCut.first);
      values_.hold(kCut.first);
    }
    keys_.start(wave.begin * Config::kBlockKv);
    typename KeyReader::Tile key_tile = keys_.tile(wave.begin * Config::kBlockKv);
    const auto load_key = [&](int i) {
      return keys_.template read<kCut>(key_tile, Attention::key_fragment(i),
                                       Attention::key_step(i));
    };
    typename ValueReader::Block block;
    const auto load_value = [&](int tile, int i) {
      if (Attention::value_column(i) == 0) {
        block = values_.block(key_tile, tile * Config::kBlockKv, Attention::value_fragment(i));
      }
      return values_.template read<kCut>(block, Attention::value_column(i));
    };

    typename Attention::Ring ring;
    JAX_FA_UNROLL for (int i = 0; i < Attention::kRingDepth; ++i) ring[i] = load_key(i);
#pragma nounroll
    for (int tile = wave.begin; tile < wave.end; ++tile) {
      const auto load = [&](int i) {
        if (i < Attention::kKeyCount) return load_key(i);
        if (i < Attention::kCount) return load_value(tile, i - Attention::kKeyCount);
        // Past the last tile the rows that follow are read, or zeros: nothing outside the operand.
        if (i == Attention::kCount) key_tile = keys_.tile((tile + 1) * Config::kBlockKv);
        return load_key(i - Attention::kCount);
      };
      keys_.begin_tile();
      values_.begin_tile();
      arch::fence_schedule();
      const HeldQuery<Config> held(query);
      const auto pause = [&] {
        values_.hide(block);  // or base + offset is formed early, in vector registers
        keys_.fetch((tile + 1) * Config::kBlockKv);
      };
      if constexpr (kGuardsSums<Config>) {
        Attention::run_guarded(tile, wave, mask, rows, held, softmax, output, ring, load, pause);
      } else {
        Attention::run(tile, wave, mask, rows, held, softmax, output, ring, load, pause);
      }
    }
  }

  u32 head_bytes_;
  KeyReader keys_;
  ValueReader values_;
};

// Puts the queries where the main loops read them, before the first of these: stored by one main
// loop, they would have to lie in registers for the others.
template <class Config>
JAX_FA_DEVICE void stage_query(const QueryFragments<Config>& query, u32 wave) {
  if constexpr (Config::kTile.query_bytes > 0) StagedQuery<Config>::store(query, wave);
}

// Kernels whose tiles lie in LDS.
template <class Config, class Keys>
  requires(Config::kTile.stages > 0)
class Mainloop<Config, Keys> : public StagedMainloop<Config, Keys> {
 public:
  using StagedMainloop<Config, Keys>::StagedMainloop;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX1201_MAINLOOP_H_
