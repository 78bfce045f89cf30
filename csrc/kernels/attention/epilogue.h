// Divides by the row sums and writes out and lse.
//
// A row that saw no key, and a row past its sequence's query length, is 0 with lse -inf. Rows past
// the output are out of range of its buffer and vanish, as do head elements past the run-time H.
#ifndef JAX_FA_KERNELS_ATTENTION_EPILOGUE_H_
#define JAX_FA_KERNELS_ATTENTION_EPILOGUE_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/page_table.h"
#include "kernels/attention/seqlen.h"
#include "kernels/attention/softmax.h"
#include "kernels/device.h"
#include "kernels/params.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

// One query row's consecutive head elements, rounded to nearest even, to its place in memory.
template <class Element>
JAX_FA_DEVICE void store_fragment(arch::Accumulator values, arch::Buffer buffer, u32 offset) {
  Vector<Element, arch::kAccumulatorRows> rounded;
  JAX_FA_UNROLL for (int r = 0; r < arch::kAccumulatorRows; ++r) {
    rounded[r] = static_cast<Element>(values[r]);
  }
  arch::store_accumulator(rounded, buffer, offset);
}

template <class Config>
JAX_FA_DEVICE void store_output(const AttentionParams& params, const Sequence& sequence, int head,
                                int first_row, const Softmax<Config>& softmax,
                                OutputFragments<Config>& output) {
  using Element = typename Config::Element;
  const u32 head_bytes = params.head_dim * sizeof(Element);
  const DenseRows out_rows(
      static_cast<Element*>(params.out) + sequence.out_offset + head * params.out_stride.head,
      params.out_stride.row * sizeof(Element), sequence.query_rows, head_bytes);
  const DenseRows lse_rows(params.lse + sequence.lse_offset + head * params.lse_stride.head,
                           params.lse_stride.row * sizeof(float), sequence.query_rows,
                           sizeof(float));
  const arch::Buffer out_buffer = out_rows.rows(first_row, Config::kRowsPerWave);
  const arch::Buffer lse_buffer = lse_rows.rows(first_row, Config::kRowsPerWave);

  const u32 first_element_bytes = arch::accumulator_row() * sizeof(Element);
  const bool stores_lse = arch::accumulator_row() == 0;  // the first of the lanes of a row
  JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
    const u32 row = q * arch::kFragmentDim + arch::fragment_column();
    const float sum = softmax.row_sum(q);
    const bool empty = sum == 0.0f || first_row + static_cast<int>(row) >= sequence.query_length;
    const float inverse = 1.0f / sum;
    JAX_FA_UNROLL for (int d = 0; d < Config::kHeadTiles; ++d) {
      arch::Accumulator values = output.head[q][d] * inverse;
      if (empty) values = 0.0f;
      const u32 column_bytes =
          first_element_bytes + d * arch::kFragmentDim * static_cast<u32>(sizeof(Element));
      store_fragment<Element>(values, out_buffer,
                              column_bytes < head_bytes
                                  ? row * out_rows.row_stride_bytes() + column_bytes
                                  : arch::kOutOfRange);
    }
    const float lse = empty ? -infinity() : softmax.log_sum_exp(q);
    arch::store_4_bytes(__builtin_bit_cast(u32, lse), lse_buffer,
                        stores_lse ? row * lse_rows.row_stride_bytes() : arch::kOutOfRange);
  }
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_EPILOGUE_H_
