// The providers of keys and values in pages. Two questions tell them apart. Is the pool near, that
// is, below 2 GiB, so that one buffer reaches all of it and an offset of 32 bits is a row's place?
// And in how many pages do the rows of a key tile lie?
//
//   provider         pool  a tile's rows lie in   kept from tile to tile
//   NearPageKeys     near  one page               in each lane: where one of the next tiles lies
//   FarPageKeys      any   one page               the page's buffers, the same for all lanes
//   NearTwoPageKeys  near  one page or two        in each lane: where one of the next tiles lies
//   NearRowKeys      near  any pages              in each lane: the page of one of its rows
//   FarRowKeys       any   any pages              in each lane: the page of one of its rows
//
// A tile costs least with the first of them that serves the pages: those of a tile need pages of a
// multiple of the key tile, those of two pages of at least a key tile.
#ifndef JAX_FA_KERNELS_ATTENTION_PAGED_KEYS_H_
#define JAX_FA_KERNELS_ATTENTION_PAGED_KEYS_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/page_table.h"
#include "kernels/attention/rows.h"
#include "kernels/device.h"
#include "kernels/params.h"

namespace jax_fa {

// Whether one buffer reaches so many elements.
template <class Config>
JAX_FA_DEVICE bool is_near(u64 elements) {
  return elements * sizeof(typename Config::Element) < arch::kOutOfRange;
}
// Whether one buffer reaches the pool and a tile past its end, so that what is out of range stays
// so when offsets within a tile are added.
template <class Config>
JAX_FA_DEVICE bool pool_is_near(const AttentionParams& params) {
  return is_near<Config>(static_cast<u64>(params.key_stride.batch) * params.num_pages +
                         static_cast<u64>(params.key_stride.row) * Config::kBlockKv);
}

// Bytes of a near pool from the head's first element on.
template <class Element>
JAX_FA_DEVICE u32 pool_bytes(const AttentionParams& params, int kv_head) {
  const i64 elements = params.num_pages * params.key_stride.batch;
  return (elements - kv_head * params.key_stride.head) * sizeof(Element);
}

// Where a tile lies in a near pool, in bytes.
struct NearPlace {
  u32 offset;  // from the start of the pool to the first row; out of range when none is there
  bool whole;  // all rows are there
  u32 cut;     // from so many bytes after the first row on rows lie in the next page,
  u32 jump;    // so much further, modulo 2^32, than if the pages followed each other
};

// Tiles of a near pool, in one page or in two. The places of kWaveSize tiles in a row are found
// together, a lane for each, so that a tile costs the reading of lanes, whatever its page. In
// place of a page after the last one stands the last one.
template <bool kTwoPages>
class NearTileKeys : public KeyRows {
 public:
  static constexpr bool kCutsTiles = kTwoPages;

  template <class Element>
  JAX_FA_DEVICE NearTileKeys(const AttentionParams& params, const Sequence& sequence, int kv_head,
                             int end, Element element)
      : KeyRows(params, sequence, kv_head, end, element),
        table_(params, sequence, sizeof(Element)),
        bytes_(pool_bytes<Element>(params, kv_head)) {}

  // The pool's keys and values, from this head's first element on.
  JAX_FA_DEVICE arch::Buffer keys() const { return arch::make_buffer(key_, bytes_); }
  JAX_FA_DEVICE arch::Buffer values() const { return arch::make_buffer(value_, bytes_); }

  // Comes before the first place(), which will be of `first`; the following ones are of the tiles
  // of `count` rows after it.
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
    return static_cast<u32>(first / count) % target::kWaveSize;
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
  u32 offset_, cut_, jump_;  // the NearPlace of this lane's tile
};

class NearPageKeys : public NearTileKeys</*kTwoPages=*/false> {
 public:
  template <class Config, bool kWholeHead>
  JAX_FA_DEVICE static bool serves(const AttentionParams& params) {
    return (!kWholeHead || params.head_dim == Config::kHeadDim) &&
           params.page_size % Config::kBlockKv == 0 && pool_is_near<Config>(params);
  }
  using NearTileKeys::NearTileKeys;
};

class NearTwoPageKeys : public NearTileKeys</*kTwoPages=*/true> {
 public:
  template <class Config, bool kWholeHead>
  JAX_FA_DEVICE static bool serves(const AttentionParams& params) {
    return (!kWholeHead || params.head_dim == Config::kHeadDim) &&
           params.page_size >= Config::kBlockKv && pool_is_near<Config>(params);
  }
  using NearTileKeys::NearTileKeys;
};

// Whole tiles of a page, in a pool of any size. A page costs its entry, its buffers and one
// multiplication.
class FarPageKeys : public BufferedKeys {
 public:
  template <class Config, bool kWholeHead>
  JAX_FA_DEVICE static bool serves(const AttentionParams& params) {
    return (!kWholeHead || params.head_dim == Config::kHeadDim) &&
           params.page_size % Config::kBlockKv == 0 && is_near<Config>(params.key_stride.batch);
  }

  template <class Element>
  JAX_FA_DEVICE FarPageKeys(const AttentionParams& params, const Sequence& sequence, int kv_head,
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
  // The buffer of keys holds the whole page, since the mask drops what is past the length, and that
  // of values the rows up to the length.
  JAX_FA_DEVICE void open_page() {
    limit_ = min_int(page_.end(), end_);
    open(page_.offset(), page_size_, limit_ - page_.first());
  }

  PageWalk page_;
  int page_size_;
  int limit_;  // one past the last key of the page that counts
};

// Rows anywhere in a near pool: each lane finds the offsets of its own.
class NearRowKeys : public KeyRows {
 public:
  // What is fetched of a key ahead of its use: the entry of its page, and its bytes from the page's
  // start.
  struct Row {
    int entry;
    u32 slot_bytes;
  };

  template <class Config, bool kWholeHead>
  JAX_FA_DEVICE static bool serves(const AttentionParams& params) {
    return (!kWholeHead || params.head_dim == Config::kHeadDim) && pool_is_near<Config>(params);
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
  // The row of this lane's `key`, or of the last key where that is past it.
  JAX_FA_DEVICE Row fetch(int key) const {
    key = min_int(key, end_ - 1);
    const u32 page = table_.page_of(key);
    const u32 slot = key - page * table_.page_size();
    return {arch::load_4_bytes(table_.entry(page)), slot * row_stride_bytes()};
  }
  // Bytes from the start of the pool to the row.
  JAX_FA_DEVICE u32 offset(const Row& row) const {
    return static_cast<u32>(table_.page_offset(row.entry)) + row.slot_bytes;
  }

 private:
  PageTable table_;
  u32 pool_bytes_;
};

// Rows anywhere in a pool of any size: each lane makes the addresses of its own.
class FarRowKeys : public KeyRows {
 public:
  template <class Element>
  JAX_FA_DEVICE FarRowKeys(const AttentionParams& params, const Sequence& sequence, int kv_head,
                           int end, Element element)
      : KeyRows(params, sequence, kv_head, end, element),
        table_(params, sequence, sizeof(Element)) {}

  JAX_FA_DEVICE int page_size() const { return table_.page_size(); }
  // The entry of the page of this lane's `key`, fetched ahead of its use.
  JAX_FA_DEVICE int fetch(int key) const {
    return arch::load_4_bytes(table_.entry(table_.page_of(min_int(key, end_ - 1))));
  }
  // Bytes from the start of the pool to the row of `key`.
  JAX_FA_DEVICE i64 offset(int key, int entry) const {
    return table_.offset(key, entry, row_stride_bytes_);
  }

 private:
  PageTable table_;
};

// The run-time head sizes for which the main loops of a target take a provider: any, those alone
// that fill the kernel's head size tile, or none. mainloop/<target>/near_keys.h specialises it.
enum class ServedHeads { kAny, kWhole, kNone };
template <class Keys>
inline constexpr ServedHeads kServedHeads = ServedHeads::kAny;

template <class Keys, class Config>
JAX_FA_DEVICE bool serves(const AttentionParams& params) {
  constexpr bool kWholeHead = kServedHeads<Keys> == ServedHeads::kWhole;
  return kServedHeads<Keys> != ServedHeads::kNone &&
         Keys::template serves<Config, kWholeHead>(params);
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_PAGED_KEYS_H_
