// Where a sequence lies in its operands and how long it is, whichever way the lengths were given.
#ifndef JAX_FA_KERNELS_ATTENTION_SEQLEN_H_
#define JAX_FA_KERNELS_ATTENTION_SEQLEN_H_

#include "kernels/arch/arch.h"
#include "kernels/device.h"
#include "kernels/params.h"

namespace jax_fa {

struct RowRange {  // [first, end)
  int first;
  int end;

  JAX_FA_DEVICE int count() const { return max_int(0, end - first); }
};

struct Sequence {
  int index;  // -1 and `batch`: the packed rows before the first sequence and past the last
  // Where its first row lies in query, out and lse.
  int batch_index;  // 0 when packed
  int packed_row;   // 0 when not
  i64 key_offset;   // elements from the operand's start to the first key, values too; 0 when paged
  int query_rows;   // rows that the output has for this sequence; those past query_length are empty
  int query_length;  // T_b
  int key_length;    // S_b
  int diagonal;      // d: query t stands at key t + d

  // Elements from the start of query, out or lse to the first row. They are computed where they are
  // wanted: kept, the three numbers would lie in scalar registers through the main loop.
  JAX_FA_DEVICE i64 first_row(const Strides& stride) const {
    return batch_index * stride.batch + packed_row * stride.row;
  }
};

// Lengths out of range are clamped: a nonsense length gives nonsense numbers, never a stray access.
JAX_FA_DEVICE int clamp_length(int length, int limit) { return max_int(0, min_int(length, limit)); }

// `rows` are the sequence's query rows: from 0 on, or its share of the packed ones.
JAX_FA_DEVICE Sequence load_sequence(const AttentionParams& params, int index, RowRange rows) {
  const auto entry = [](const int* lengths, int i, int limit) {
    return clamp_length(arch::load_uniform(lengths + i), limit);
  };
  const bool packed = params.cu_seqlens_q != nullptr;
  const bool exists = !packed || static_cast<u32>(index) < static_cast<u32>(params.batch);

  Sequence s;
  s.index = index;
  s.batch_index = packed ? 0 : index;
  s.packed_row = rows.first;
  s.query_rows = rows.count();
  s.query_length = exists ? s.query_rows : 0;
  s.key_length = exists ? params.seqlen_k : 0;

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
