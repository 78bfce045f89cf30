// Where rows of operands lie: what query loads, stores and main loops ask for the memory behind a
// run of rows. Whatever lies past a sequence's length is out of range of what they are given.
//
// DenseRows serves queries and results. K and V have the same strides, so one provider serves both:
// DenseKeys here, or one of the providers of pages in paged_keys.h. A provider goes from run to run
// of rows in their order, and says which Place is next.
#ifndef JAX_FA_KERNELS_ATTENTION_ROWS_H_
#define JAX_FA_KERNELS_ATTENTION_ROWS_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/seqlen.h"
#include "kernels/device.h"
#include "kernels/params.h"

namespace jax_fa {

// Row strides are < 2^31 / rows in a tile: offsets inside one buffer are 32-bit. A buffer ends with
// the last row's last byte, not with its stride: the operand may end there.
JAX_FA_DEVICE arch::Buffer bounded_rows(const char* first, int rows, u32 row_stride_bytes,
                                        u32 row_bytes) {
  return arch::make_buffer(first, rows > 0 ? (rows - 1) * row_stride_bytes + row_bytes : 0);
}

class DenseRows {
 public:
  // `first_row` is row 0 of the sequence; `length` rows of `row_bytes` each may be accessed.
  JAX_FA_DEVICE DenseRows(const void* first_row, i64 row_stride_bytes, int length, u32 row_bytes)
      : base_(static_cast<const char*>(first_row)),
        row_stride_bytes_(row_stride_bytes),
        length_(length),
        row_bytes_(row_bytes) {}

  JAX_FA_DEVICE u32 row_stride_bytes() const { return static_cast<u32>(row_stride_bytes_); }

  JAX_FA_DEVICE arch::Buffer rows(int first, int count) const {
    return bounded_rows(base_ + first * row_stride_bytes_, min_int(length_ - first, count),
                        row_stride_bytes(), row_bytes_);
  }

 private:
  const char* base_;
  i64 row_stride_bytes_;
  int length_;
  u32 row_bytes_;
};

// Zeros that lanes read in place of a row that is not there, where addresses have no range check.
inline constexpr int kZeroRowBytes = 512;
static __attribute__((constant, aligned(16))) const u32 kZeroRow[kZeroRowBytes / 4] = {};
JAX_FA_DEVICE const char* zero_row() { return reinterpret_cast<const char*>(kZeroRow); }

// A run of rows of K and V that follow each other.
struct Place {
  i64 base;     // bytes from the start of the operand to the start of its buffer
  u32 offset;   // bytes from there to the first row
  int present;  // rows up to the end of the sequence, 0 or less: none
};

// What the providers of K and V share.
class KeyRows {
 public:
  // Rows from `end` on are not there.
  template <class Element>
  JAX_FA_DEVICE KeyRows(const AttentionParams& params, const Sequence& sequence, int kv_head,
                        int end, Element)
      : row_stride_bytes_(params.key_stride.row * sizeof(Element)),
        end_(min_int(end, sequence.key_length)),
        head_bytes_(params.head_dim * sizeof(Element)) {
    const i64 offset = (sequence.key_offset + kv_head * params.key_stride.head) *
                       static_cast<i64>(sizeof(Element));
    key_ = static_cast<const char*>(params.key) + offset;
    value_ = static_cast<const char*>(params.value) + offset;
  }

  JAX_FA_DEVICE u32 row_stride_bytes() const { return static_cast<u32>(row_stride_bytes_); }
  JAX_FA_DEVICE u32 head_bytes() const { return head_bytes_; }
  JAX_FA_DEVICE int end() const { return end_; }
  JAX_FA_DEVICE const char* key(i64 offset) const { return key_ + offset; }
  JAX_FA_DEVICE const char* value(i64 offset) const { return value_ + offset; }

 protected:
  const char* key_;
  const char* value_;
  i64 row_stride_bytes_;
  int end_;
  u32 head_bytes_;
};

// Providers that keep buffers from tile to tile, so that a tile costs an addition.
class BufferedKeys : public KeyRows {
 public:
  using KeyRows::KeyRows;

  // The buffers of the last place().
  JAX_FA_DEVICE arch::Buffer keys() const { return keys_; }
  JAX_FA_DEVICE arch::Buffer values() const { return values_; }

 protected:
  // The place of `count` rows; the rows of the next place() follow them in the same buffers.
  JAX_FA_DEVICE Place take(int first, int count) {
    const Place place = {base_, offset_, end_ - first};
    offset_ += count * row_stride_bytes();
    return place;
  }
  // Opens buffers of `key_rows` and `value_rows` rows from `base` on.
  JAX_FA_DEVICE void open(i64 base, int key_rows, int value_rows) {
    const auto buffer = [&](const char* operand, int rows) {
      return bounded_rows(operand + base, rows, row_stride_bytes(), head_bytes_);
    };
    base_ = base;
    offset_ = 0;
    keys_ = buffer(key_, key_rows);
    values_ = buffer(value_, value_rows);
  }

  i64 base_;
  u32 offset_;  // the next place's
  arch::Buffer keys_, values_;
};

// Keys and values that are dense or packed. A buffer spans as many rows as 2 GiB surely hold: a
// power of two, hence whole tiles.
class DenseKeys : public BufferedKeys {
 public:
  using BufferedKeys::BufferedKeys;

  // Comes before the first place(), which will be of `first`; the following ones are of the tiles
  // of `count` rows after it.
  JAX_FA_DEVICE void start(int first, int /*count*/) { limit_ = first; }
  JAX_FA_DEVICE Place place(int first, int count) {
    if (__builtin_expect(first >= limit_, 0)) {
      if (first < end_) {
        const int rows = 1 << (__builtin_clz(row_stride_bytes() - 1) - 1);
        const int present = min_int(end_ - first, rows);
        limit_ = first + present;
        open(first * row_stride_bytes_, present, present);
      } else {
        offset_ = arch::kOutOfRange;
      }
    }
    return take(first, count);
  }

 private:
  int limit_;  // one past the last row of the buffers
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_ROWS_H_
