// Where a sequence lies in its operands and how long it is, whichever way the lengths were given.
#ifndef JAX_FA_KERNELS_ATTENTION_SEQLEN_H_
#define JAX_FA_KERNELS_ATTENTION_SEQLEN_H_

#include "kernels/arch/arch.h"
#include "kernels/device.h"
#include "kernels/params.h"

namespace jax_fa {

struct Sequence {
  int index;         // -1 and `batch`: the packed rows before the first sequence and past the last
  i64 query_offset;  // elements from the operand's start to the sequence's first row
  i64 key_offset;    // values too; 0 when paged
  i64 out_offset;
  i64 lse_offset;
  int query_rows;  // rows that the output has for this sequence; those past query_length are empty
  int query_length;  // T_b
  int key_length;    // S_b
  int diagonal;      // d: query t stands at key t + d
};

// Lengths out of range are clamped: a nonsense length gives nonsense numbers, never a stray access.
JAX_FA_DEVICE int clamp_length(int length, int limit) { return max_int(0, min_int(length, limit)); }

JAX_FA_DEVICE Sequence load_sequence(const AttentionParams& params, int index) {
  const auto entry = [](const int* lengths, int i, int limit) {
    return clamp_length(arch::load_uniform(lengths + i), limit);
  };
  const bool exists = index >= 0 && index < params.batch;

  Sequence s;
  s.index = index;
  s.query_rows = params.seqlen_q;
  s.query_length = exists ? params.seqlen_q : 0;
  s.key_length = exists ? params.seqlen_k : 0;

  if (params.cu_seqlens_q) {
    const int first = index < 0 ? 0 : entry(params.cu_seqlens_q, index, params.seqlen_q);
    const int end = index < params.batch ? entry(params.cu_seqlens_q, index + 1, params.seqlen_q)
                                         : params.seqlen_q;
    s.query_rows = max_int(0, end - first);
    if (exists) s.query_length = s.query_rows;
    s.query_offset = first * params.query_stride.row;
    s.out_offset = first * params.out_stride.row;
    s.lse_offset = first * params.lse_stride.row;
  } else {
    s.query_offset = index * params.query_stride.batch;
    s.out_offset = index * params.out_stride.batch;
    s.lse_offset = index * params.lse_stride.batch;
  }

  s.key_offset = params.block_tables ? 0 : index * params.key_stride.batch;
  if (params.cu_seqlens_k && exists) {
    const int first = entry(params.cu_seqlens_k, index, params.seqlen_k);
    const int end = entry(params.cu_seqlens_k, index + 1, params.seqlen_k);
    s.key_length = max_int(0, end - first);
    s.key_offset = first * params.key_stride.row;
  }
  if (params.query_lengths && exists) {
    s.query_length = entry(params.query_lengths, index, s.query_length);
  }
  if (params.key_lengths && exists) {
    s.key_length = entry(params.key_lengths, index, s.key_length);
  }
  s.diagonal = params.top_left ? 0 : s.key_length - s.query_length;
  return s;
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_SEQLEN_H_
