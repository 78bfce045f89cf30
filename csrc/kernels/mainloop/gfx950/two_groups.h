// gfx950 main loop in two groups: what mainloop.h computes, for dense and packed keys, with the
// waves of a SIMD half a tile apart, so that one keeps the matrix core busy while the other has the
// vector unit for its softmax.
//
// Eight waves of 48 query rows (H = 256: 32); waves w and w + 4 share a SIMD. Waves 0-3 are the
// group ahead, 4-7 the group behind. A wave alternates between a matrix block, which is PV(t-1) and
// QK(t), and softmax(t). In interval u, between two barriers:
//
//   ahead        | softmax(u)               | PV(u)       QK(u+1)  |
//   behind       | PV(u-1)       QK(u)      | softmax(u)           |
//   matrix core  | O^T += V^T.P^T, S^T = K.Q^T of one group, then of the other
//   vector unit  | scale, maximum, exp2, pack of one group, then of the other
//   LDS-DMA      | K(u+3) and V(u+2), which land by barrier u+2, between the products of PV
//   LDS          | reads kRingDepth operands before their products; the first of PV under exp2
//
// One s_barrier an interval says that the copies of two intervals ago have landed and that the ring
// slots now copied to are no longer read. Both groups run one loop body, in which the place of the
// barrier differs; waves whose rows see nothing of a tile copy their share and meet.
//
// A matrix instruction of 16 x 16 x 32 takes 16 clocks and leaves both waves of the SIMD two issue
// slots of the vector unit, a sparse one of the row sums one. The common tile of a wave:
//
//   matrix blocks of the partner   96 + 3 instructions: 1584 clk, 195 slots
//   softmax                        48 exp2 (2 slots each), 48 FMA, 24 pack, 12 maximum of three
//                                  packed pairs, 2 comparisons with the limit, 2 additions for LDS
//                                  addresses of the next block: 184 slots
//   a soft cap adds                48 multiplications, 48 exp2, 48 additions, 48 reciprocals
// Copies, scalar steps and reads have gaps of their own in the matrix block (GroupSchedule). First
// tiles, tiles that a mask cuts and moves of a reference are behind one scalar branch each.
//
// Registers per lane (of 256): O 96, Q 48, S and P 48, operand ring 16, sums 12 and 5 for the
// operand of ones, references 4, LDS and copy addresses 6. LDS: 4 stages of K and V,
// 135168 B. Three would do if memory answered within 1200 clk. Decisions have switches: switches.h.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/config.h"
#include "kernels/attention/mask.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx950/two_groups_schedule.h"
#include "kernels/mainloop/gfx950/two_groups_softmax.h"
#include "kernels/mainloop/gfx950/two_groups_tile_softmax.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

// One wave's way through the key tiles.
template <class Config, Group kGroup>
class GroupLoop {
  using Schedule = GroupSchedule<Config>;
  using Element = typename Config::Element;
  using Tile = typename Schedule::Tile;
  using Copies = typename Schedule::Copies;
  using Source = typename Copies::Source;
  using Next = typename Copies::Next;
  using Slots = typename Schedule::Slots;
  using Operand = arch::Operand<Element>;
  using Registers = BlockRegisters<Config>;
  using Query = QueryFragments<Config>;
  using Output = OutputFragments<Config>;
  using Softmax = PhasedSoftmax<Config>;
  using TileSoftmax = GroupTileSoftmax<Config>;

  static constexpr bool kAhead = kGroup == Group::kAhead;
  static constexpr int kDepth = Schedule::kRingDepth;
  static constexpr int kValueOperands = Schedule::kValueOperands;
  static constexpr int kOperands = Schedule::kOperands;

 public:
  // Starts the copies of the workgroup's first tile of keys,
  JAX_FA_DEVICE static void start(CopyState& copies, Next& next, Source& source,
                                  const typename Copies::Keys& keys, u32 wave, u32 lds, int first) {
    Copies::aim(copies, next, source, keys, wave, lds, first);
    Copies::template copy_first<Copies::kPieces>(copies, source);
    Copies::move_keys(copies, next, first + 1);
    copies.key_lds += Tile::kBytes;
  }
  // and of those that come before any interval.
  JAX_FA_DEVICE static void fill(CopyState& copies, Next& next, const Source& source, int first) {
    for (int i = 0; i < Schedule::kLead; ++i) {
      Copies::template copy_first<Copies::kCopies>(copies, source);
      Copies::advance(copies, next, first + 2 + i);
    }
    // From here on tiles are counted from that of the interval in which the copies start.
    copies.last_tile -= Schedule::kStages;
  }

  // Begins interval workgroup.begin - 1, in which the group behind only copies its share. Its
  // queries may still be on their way.
  JAX_FA_DEVICE static void first_interval() {
    if constexpr (kAhead) return;
    arch::wait_for_copies<Schedule::kCopiesUnderWay + Config::kQueryTiles * Config::kHeadSteps>();
    arch::workgroup_barrier();
  }
  // Intervals up to workgroup.end - 1, from the first one on that the group has not gone through;
  // this wave's tiles are `wave`. PV of the last tile may come later: by then nothing is copied.
  JAX_FA_DEVICE static void run(CopyState& copies, Next& next, const Source& source,
                                LdsAddresses lds, const Mask& mask, const QueryRows<Config>& rows,
                                const TileRange& workgroup, const TileRange& wave, Query& query,
                                Softmax& softmax, Output& output) {
    int interval = workgroup.begin - 1;
    if constexpr (!kAhead) copy_share(copies, next, source, interval++, workgroup.end);
    const bool some = wave.end > wave.begin;
    // The wave's first product stands in interval `begins`.
    const int begins = some ? wave.begin - (kAhead ? 1 : 0) : workgroup.end;
#pragma nounroll
    for (; interval < begins; ++interval) idle(copies, next, source, interval, workgroup.end);
    if (some) {
      attend(copies, next, source, lds, mask, rows, workgroup, wave, query, softmax, output);
      interval += wave.end - wave.begin + 1;
    }
#pragma nounroll
    for (; interval < workgroup.end; ++interval)
      idle(copies, next, source, interval, workgroup.end);
    arch::wait_for_copies<0>();
  }

  // LDS addresses of this lane.
  JAX_FA_DEVICE static LdsAddresses addresses(u32 lds) {
    LdsAddresses addresses;
    addresses.keys = lds + Tile::row_operand_base();
    addresses.values = lds + Tile::column_operand_base() + Schedule::kStages * Tile::kBytes;
    addresses.next_keys = addresses.keys;
    addresses.next_values = addresses.values;
    return addresses;
  }

 private:
  // --- Meeting -----------------------------------------------------------------------------------
  // An interval of which the wave only copies its share.
  JAX_FA_DEVICE static void idle(CopyState& copies, Next& next, const Source& source, int interval,
                                 int end) {
    begin_interval(interval, end);
    copy_share(copies, next, source, interval, end);
  }
  JAX_FA_DEVICE static void begin_interval(int interval, int end) {
    if (interval < end - 1) {
      wait();
    } else {
      arch::wait_for_copies_and_lds<0>();  // the interval before had no copies
    }
    arch::workgroup_barrier();
  }
  // What the wave copies in an interval, while there is something to copy.
  JAX_FA_DEVICE static void copy_share(CopyState& copies, Next& next, const Source& source,
                                       int interval, int end) {
    if (interval >= end - Schedule::kLastCopies) return;
    Copies::template copy_first<Copies::kCopies>(copies, source);
    Copies::advance(copies, next, interval);
  }
  // LDS reads are waited for too: the operands read ahead are of slots that others do not copy to
  // yet, but a count of reads does not say which of them have ended.
  JAX_FA_DEVICE static void wait() { arch::wait_for_copies_and_lds<Schedule::kCopiesUnderWay>(); }
  template <int kPriority>
  JAX_FA_DEVICE static void set_priority() {
    if constexpr (target::kPriority) arch::set_priority<kPriority>();
  }
  // The start of an interval. The group ahead has waited at the end of its block.
  JAX_FA_DEVICE static void meet() {
    if constexpr (!kAhead) {
      wait();
      set_priority<1>();
    }
    arch::fence_schedule();
    arch::workgroup_barrier();
    arch::fence_schedule();
  }

  // --- The matrix block --------------------------------------------------------------------------
  enum class Block { kFirst, kCommon, kLast };

  JAX_FA_DEVICE static void multiply(const Query& query, Registers& r, Output& output, int i,
                                     int q) {
    const Operand a = r.ring[i % kDepth];
    if (i < kValueOperands) {
      arch::Accumulator& o = output.head[q][i % Config::kHeadTiles];
      arch::multiply_add_in_place(a, r.p.step[q][i / Config::kHeadTiles], o);
    } else {
      accumulate_score(r.scores, query, a, i - kValueOperands, q);
    }
  }
  JAX_FA_DEVICE static void accumulate_score(ScoreFragments<Config>& scores, const Query& query,
                                             Operand key, int i, int q) {
    const int step = i % Config::kHeadSteps;
    arch::Accumulator& s = scores.keys[q][i / Config::kHeadSteps];
    s = arch::multiply_add(key, query.step[q][step], step ? s : arch::Accumulator(0.0f));
  }

  // Operands kFirst .. kEnd-1: the products of each, with what stands in its gap.
  template <int kFirst, int kEnd, Block kBlock>
  JAX_FA_DEVICE static void multiply_operands(const Query& query, Registers& r, Output& output,
                                              CopyState& copies, Next& next, const Source& source,
                                              GroupState& state, LdsAddresses& lds, int tile) {
    if constexpr (kFirst < kEnd) {
      JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
        multiply(query, r, output, kFirst, q);
        arch::fence_schedule();
        constexpr int kRead = kFirst - 1 + kDepth;  // into the place of the operand before
        if (q == 0 && kRead < (kBlock == Block::kLast ? kEnd : kOperands)) {
          r.ring[kRead % kDepth] = Schedule::read(lds, kRead);
          arch::fence_schedule();
        }
        if (q == 1) {
          fill_gap<kFirst, kBlock>(copies, next, source, state, lds, tile);
          arch::fence_schedule();
        }
      }
      // Before the barrier that begins the next interval; its softmax follows at once.
      if constexpr (kAhead && kFirst == kOperands - 1) {
        arch::wait_for_copies<Schedule::kCopiesUnderWay>();
      }
      arch::fence_schedule();
      multiply_operands<kFirst + 1, kEnd, kBlock>(query, r, output, copies, next, source, state,
                                                  lds, tile);
    }
  }
  // The first block has no PV: there copies stand between the products of QK. The last block has PV
  // alone, and nothing follows.
  template <int kGap, Block kBlock>
  JAX_FA_DEVICE static void fill_gap(CopyState& copies, Next& next, const Source& source,
                                     GroupState& state, LdsAddresses& lds, int tile) {
    if constexpr (kBlock == Block::kLast) return;
    constexpr int kCopyGap = kGap - (kBlock == Block::kFirst ? kValueOperands : 0);
    constexpr int kCopy = Schedule::copy_at(kCopyGap);
    if constexpr (kCopy >= 0) Copies::template copy<kCopy>(copies, source);
    if constexpr (kGap == Schedule::kIsRare) {
      state.from_full = arch::placed_add(static_cast<u32>(tile), state.minus_full_begin);
    }
    if constexpr (kBlock == Block::kFirst) return;
    const auto here = [](typename Schedule::Step step) { return kGap == Schedule::gap_of(step); };
    if constexpr (here(Schedule::kNextSlot)) state.next_slot = Slots::placed_after(state.slot);
    if constexpr (here(Schedule::kNextLds)) {
      copies.value_lds = arch::placed_copy(copies.key_lds);
      copies.key_lds = arch::placed_add(copies.wave_lds, kAhead ? state.slot : state.next_slot);
    }
    if constexpr (here(Schedule::kFindKeys)) next.find();
    if constexpr (here(Schedule::kMoveValues)) Copies::move_values(copies, next);
    if constexpr (here(Schedule::kMoveKeys)) next.move_keys(copies.keys);
    if constexpr (here(Schedule::kBoundKeys)) Copies::bound_keys(copies, tile - 1);
    if constexpr (here(Schedule::kTurnPage)) next.turn();
    if constexpr (kGap == Schedule::kNextAddresses) {
      arch::placed_add_pair(state.next_slot, lds.keys, lds.values, lds.next_keys, lds.next_values);
      state.slot = state.next_slot;
    }
  }

  // --- All tiles of the wave ---------------------------------------------------------------------
  JAX_FA_DEVICE static void attend(CopyState& copies, Next& next, const Source& source,
                                   LdsAddresses& lds, const Mask& mask,
                                   const QueryRows<Config>& rows, const TileRange& workgroup,
                                   const TileRange& wave, const Query& query, Softmax& softmax,
                                   Output& output) {
    GroupState state;
    state.slot = 0;
#pragma nounroll
    for (int i = workgroup.begin; i < wave.begin; ++i) state.slot = Slots::after(state.slot);
    state.next_slot = state.slot;
    state.minus_full_begin = -wave.full_begin;
    state.full_tiles =
        arch::opaque_uniform(static_cast<u32>(max_int(0, wave.full_end - wave.full_begin)));
    state.from_full = 0;
    state.limit = Softmax::kLimit;
    lds.next_keys = arch::opaque(lds.keys + state.slot);
    lds.next_values = arch::opaque(lds.values + state.slot);
    Registers r;

    const auto add_sums = [&] {
      if constexpr (kAhead) set_priority<1>();
      arch::fence_schedule();
      if constexpr (Softmax::kMatrixSums) {
        JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
          softmax.add(r.p, q);
          arch::fence_schedule();
        }
      }
    };

    int tile = wave.begin;
    const int first_interval = kAhead ? tile - 1 : tile;
    begin_interval(first_interval, workgroup.end);
    JAX_FA_UNROLL for (int i = 0; i < kDepth - 1; ++i) r.ring[(kValueOperands + i) % kDepth] =
        Schedule::read(lds, kValueOperands + i);
    multiply_operands<kValueOperands, kOperands, Block::kFirst>(query, r, output, copies, next,
                                                                source, state, lds, tile);
    Copies::advance(copies, next, first_interval);
    if constexpr (kAhead) {
      meet();
    } else {
      --copies.last_tile;  // PV(t - 1) stands in interval t, not t - 1
    }
    set_priority<0>();
    TileSoftmax::begin(r, output, next, softmax, state, lds, mask, rows, wave, tile);
#pragma nounroll
    for (++tile; tile < wave.end; ++tile) {
      if constexpr (kAhead) {
        next.end_fetch();
      } else {
        meet();
        next.take_fetched();  // LDS reads were waited for, which scalar loads are counted with
      }
      add_sums();
      multiply_operands<0, kOperands, Block::kCommon>(query, r, output, copies, next, source, state,
                                                      lds, tile);
      if constexpr (kAhead) meet();
      set_priority<0>();
      TileSoftmax::resume(query, r, output, next, softmax, state, lds, mask, rows, wave, tile);
    }
    next.end_fetch();
    if constexpr (kAhead) {
      copy_share(copies, next, source, tile - 1, workgroup.end);
    } else {
      ++copies.last_tile;
      if (tile < workgroup.end) {
        meet();
        copy_share(copies, next, source, tile, workgroup.end);
      }
    }
    add_sums();
    multiply_operands<0, kValueOperands, Block::kLast>(query, r, output, copies, next, source,
                                                       state, lds, tile);
    arch::end_in_place();
    if constexpr (kAhead) set_priority<0>();  // the other group still multiplies
  }
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_H_
