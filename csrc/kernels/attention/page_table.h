// Where rows of operands lie: what query loads, stores and main loops ask for the memory behind a
// run of rows. Whatever lies past a sequence's length is out of range of what they are given.
//
// DenseRows serves queries and results. K and V have one layout, so one provider serves both:
//   DenseKeys      rows at a constant distance
//   PagedKeys      pages of a multiple of the key tile: a tile lies in one page
//   FragmentKeys   pages of a multiple of a fragment's 16 rows: a fragment lies in one page
//   ScatteredKeys  any other page size: rows of a tile lie anywhere, each lane finds its own
// All but the last are uniform: run after run they give the `Place` of its rows, as bounded buffers
// of keys and values. A page outside the pool has no rows.
#ifndef JAX_FA_KERNELS_ATTENTION_PAGE_TABLE_H_
#define JAX_FA_KERNELS_ATTENTION_PAGE_TABLE_H_

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

// What lanes read in place of a row that is not there, where addresses have no range check.
inline constexpr int kZeroRowBytes = 512;
static __attribute__((constant, aligned(16))) const u32 kZeroRow[kZeroRowBytes / 4] = {};
JAX_FA_DEVICE const char* zero_row() { return reinterpret_cast<const char*>(kZeroRow); }

// A run of rows of K and V that follow each other.
struct Place {
  i64 offset;   // bytes from the start of the operand; where no row is present, of values: zeros
  int present;  // rows that may be read, 0 or less: none
};

// What the providers of K and V share.
class KeyRows {
 public:
  static constexpr bool kWholeHeadOnly = false;

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

  JAX_FA_DEVICE arch::Buffer keys(const Place& place) const { return buffer(key_, place); }
  JAX_FA_DEVICE arch::Buffer values(const Place& place) const { return buffer(value_, place); }

 protected:
  JAX_FA_DEVICE arch::Buffer buffer(const char* base, const Place& place) const {
    return bounded_rows(base + place.offset, place.present, row_stride_bytes(), head_bytes_);
  }

  const char* key_;
  const char* value_;
  i64 row_stride_bytes_;
  int end_;
  u32 head_bytes_;
};

class DenseKeys : public KeyRows {
 public:
  using KeyRows::KeyRows;

  JAX_FA_DEVICE void start(int /*first*/, int /*count*/) {}
  JAX_FA_DEVICE Place place(int first, int count) const {
    return {first * row_stride_bytes_, min_int(end_ - first, count)};
  }
};

// The part of a block table that belongs to one sequence. Entries past its last key are not read.
class PageTable {
 public:
  JAX_FA_DEVICE PageTable(const AttentionParams& params, const Sequence& sequence,
                          u32 element_bytes)
      : entries_(params.block_tables + static_cast<i64>(sequence.index) * params.max_pages),
        page_stride_bytes_(static_cast<u32>(params.key_stride.batch) * element_bytes),
        divisor_(params.page_divisor),
        page_size_(params.page_size),
        pages_(params.num_pages) {}

  JAX_FA_DEVICE const int* entry(u32 page) const {
    const u32 offset = page * static_cast<u32>(sizeof(int));  // a page holds a key at least
    return reinterpret_cast<const int*>(reinterpret_cast<const char*>(entries_) + offset);
  }
  JAX_FA_DEVICE int page_size() const { return page_size_; }
  JAX_FA_DEVICE bool holds(int page) const {
    return static_cast<u32>(page) < static_cast<u32>(pages_);
  }
  // Bytes from the start of the pool to a page, and to the row of `key`, which lies in `page`.
  JAX_FA_DEVICE i64 page_offset(int page) const {
    return static_cast<u64>(static_cast<u32>(page)) * page_stride_bytes_;
  }
  JAX_FA_DEVICE i64 offset(int key, int page, i64 row_stride_bytes) const {
    const u32 slot = key - page_of(key) * page_size_;
    return page_offset(page) + slot * row_stride_bytes;
  }
  // The logical page of a key.
  JAX_FA_DEVICE u32 page_of(int key) const {
    const u64 product = static_cast<u64>(static_cast<u32>(key) << 1) * divisor_.magic;
    return static_cast<u32>(product >> 32) >> divisor_.shift;
  }

 private:
  const int* entries_;
  u32 page_stride_bytes_;
  Divisor divisor_;
  int page_size_;
  int pages_;
};

// Goes from tile to tile, so that a tile costs an addition, and a page its entry, fetched a page
// ahead, and one multiplication.
class PagedKeys : public KeyRows {
 public:
  template <class Element>
  JAX_FA_DEVICE PagedKeys(const AttentionParams& params, const Sequence& sequence, int kv_head,
                          int end, Element element)
      : KeyRows(params, sequence, kv_head, end, element),
        table_(params, sequence, sizeof(Element)),
        page_size_(params.page_size) {}

  // Before the first place(), which will be of `first`; the following ones are of the tiles of
  // `count` rows after it.
  JAX_FA_DEVICE void start(int first, int count) {
    page_ = table_.page_of(first);
    last_page_ = table_.page_of(end_ - 1);
    next_ = arch::load_uniform(table_.entry(page_));
    page_end_ = page_ * page_size_;
    const int slot = first - page_end_;
    turn_page(count);
    if (present_ > 0) offset_ += slot * row_stride_bytes_;
  }
  // Of the next place().
  JAX_FA_DEVICE bool page_is_held() const { return present_ > 0; }
  JAX_FA_DEVICE Place place(int first, int count) {
    const Place place = {offset_, min_int(end_ - first, present_)};
    offset_ += present_ * row_stride_bytes();
    if (first + count == page_end_) turn_page(count);
    return place;
  }

 private:
  JAX_FA_DEVICE void turn_page(int count) {
    present_ = count;
    offset_ = table_.page_offset(next_);
    if (__builtin_expect(!table_.holds(next_), 0)) {
      present_ = 0;
      offset_ = zero_row() - value_;
    }
    page_end_ += page_size_;
    ++page_;
    next_ = arch::load_uniform(table_.entry(min_int(page_, last_page_)));
  }

  PageTable table_;
  int page_size_;
  i64 offset_;    // of the next tile
  int present_;   // rows of a tile of its page that are there: all or none
  int page_end_;  // one past the last key of its page
  int page_;      // the logical page after it,
  int next_;      // and that one's entry
  int last_page_;
};

// The runs are of a fragment's rows. They lie in one page whole, also where the length ends
// earlier, so that they need no range check, provided that the head fills its tile.
class FragmentKeys : public PagedKeys {
 public:
  using PagedKeys::PagedKeys;
  static constexpr bool kWholeHeadOnly = true;
};

class ScatteredKeys : public KeyRows {
 public:
  template <class Element>
  JAX_FA_DEVICE ScatteredKeys(const AttentionParams& params, const Sequence& sequence, int kv_head,
                              int end, Element element)
      : KeyRows(params, sequence, kv_head, end, element),
        table_(params, sequence, sizeof(Element)) {}

  JAX_FA_DEVICE int page_size() const { return table_.page_size(); }
  // This lane's `key`: the entry of its page, to be fetched ahead, ...
  JAX_FA_DEVICE int fetch(int key) const {
    return arch::load_4_bytes(table_.entry(table_.page_of(min_int(key, end_ - 1))));
  }
  // ... whether the pool has it, and where the row is: bytes from the start of the pool.
  JAX_FA_DEVICE bool held(int page) const { return table_.holds(page); }
  JAX_FA_DEVICE i64 offset(int key, int page) const {
    return table_.offset(key, page, row_stride_bytes_);
  }

 private:
  PageTable table_;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_PAGE_TABLE_H_
