// Dense attention forward: out = softmax(mask(cap(scale Q.K^T))) V and its log-sum-exp.
//
// One workgroup makes Config::kBlockQ query rows of one head of one sequence (scheduler.h says
// which), a wave its own share of them. What happens per key tile, the schedule, and the register
// and LDS budget are in arch/<target>/mainloop.h.
#include "kernels/arch/arch.h"
#if defined(__gfx950__)
#include "kernels/arch/gfx950/mainloop.h"
#else
#include "kernels/arch/gfx1201/mainloop.h"
#endif
#include "kernels/attention/config.h"
#include "kernels/attention/epilogue.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/page_table.h"
#include "kernels/attention/query.h"
#include "kernels/attention/scheduler.h"
#include "kernels/attention/seqlen.h"
#include "kernels/attention/softmax.h"
#include "kernels/params.h"

namespace jax_fa {

template <class Config>
JAX_FA_DEVICE void flash(const AttentionParams& params) {
  using Element = typename Config::Element;
  const Work work = assign_work<Config>(params);
  const Sequence sequence = load_dense_sequence(params, work.batch);
  const Mask mask(params, sequence);
  const Scale scale = Scale::make<Config>(params);

  const int block_row = work.query_tile * Config::kBlockQ;
  const int block_end = min_int(block_row + Config::kBlockQ, sequence.query_length);
  const int first_row = block_row + static_cast<int>(arch::wave_id()) * Config::kRowsPerWave;
  const int end_row = min_int(first_row + Config::kRowsPerWave, sequence.query_length);

  const u32 head_bytes = params.head_dim * sizeof(Element);
  const auto rows_of = [&](const void* operand, i64 offset, const Strides& stride, int head,
                           int length) {
    return DenseRows(static_cast<const Element*>(operand) + offset + head * stride.head,
                     stride.row * sizeof(Element), length, head_bytes);
  };
  const DenseRows queries = rows_of(params.query, sequence.query_offset, params.query_stride,
                                    work.head, sequence.query_length);
  const DenseRows keys = rows_of(params.key, sequence.key_offset, params.key_stride, work.kv_head,
                                 sequence.key_length);
  const DenseRows values = rows_of(params.value, sequence.value_offset, params.value_stride,
                                   work.kv_head, sequence.key_length);

  const QueryFragments<Config> query = load_query<Config>(queries, first_row, scale.query);
  Softmax<Config> softmax(scale);
  OutputFragments<Config> output;
  output.clear();

  arch::Mainloop<Config, DenseRows> mainloop(keys, values);
  mainloop.run(key_tiles<Config::kBlockKv>(mask, block_row, block_end),
               key_tiles<Config::kBlockKv>(mask, first_row, end_row), mask, first_row, query,
               softmax, output);
  store_output<Config>(params, sequence, work.head, first_row, softmax, output);
}

// The waves that should share a SIMD bound the registers that the compiler may use.
#define JAX_FA_FLASH(name, dtype, head_dim_tile, variant)                                    \
  extern "C" JAX_FA_GLOBAL                                                                   \
      __attribute__((amdgpu_flat_work_group_size(arch::flash_tile(head_dim_tile).threads(),  \
                                                 arch::flash_tile(head_dim_tile).threads()), \
                     amdgpu_waves_per_eu(arch::flash_waves_per_simd(head_dim_tile),          \
                                         arch::flash_waves_per_simd(head_dim_tile)))) void   \
      name(const AttentionParams params) {                                                   \
    flash<Config<dtype, head_dim_tile, Variant::variant>>(params);                           \
  }
#include "kernels/variants.def"

}  // namespace jax_fa
