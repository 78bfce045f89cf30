// Where a sequence lies in its operands and how long it is, whichever way the lengths were given.
#ifndef JAX_FA_KERNELS_ATTENTION_SEQLEN_H_
#define JAX_FA_KERNELS_ATTENTION_SEQLEN_H_

#include "kernels/arch/arch.h"
#include "kernels/device.h"
#include "kernels/params.h"

namespace jax_fa {

struct Sequence {
  int batch;         // index of the sequence
  i64 query_offset;  // elements from the operand's start to the sequence's first row
  i64 key_offset;
  i64 value_offset;
  i64 out_offset;
  i64 lse_offset;
  int query_rows;  // rows that the output has for this sequence; those past query_length are empty
  int query_length;  // T_b
  int key_length;    // S_b
  int diagonal;      // d: query t stands at key t + d
};

// Lengths out of range are clamped: a nonsense length gives nonsense numbers, never a stray access.
JAX_FA_DEVICE int clamp_length(int length, int limit) { return max_int(0, min_int(length, limit)); }

JAX_FA_DEVICE Sequence load_dense_sequence(const AttentionParams& params, int batch) {
  Sequence s;
  s.batch = batch;
  s.query_offset = batch * params.query_stride.batch;
  s.key_offset = batch * params.key_stride.batch;
  s.value_offset = batch * params.value_stride.batch;
  s.out_offset = batch * params.out_stride.batch;
  s.lse_offset = batch * params.lse_stride.batch;
  s.query_rows = params.seqlen_q;
  s.query_length = params.seqlen_q;
  s.key_length = params.seqlen_k;
  if (params.query_lengths) {
    s.query_length =
        clamp_length(arch::load_uniform(params.query_lengths + batch), params.seqlen_q);
  }
  if (params.key_lengths) {
    s.key_length = clamp_length(arch::load_uniform(params.key_lengths + batch), params.seqlen_k);
  }
  s.diagonal = params.top_left ? 0 : s.key_length - s.query_length;
  return s;
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_SEQLEN_H_
