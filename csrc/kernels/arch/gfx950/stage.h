// gfx950: copying K and V tiles to LDS, each wave its share of the pieces (lds.h).
#ifndef JAX_FA_KERNELS_ARCH_GFX950_STAGE_H_
#define JAX_FA_KERNELS_ARCH_GFX950_STAGE_H_

#include "kernels/arch/gfx950/lds.h"
#include "kernels/arch/gfx950/limits.h"
#include "kernels/attention/paged_keys.h"
#include "kernels/device.h"

namespace jax_fa::arch {

// What a wave copies of each tile.
template <class Config>
struct Share {
  using Tile = LdsTile<typename Config::Element, Config::kBlockKv, Config::kHeadDim>;
  static constexpr int kPieces = Tile::kPieces / Config::kWaves;
  static_assert(kPieces * Config::kWaves == Tile::kPieces, "every wave copies its share");
  JAX_FA_DEVICE static u32 first_piece(u32 wave) { return wave * kPieces; }
};

// What stagers from buffers share.
template <class Config, class Keys>
class BufferStager {
 protected:
  using Tile = typename Share<Config>::Tile;

 public:
  JAX_FA_DEVICE BufferStager(const Keys& keys, u32 wave)
      : keys_(keys),
        first_piece_(Share<Config>::first_piece(wave)),
        source_(Tile::source_offset(keys.row_stride_bytes(), keys.head_bytes()) +
                first_piece_ * keys.row_stride_bytes()) {}

  // Before the first copy(), which will be of `tile`; the following ones are of the tiles after it.
  JAX_FA_DEVICE void start(int tile) { keys_.start(tile * Config::kBlockKv, Config::kBlockKv); }

 protected:
  Keys keys_;
  u32 first_piece_;
  u32 source_;  // this lane's place in the wave's first piece, in bytes from the tile's first row
};

// Rows of a tile at a constant distance (DenseKeys, PagedKeys): one bounded buffer reaches them
// all.
template <class Config, class Keys>
class Stager : public BufferStager<Config, Keys> {
  using Base = BufferStager<Config, Keys>;
  using Base::first_piece_, Base::keys_, Base::source_;
  using typename Base::Tile;

 public:
  using Base::Base;

  // Starts copying this wave's pieces of `tile`.
  JAX_FA_DEVICE void copy(int tile, u32 key_lds, u32 value_lds) {
    const Place place = keys_.place(tile * Config::kBlockKv, Config::kBlockKv);
    copy_operand(keys_.keys(), place.offset, key_lds);
    copy_operand(keys_.values(), place.offset, value_lds);
  }

 private:
  JAX_FA_DEVICE void copy_operand(Buffer buffer, u32 offset, u32 lds_tile) const {
    JAX_FA_UNROLL for (int i = 0; i < Share<Config>::kPieces; ++i) {
      copy_16_bytes_to_lds(buffer, lds_tile + (first_piece_ + i) * Tile::kPitch, source_,
                           offset + i * keys_.row_stride_bytes());
    }
  }
};

// The pool in one buffer (PooledKeys, NearKeys). Lanes whose row lies in a second page, or past the
// sequence, have an offset of their own.
template <class Config, class Keys>
class PoolStager : public BufferStager<Config, Keys> {
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
      // Of lanes alone: the next page may lie before this one, and an offset may not be negative.
      const u32 here = source_ + place.offset, there = opaque(here + place.jump);
      JAX_FA_UNROLL for (int i = 0; i < kPieces; ++i) {
        const int cut = static_cast<int>(place.cut - i * stride);
        offset[i] = (static_cast<int>(source_) >= cut ? there : here) + i * stride;
        scalar_offset[i] = 0;
      }
    }
    if (__builtin_expect(!place.whole, 0)) {
      const int present = max_int(0, keys_.end() - opaque_uniform(tile) * Config::kBlockKv);
      JAX_FA_UNROLL for (int i = 0; i < kPieces; ++i) {
        const u32 source = opaque(source_) + i * stride;
        if (source >= present * stride) offset[i] = kOutOfRange;
      }
    }
    JAX_FA_UNROLL for (int i = 0; i < kPieces; ++i) {
      const u32 piece_lds = (first_piece_ + i) * Tile::kPitch;
      copy_16_bytes_to_lds(keys_.keys(), key_lds + piece_lds, offset[i], scalar_offset[i]);
      copy_16_bytes_to_lds(keys_.values(), value_lds + piece_lds, offset[i], scalar_offset[i]);
    }
  }
};

template <class Config>
class Stager<Config, PooledKeys> : public PoolStager<Config, PooledKeys> {
  using PoolStager<Config, PooledKeys>::PoolStager;
};
template <class Config>
class Stager<Config, NearKeys> : public PoolStager<Config, NearKeys> {
  using PoolStager<Config, NearKeys>::PoolStager;
};

// Rows anywhere in a pool that one buffer reaches: each lane has an offset of its own. The pieces
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
        row_(first_piece_ + Tile::source_row(lane_id())),
        column_bytes_(Tile::source_column_bytes(lane_id())) {
    if (column_bytes_ >= keys.head_bytes()) column_bytes_ = kOutOfRange;
  }

  // The pages of the rows of `tile`, which is copied next.
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
      const u32 piece_offset = row_ < present - i ? offset : kOutOfRange;
      copy_16_bytes_to_lds(keys_.keys(), key_lds + piece_lds, piece_offset, 0);
      copy_16_bytes_to_lds(keys_.values(), value_lds + piece_lds, piece_offset, 0);
    }
    start(tile + 1);
  }

 private:
  NearRowKeys keys_;
  u32 first_piece_;
  bool share_page_;
  int row_;  // of the tile, of which this lane copies a part in the wave's first piece
  u32 column_bytes_;
  NearRowKeys::Row rows_[kPieces];
};

// Rows anywhere: each lane has an address of its own. Those of rows and head elements that are not
// there are of zeros.
template <class Config>
class Stager<Config, ScatteredKeys> {
  using Tile = typename Share<Config>::Tile;
  static constexpr int kPieces = Share<Config>::kPieces;

 public:
  JAX_FA_DEVICE Stager(const ScatteredKeys& keys, u32 wave)
      : keys_(keys),
        first_piece_(Share<Config>::first_piece(wave)),
        share_page_(keys.page_size() % kPieces == 0) {}

  // The pages of the rows of `tile`, which is copied next.
  JAX_FA_DEVICE void start(int tile) {
    const int key = key_of(tile, opaque(lane_id()));
    pages_[0] = keys_.fetch(key);
    if (!share_page_) {
      JAX_FA_UNROLL for (int i = 1; i < kPieces; ++i) pages_[i] = keys_.fetch(key + i);
    }
  }

  JAX_FA_DEVICE void copy(int tile, u32 key_lds, u32 value_lds) {
    // Made afresh: what follows from it would lie in registers through the main loop.
    const u32 lane = opaque(lane_id());
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
      copy_16_bytes_to_lds(key_address, key_lds + piece_lds);
      copy_16_bytes_to_lds(value_address, value_lds + piece_lds);
    }
    start(tile + 1);
  }

 private:
  // The key of which this lane copies a part, in the first piece of its wave.
  JAX_FA_DEVICE int key_of(int tile, u32 lane) const {
    return tile * Config::kBlockKv + Tile::source_row(lane) + first_piece_;
  }

  ScatteredKeys keys_;
  u32 first_piece_;
  bool share_page_;
  int pages_[kPieces];
};

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX950_STAGE_H_
