// gfx1201 main loop of workgroups whose waves have rows of their own and copy K and V together:
// every operand of a tile is loaded by one wave and lies in LDS, as it lies in registers, for all.
// All waves do the same in every tile t, those without rows the copying alone:
//
//   phase      | global -> registers  | LDS                       | matrix core, vector unit
//   store      | wait for t           | registers -> stage of t   |
//   meet       |                      | barrier                   |
//   load       | start t+1            |                           |
//   attend     |   (under way)        | operands of t, read ahead | as in mainloop.h
//
// One barrier per tile. It says two things at once: every wave's share of t is in LDS, and every
// wave has finished reading t-1, whose place t+1 takes.
//
// Registers per lane:
//   H              64   128   256
//   rows, keys  16, 64  16, 32  16, 16
//   O              32    64   128      8 per 16 x 16 fragment
//   Q              16    32    16      H = 256: in LDS, and read ahead as K is
//   S, P           32    16     8
//   operand ring   16    16    16
//   copies         32    32    32      a wave's share of t+1
//   row state, addresses, temporaries: about 20; providers of pages: as in mainloop.h
//   at most       168   192   240      LDS allows 4, 4 and 2 waves per SIMD
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX1201_STAGED_MAINLOOP_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX1201_STAGED_MAINLOOP_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/config.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/softmax.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx1201/buffered_keys.h"
#include "kernels/mainloop/gfx1201/far_row_keys.h"
#include "kernels/mainloop/gfx1201/near_keys.h"
#include "kernels/mainloop/gfx1201/tile_attention.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

// The only LDS of the kernel, whichever main loops it has.
template <class Config>
struct StagedOperands {
  using Attention = TileAttention<Config>;
  using Lanes = Vector<u32, 4>[target::kWaveSize];  // an operand
  struct Stage {
    Lanes key[Attention::kKeyCount];
    Lanes value[Attention::kValueCount];
  };
  static_assert(sizeof(Stage) == 2 * Config::kTile.tile_bytes);
  // The queries of a wave, [query tile][step].
  using Query = Lanes[Config::kQueryTiles][Config::kHeadSteps];

  JAX_FA_DEVICE static JAX_FA_IN_LDS Stage* stages() {
    static JAX_FA_SHARED Stage stages[Config::kTile.stages];
    return (JAX_FA_IN_LDS Stage*)stages;
  }
  JAX_FA_DEVICE static JAX_FA_IN_LDS Query& query(u32 wave) {
    static_assert(sizeof(Query) * Config::kWaves == Config::kTile.query_bytes);
    static JAX_FA_SHARED Query queries[Config::kWaves];
    return ((JAX_FA_IN_LDS Query*)queries)[wave];
  }
};

// The queries of a wave in LDS, read ahead as the operands of K are.
template <class Config>
class StagedQuery {
  using Element = typename Config::Element;
  using Operands = typename StagedOperands<Config>::Query;
  static constexpr int kDepth = TileAttention<Config>::kRingDepth;

 public:
  JAX_FA_DEVICE explicit StagedQuery(u32 wave)
      : operands_(StagedOperands<Config>::query(wave)), lane_(arch::opaque(arch::lane_id())) {}

  JAX_FA_DEVICE static void store(const QueryFragments<Config>& query, u32 wave) {
    const u32 lane = arch::lane_id();
    JAX_FA_IN_LDS Operands& operands = StagedOperands<Config>::query(wave);
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      JAX_FA_UNROLL for (int s = 0; s < Config::kHeadSteps; ++s) {
        operands[q][s][lane] = __builtin_bit_cast(Vector<u32, 4>, query.step[q][s]);
      }
    }
  }
  JAX_FA_DEVICE void start() { JAX_FA_UNROLL for (int s = 0; s < kDepth; ++s) read(s); }
  JAX_FA_DEVICE arch::Operand<Element> operand(int query_tile, int step) const {
    return ring_[query_tile][step % kDepth];
  }
  JAX_FA_DEVICE void advance(int step) {
    if (step + kDepth < Config::kHeadSteps) read(step + kDepth);
  }

 private:
  JAX_FA_DEVICE void read(int step) {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      ring_[q][step % kDepth] =
          __builtin_bit_cast(arch::Operand<Element>, operands_[q][step][lane_]);
    }
  }

  JAX_FA_IN_LDS Operands& operands_;
  u32 lane_;
  arch::Operand<Element> ring_[Config::kQueryTiles][kDepth];
};

template <class Config, class Keys>
class StagedMainloop {
  using Element = typename Config::Element;
  using Attention = TileAttention<Config>;
  using Stage = typename StagedOperands<Config>::Stage;
  using KeyReader = KeyOperands<Element, Keys, Config::kScoreTiles>;
  using ValueReader = ValueOperands<Element, Keys>;
  static constexpr bool kWholeHeadOnly = kServedHeads<Keys> == ServedHeads::kWhole;
  // A wave's share of the head, of every key.
  static constexpr int kSteps = Config::kHeadSteps / Config::kWaves;
  static constexpr int kColumns = Config::kHeadTiles / Config::kWaves;
  static constexpr int kKeyShare = kSteps * Config::kScoreTiles;  // operands
  static constexpr int kValueShare = kColumns * Config::kKeySteps;
  static_assert(Config::kHeadSteps % Config::kWaves == 0 &&
                Config::kHeadTiles % Config::kWaves == 0);
  static_assert(Config::kTile.stages == 2);
  static constexpr bool kStagesQuery = Config::kTile.query_bytes > 0;

 public:
  JAX_FA_DEVICE StagedMainloop(const Keys& keys, u32 wave)
      : head_bytes_(keys.head_bytes()),
        wave_(wave),
        keys_(keys, wave * kSteps),
        values_(keys, wave * kColumns) {}

  // `workgroup` and `wave` are the key tiles that all rows, and this wave's rows, need.
  JAX_FA_DEVICE void run(const TileRange& workgroup, const TileRange& wave, const Mask& mask,
                         const QueryRows<Config>& rows, const QueryFragments<Config>& query,
                         Softmax<Config>& softmax, OutputFragments<Config>& output) {
    if (workgroup.end <= workgroup.begin) return;
    if (kWholeHeadOnly || head_bytes_ == Config::kHeadDim * sizeof(Element)) {
      walk<kWholeHead>(workgroup, wave, mask, rows, query, softmax, output);
    } else {
      if constexpr (!kWholeHeadOnly) {
        walk<kCutAnywhere>(workgroup, wave, mask, rows, query, softmax, output);
      }
    }
  }

 private:
  // This wave's share of a tile.
  struct Share {
    arch::Operand<Element> key[kKeyShare];
    arch::Operand<Element> value[kValueShare];
  };

  template <HeadCut kCut>
  JAX_FA_DEVICE void walk(const TileRange& workgroup, const TileRange& wave, const Mask& mask,
                          const QueryRows<Config>& rows, const QueryFragments<Config>& query,
                          Softmax<Config>& softmax, OutputFragments<Config>& output) {
    Share share;
    keys_.start(workgroup.begin * Config::kBlockKv);
    load<kCut>(workgroup.begin, share);
    u32 stage = 0;
#pragma nounroll
    for (int tile = workgroup.begin; tile < workgroup.end; ++tile) {
      store(share, stage);
      arch::share_lds();
      if (tile + 1 < workgroup.end) load<kCut>(tile + 1, share);
      arch::fence_schedule();
      if (wave.holds(tile)) {
        const u32 lane = arch::opaque(arch::lane_id());
        const JAX_FA_IN_LDS Stage& staged = StagedOperands<Config>::stages()[stage];
        const auto read = [&](int i) {
          if (i < Attention::kKeyCount) {
            return __builtin_bit_cast(arch::Operand<Element>, staged.key[i][lane]);
          }
          i -= Attention::kKeyCount;
          // Reads past the tile give the last operand again, which nobody uses.
          if (i >= Attention::kValueCount) i = Attention::kValueCount - 1;
          return __builtin_bit_cast(arch::Operand<Element>, staged.value[value_place(i)][lane]);
        };
        auto queries = [&] {
          if constexpr (kStagesQuery) {
            return StagedQuery<Config>(wave_);
          } else {
            return HeldQuery<Config>(query);
          }
        }();
        queries.start();
        typename Attention::Ring ring;
        JAX_FA_UNROLL for (int i = 0; i < Attention::kRingDepth; ++i) ring[i] = read(i);
        arch::fence_schedule();
        Attention::run(tile, wave, mask, rows, queries, softmax, output, ring, read, [] {});
      }
      stage ^= 1;
    }
  }

  // In LDS a wave's share is one piece. Operands of K follow each other in the order of their use,
  // in which a wave's steps are consecutive; those of V are sorted by columns.
  static constexpr int value_place(int i) {
    return Attention::value_column(i) * Config::kKeySteps + Attention::value_fragment(i);
  }

  // Loads this wave's share of `tile`, which follows the tile of the last call.
  template <HeadCut kCut>
  JAX_FA_DEVICE void load(int tile, Share& share) {
    keys_.begin_tile();
    values_.begin_tile();
    const int first_key = tile * Config::kBlockKv;
    const typename KeyReader::Tile key_tile = keys_.tile(first_key);
    JAX_FA_UNROLL for (int i = 0; i < kKeyShare; ++i) {
      share.key[i] =
          keys_.template read<kCut>(key_tile, Attention::key_fragment(i), Attention::key_step(i));
    }
    JAX_FA_UNROLL for (int f = 0; f < Config::kKeySteps; ++f) {
      const typename ValueReader::Block block = values_.block(key_tile, first_key, f);
      JAX_FA_UNROLL for (int column = 0; column < kColumns; ++column) {
        share.value[column * Config::kKeySteps + f] = values_.template read<kCut>(block, column);
      }
    }
    keys_.fetch(first_key + Config::kBlockKv);
  }

  JAX_FA_DEVICE void store(const Share& share, u32 stage) const {
    const u32 lane = arch::opaque(arch::lane_id());
    JAX_FA_IN_LDS Stage& staged = StagedOperands<Config>::stages()[stage];
    JAX_FA_UNROLL for (int i = 0; i < kKeyShare; ++i) {
      staged.key[wave_ * kKeyShare + i][lane] = __builtin_bit_cast(Vector<u32, 4>, share.key[i]);
    }
    JAX_FA_UNROLL for (int i = 0; i < kValueShare; ++i) {
      staged.value[wave_ * kValueShare + i][lane] =
          __builtin_bit_cast(Vector<u32, 4>, share.value[i]);
    }
  }

  u32 head_bytes_;
  u32 wave_;
  KeyReader keys_;
  ValueReader values_;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX1201_STAGED_MAINLOOP_H_
