// gfx950: where the tiles of keys that the schedule of two groups copies lie: one behind the other,
// or in a pool of pages of whole tiles.
//
// All is scalar, in steps that have gaps of their own in the matrix block, and what one kind of
// keys does not want does nothing. The entry of a page is loaded under the softmax before the block
// that wants it, for every tile, also where the page is the same as before.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_PAGES_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_PAGES_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/page_table.h"
#include "kernels/attention/rows.h"
#include "kernels/device.h"
#include "kernels/params.h"

namespace jax_fa {

// The tile that comes after the one that the copies of keys are aimed at.
template <bool kPaged>
struct NextTile {
  using Keys = KeyRows;

  u32 tile_bytes;

  JAX_FA_DEVICE void start(const Keys& keys, int first_key, u32 bytes, arch::BufferWords& key_words,
                           arch::BufferWords& value_words) {
    tile_bytes = bytes;
    const i64 offset = static_cast<i64>(first_key) * keys.row_stride_bytes();
    key_words = arch::make_buffer_words(keys.key(offset), 0);
    value_words = arch::make_buffer_words(keys.value(offset), 0);
  }
  JAX_FA_DEVICE void begin_fetch() {}
  JAX_FA_DEVICE void end_fetch() {}
  JAX_FA_DEVICE void take_fetched() {}
  JAX_FA_DEVICE void find() {}
  JAX_FA_DEVICE void turn() {}
  // V moves to the tile that K is at, and then K to the next.
  JAX_FA_DEVICE void move_values(arch::BufferWords& values, arch::BufferWords&) const {
    arch::move_base(values, tile_bytes);
  }
  JAX_FA_DEVICE void move_keys(arch::BufferWords& keys) const { arch::move_base(keys, tile_bytes); }
};

// Keys and values in pages.
struct PagedKeyRows : KeyRows {
  template <class Element>
  JAX_FA_DEVICE PagedKeyRows(const AttentionParams& params, const Sequence& sequence, int kv_head,
                             int end, Element element)
      : KeyRows(params, sequence, kv_head, end, element),
        table(params, sequence, sizeof(Element)) {}

  PageTable table;
};

template <>
struct NextTile</*kPaged=*/true> {
  using Keys = PagedKeyRows;

  arch::BufferWords entries;                // up to that of the last key's page
  u32 entry_offset, entry;                  // in bytes; after end_fetch(), 0 past the last one
  u32 last_page, page_stride;               // of the pool; bytes from page to page
  u32 tile_bytes, tile_offset, page_bytes;  // of a tile, to the tile in its page, of a page
  u64 page_offset;                          // from the start of the pool, after find()
  u64 pool;                                 // address of the head's first key
  u64 to_values;                            // from a key to its value

  JAX_FA_DEVICE void start(const Keys& keys, int first_key, u32 bytes, arch::BufferWords& key_words,
                           arch::BufferWords& value_words) {
    const PageTable& table = keys.table;
    const u32 page = table.page_of(first_key);
    const u32 pages = keys.end() > first_key ? table.page_of(keys.end() - 1) + 1 : 0;
    entries = arch::make_buffer_words(table.entry(0), pages * sizeof(int));
    entry_offset = page * sizeof(int);
    last_page = table.last_page();
    page_stride = table.page_stride_bytes();
    tile_bytes = bytes;
    page_bytes = table.page_size() * keys.row_stride_bytes();
    tile_offset = (first_key - page * table.page_size()) * keys.row_stride_bytes();
    pool = reinterpret_cast<u64>(keys.key(0));
    to_values = reinterpret_cast<u64>(keys.value(0)) - pool;
    key_words = arch::make_buffer_words(keys.key(0), 0);
    value_words = arch::make_buffer_words(keys.value(0), 0);
    begin_fetch();
    end_fetch();
    find();
    move_keys(key_words);
    move_values(value_words, key_words);
    turn();
  }
  JAX_FA_DEVICE void begin_fetch() { entry = arch::begin_uniform_load(entries, entry_offset); }
  JAX_FA_DEVICE void end_fetch() { arch::end_uniform_load(entry); }
  JAX_FA_DEVICE void take_fetched() { entry = arch::opaque_uniform(entry); }  // lgkmcnt is 0
  // Each step ends in statements that stay where they are written, and begins with them.
  JAX_FA_DEVICE void find() {
    const u32 page = min_u32(arch::opaque_uniform(entry), last_page);
    page_offset = arch::opaque_uniform(static_cast<u64>(page) * page_stride);
  }
  JAX_FA_DEVICE void move_values(arch::BufferWords& values, arch::BufferWords& keys) const {
    arch::move_base(values, keys, to_values);
  }
  JAX_FA_DEVICE void move_keys(arch::BufferWords& keys) const {
    arch::set_base(keys, arch::opaque_uniform(page_offset) + tile_offset + pool);
  }
  JAX_FA_DEVICE void turn() {
    const u32 end = arch::opaque_uniform(tile_offset) + tile_bytes;
    const bool turns = end == page_bytes;
    tile_offset = arch::opaque_uniform(turns ? 0 : end);
    entry_offset = arch::opaque_uniform(entry_offset + (turns ? 4 : 0));
  }
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_PAGES_H_
