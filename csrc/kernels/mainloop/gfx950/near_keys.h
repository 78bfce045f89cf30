// gfx950: copying rows of a pool that one buffer reaches: a tile in one page or two (NearPageKeys,
// NearTwoPageKeys), or rows in any pages (NearRowKeys).
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_NEAR_KEYS_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_NEAR_KEYS_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/paged_keys.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx950/buffered_keys.h"

namespace jax_fa {

// Tiles in one page or two (NearPageKeys, NearTwoPageKeys). Lanes whose row lies in a second page,
// or past the sequence, have an offset of their own.
template <class Config, class Keys>
class NearTileStager : public BufferStager<Config, Keys> {
  using Base = BufferStager<Config, Keys>;
  using Base::first_piece_, Base::keys_, Base::source_;
  using typename Base::Tile;
  static constexpr int kPieces = Share<Config>::kPieces;

 public:
  using Base::Base;

  JAX_FA_DEVICE void copy(int tile, u32 key_lds, u32 value_lds) {
    const NearPlace place = keys_.place(tile * Config::kBlockKv, Config::kBlockKv);
    const u32 stride = keys_.row_stride_bytes();
    u32 offset[kPieces], scalar_offset[kPieces];
    JAX_FA_UNROLL for (int i = 0; i < kPieces; ++i) {
      offset[i] = source_;
      scalar_offset[i] = place.offset + i * stride;
    }
    if constexpr (Keys::kCutsTiles) {
      // The lanes' offsets hold all, the scalar ones nothing: the next page may lie before this
      // one, and a scalar offset may not be negative.
      const u32 here = source_ + place.offset, there = arch::opaque(here + place.jump);
      JAX_FA_UNROLL for (int i = 0; i < kPieces; ++i) {
        const int cut = static_cast<int>(place.cut - i * stride);
        offset[i] = (static_cast<int>(source_) >= cut ? there : here) + i * stride;
        scalar_offset[i] = 0;
      }
    }
    if (__builtin_expect(!place.whole, 0)) {
      const int present = max_int(0, keys_.end() - arch::opaque_uniform(tile) * Config::kBlockKv);
      JAX_FA_UNROLL for (int i = 0; i < kPieces; ++i) {
        const u32 source = arch::opaque(source_) + i * stride;
        if (source >= present * stride) offset[i] = arch::kOutOfRange;
      }
    }
    JAX_FA_UNROLL for (int i = 0; i < kPieces; ++i) {
      const u32 piece_lds = (first_piece_ + i) * Tile::kPitch;
      arch::copy_16_bytes_to_lds(keys_.keys(), key_lds + piece_lds, offset[i], scalar_offset[i]);
      arch::copy_16_bytes_to_lds(keys_.values(), value_lds + piece_lds, offset[i],
                                 scalar_offset[i]);
    }
  }
};

template <class Config>
class Stager<Config, NearPageKeys> : public NearTileStager<Config, NearPageKeys> {
  using NearTileStager<Config, NearPageKeys>::NearTileStager;
};
template <class Config>
class Stager<Config, NearTwoPageKeys> : public NearTileStager<Config, NearTwoPageKeys> {
  using NearTileStager<Config, NearTwoPageKeys>::NearTileStager;
};

// Rows in any pages (NearRowKeys): each lane has an offset of its own. The pieces
// of a wave begin with consecutive rows, which lie in one page where the page size is a multiple of
// their number: then one look-up serves them all.
template <class Config>
class Stager<Config, NearRowKeys> {
  using Tile = typename Share<Config>::Tile;
  static constexpr int kPieces = Share<Config>::kPieces;

 public:
  JAX_FA_DEVICE Stager(const NearRowKeys& keys, u32 wave)
      : keys_(keys),
        first_piece_(Share<Config>::first_piece(wave)),
        share_page_(keys.page_size() % kPieces == 0),
        row_(first_piece_ + Tile::source_row(arch::lane_id())),
        column_bytes_(Tile::source_column_bytes(arch::lane_id())) {
    if (column_bytes_ >= keys.head_bytes()) column_bytes_ = arch::kOutOfRange;
  }

  // Fetches the pages of the rows of `tile`, which is copied next.
  JAX_FA_DEVICE void start(int tile) {
    const int key = tile * Config::kBlockKv + row_;
    rows_[0] = keys_.fetch(key);
    if (!share_page_) {
      JAX_FA_UNROLL for (int i = 1; i < kPieces; ++i) rows_[i] = keys_.fetch(key + i);
    }
  }

  JAX_FA_DEVICE void copy(int tile, u32 key_lds, u32 value_lds) {
    const int present = keys_.end() - tile * Config::kBlockKv;
    u32 offset = 0;
    JAX_FA_UNROLL for (int i = 0; i < kPieces; ++i) {
      if (i == 0 || !share_page_) {
        offset = keys_.offset(rows_[i]) + column_bytes_;
      } else {
        offset += keys_.row_stride_bytes();
      }
      const u32 piece_lds = (first_piece_ + i) * Tile::kPitch;
      const u32 piece_offset = row_ < present - i ? offset : arch::kOutOfRange;
      arch::copy_16_bytes_to_lds(keys_.keys(), key_lds + piece_lds, piece_offset, 0);
      arch::copy_16_bytes_to_lds(keys_.values(), value_lds + piece_lds, piece_offset, 0);
    }
    start(tile + 1);
  }

 private:
  NearRowKeys keys_;
  u32 first_piece_;
  bool share_page_;
  int row_;  // row of the tile of which this lane copies a part, in the wave's first piece
  u32 column_bytes_;
  NearRowKeys::Row rows_[kPieces];
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_NEAR_KEYS_H_
