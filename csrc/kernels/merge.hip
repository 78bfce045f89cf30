// Merge of split keys: out = sum_i w_i out_i / sum_i w_i, w_i = e^lse_i, and lse = log sum_i w_i.
//
// A lane makes four elements of one row, H / 4 lanes a row, as many whole rows as fit a workgroup.
// It reads every split's lse twice (once for the largest) and every split's four elements once, in
// the order of the splits. Bound by memory; no LDS, few registers.
#include "kernels/attention/combine.h"
#include "kernels/params.h"

namespace jax_fa {

template <class Element>
JAX_FA_DEVICE void merge(const MergeParams& params) {
  using Quad = Vector<float, 4>;
  const u32 lanes_per_row = params.head_dim / 4;
  const u32 rows = kMergeThreads / lanes_per_row;  // that a workgroup makes
  const u32 lane = arch::workgroup_lane();
  const u32 column = lane % lanes_per_row * 4;
  const i64 row = static_cast<i64>(arch::workgroup_id()) * rows + lane / lanes_per_row;
  if (lane / lanes_per_row >= rows || row >= params.rows) return;

  const auto* lse = (const JAX_FA_IN_GLOBAL float*)params.partial_lse + row;
  const auto* out =
      (const JAX_FA_IN_GLOBAL float*)params.partial_out + row * params.head_dim + column;
  const i64 out_stride = params.rows * params.head_dim;

  float maximum = -infinity();
  for (int i = 0; i < params.num_splits; ++i) {
    maximum = arch::maximum(maximum, lse[i * params.rows]);
  }
  float sum = 0.0f;
  Quad total = 0.0f;
  for (int i = 0; i < params.num_splits; ++i) {
    const float weight = part_weight(lse[i * params.rows], maximum);
    if (weight == 0.0f) continue;  // what it wrote, if anything, does not count
    const Quad part = *(const JAX_FA_IN_GLOBAL Quad*)(out + i * out_stride);
    sum += weight;
    total += part * weight;
  }

  const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
  Vector<Element, 4> rounded;
  JAX_FA_UNROLL for (int e = 0; e < 4; ++e) rounded[e] = static_cast<Element>(total[e] * factor);
  auto* place = (JAX_FA_IN_GLOBAL Element*)params.out + row * params.head_dim + column;
  *(JAX_FA_IN_GLOBAL Vector<Element, 4>*)place = rounded;
  if (column == 0) ((JAX_FA_IN_GLOBAL float*)params.lse)[row] = combined_lse(sum, maximum);
}

#define JAX_FA_MERGE(name, dtype)                                                     \
  extern "C" JAX_FA_GLOBAL                                                            \
      __attribute__((amdgpu_flat_work_group_size(kMergeThreads, kMergeThreads))) void \
      name(const MergeParams params) {                                                \
    merge<dtype>(params);                                                             \
  }
#include "kernels/variants.def"

}  // namespace jax_fa
