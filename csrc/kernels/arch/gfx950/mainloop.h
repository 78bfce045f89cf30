// gfx950 main loop: out = softmax(K.Q^T)-weighted V for the query rows of one workgroup.
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
//   operand ring 16, row state 9 (6), addresses and scalars about 10
//   at most  176   248   256     no spills, no scratch, no AGPRs
// LDS, 2 stages of K and V: 33792 B (H = 64), 67584 B (128), 67584 B (256, 32 keys per tile).
#ifndef JAX_FA_KERNELS_ARCH_GFX950_MAINLOOP_H_
#define JAX_FA_KERNELS_ARCH_GFX950_MAINLOOP_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/config.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/page_table.h"
#include "kernels/attention/softmax.h"
#include "kernels/device.h"
#include "kernels/tile/fragments.h"

namespace jax_fa::arch {

template <class Config, class Rows>
class Mainloop {
  using Element = typename Config::Element;
  using Tile = LdsTile<Element, Config::kBlockKv, Config::kHeadDim>;
  static constexpr int kPiecesPerWave = Tile::kPieces / Config::kWaves;
  static constexpr int kRingDepth = 4;  // operands read ahead of the matrix core
  static_assert(kPiecesPerWave * Config::kWaves == Tile::kPieces, "every wave copies its share");
  static_assert(Tile::kBytes == Config::kTile.tile_bytes);

 public:
  JAX_FA_DEVICE Mainloop(const Rows& keys, const Rows& values)
      : keys_(keys),
        values_(values),
        first_piece_(wave_id() * kPiecesPerWave),
        key_source_(Tile::source_offset(keys.row_stride_bytes(), keys.head_bytes())),
        value_source_(Tile::source_offset(values.row_stride_bytes(), values.head_bytes())),
        key_base_(Tile::row_operand_base()),
        value_base_(kValueOffset + Tile::column_operand_base()) {
    // The only LDS of the kernel.
    static JAX_FA_SHARED char lds[Config::kTile.lds_bytes()];
    lds_base_ = reinterpret_cast<u64>((JAX_FA_IN_LDS char*)lds);
    key_base_ += lds_base_;
    value_base_ += lds_base_;
  }

  // `workgroup` and `wave` are the key tiles that all rows, and this wave's rows, need.
  JAX_FA_DEVICE void run(const TileRange& workgroup, const TileRange& wave, const Mask& mask,
                         int first_row, const QueryFragments<Config>& query,
                         Softmax<Config>& softmax, OutputFragments<Config>& output) {
    if (workgroup.end <= workgroup.begin) return;
    stage_tile(workgroup.begin, 0);
    u32 stage = 0;
#pragma nounroll
    for (int tile = workgroup.begin; tile < workgroup.end; ++tile) {
      wait_for_copies<0>();
      workgroup_barrier();
      if (tile + 1 < workgroup.end) stage_tile(tile + 1, stage ^ 1);
      if (wave.holds(tile)) {
        fence_schedule();
        ScoreFragments<Config> scores;
        compute_scores(opaque(key_base_ + stage * Tile::kBytes), query, scores);
        fence_schedule();
        softmax.cap(scores);
        if (__builtin_expect(wave.cut_left(tile) || wave.cut_right(tile), 0)) {
          apply_mask<Config>(mask, wave, opaque_uniform(tile), first_row, scores);
        }
        const ProbabilityFragments<Config> p = softmax.update(scores, output);
        fence_schedule();
        accumulate_output(opaque(value_base_ + stage * Tile::kBytes), p, output);
        fence_schedule();
      }
      stage ^= 1;
    }
  }

 private:
  static constexpr u32 kValueOffset = Config::kTile.stages * Tile::kBytes;

  // Starts copying this wave's pieces of K and V tile `tile`.
  JAX_FA_DEVICE void stage_tile(int tile, u32 stage) const {
    stage_operand(keys_, key_source_, tile, lds_base_ + stage * Tile::kBytes);
    stage_operand(values_, value_source_, tile, lds_base_ + kValueOffset + stage * Tile::kBytes);
  }

  JAX_FA_DEVICE void stage_operand(const Rows& rows, u32 source, int tile, u32 lds_tile) const {
    const Buffer buffer = rows.rows(tile * Config::kBlockKv, Config::kBlockKv);
    JAX_FA_UNROLL for (int i = 0; i < kPiecesPerWave; ++i) {
      const u32 piece = first_piece_ + i;
      copy_16_bytes_to_lds(buffer, lds_tile + piece * Tile::kPitch, source,
                           piece * rows.row_stride_bytes());
    }
  }

  // Runs `use(i, operand)` for operands 0 .. kCount-1, each `read(i)` kRingDepth uses ahead.
  template <int kCount, class Read, class Use>
  JAX_FA_DEVICE static void stream_operands(Read read, Use use) {
    Operand<Element> ring[kRingDepth];
    JAX_FA_UNROLL for (int i = 0; i < kRingDepth && i < kCount; ++i) ring[i] = read(i);
    fence_schedule();
    JAX_FA_UNROLL for (int i = 0; i < kCount; ++i) {
      use(i, ring[i % kRingDepth]);
      fence_schedule();
      if (i + kRingDepth < kCount) ring[i % kRingDepth] = read(i + kRingDepth);
      fence_schedule();
    }
  }

  JAX_FA_DEVICE static void compute_scores(u32 key_base, const QueryFragments<Config>& query,
                                           ScoreFragments<Config>& scores) {
    constexpr int kSteps = Config::kHeadSteps;
    stream_operands<Config::kScoreTiles * kSteps>(
        [&](int i) { return Tile::read_rows(key_base, i / kSteps, i % kSteps); },
        [&](int i, Operand<Element> key) {
          JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
            Accumulator& s = scores.keys[q][i / kSteps];
            s = multiply_add(key, query.step[q][i % kSteps], i % kSteps ? s : Accumulator(0.0f));
          }
        });
  }

  JAX_FA_DEVICE static void accumulate_output(u32 value_base, const ProbabilityFragments<Config>& p,
                                              OutputFragments<Config>& output) {
    constexpr int kColumns = Config::kHeadTiles;
    stream_operands<Config::kKeySteps * kColumns>(
        [&](int i) { return Tile::read_columns(value_base, i / kColumns, i % kColumns); },
        [&](int i, Operand<Element> value) {
          JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
            Accumulator& o = output.head[q][i % kColumns];
            o = multiply_add(value, p.step[q][i / kColumns], o);
          }
        });
  }

  Rows keys_;
  Rows values_;
  u32 lds_base_;
  u32 first_piece_;  // of each tile, copied by this wave
  u32 key_source_;   // this lane's byte offset inside a piece, in memory
  u32 value_source_;
  u32 key_base_;  // this lane's LDS address in stage 0
  u32 value_base_;
};

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX950_MAINLOOP_H_
