// gfx950: the softmax of one tile in the schedule of two groups: from the scores of the matrix
// block to P, with the reads of the next block's first operands under its exponentials.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_TILE_SOFTMAX_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_TILE_SOFTMAX_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/mask.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx950/two_groups_schedule.h"
#include "kernels/mainloop/gfx950/two_groups_softmax.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

template <class Config>
class GroupTileSoftmax {
  using Schedule = GroupSchedule<Config>;
  using Next = typename Schedule::Copies::Next;
  using Operand = arch::Operand<typename Config::Element>;
  using Registers = BlockRegisters<Config>;
  using Query = QueryFragments<Config>;
  using Output = OutputFragments<Config>;
  using Softmax = PhasedSoftmax<Config>;

 public:
  // Scores become P: on the first tile,
  JAX_FA_DEVICE static void begin(Registers& r, Output& output, Next& next, Softmax& softmax,
                                  GroupState& state, const LdsAddresses& lds, const Mask& mask,
                                  const QueryRows<Config>& rows, const TileRange& wave, int tile) {
    softmax.cap(r.scores);
    if (__builtin_expect(wave.cut(tile), 0)) mask_scores(mask, rows, wave, r, tile);
    state.limit = softmax.template move_all<true>(r.scores, output);
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      softmax.scale_from_base(r.scores, q);
    }
    next.begin_fetch();
    exponentiate(r, lds);
    add(r, softmax);
  }
  // and on the others.
  JAX_FA_DEVICE static void resume(const Query& query, Registers& r, Output& output, Next& next,
                                   Softmax& softmax, GroupState& state, const LdsAddresses& lds,
                                   const Mask& mask, const QueryRows<Config>& rows,
                                   const TileRange& wave, int tile) {
    softmax.cap(r.scores);
    if (__builtin_expect(is_rare(state), 0)) {
      mask_scores(mask, rows, wave, r, tile);
      if (Softmax::kLazy && state.limit == Softmax::kForced) {
        state.limit = softmax.template move_all<false>(r.scores, output);
      }
    }
    if (!Softmax::kLazy) state.limit = softmax.template move_all<false>(r.scores, output);
    arch::fence_schedule();
    softmax.scale(r.scores);
    arch::fence_schedule();
    next.begin_fetch();
    exponentiate(r, lds);
    const bool bounded = Softmax::kBounds && state.limit == Softmax::kNoLimit;
    if (!bounded && __builtin_expect(arch::any_lane(Softmax::reaches_limit(r.p, state.limit)), 0)) {
      u32 limit = Softmax::kNoLimit;
      make_again<0>(limit, query, r, output, softmax, state, lds, mask, rows, wave, tile);
      state.limit = Softmax::of_wave(limit);
    }
    arch::fence_schedule();
    add(r, softmax);
  }

 private:
  JAX_FA_DEVICE static void add(const Registers& r, Softmax& softmax) {
    if constexpr (!Softmax::kMatrixSums) {
      JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) softmax.add(r.p, q);
      arch::fence_schedule();
    }
  }
  JAX_FA_DEVICE static bool is_rare(const GroupState& state) {
    return state.from_full >= state.full_tiles;
  }
  template <int kFirst = 0, int kEnd = Config::kQueryTiles>
  JAX_FA_DEVICE static void mask_scores(const Mask& mask, const QueryRows<Config>& rows,
                                        const TileRange& wave, Registers& r, int tile) {
    apply_mask<Config, kFirst, kEnd>(mask, wave, arch::opaque_uniform(tile), rows, r.scores);
  }
  // Scaled scores become P; the first operands of the next block are read meanwhile.
  JAX_FA_DEVICE static void exponentiate(Registers& r, const LdsAddresses& lds) {
    JAX_FA_UNROLL for (int i = 0; i < Config::kQueryTiles * Config::kScoreTiles; ++i) {
      Softmax::exponentiate(r.scores, i / Config::kScoreTiles, i % Config::kScoreTiles);
      arch::fence_schedule();
      if (i < Schedule::kRingDepth - 1) r.ring[i] = Schedule::read(lds, i);
      arch::fence_schedule();
    }
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) Softmax::pack(r.scores, q, r.p);
    arch::fence_schedule();
  }
  // P of query tiles kFirst and on, from Q and K again, with references that only scores can tell.
  // One query tile at a time, since other registers than those of its scores are taken.
  template <int kFirst>
  JAX_FA_DEVICE static void make_again(u32& limit, const Query& query, Registers& r, Output& output,
                                       Softmax& softmax, const GroupState& state,
                                       const LdsAddresses& lds, const Mask& mask,
                                       const QueryRows<Config>& rows, const TileRange& wave,
                                       int tile) {
    if constexpr (kFirst < Config::kQueryTiles) {
      multiply_again(query, r, lds, kFirst);
      softmax.template cap<kFirst, kFirst + 1>(r.scores);
      if (is_rare(state)) mask_scores<kFirst, kFirst + 1>(mask, rows, wave, r, tile);
      limit = min_u32(limit, softmax.template move<false>(r.scores, output, kFirst));
      softmax.scale_from_base(r.scores, kFirst);
      JAX_FA_UNROLL for (int i = 0; i < Config::kScoreTiles; ++i) {
        Softmax::exponentiate(r.scores, kFirst, i);
      }
      Softmax::pack(r.scores, kFirst, r.p);
      arch::fence_schedule();
      make_again<kFirst + 1>(limit, query, r, output, softmax, state, lds, mask, rows, wave, tile);
    }
  }
  JAX_FA_DEVICE static void multiply_again(const Query& query, Registers& r,
                                           const LdsAddresses& lds, int q) {
    auto& scores = r.scores.keys[q];
    JAX_FA_UNROLL for (auto& fragment : scores) fragment = 0.0f;
    JAX_FA_UNROLL for (auto& fragment : scores) fragment = arch::opaque(fragment);
    arch::begin_in_place();
    JAX_FA_UNROLL for (int i = 0; i < Schedule::kKeyOperands; ++i) {
      const Operand key = Schedule::read(lds, Schedule::kValueOperands + i);
      arch::multiply_add_in_place(key, query.step[q][i % Config::kHeadSteps],
                                  scores[i / Config::kHeadSteps]);
      arch::fence_schedule();
    }
    arch::end_in_place();
    JAX_FA_UNROLL for (auto& fragment : scores) fragment = arch::opaque(fragment);
  }
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_TILE_SOFTMAX_H_
