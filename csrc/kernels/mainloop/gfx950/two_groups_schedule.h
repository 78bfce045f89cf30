// gfx950: what stands where in the schedule of two groups (two_groups.h), and its state.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_SCHEDULE_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_SCHEDULE_H_

#include "kernels/arch/arch.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx950/lds_tile.h"
#include "kernels/mainloop/gfx950/switches.h"
#include "kernels/mainloop/gfx950/two_groups_copies.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

enum class Group { kAhead, kBehind };

struct LdsAddresses {
  u32 keys, values;            // of this lane in slot 0
  u32 next_keys, next_values;  // in the slots read next
};

// What stands where in the matrix block of a configuration. Operand i of the block is one of V
// (i < kValueOperands) or K, used by one instruction for each query tile; gap i follows the second.
template <class Config>
struct GroupSchedule {
  using Tile = typename Share<Config>::Tile;
  static constexpr u32 kStages = target::kStages;
  static constexpr int kRingDepth = target::operands_ahead(Config::kHeadDim);
  static constexpr int kValueOperands = Config::kKeySteps * Config::kHeadTiles;
  static constexpr int kKeyOperands = Config::kScoreTiles * Config::kHeadSteps;
  static constexpr int kOperands = kValueOperands + kKeyOperands;
  using Copies = TileCopies<Config, kStages>;
  using Slots = Ring<Tile, kStages>;
  // Intervals that copies have to land, beyond the one that they start in.
  static constexpr int kLead = kStages - 3;
  static constexpr int kCopiesUnderWay = Copies::kCopies * kLead;
  // Intervals before the end that copy nothing.
  static constexpr int kLastCopies = kLead + 1;

  // Copies are 45 clocks apart at least: one to a gap of three query tiles, to every second of two.
  static constexpr int kCopyGaps = Config::kQueryTiles < 3 ? 2 : 1;
  static constexpr int copy_at(int gap) {
    const bool has =
        gap >= 1 && (gap - 1) % kCopyGaps == 0 && (gap - 1) / kCopyGaps < Copies::kCopies;
    return has ? (gap - 1) / kCopyGaps : -1;
  }
  static constexpr int kLastCopy = 1 + kCopyGaps * (Copies::kCopies - 1);
  // The LDS addresses change once the last operand of V is on its way.
  static constexpr int kNextAddresses = kValueOperands - kRingDepth;
  // The steps to the next tile have gaps of their own, where they can: slots before the addresses
  // that want them, all else behind the copies that use what it changes. With H = 64 there are few
  // gaps between those, with H = 256 some between copies.
  enum Step { kNextSlot, kNextLds, kFindKeys, kMoveValues, kMoveKeys, kBoundKeys, kTurnPage };
  static constexpr int gap_of(Step step) {
    constexpr int kGaps[][7] = {
        {3, 3, 4, 5, 6, 7, 9}, {5, 6, 7, 8, 9, 10, 11}, {2, 8, 4, 9, 10, 11, 13}};
    return kGaps[Config::kHeadDim / 128][step];
  }
  static_assert(gap_of(kNextLds) > kLastCopy && gap_of(kNextLds) < kNextAddresses);
  static_assert(gap_of(kMoveValues) > kLastCopy && gap_of(kMoveKeys) > gap_of(kMoveValues));
  static_assert(gap_of(kMoveKeys) > gap_of(kFindKeys) && gap_of(kTurnPage) > gap_of(kMoveKeys));
  static_assert(gap_of(kBoundKeys) > gap_of(kMoveValues));
  static constexpr int kIsRare = kValueOperands;  // in QK(t), for softmax(t)

  static_assert(2 * kStages * Tile::kBytes <= target::kMaxLdsBytes);

  // Operand i of the block.
  JAX_FA_DEVICE static arch::Operand<typename Config::Element> read(const LdsAddresses& lds,
                                                                    int i) {
    if (i < kValueOperands) {
      return Tile::read_columns(lds.next_values, i / Config::kHeadTiles, i % Config::kHeadTiles);
    }
    i -= kValueOperands;
    return Tile::read_rows(lds.next_keys, i / Config::kHeadSteps, i % Config::kHeadSteps);
  }
};

// The same for all lanes. State is kept in several structures, without arrays in those of scalars:
// while loops are not unrolled, the compiler makes vectors of neighbouring words, uniform or not.
struct GroupState {
  u32 slot, next_slot;  // of tiles t and t + 1 in the rings
  int minus_full_begin;
  u32 full_tiles;  // how many tiles are seen whole by all rows
  u32 from_full;   // tile t's place among them
  u32 limit;       // weights from it on want references moved
};
template <class Config>
struct BlockRegisters {
  ScoreFragments<Config> scores;
  ProbabilityFragments<Config> p;
  arch::Operand<typename Config::Element> ring[GroupSchedule<Config>::kRingDepth];
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_SCHEDULE_H_
