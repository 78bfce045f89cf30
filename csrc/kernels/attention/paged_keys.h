// Keys and values in pages. The providers, for the first of which to serve its pages a tile costs
// least:
//   PooledKeys     a pool below 2 GiB, pages of a multiple of the key tile: a tile lies in one page
//   PagedKeys      the same in any pool
//   NearKeys       a pool below 2 GiB, pages of at least a tile: a tile lies in one page or in two
//   NearRowKeys    a pool below 2 GiB: rows of a tile lie anywhere, each lane finds its own
//   ScatteredKeys  the same in any pool
#ifndef JAX_FA_KERNELS_ATTENTION_PAGED_KEYS_H_
#define JAX_FA_KERNELS_ATTENTION_PAGED_KEYS_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/page_table.h"
#include "kernels/attention/rows.h"
#include "kernels/device.h"
#include "kernels/params.h"

namespace jax_fa {

template <class Config>
JAX_FA_DEVICE bool is_near(u64 elements) {
  return elements * sizeof(typename Config::Element) < arch::kOutOfRange;
}
// With room for a tile past its end, so that what is out of range stays so when such offsets are
// added.
template <class Config>
JAX_FA_DEVICE bool pool_is_near(const AttentionParams& params) {
  return is_near<Config>(static_cast<u64>(params.key_stride.batch) * params.num_pages +
                         static_cast<u64>(params.key_stride.row) * Config::kBlockKv);
}

// Bytes of such a pool from the head's first element on.
template <class Element>
JAX_FA_DEVICE u32 pool_bytes(const AttentionParams& params, int kv_head) {
  const i64 elements = params.num_pages * params.key_stride.batch;
  return (elements - kv_head * params.key_stride.head) * sizeof(Element);
}

// Where a tile lies in a pool that one buffer reaches, in bytes.
struct NearPlace {
  u32 offset;  // from the start of the pool to the first row; out of range when none is there
  bool whole;  // all rows are there
  u32 cut;     // from so many bytes after the first row on rows lie in the next page,
  u32 jump;    // so much further, modulo 2^32, than if the pages followed each other
};

// Keys and values of such a pool. The places of kWaveSize tiles in a row are found together, a lane
// for each, so that a tile costs the reading of lanes, whatever its page. After the last page comes
// the last page.
template <bool kTwoPages>
class PoolKeys : public KeyRows {
 public:
  static constexpr bool kCutsTiles = kTwoPages;

  template <class Element>
  JAX_FA_DEVICE PoolKeys(const AttentionParams& params, const Sequence& sequence, int kv_head,
                         int end, Element element)
      : KeyRows(params, sequence, kv_head, end, element),
        table_(params, sequence, sizeof(Element)),
        bytes_(pool_bytes<Element>(params, kv_head)) {}

  // Of keys and of values, from this head's first element on.
  JAX_FA_DEVICE arch::Buffer keys() const { return arch::make_buffer(key_, bytes_); }
  JAX_FA_DEVICE arch::Buffer values() const { return arch::make_buffer(value_, bytes_); }

  // Before the first place(), which will be of `first`; the following ones are of the tiles of
  // `count` rows after it.
  JAX_FA_DEVICE void start(int first, int count) {
    if (lane_of(first, count) != 0) find(first, count);
  }
  JAX_FA_DEVICE NearPlace place(int first, int count) {
    const u32 lane = lane_of(first, count);
    if (__builtin_expect(lane == 0, 0)) find(first, count);
    NearPlace place = {arch::read_lane(offset_, lane), first / count < end_ / count, 0, 0};
    if constexpr (kTwoPages) {
      place.cut = arch::read_lane(cut_, lane);
      place.jump = arch::read_lane(jump_, lane);
    }
    return place;
  }

 private:
  JAX_FA_DEVICE static u32 lane_of(int first, int count) {
    return static_cast<u32>(first / count) % arch::kWaveSize;
  }
  JAX_FA_DEVICE void find(int first, int count) {
    const int tiles = static_cast<int>(arch::lane_id()) - static_cast<int>(lane_of(first, count));
    const int key = first + tiles * count;
    const u32 page = table_.page_of(min_int(key, end_ - 1));
    const u32 slot = key - page * table_.page_size();
    const u32 page_offset = this->page_offset(page);
    offset_ = page_offset + slot * row_stride_bytes();
    if constexpr (kTwoPages) {
      const u32 last_page = table_.page_of(end_ - 1);
      const u32 page_bytes = table_.page_size() * row_stride_bytes();
      cut_ = page_bytes - slot * row_stride_bytes();
      jump_ = this->page_offset(min_u32(page + 1, last_page)) - page_offset - page_bytes;
    }
    if (key >= end_) {
      offset_ = arch::kOutOfRange;
      jump_ = 0;  // all of the tile stays there
    }
  }
  JAX_FA_DEVICE u32 page_offset(u32 page) const {
    return static_cast<u32>(table_.page_offset(arch::load_4_bytes(table_.entry(page))));
  }

  PageTable table_;
  u32 bytes_;
  u32 offset_, cut_, jump_;  // of this lane's tile
};

class PooledKeys : public PoolKeys</*kTwoPages=*/false> {
 public:
  template <class Config>
  JAX_FA_DEVICE static bool serves(const AttentionParams& params) {
    return params.page_size % Config::kBlockKv == 0 && pool_is_near<Config>(params);
  }
  using PoolKeys::PoolKeys;
};

class NearKeys : public PoolKeys</*kTwoPages=*/true> {
 public:
  static constexpr bool kWholeHeadOnly = arch::kNearKeysFillHeads;

  template <class Config>
  JAX_FA_DEVICE static bool serves(const AttentionParams& params) {
    return (!kWholeHeadOnly || params.head_dim == Config::kHeadDim) &&
           params.page_size >= Config::kBlockKv && pool_is_near<Config>(params);
  }
  using PoolKeys::PoolKeys;
};

// A page costs its entry, its buffers and one multiplication.
class PagedKeys : public BufferedKeys {
 public:
  template <class Config>
  JAX_FA_DEVICE static bool serves(const AttentionParams& params) {
    return params.page_size % Config::kBlockKv == 0 && is_near<Config>(params.key_stride.batch);
  }

  template <class Element>
  JAX_FA_DEVICE PagedKeys(const AttentionParams& params, const Sequence& sequence, int kv_head,
                          int end, Element element)
      : BufferedKeys(params, sequence, kv_head, end, element),
        page_(PageTable(params, sequence, sizeof(Element))),
        page_size_(params.page_size) {}

  JAX_FA_DEVICE void start(int first, int /*count*/) {
    page_.start(first, end_);
    open_page();
    offset_ = (first - page_.first()) * row_stride_bytes();
  }
  JAX_FA_DEVICE Place place(int first, int count) {
    if (__builtin_expect(first >= limit_, 0)) {
      if (first < end_) {
        page_.turn(end_);
        open_page();
      } else {
        offset_ = arch::kOutOfRange;
      }
    }
    return take(first, count);
  }

 private:
  // The keys of the whole page, since the mask drops what is past the length; values up to there.
  JAX_FA_DEVICE void open_page() {
    limit_ = min_int(page_.end(), end_);
    open(page_.offset(), page_size_, limit_ - page_.first());
  }

  PageWalk page_;
  int page_size_;
  int limit_;  // one past the last key of the page that counts
};

class NearRowKeys : public KeyRows {
 public:
  static constexpr bool kWholeHeadOnly = arch::kNearKeysFillHeads;

  // What is to be fetched ahead of a key: the entry of its page, and its bytes from the page's
  // start.
  struct Row {
    int entry;
    u32 slot_bytes;
  };

  template <class Config>
  JAX_FA_DEVICE static bool serves(const AttentionParams& params) {
    return (!kWholeHeadOnly || params.head_dim == Config::kHeadDim) && pool_is_near<Config>(params);
  }

  template <class Element>
  JAX_FA_DEVICE NearRowKeys(const AttentionParams& params, const Sequence& sequence, int kv_head,
                            int end, Element element)
      : KeyRows(params, sequence, kv_head, end, element),
        table_(params, sequence, sizeof(Element)),
        pool_bytes_(pool_bytes<Element>(params, kv_head)) {}

  JAX_FA_DEVICE arch::Buffer keys() const { return arch::make_buffer(key_, pool_bytes_); }
  JAX_FA_DEVICE arch::Buffer values() const { return arch::make_buffer(value_, pool_bytes_); }

  JAX_FA_DEVICE int page_size() const { return table_.page_size(); }
  // Of this lane's `key`, or of the last one.
  JAX_FA_DEVICE Row fetch(int key) const {
    key = min_int(key, end_ - 1);
    const u32 page = table_.page_of(key);
    const u32 slot = key - page * table_.page_size();
    return {arch::load_4_bytes(table_.entry(page)), slot * row_stride_bytes()};
  }
  // Bytes from the start of the pool.
  JAX_FA_DEVICE u32 offset(const Row& row) const {
    return static_cast<u32>(table_.page_offset(row.entry)) + row.slot_bytes;
  }

 private:
  PageTable table_;
  u32 pool_bytes_;
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
  // ... and where the row is: bytes from the start of the pool.
  JAX_FA_DEVICE i64 offset(int key, int entry) const {
    return table_.offset(key, entry, row_stride_bytes_);
  }

 private:
  PageTable table_;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_PAGED_KEYS_H_
