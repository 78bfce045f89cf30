// gfx950: the query rows of a workgroup in the schedule of two groups, from assignment to store.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_FORWARD_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_FORWARD_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/epilogue.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/query.h"
#include "kernels/attention/scheduler.h"
#include "kernels/attention/seqlen.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx950/switches.h"
#include "kernels/mainloop/gfx950/two_groups.h"
#include "kernels/params.h"

namespace jax_fa {

// The kernels that have this schedule, unless they meet pages that are not of whole key tiles:
// those of many rows.
template <class Config>
inline constexpr bool kInTwoGroups =
    target::kTwoGroups && Config::kWaves == 8 && Config::kSoftCap != SoftCap::kAsked;

// Which of the workgroup's shares of rows a wave has. The waves w and w + 4 of a SIMD take shares w
// and 7 - w, since under a causal mask later rows see more keys.
template <class Config>
JAX_FA_DEVICE int share_of(int wave) {
  return wave < Config::kWaves / 2 ? wave : Config::kWaves * 3 / 2 - 1 - wave;
}

template <class Config>
JAX_FA_DEVICE u32 ring_lds() {
  static JAX_FA_SHARED char
      lds[2 * GroupSchedule<Config>::kStages * GroupSchedule<Config>::Tile::kBytes];
  return reinterpret_cast<u64>((JAX_FA_IN_LDS char*)lds);
}

template <class Config, Group kGroup>
JAX_FA_DEVICE void attend_rows_in_group(const AttentionParams& params, const Work& work) {
  using Element = typename Config::Element;
  using Loop = GroupLoop<Config, kGroup>;
  const Sequence sequence = load_sequence(params, work.sequence, work.rows);
  const Mask mask(params, sequence);
  const Scale scale = Scale::make<Config>(params);
  const int end = sequence.query_length;
  const int block_row = work.query_tile * Config::kBlockQ;
  const int first_row =
      block_row + share_of<Config>(static_cast<int>(work.wave)) * Config::kRowsPerWave;
  const auto tiles_of = [&](int first, int count) {
    return key_tiles<Config::kBlockKv>(mask, first, min_int(first + count, end));
  };
  const TileRange workgroup_tiles = tiles_of(block_row, Config::kBlockQ);
  const TileRange wave_tiles = tiles_of(first_row, Config::kRowsPerWave);
  const bool any = workgroup_tiles.end > workgroup_tiles.begin;

  // First what the matrix core waits for longest: the first keys, and the queries of the group
  // ahead.
  const u32 lds = ring_lds<Config>();
  using Copies = typename GroupSchedule<Config>::Copies;
  const typename Copies::Keys keys(params, sequence, work.kv_head,
                                   workgroup_tiles.end * Config::kBlockKv, Element{});
  CopyState copies;
  typename Copies::Next next;
  typename Copies::Source source;
  Loop::start(copies, next, source, keys, work.wave, lds, workgroup_tiles.begin);

  const LdsAddresses addresses = Loop::addresses(lds);
  const QueryRows<Config> rows(first_row, 1);
  const u32 head_bytes = params.head_dim * sizeof(Element);
  const QueryOperand<Config> queries(static_cast<const Element*>(params.query) +
                                         sequence.first_row(params.query_stride) +
                                         work.head * params.query_stride.head,
                                     params.query_stride, rows, sequence.query_length, head_bytes);
  QueryFragments<Config> query;
  const auto load = [&] { query = load_query<Config>(queries, head_bytes, scale.query); };
  // Those of the group behind are not wanted yet.
  if constexpr (kGroup == Group::kAhead) load();
  Loop::fill(copies, next, source, workgroup_tiles.begin);
  PhasedSoftmax<Config> softmax(scale);
  OutputFragments<Config> output;
  output.clear();
  // Zeros are made now, while loads are under way; the compiler would make them after a softmax.
  JAX_FA_UNROLL for (auto& row : output.head) {
    JAX_FA_UNROLL for (auto& fragment : row) fragment = arch::opaque(fragment);
  }
  if constexpr (kGroup == Group::kBehind) load();
  if (any) {
    Loop::first_interval();
    // The queries are waited for where no copies follow them yet: the compiler does not count
    // these, and would wait for them too.
    JAX_FA_UNROLL for (auto& row : query.step) {
      JAX_FA_UNROLL for (auto& operand : row) operand = arch::opaque(operand);
    }
    Loop::run(copies, next, source, addresses, mask, rows, workgroup_tiles, wave_tiles, query,
              softmax, output);
  } else {
    arch::wait_for_copies<0>();
  }

  softmax.finish();
  const RowResults<Config> results = finish_rows<Config>(sequence, rows, softmax);
  const AttentionParams late = arch::reload_params<AttentionParams>();
  store_output<Config>(late, sequence, work.head, rows, results, output);
}

// Each group has the whole body: where both rejoined, their registers would have to agree. Each
// loads the arguments, too: what both had would lie in registers through the loop of one of them.
template <class Config, Group kGroup>
JAX_FA_DEVICE void forward_in_group(u32 wave) {
  const AttentionParams params = arch::reload_params<AttentionParams>();
  for_each_work<Config>(params, wave, [](const AttentionParams& again, const Work& work) {
    attend_rows_in_group<Config, kGroup>(again, work);
  });
}

template <class Config>
JAX_FA_DEVICE void forward_in_two_groups() {
  const u32 wave = arch::wave_id();
  if (wave < Config::kWaves / 2) {
    forward_in_group<Config, Group::kAhead>(wave);
  } else {
    forward_in_group<Config, Group::kBehind>(wave);
  }
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_FORWARD_H_
