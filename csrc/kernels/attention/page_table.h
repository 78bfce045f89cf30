// A sequence's part of a block table, and the walk from page to page.
#ifndef JAX_FA_KERNELS_ATTENTION_PAGE_TABLE_H_
#define JAX_FA_KERNELS_ATTENTION_PAGE_TABLE_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/division.h"
#include "kernels/attention/seqlen.h"
#include "kernels/device.h"
#include "kernels/params.h"

namespace jax_fa {

// The row of the block table that is one sequence's. Entries past the sequence's last key are not
// read; an entry outside the pool is taken for the pool's last page.
class PageTable {
 public:
  JAX_FA_DEVICE PageTable(const AttentionParams& params, const Sequence& sequence,
                          u32 element_bytes)
      : entries_(params.block_tables + static_cast<i64>(sequence.index) * params.max_pages),
        page_stride_bytes_(static_cast<u32>(params.key_stride.batch) * element_bytes),
        // By its members: whole, it would straddle two words of reloaded arguments.
        divisor_{params.page_divisor.magic, params.page_divisor.shift},
        page_size_(params.page_size),
        pages_(params.num_pages) {}

  JAX_FA_DEVICE const int* entry(u32 page) const {
    const u32 offset = page * static_cast<u32>(sizeof(int));  // a page holds a key at least
    return reinterpret_cast<const int*>(reinterpret_cast<const char*>(entries_) + offset);
  }
  JAX_FA_DEVICE int page_size() const { return page_size_; }
  JAX_FA_DEVICE u32 page_stride_bytes() const { return page_stride_bytes_; }
  JAX_FA_DEVICE u32 last_page() const { return pages_ - 1; }  // of the pool
  // Bytes from the start of the pool to the page of an entry.
  JAX_FA_DEVICE i64 page_offset(int entry) const {
    const u32 page = min_u32(entry, pages_ - 1);
    return static_cast<u64>(page) * page_stride_bytes_;
  }
  // Bytes from the start of the pool to the row of `key`, which lies in the page of `entry`.
  JAX_FA_DEVICE i64 offset(int key, int entry, i64 row_stride_bytes) const {
    const u32 slot = key - page_of(key) * page_size_;
    return page_offset(entry) + slot * row_stride_bytes;
  }
  // The logical page of a key.
  JAX_FA_DEVICE u32 page_of(int key) const { return divide(key, divisor_); }

 private:
  const int* entries_;
  u32 page_stride_bytes_;
  Divisor divisor_;
  int page_size_;
  u32 pages_;
};

// Goes through the pages that hold keys first .. end-1, each entry fetched a page ahead. After the
// last page, the walk stays on it.
class PageWalk {
 public:
  JAX_FA_DEVICE explicit PageWalk(const PageTable& table) : table_(table) {}

  // Goes to the page of `first`.
  JAX_FA_DEVICE void start(int first, int end) {
    page_ = table_.page_of(first);
    end_ = page_ * table_.page_size();
    next_ = arch::load_uniform(table_.entry(page_));
    turn(end);
  }
  // Goes to the next page.
  JAX_FA_DEVICE void turn(int end) {
    offset_ = table_.page_offset(next_);
    end_ += table_.page_size();
    page_ += end_ < end ? 1 : 0;
    next_ = arch::load_uniform(table_.entry(page_));
  }
  JAX_FA_DEVICE int first() const { return end_ - table_.page_size(); }
  JAX_FA_DEVICE int end() const { return end_; }        // one past the last key of the page
  JAX_FA_DEVICE i64 offset() const { return offset_; }  // of the page, from the start of the pool

 private:
  PageTable table_;
  i64 offset_;
  int end_;
  u32 page_;  // the next logical page,
  int next_;  // and its entry
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_PAGE_TABLE_H_
