// The body of the attention kernels: the query rows of a workgroup, from assignment to store.
#ifndef JAX_FA_KERNELS_MAINLOOP_FORWARD_H_
#define JAX_FA_KERNELS_MAINLOOP_FORWARD_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/combine.h"
#include "kernels/attention/config.h"
#include "kernels/attention/epilogue.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/paged_keys.h"
#include "kernels/attention/query.h"
#include "kernels/attention/scheduler.h"
#include "kernels/attention/seqlen.h"
#include "kernels/attention/softmax.h"
#include "kernels/mainloop/mainloop.h"
#include "kernels/mainloop/own_body.h"
#include "kernels/params.h"

namespace jax_fa {

template <class Config>
JAX_FA_DEVICE void attend_rows(const AttentionParams& params, const Work& work) {
  using Element = typename Config::Element;
  constexpr int kBlockKv = Config::kBlockKv;
  const Sequence sequence = load_sequence(params, work.sequence, work.rows);
  const int group = Config::kPackHeads ? params.group : 1;
  const Mask mask(params, sequence);
  const Scale scale = Scale::make<Config>(params);
  const int wave = static_cast<int>(work.wave);
  const int end = sequence.query_length * group;
  const int block_row = work.query_tile * Config::kBlockQ;
  const int block_end = min_int(block_row + Config::kBlockQ, end);
  const int first_row = block_row + wave / Config::kKeyParts * Config::kRowsPerWave;
  const int end_row = min_int(first_row + Config::kRowsPerWave, end);

  const auto tiles_of = [&](int first, int last) {
    return key_tiles<kBlockKv>(mask, first / group, ceil_div(last, group));
  };
  TileRange workgroup_tiles = tiles_of(block_row, block_end);
  TileRange wave_tiles = tiles_of(first_row, end_row);
  if constexpr (Config::kSplits) {
    workgroup_tiles =
        part_of(workgroup_tiles, work.split * Config::kKeyParts + wave % Config::kKeyParts,
                params.num_splits * Config::kKeyParts);
    wave_tiles = intersect(wave_tiles, workgroup_tiles);
  }
  // Main loops load a tile ahead; for the providers, keys past the last tile are not there.
  const int end_key = workgroup_tiles.end * kBlockKv;

  const QueryRows<Config> rows(first_row, group);
  const u32 head_bytes = params.head_dim * sizeof(Element);
  const QueryOperand<Config> queries(static_cast<const Element*>(params.query) +
                                         sequence.first_row(params.query_stride) +
                                         work.head * params.query_stride.head,
                                     params.query_stride, rows, sequence.query_length, head_bytes);
  const QueryFragments<Config> query = load_query<Config>(queries, head_bytes, scale.query);
  stage_query<Config>(query, work.wave);
  Softmax<Config> softmax(scale);
  OutputFragments<Config> output;
  output.clear();

  const auto attend = [&](const auto& keys) {
    Mainloop<Config, __remove_cvref(decltype(keys))> mainloop(keys, work.wave);
    mainloop.run(workgroup_tiles, wave_tiles, mask, rows, query, softmax, output);
  };
  constexpr bool kWholeTiles = !OwnBody<Config>::kExists;  // of pages, in this body
  if constexpr (!Config::kPaged) {
    attend(DenseKeys(params, sequence, work.kv_head, end_key, Element{}));
  } else if (kWholeTiles && serves<NearPageKeys, Config>(params)) {
    if constexpr (kWholeTiles && kServedHeads<NearPageKeys> != ServedHeads::kNone) {
      attend(NearPageKeys(params, sequence, work.kv_head, end_key, Element{}));
    }
  } else if (kWholeTiles && serves<FarPageKeys, Config>(params)) {
    if constexpr (kWholeTiles) {
      attend(FarPageKeys(params, sequence, work.kv_head, end_key, Element{}));
    }
  } else if (serves<NearTwoPageKeys, Config>(params)) {
    attend(NearTwoPageKeys(params, sequence, work.kv_head, end_key, Element{}));
  } else if (serves<NearRowKeys, Config>(params)) {
    attend(NearRowKeys(params, sequence, work.kv_head, end_key, Element{}));
  } else {
    attend(FarRowKeys(params, sequence, work.kv_head, end_key, Element{}));
  }

  RowResults<Config> results = finish_rows<Config>(sequence, rows, softmax);
  if constexpr (Config::kKeyParts > 1) {
    if (!combine_waves<Config>(work.wave, results, output)) return;
  }
  const AttentionParams late = arch::reload_params<AttentionParams>();
  if constexpr (Config::kSplits) {
    if (late.num_splits > 1) {
      store_partial<Config>(late, sequence, work.head, work.split, rows, results, output);
      return;
    }
  }
  store_output<Config>(late, sequence, work.head, rows, results, output);
}

template <class Config>
JAX_FA_DEVICE void forward(const AttentionParams& params) {
  using Own = OwnBody<Config>;
  if constexpr (Own::kExists) {
    if (Own::serves(params)) return Own::run();
    if constexpr (Own::kServesAll) return;
  }
  for_each_work<Config>(
      params, arch::wave_id(),
      [](const AttentionParams& again, const Work& work) { attend_rows<Config>(again, work); });
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_FORWARD_H_
