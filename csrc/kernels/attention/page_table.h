// Where the rows of K and V lie: what a main loop asks for the memory behind a run of rows.
//
// A row provider offers `rows(first, count)`: one bounded buffer over rows first .. first+count-1
// of its operand, in which row i starts at i * row_stride_bytes() and whatever lies past the
// sequence's length is out of range. DenseRows is the provider of contiguous operands; paged ones
// give the same answers from a block table.
#ifndef JAX_FA_KERNELS_ATTENTION_PAGE_TABLE_H_
#define JAX_FA_KERNELS_ATTENTION_PAGE_TABLE_H_

#include "kernels/arch/arch.h"
#include "kernels/device.h"

namespace jax_fa {

class DenseRows {
 public:
  // `first_row` is row 0 of the sequence at its head; `length` rows of it may be read.
  JAX_FA_DEVICE DenseRows(const void* first_row, i64 row_stride_bytes, int length, u32 head_bytes)
      : base_(static_cast<const char*>(first_row)),
        row_stride_bytes_(row_stride_bytes),
        length_(length),
        head_bytes_(head_bytes) {}

  // Row strides are < 2^31 / rows in a tile: offsets inside one buffer are 32-bit.
  JAX_FA_DEVICE u32 row_stride_bytes() const { return static_cast<u32>(row_stride_bytes_); }
  JAX_FA_DEVICE u32 head_bytes() const { return head_bytes_; }
  JAX_FA_DEVICE int length() const { return length_; }
  JAX_FA_DEVICE const char* address(int row) const { return base_ + row * row_stride_bytes_; }

  // The buffer ends with the last row's head, not with its stride: the operand may end there.
  JAX_FA_DEVICE arch::Buffer rows(int first, int count) const {
    const int present = min_int(length_ - first, count);
    const u32 bytes = present > 0 ? (present - 1) * row_stride_bytes() + head_bytes_ : 0;
    return arch::make_buffer(base_ + first * row_stride_bytes_, bytes);
  }

 private:
  const char* base_;
  i64 row_stride_bytes_;
  int length_;
  u32 head_bytes_;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_PAGE_TABLE_H_
