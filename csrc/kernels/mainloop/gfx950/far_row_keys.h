// gfx950: copying rows that lie anywhere (FarRowKeys).
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_FAR_ROW_KEYS_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_FAR_ROW_KEYS_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/paged_keys.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx950/buffered_keys.h"

namespace jax_fa {

// Each lane has an address of its own; in place of rows and head elements that are not there, it is
// the address of zeros.
template <class Config>
class Stager<Config, FarRowKeys> {
  using Tile = typename Share<Config>::Tile;
  static constexpr int kPieces = Share<Config>::kPieces;

 public:
  JAX_FA_DEVICE Stager(const FarRowKeys& keys, u32 wave)
      : keys_(keys),
        first_piece_(Share<Config>::first_piece(wave)),
        share_page_(keys.page_size() % kPieces == 0) {}

  // Fetches the pages of the rows of `tile`, which is copied next.
  JAX_FA_DEVICE void start(int tile) {
    const int key = key_of(tile, arch::opaque(arch::lane_id()));
    pages_[0] = keys_.fetch(key);
    if (!share_page_) {
      JAX_FA_UNROLL for (int i = 1; i < kPieces; ++i) pages_[i] = keys_.fetch(key + i);
    }
  }

  JAX_FA_DEVICE void copy(int tile, u32 key_lds, u32 value_lds) {
    // The lane is made afresh: what follows from it would lie in registers through the main loop.
    const u32 lane = arch::opaque(arch::lane_id());
    const u32 column_bytes = Tile::source_column_bytes(lane);
    const int key = key_of(tile, lane);
    i64 offset = 0;
    const bool in_head = column_bytes < keys_.head_bytes();
    JAX_FA_UNROLL for (int i = 0; i < kPieces; ++i) {
      if (i == 0 || !share_page_) {
        offset = keys_.offset(key + i, pages_[i]) + column_bytes;
      } else {
        offset += keys_.row_stride_bytes();
      }
      const char* key_address = zero_row() + column_bytes;
      const char* value_address = key_address;
      if (in_head && key + i < keys_.end()) {
        key_address = keys_.key(offset);
        value_address = keys_.value(offset);
      }
      const u32 piece_lds = (first_piece_ + i) * Tile::kPitch;
      arch::copy_16_bytes_to_lds(key_address, key_lds + piece_lds);
      arch::copy_16_bytes_to_lds(value_address, value_lds + piece_lds);
    }
    start(tile + 1);
  }

 private:
  // The key of which this lane copies a part, in the first piece of its wave.
  JAX_FA_DEVICE int key_of(int tile, u32 lane) const {
    return tile * Config::kBlockKv + Tile::source_row(lane) + first_piece_;
  }

  FarRowKeys keys_;
  u32 first_piece_;
  bool share_page_;
  int pages_[kPieces];
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_FAR_ROW_KEYS_H_
