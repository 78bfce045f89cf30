// Keys and values in pages. The providers, for the first of which to serve its pages a tile costs
// least:
//   PooledKeys     a pool below 2 GiB, pages of a multiple of the key tile: a tile lies in one page
//   PagedKeys      the same in any pool
//   NearKeys       a pool below 2 GiB, pages of at least a tile: a tile lies in one page or in two
//   FragmentKeys   pages of a multiple of a fragment's 16 rows: a fragment lies in one page
//   ScatteredKeys  any pages: rows of a tile lie anywhere, each lane finds its own
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
template <class Config>
JAX_FA_DEVICE bool pool_is_near(const AttentionParams& params) {
  return is_near<Config>(static_cast<u64>(params.key_stride.batch) * params.num_pages);
}

// Offsets of tiles in a pool that one buffer reaches. Those of kWaveSize tiles in a row are found
// together, a lane for each, so that a tile costs the reading of a lane, whatever its page. A tile
// past the sequence is out of range.
class TileOffsets {
 public:
  JAX_FA_DEVICE explicit TileOffsets(const PageTable& table) : table_(table) {}

  // Of the tile that begins with key `first`; after the first one, tiles follow in their order.
  JAX_FA_DEVICE u32 start(int first, int count, int end, u32 row_stride_bytes) {
    find(first, count, end, row_stride_bytes);
    return arch::read_lane(offset_, lane_of(first, count));
  }
  JAX_FA_DEVICE u32 next(int first, int count, int end, u32 row_stride_bytes) {
    const u32 lane = lane_of(first, count);
    if (__builtin_expect(lane == 0, 0)) find(first, count, end, row_stride_bytes);
    return arch::read_lane(offset_, lane);
  }
  JAX_FA_DEVICE const PageTable& table() const { return table_; }

 private:
  JAX_FA_DEVICE static u32 lane_of(int first, int count) {
    return static_cast<u32>(first / count) % arch::kWaveSize;
  }
  JAX_FA_DEVICE void find(int first, int count, int end, u32 row_stride_bytes) {
    const int tiles = static_cast<int>(arch::lane_id()) - static_cast<int>(lane_of(first, count));
    const int key = first + tiles * count;
    const u32 page = table_.page_of(min_int(key, end - 1));
    const int entry = arch::load_4_bytes(table_.entry(page));
    const u32 slot = key - page * table_.page_size();
    offset_ = static_cast<u32>(table_.page_offset(entry)) + slot * row_stride_bytes;
    if (key >= end) offset_ = arch::kOutOfRange;
  }

  PageTable table_;
  u32 offset_;  // of this lane's tile
};

// Where a tile lies, in bytes from the start of the pool, modulo 2^32.
struct NearPlace {
  u32 offset;   // of the first row
  u32 special;  // 0: its rows follow each other, and are all there. Otherwise look_closer() says
  int present;  // how many there are up to the end of the sequence, 0 or less: none;
  u32 cut;      // that from so many bytes after the first row on they lie in the next page,
  u32 jump;     // so much further than if the pages followed each other
};

class PoolKeys : public KeyRows {
 public:
  template <class Element>
  JAX_FA_DEVICE PoolKeys(const AttentionParams& params, const Sequence& sequence, int kv_head,
                         int end, Element element)
      : KeyRows(params, sequence, kv_head, end, element),
        tiles_(PageTable(params, sequence, sizeof(Element))) {
    const i64 elements = params.num_pages * params.key_stride.batch;
    bytes_ = (elements - kv_head * params.key_stride.head) * sizeof(Element);
  }

  // Of keys and of values, from this head's first element on.
  JAX_FA_DEVICE arch::Buffer keys() const { return arch::make_buffer(key_, bytes_); }
  JAX_FA_DEVICE arch::Buffer values() const { return arch::make_buffer(value_, bytes_); }

 protected:
  TileOffsets tiles_;
  u32 bytes_;
};

class PooledKeys : public PoolKeys {
 public:
  template <class Config>
  JAX_FA_DEVICE static bool serves(const AttentionParams& params) {
    return params.page_size % Config::kBlockKv == 0 && pool_is_near<Config>(params);
  }
  using PoolKeys::PoolKeys;

  JAX_FA_DEVICE void start(int first, int count) {
    tiles_.start(first, count, end_, row_stride_bytes());
  }
  JAX_FA_DEVICE NearPlace place(int first, int count) {
    NearPlace place;
    place.offset = tiles_.next(first, count, end_, row_stride_bytes());
    place.special = end_ - first < count;
    return place;
  }
  JAX_FA_DEVICE void look_closer(int first, NearPlace& place) const {
    place.present = end_ - first;
    place.cut = place.jump = 0;
  }
};

class NearKeys : public PoolKeys {
 public:
  static constexpr bool kWholeHeadOnly = true;

  template <class Config>
  JAX_FA_DEVICE static bool serves(const AttentionParams& params) {
    return params.head_dim == Config::kHeadDim && params.page_size >= Config::kBlockKv &&
           pool_is_near<Config>(params);
  }
  using PoolKeys::PoolKeys;

  JAX_FA_DEVICE void start(int first, int count) {
    offset_ = tiles_.start(first, count, end_, row_stride_bytes());
  }
  JAX_FA_DEVICE NearPlace place(int first, int count) {
    NearPlace place;
    place.offset = offset_;
    offset_ = tiles_.next(first + count, count, end_, row_stride_bytes());
    // The tile after the last one never follows it.
    place.special = offset_ - place.offset - count * row_stride_bytes();
    return place;
  }
  JAX_FA_DEVICE void look_closer(int first, NearPlace& place) const {
    const PageTable& table = tiles_.table();
    const int page = table.page_of(first), last_page = table.page_of(end_ - 1);
    place.present = end_ - first;
    place.cut = ((page + 1) * table.page_size() - first) * row_stride_bytes();
    place.jump = 0;
    if (page >= last_page) return;
    const int entry = arch::load_uniform(table.entry(page + 1));
    place.jump = static_cast<u32>(table.page_offset(entry)) - place.offset - place.cut;
  }

 private:
  u32 offset_;  // of the next tile
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

// A fragment lies in one page whole, also where the length ends earlier, so that it needs no range
// check, provided that the head fills its tile.
class FragmentKeys : public KeyRows {
 public:
  static constexpr bool kWholeHeadOnly = true;

  template <class Config>
  JAX_FA_DEVICE static bool serves(const AttentionParams& params) {
    return params.head_dim == Config::kHeadDim && params.page_size % arch::kFragmentDim == 0 &&
           is_near<Config>(params.key_stride.batch);
  }

  template <class Element>
  JAX_FA_DEVICE FragmentKeys(const AttentionParams& params, const Sequence& sequence, int kv_head,
                             int end, Element element)
      : KeyRows(params, sequence, kv_head, end, element),
        page_(PageTable(params, sequence, sizeof(Element))) {}

  JAX_FA_DEVICE void start(int first) {
    page_.start(first, end_);
    offset_ = page_.offset() + (first - page_.first()) * row_stride_bytes_;
  }
  // Bytes from the start of the pool to the fragment that begins with key `first`, the next one.
  JAX_FA_DEVICE i64 place(int first) {
    if (first == page_.end()) {
      page_.turn(end_);
      offset_ = page_.offset();
    }
    const i64 offset = offset_;
    offset_ += arch::kFragmentDim * row_stride_bytes();
    return offset;
  }

 private:
  PageWalk page_;
  i64 offset_;  // of the next fragment
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
