// Divides by the row sums and writes out and lse, of the whole softmax or of one split of it.
//
// A row that saw no key, and a row past its sequence's query length, is 0 with lse -inf; in the
// results of a split, lse alone says so. Rows past the output are out of range of its buffer and
// vanish, as do head elements past the run-time H.
#ifndef JAX_FA_KERNELS_ATTENTION_EPILOGUE_H_
#define JAX_FA_KERNELS_ATTENTION_EPILOGUE_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/query.h"
#include "kernels/attention/seqlen.h"
#include "kernels/attention/softmax.h"
#include "kernels/device.h"
#include "kernels/params.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

// What a wave has made of its rows, beside the output.
template <class Config>
struct RowResults {
  float lse[Config::kQueryTiles];
  float factor[Config::kQueryTiles];  // that the output has yet to be multiplied with
  bool empty[Config::kQueryTiles];    // then neither factor nor output mean anything
};

template <class Config, class RowSoftmax>
JAX_FA_DEVICE RowResults<Config> finish_rows(const Sequence& sequence,
                                             const QueryRows<Config>& rows,
                                             const RowSoftmax& softmax) {
  RowResults<Config> results;
  JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
    const float sum = softmax.row_sum(q);
    const bool empty = sum == 0.0f || rows.row(q) >= sequence.query_length * rows.group();
    results.empty[q] = empty;
    results.lse[q] = empty ? -infinity() : softmax.log_sum_exp(q);
    results.factor[q] = 1.0f / sum;
  }
  return results;
}

// Stores what a lane has of one fragment of O^T, rounded to nearest even: consecutive head elements
// of its query row.
template <class Stored>
JAX_FA_DEVICE void store_fragment(arch::Accumulator values, arch::Buffer buffer, u32 offset) {
  Vector<Stored, arch::kAccumulatorRows> rounded;
  JAX_FA_UNROLL for (int r = 0; r < arch::kAccumulatorRows; ++r) {
    rounded[r] = static_cast<Stored>(values[r]);
  }
  arch::store_accumulator(rounded, buffer, offset);
}

// `out` and `lse` are the sequence's first row at the first head. kSkipEmpty leaves the output of
// empty rows unwritten.
template <class Config, bool kSkipEmpty, class Stored>
JAX_FA_DEVICE void store_rows(Stored* out, const Strides& out_stride, float* lse,
                              const Strides& lse_stride, int head_dim, const Sequence& sequence,
                              const QueryRows<Config>& rows, const RowResults<Config>& results,
                              const OutputFragments<Config>& output) {
  const u32 head_bytes = head_dim * sizeof(Stored);
  const QueryOperand<Config> out_rows(out, out_stride, rows, sequence.query_rows, head_bytes);
  const QueryOperand<Config> lse_rows(lse, lse_stride, rows, sequence.query_rows, sizeof(float));
  // This lane's place in a row, by fragment: past the run-time H it is out of range, wherever the
  // row is, since all rows lie below that.
  u32 column_bytes[Config::kHeadTiles];
  JAX_FA_UNROLL for (int d = 0; d < Config::kHeadTiles; ++d) {
    const u32 bytes = (arch::accumulator_row() + d * arch::kFragmentDim) * sizeof(Stored);
    column_bytes[d] = bytes < head_bytes ? bytes : arch::kOutOfRange;
  }
  const bool stores_lse = arch::accumulator_row() == 0;  // the first of the lanes of a row
  JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
    const bool empty = results.empty[q];
    const u32 row_offset = out_rows.offset(q);
    JAX_FA_UNROLL for (int d = 0; d < Config::kHeadTiles; ++d) {
      const u32 offset = row_offset + column_bytes[d];
      store_fragment<Stored>(output.head[q][d] * results.factor[q], out_rows.buffer(),
                             kSkipEmpty && empty ? arch::kOutOfRange : offset);
    }
    // Rare: rows that are to be 0 are written again, since what they hold may be no number.
    if (!kSkipEmpty && __builtin_expect(arch::any_lane(empty), 0)) {
      JAX_FA_UNROLL for (int d = 0; d < Config::kHeadTiles; ++d) {
        store_fragment<Stored>(arch::Accumulator(0.0f), out_rows.buffer(),
                               empty ? row_offset + column_bytes[d] : arch::kOutOfRange);
      }
    }
    arch::store_4_bytes(__builtin_bit_cast(u32, results.lse[q]), lse_rows.buffer(),
                        stores_lse ? lse_rows.offset(q) : arch::kOutOfRange);
  }
}

template <class Config>
JAX_FA_DEVICE void store_output(const AttentionParams& params, const Sequence& sequence, int head,
                                const QueryRows<Config>& rows, const RowResults<Config>& results,
                                const OutputFragments<Config>& output) {
  using Element = typename Config::Element;
  store_rows<Config, /*kSkipEmpty=*/false>(
      static_cast<Element*>(params.out) + sequence.first_row(params.out_stride) +
          head * params.out_stride.head,
      params.out_stride,
      params.lse + sequence.first_row(params.lse_stride) + head * params.lse_stride.head,
      params.lse_stride, params.head_dim, sequence, rows, results, output);
}

// The partial results have the rows of lse, with H elements of output each.
template <class Config>
JAX_FA_DEVICE void store_partial(const AttentionParams& params, const Sequence& sequence, int head,
                                 int split, const QueryRows<Config>& rows,
                                 const RowResults<Config>& results,
                                 const OutputFragments<Config>& output) {
  const i64 first_row = split * params.partial_rows + sequence.first_row(params.lse_stride) +
                        head * params.lse_stride.head;
  const Strides out_stride = {.batch = 0,
                              .row = params.lse_stride.row * params.head_dim,
                              .head = params.lse_stride.head * params.head_dim};
  store_rows<Config, /*kSkipEmpty=*/true>(
      params.partial_out + first_row * params.head_dim, out_stride, params.partial_lse + first_row,
      params.lse_stride, params.head_dim, sequence, rows, results, output);
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_EPILOGUE_H_
