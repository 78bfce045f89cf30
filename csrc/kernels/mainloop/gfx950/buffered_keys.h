// gfx950: copying K and V tiles to LDS, each wave its share of the pieces (lds_tile.h); here of
// providers that keep buffers from tile to tile (DenseKeys, FarPageKeys).
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_BUFFERED_KEYS_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_BUFFERED_KEYS_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/paged_keys.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx950/lds_tile.h"

namespace jax_fa {

// What a wave copies of each tile.
template <class Config>
struct Share {
  using Tile = LdsTile<typename Config::Element, Config::kBlockKv, Config::kHeadDim>;
  static constexpr int kPieces = Tile::kPieces / Config::kWaves;
  static_assert(kPieces * Config::kWaves == Tile::kPieces, "every wave copies its share");
  JAX_FA_DEVICE static u32 first_piece(u32 wave) { return wave * kPieces; }
};

// What all stagers share that copy with the offsets of a whole tile.
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

  // Comes before the first copy(), which will be of `tile`; the following ones are of the tiles
  // after it.
  JAX_FA_DEVICE void start(int tile) { keys_.start(tile * Config::kBlockKv, Config::kBlockKv); }

 protected:
  Keys keys_;
  u32 first_piece_;
  u32 source_;  // this lane's place in the wave's first piece, in bytes from the tile's first row
};

// The rows of a tile lie at a constant distance: one bounded buffer reaches them all.
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
    u32 source[kPieces];
    JAX_FA_UNROLL for (u32& offset : source) offset = source_;
    if (__builtin_expect(place.present < Config::kBlockKv, 0)) drop_rows(place.present, source);
    copy_operand(keys_.keys(), place.offset, key_lds, source);
    copy_operand(keys_.values(), place.offset, value_lds, source);
  }

 private:
  static constexpr int kPieces = Share<Config>::kPieces;

  // Sends the lanes of rows from `present` on out of range. The buffer's bytes may not do that:
  // they are compared with an address of which the scalar offset is no part, by some documents.
  JAX_FA_DEVICE void drop_rows(int present, u32 (&source)[kPieces]) const {
    const u32 stride = keys_.row_stride_bytes();
    const u32 present_bytes = max_int(0, arch::opaque_uniform(present)) * stride;
    JAX_FA_UNROLL for (int i = 0; i < kPieces; ++i) {
      if (arch::opaque(source_) + i * stride >= present_bytes) source[i] = arch::kOutOfRange;
    }
  }
  JAX_FA_DEVICE void copy_operand(arch::Buffer buffer, u32 offset, u32 lds_tile,
                                  const u32 (&source)[kPieces]) const {
    JAX_FA_UNROLL for (int i = 0; i < kPieces; ++i) {
      arch::copy_16_bytes_to_lds(buffer, lds_tile + (first_piece_ + i) * Tile::kPitch, source[i],
                                 offset + i * keys_.row_stride_bytes());
    }
  }
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_BUFFERED_KEYS_H_
