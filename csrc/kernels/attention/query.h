// The query rows of a wave: which token and head each is, where it lies, and loading them, once, as
// matrix operands.
//
// With packed heads, row r of a sequence and key head is token r / G, head r % G of the group of G
// query heads that share the key head, so that few tokens fill a tile and K and V are read once for
// the group. Without packed heads, row r is token r of one head.
#ifndef JAX_FA_KERNELS_ATTENTION_QUERY_H_
#define JAX_FA_KERNELS_ATTENTION_QUERY_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/rows.h"
#include "kernels/device.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

template <class Config, bool kPackHeads = Config::kPackHeads>
class QueryRows {
 public:
  JAX_FA_DEVICE QueryRows(int first_row, int /*group*/) : first_row_(first_row) {}

  JAX_FA_DEVICE int group() const { return 1; }
  JAX_FA_DEVICE int first_token() const { return first_row_; }
  JAX_FA_DEVICE int row(int query_tile) const {
    return first_row_ + query_tile * arch::kFragmentDim + arch::fragment_column();
  }
  // The token is computed afresh each time, since it is wanted rarely.
  JAX_FA_DEVICE int token(int query_tile) const {
    return first_row_ + arch::opaque(arch::fragment_column()) + query_tile * arch::kFragmentDim;
  }
  // Bytes from first_token's row, at the first head, to this lane's row.
  JAX_FA_DEVICE u32 offset(int query_tile, u32 row_stride_bytes, u32 /*head_stride_bytes*/) const {
    return (query_tile * arch::kFragmentDim + arch::fragment_column()) * row_stride_bytes;
  }

 private:
  int first_row_;
};

template <class Config>
class QueryRows<Config, true> {
 public:
  JAX_FA_DEVICE QueryRows(int first_row, int group)
      : first_row_(first_row), group_(group), first_token_(first_row / group) {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) token_[q] = row(q) / group;
  }

  JAX_FA_DEVICE int group() const { return group_; }
  JAX_FA_DEVICE int first_token() const { return first_token_; }
  JAX_FA_DEVICE int row(int query_tile) const {
    return first_row_ + query_tile * arch::kFragmentDim + arch::fragment_column();
  }
  JAX_FA_DEVICE int token(int query_tile) const { return token_[query_tile]; }
  JAX_FA_DEVICE u32 offset(int query_tile, u32 row_stride_bytes, u32 head_stride_bytes) const {
    const int token = token_[query_tile];
    const int head = row(query_tile) - token * group_;
    return (token - first_token_) * row_stride_bytes + head * head_stride_bytes;
  }

 private:
  int first_row_;
  int group_;
  int first_token_;
  int token_[Config::kQueryTiles];
};

// The rows of `length` tokens of an operand [.., head, H], from `base` at the first head on.
template <class Config>
class QueryOperand {
 public:
  template <class Element>
  JAX_FA_DEVICE QueryOperand(const Element* base, const Strides& stride,
                             const QueryRows<Config>& rows, int length, u32 row_bytes)
      : row_stride_bytes_(stride.row * sizeof(Element)),
        head_stride_bytes_(stride.head * sizeof(Element)),
        buffer_(DenseRows(base, stride.row * sizeof(Element), length,
                          (rows.group() - 1) * head_stride_bytes_ + row_bytes)
                    .rows(rows.first_token(), Config::kRowsPerWave)),
        rows_(rows) {}

  JAX_FA_DEVICE arch::Buffer buffer() const { return buffer_; }
  JAX_FA_DEVICE u32 offset(int query_tile) const {
    return rows_.offset(query_tile, row_stride_bytes_, head_stride_bytes_);
  }

 private:
  u32 row_stride_bytes_;
  u32 head_stride_bytes_;
  arch::Buffer buffer_;
  const QueryRows<Config>& rows_;
};

// Rows past the sequence's length and head elements past the run-time H are zero. `factor` is exact
// (1, -1 or 0): it takes the sign of a negative scale, so that larger scores always weigh more.
template <class Config>
JAX_FA_DEVICE QueryFragments<Config> load_query(const QueryOperand<Config>& rows, u32 head_bytes,
                                                float factor) {
  using Element = typename Config::Element;
  using Operand = arch::Operand<Element>;
  QueryFragments<Config> query;
  // Past the run-time H a lane is out of range, wherever the row is, since all rows lie below that.
  u32 column_bytes[Config::kHeadSteps];
  JAX_FA_UNROLL for (int k = 0; k < Config::kHeadSteps; ++k) {
    const u32 bytes = (k * arch::kFragmentDepth + arch::operand_depth()) * sizeof(Element);
    column_bytes[k] = bytes < head_bytes ? bytes : arch::kOutOfRange;
  }
  JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
    const u32 row_offset = rows.offset(q);
    JAX_FA_UNROLL for (int k = 0; k < Config::kHeadSteps; ++k) {
      query.step[q][k] = __builtin_bit_cast(
          Operand, arch::load_16_bytes(rows.buffer(), row_offset + column_bytes[k]));
    }
  }
  if (__builtin_expect(factor != 1.0f, 0)) {
    JAX_FA_UNROLL for (auto& row : query.step) {
      JAX_FA_UNROLL for (Operand& operand : row) {
        JAX_FA_UNROLL for (int e = 0; e < arch::kOperandElements; ++e) {
          operand[e] = static_cast<Element>(static_cast<float>(operand[e]) * factor);
        }
      }
    }
  }
  return query;
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_QUERY_H_
