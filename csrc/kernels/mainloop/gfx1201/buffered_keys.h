// gfx1201: how matrix operands of K and V are read: straight from global memory, which gives both
// as the matrix core wants them (K by rows, V by the transposing load). Waves that read the same
// meet in the L0 cache, without LDS and its barriers; only those of staged_mainloop.h load for each
// other.
//
// KeyOperands and ValueOperands are here for providers of rows at a constant distance (DenseKeys,
// FarPageKeys); near_keys.h and far_row_keys.h specialise them for the others. One Place of a tile
// serves K and V.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX1201_BUFFERED_KEYS_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX1201_BUFFERED_KEYS_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/paged_keys.h"
#include "kernels/device.h"

namespace jax_fa {

// K in S^T = K.Q^T: rows as A rows, in tiles of 16 kFragments keys. Rows past the length and head
// elements past the run-time H are zero; kWholeHead promises that there are none of the latter.
template <class Element, class Keys, int kFragments>
class KeyOperands {
 public:
  // A tile of keys, and what finds the values of the same tile.
  struct Tile {
    arch::Buffer keys;
    Place place;
  };

  // Steps are counted from `first_step`.
  JAX_FA_DEVICE explicit KeyOperands(const Keys& keys, u32 first_step = 0) : keys_(keys) {
    const u32 depth_bytes =
        (first_step * arch::kFragmentDepth + arch::operand_depth()) * sizeof(Element);
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      const u32 row = f * arch::kFragmentDim + arch::fragment_column();
      offset_[f] = row * keys.row_stride_bytes() + depth_bytes;
    }
    head_end_ = static_cast<int>(keys.head_bytes() - depth_bytes);
  }

  // Comes before the first tile(), which will be of `first_key`; the following ones are of the
  // tiles after it, and before each of them there is time to fetch(), earlier than its use.
  JAX_FA_DEVICE void start(int first_key) {
    keys_.start(first_key, kFragments * arch::kFragmentDim);
  }
  JAX_FA_DEVICE void fetch(int /*first_key*/) {}

  // Comes once per tile: keeps the compiler from holding a register per constant added to an
  // offset, which then is part of the load instruction.
  JAX_FA_DEVICE void begin_tile() {
    JAX_FA_UNROLL for (u32& offset : offset_) offset = arch::opaque(offset);
  }

  JAX_FA_DEVICE Tile tile(int first_key) {
    const Place place = keys_.place(first_key, kFragments * arch::kFragmentDim);
    return {keys_.keys(), place};
  }

  // Keys 16 fragment .. +15 of a tile, head elements 16 step .. +15.
  template <bool kWholeHead>
  JAX_FA_DEVICE arch::Operand<Element> read(const Tile& tile, int fragment, int step) const {
    const int step_bytes = step * arch::kFragmentDepth * sizeof(Element);
    u32 offset = offset_[fragment] + step_bytes;
    if (!kWholeHead && step_bytes >= head_end_) offset = arch::kOutOfRange;
    return __builtin_bit_cast(arch::Operand<Element>,
                              arch::load_16_bytes(tile.keys, offset, tile.place.offset));
  }

 private:
  Keys keys_;
  u32 offset_[kFragments];  // this lane's, in bytes from the start of a tile
  int head_end_;            // where the head ends, in bytes from this lane's first element
};

// The lanes of V^T: the transposing load gives lane l elements of the rows of lanes 8(l/8) .. +7.
// With these addresses it is column l%16 of keys 8(l/16) .. +7, which is the operand's layout.
struct ValueLane {
  int row;
  u32 column_bytes;
  JAX_FA_DEVICE ValueLane() {
    const u32 id = arch::lane_id();
    row = id % 8 + id / 16 * 8;
    column_bytes = id / 8 % 2 * kBytes;
  }
  static constexpr u32 kBytes = 16;
  // The lane that has this row of keys, and elements as far from its first.
  JAX_FA_DEVICE static u32 key_lane() {
    const u32 id = arch::lane_id();
    return id % 8 + id / 8 % 2 * 16 + id / 16 * 8;
  }
};

// V^T in O^T = V^T.P^T: rows as depth. This class has what does not depend on where the rows lie.
// Head elements past the run-time H are copies, whose output is not stored.
template <class Element>
class ValueColumns {
 public:
  // Where this lane reads 16 keys.
  struct Block {
    const char* base;  // the same for all lanes
    u32 offset;
  };

  // Tiles of the head are counted from `first_tile`.
  JAX_FA_DEVICE explicit ValueColumns(const KeyRows& keys, u32 first_tile)
      : first_bytes_(first_tile * kTileBytes) {
    const ValueLane lane;
    const u32 column_bytes = first_bytes_ + lane.column_bytes;
    offset_ = lane.row * keys.row_stride_bytes() + column_bytes;
    last_column_ = static_cast<int>(keys.head_bytes() - ValueLane::kBytes - column_bytes);
  }

  JAX_FA_DEVICE void begin_tile() {}

  // Keeps the compiler from holding a register per column, as begin_tile() does for keys. It comes
  // once per block, since all blocks have the same columns.
  JAX_FA_DEVICE void hide_lane() {
    offset_ = arch::opaque(offset_);
    last_column_ = arch::opaque(last_column_);
  }
  JAX_FA_DEVICE static void hide(Block& block) { block.offset = arch::opaque(block.offset); }

  // Head elements 16 tile .. +15 as A rows.
  template <bool kWholeHead>
  JAX_FA_DEVICE arch::Operand<Element> read(const Block& block, int tile) const {
    Vector<u32, 4> loaded;
    if constexpr (kWholeHead) {
      loaded = arch::load_transposed(block.base, block.offset, tile * kTileBytes);
    } else {
      const int column = min_int(tile * kTileBytes, last_column_);  // negative where H = 8
      loaded = arch::load_transposed(block.base, block.offset + column, 0);
    }
    return __builtin_bit_cast(arch::Operand<Element>, loaded);
  }

 protected:
  // Bytes from the start of a tile, of which `present` rows are there, to this lane's row in the
  // block that begins with row `first`, or to the last row where that one is not there.
  JAX_FA_DEVICE u32 offset_in_tail(int first, int present, u32 row_stride_bytes) const {
    const ValueLane lane;
    const int row = max_int(0, min_int(first + lane.row, present - 1));
    // opaque() keeps the two from being one multiply-add, which would be a 64-bit one with an upper
    // half that nobody has written.
    return arch::opaque(row * row_stride_bytes) + first_bytes_ + lane.column_bytes;
  }

  static constexpr int kTileBytes = arch::kFragmentDim * sizeof(Element);
  u32 first_bytes_;  // the same for all lanes
  u32 offset_;       // this lane's, in bytes from the start of a block
  int last_column_;  // the last one that this lane may read, in bytes from its first
};

// In place of keys past the length the last key is read, which the mask gives weight 0, since the
// transposing load has no range check and may not leave the operand.
template <class Element, class Keys>
class ValueOperands : public ValueColumns<Element> {
  using Base = ValueColumns<Element>;

 public:
  using typename Base::Block;
  JAX_FA_DEVICE explicit ValueOperands(const Keys& keys, u32 first_tile = 0)
      : Base(keys, first_tile), keys_(keys) {}

  // Keys 16 fragment .. +15 of a tile.
  template <class Tile>
  JAX_FA_DEVICE Block block(const Tile& tile, int /*first_key*/, int fragment) {
    this->hide_lane();
    const Place& place = tile.place;
    const int first = fragment * arch::kFragmentDim;
    const char* base = keys_.value(place.base) + place.offset;
    if (__builtin_expect(first + arch::kFragmentDim <= place.present, 1)) {
      return {base, this->offset_ + first * keys_.row_stride_bytes()};
    }
    // Few blocks come here: the last one of a sequence, and those past it in the same tile.
    return {base, this->offset_in_tail(first, place.present, keys_.row_stride_bytes())};
  }

 private:
  Keys keys_;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX1201_BUFFERED_KEYS_H_
