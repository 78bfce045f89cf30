// gfx950 main loop: out = softmax(K.Q^T)-weighted V for the query rows of one workgroup. Many rows
// have the schedule of two_groups.h instead, but for pages that are not of whole key tiles.
//
// Eight waves, each with its own 16 * query_tiles rows; K and V tiles are shared through LDS, two
// of each, filled by LDS-DMA. Every wave does the same in every tile t:
//
//   phase      | global -> LDS       | LDS -> matrix core         | vector unit
//   meet       | wait for t; barrier |                            |
//   stage      | start t+1           |                            |
//   scores     |   (under way)       | S^T = K.Q^T                |
//   softmax    |   (under way)       | row sums                   | mask, maximum, exp2, pack
//   accumulate |   (under way)       | O^T += V^T.P^T             |
//
// One barrier per tile. It says two things at once: every wave's copies of t have landed (each
// waited for its own before it), and every wave has finished reading t-1, whose place t+1 takes.
// Waves whose rows see nothing of a tile copy their share and skip the rest.
//
// Registers per lane (of 256: two waves per SIMD), query_tiles x:
//   H        64   128   256
//   rows     48    48    32
//   O        48    96   128      4 per 16 x 16 fragment
//   Q        24    48    64
//   S, P     48    48    16
//   sums     12    12     8      and 5 for the operand of ones
//   operand ring 16 (H = 256: 8; in decode 12, FarRowKeys: 8), row state 9 (6), addresses about 10
//   NearPageKeys: 1; NearTwoPageKeys: 3; FarRowKeys: the pages of the next tile's rows
//   at most  184   256   256     no spills, no scratch, no AGPRs
// With 16 rows a wave (decode.hip): at most 96, 128 and 168.
// LDS, 2 stages of K and V: 33792 B (H = 64), 67584 B (128), 67584 B (256, 32 keys per tile); the
// kernels that have the other schedule too have its four stages.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_MAINLOOP_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_MAINLOOP_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/config.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/paged_keys.h"
#include "kernels/attention/softmax.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx950/buffered_keys.h"
#include "kernels/mainloop/gfx950/far_row_keys.h"
#include "kernels/mainloop/gfx950/near_keys.h"
#include "kernels/mainloop/gfx950/tiles.h"
#include "kernels/mainloop/gfx950/two_groups_forward.h"
#include "kernels/mainloop/own_body.h"
#include "kernels/tile/fragments.h"

#define JAX_FA_HAS_WIDE_DECODE 0  // every decode tile has 64 rows

namespace jax_fa {

// The only LDS of the kernel, whichever main loops it has.
template <class Config>
JAX_FA_DEVICE u32 tile_lds() {
  if constexpr (kInTwoGroups<Config>) return ring_lds<Config>();
  static JAX_FA_SHARED char lds[Config::kTile.lds_bytes()];
  return reinterpret_cast<u64>((JAX_FA_IN_LDS char*)lds);
}

// Queries stay in registers.
template <class Config>
JAX_FA_DEVICE void stage_query(const QueryFragments<Config>& /*query*/, u32 /*wave*/) {}

template <class Config, class Keys>
class Mainloop {
  using Element = typename Config::Element;
  using Tile = LdsTile<Element, Config::kBlockKv, Config::kHeadDim>;
  // Operands read ahead of the matrix core: fewer where registers are short.
  static constexpr int ring_depth() {
    if (Config::kHeadDim < 256) return 4;
    return kInTwoGroups<Config> || __is_same(Keys, FarRowKeys) ? 2 : 3;
  }
  static constexpr int kRingDepth = ring_depth();
  static_assert(Tile::kBytes == Config::kTile.tile_bytes);

 public:
  JAX_FA_DEVICE Mainloop(const Keys& keys, u32 wave)
      : stager_(keys, wave),
        key_base_(Tile::row_operand_base()),
        value_base_(Tile::column_operand_base()) {
    lds_base_ = tile_lds<Config>();
    key_base_ += lds_base_;
    value_base_ += lds_base_ + kValueOffset;
  }

  // `workgroup` and `wave` are the key tiles that all rows, and this wave's rows, need.
  JAX_FA_DEVICE void run(const TileRange& workgroup, const TileRange& wave, const Mask& mask,
                         const QueryRows<Config>& rows, const QueryFragments<Config>& query,
                         Softmax<Config>& softmax, OutputFragments<Config>& output) {
    if (workgroup.end <= workgroup.begin) return;
    stager_.start(workgroup.begin);
    stage_tile(workgroup.begin, 0);
    u32 stage = 0;
#pragma nounroll
    for (int tile = workgroup.begin; tile < workgroup.end; ++tile) {
      arch::wait_for_copies<0>();
      arch::workgroup_barrier();
      stage_tile(tile + 1, stage ^ 1);  // past the last tile there are zeros
      if (wave.holds(tile)) {
        arch::fence_schedule();
        ScoreFragments<Config> scores;
        compute_scores(arch::opaque(key_base_ + stage * Tile::kBytes), query, scores);
        arch::fence_schedule();
        softmax.cap(scores);
        if (__builtin_expect(wave.cut(tile), 0)) {
          apply_mask<Config>(mask, wave, arch::opaque_uniform(tile), rows, scores);
        }
        const ProbabilityFragments<Config> p = softmax.update(scores, output);
        arch::fence_schedule();
        accumulate_output(arch::opaque(value_base_ + stage * Tile::kBytes), p, output);
        arch::fence_schedule();
      }
      stage ^= 1;
    }
    arch::wait_for_copies<0>();
  }

 private:
  static constexpr u32 kValueOffset = Config::kTile.stages * Tile::kBytes;

  // Starts copying this wave's pieces of K and V tile `tile`.
  JAX_FA_DEVICE void stage_tile(int tile, u32 stage) {
    const u32 key_lds = lds_base_ + stage * Tile::kBytes;
    stager_.copy(tile, key_lds, key_lds + kValueOffset);
  }

  // Runs `use(i, operand)` for operands 0 .. kCount-1, each `read(i)` kRingDepth uses ahead.
  template <int kCount, class Read, class Use>
  JAX_FA_DEVICE static void stream_operands(Read read, Use use) {
    arch::Operand<Element> ring[kRingDepth];
    JAX_FA_UNROLL for (int i = 0; i < kRingDepth && i < kCount; ++i) ring[i] = read(i);
    arch::fence_schedule();
    JAX_FA_UNROLL for (int i = 0; i < kCount; ++i) {
      use(i, ring[i % kRingDepth]);
      arch::fence_schedule();
      if (i + kRingDepth < kCount) ring[i % kRingDepth] = read(i + kRingDepth);
      arch::fence_schedule();
    }
  }

  JAX_FA_DEVICE static void compute_scores(u32 key_base, const QueryFragments<Config>& query,
                                           ScoreFragments<Config>& scores) {
    constexpr int kSteps = Config::kHeadSteps;
    stream_operands<Config::kScoreTiles * kSteps>(
        [&](int i) { return Tile::read_rows(key_base, i / kSteps, i % kSteps); },
        [&](int i, arch::Operand<Element> key) {
          JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
            arch::Accumulator& s = scores.keys[q][i / kSteps];
            s = arch::multiply_add(key, query.step[q][i % kSteps],
                                   i % kSteps ? s : arch::Accumulator(0.0f));
          }
        });
  }

  JAX_FA_DEVICE static void accumulate_output(u32 value_base, const ProbabilityFragments<Config>& p,
                                              OutputFragments<Config>& output) {
    constexpr int kColumns = Config::kHeadTiles;
    stream_operands<Config::kKeySteps * kColumns>(
        [&](int i) { return Tile::read_columns(value_base, i / kColumns, i % kColumns); },
        [&](int i, arch::Operand<Element> value) {
          JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
            arch::Accumulator& o = output.head[q][i % kColumns];
            o = arch::multiply_add(value, p.step[q][i / kColumns], o);
          }
        });
  }

  Stager<Config, Keys> stager_;
  u32 lds_base_;
  u32 key_base_;  // this lane's LDS address in stage 0
  u32 value_base_;
};

template <class Config>
  requires(kInTwoGroups<Config>)
struct OwnBody<Config> {
  static constexpr bool kExists = true;
  static constexpr bool kServesAll = !Config::kPaged;
  JAX_FA_DEVICE static bool serves(const AttentionParams& params) {
    return kServesAll || FarPageKeys::serves<Config, /*kWholeHead=*/false>(params);
  }
  JAX_FA_DEVICE static void run() { forward_in_two_groups<Config>(); }
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_MAINLOOP_H_
