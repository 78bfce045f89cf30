// gfx1201: how matrix operands of K and V are read: straight from global memory, where both exist
// as the matrix core wants them (K by rows, V by the transposing load). Waves that read the same
// meet in the L0 cache, without LDS and its barriers; only those of staged.h read for each other.
#ifndef JAX_FA_KERNELS_ARCH_GFX1201_LDS_H_
#define JAX_FA_KERNELS_ARCH_GFX1201_LDS_H_

#include "kernels/arch/gfx1201/global.h"
#include "kernels/arch/gfx1201/matrix.h"
#include "kernels/attention/paged_keys.h"
#include "kernels/device.h"

namespace jax_fa::arch {

// Both classes are for providers of rows at a constant distance (DenseKeys, PagedKeys); scattered.h
// has those for other pages. A tile's Place serves K and V.

// K in S^T = K.Q^T: rows as A rows, in tiles of 16 kFragments keys. Rows past the length and head
// elements past the run-time H are zero; kWholeHead promises that there are none of the latter.
template <class Element, class Keys, int kFragments>
class KeyOperands {
 public:
  // A tile of keys, and what finds the values of the same tile.
  struct Tile {
    Buffer keys;
    Place place;
  };

  // Steps are counted from `first_step`.
  JAX_FA_DEVICE explicit KeyOperands(const Keys& keys, u32 first_step = 0) : keys_(keys) {
    const u32 depth_bytes = (first_step * kFragmentDepth + operand_depth()) * sizeof(Element);
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      const u32 row = f * kFragmentDim + fragment_column();
      offset_[f] = row * keys.row_stride_bytes() + depth_bytes;
    }
    head_end_ = static_cast<int>(keys.head_bytes() - depth_bytes);
  }

  // Before the first tile(), which will be of `first_key`; the following ones are of the tiles
  // after it, and before each of them there is time to fetch(), earlier than its use.
  JAX_FA_DEVICE void start(int first_key) { keys_.start(first_key, kFragments * kFragmentDim); }
  JAX_FA_DEVICE void fetch(int /*first_key*/) {}

  // Once per tile: keeps the compiler from holding a register per constant added to an offset,
  // which then is part of the load instruction.
  JAX_FA_DEVICE void begin_tile() {
    JAX_FA_UNROLL for (u32& offset : offset_) offset = opaque(offset);
  }

  JAX_FA_DEVICE Tile tile(int first_key) {
    const Place place = keys_.place(first_key, kFragments * kFragmentDim);
    return {keys_.keys(), place};
  }

  // Keys 16 fragment .. +15 of a tile, head elements 16 step .. +15.
  template <bool kWholeHead>
  JAX_FA_DEVICE Operand<Element> read(const Tile& tile, int fragment, int step) const {
    const int step_bytes = step * kFragmentDepth * sizeof(Element);
    u32 offset = offset_[fragment] + step_bytes;
    if (!kWholeHead && step_bytes >= head_end_) offset = kOutOfRange;
    return __builtin_bit_cast(Operand<Element>,
                              load_16_bytes(tile.keys, offset, tile.place.offset));
  }

 private:
  Keys keys_;
  u32 offset_[kFragments];  // this lane's, in bytes from the start of a tile
  int head_end_;            // of the head, in bytes from this lane's first element
};

// The lanes of V^T: the transposing load gives lane l elements of the rows of lanes 8(l/8) .. +7.
// With these addresses it is column l%16 of keys 8(l/16) .. +7, which is the operand's layout.
struct ValueLane {
  int row;
  u32 column_bytes;
  JAX_FA_DEVICE ValueLane() {
    const u32 id = lane_id();
    row = id % 8 + id / 16 * 8;
    column_bytes = id / 8 % 2 * kBytes;
  }
  static constexpr u32 kBytes = 16;
  // The lane that has this row of keys, and elements as far from its first.
  JAX_FA_DEVICE static u32 key_lane() {
    const u32 id = lane_id();
    return id % 8 + id / 8 % 2 * 16 + id / 16 * 8;
  }
};

// V^T in O^T = V^T.P^T: rows as depth. What does not depend on where the rows lie. Head elements
// past the run-time H are copies, whose output is not stored.
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

  // As for keys, and for each block, since the columns are the same in all.
  JAX_FA_DEVICE void hide_lane() {
    offset_ = opaque(offset_);
    last_column_ = opaque(last_column_);
  }
  JAX_FA_DEVICE static void hide(Block& block) { block.offset = opaque(block.offset); }

  // Head elements 16 tile .. +15 as A rows.
  template <bool kWholeHead>
  JAX_FA_DEVICE Operand<Element> read(const Block& block, int tile) const {
    Vector<u32, 4> loaded;
    if constexpr (kWholeHead) {
      loaded = load_transposed(block.base, block.offset, tile * kTileBytes);
    } else {
      const int column = min_int(tile * kTileBytes, last_column_);  // negative where H = 8
      loaded = load_transposed(block.base, block.offset + column, 0);
    }
    return __builtin_bit_cast(Operand<Element>, loaded);
  }

 protected:
  // Bytes from the start of a tile, of which `present` rows are there, to this lane's row in the
  // block that begins with row `first`, or to the last row where that one is not there.
  JAX_FA_DEVICE u32 offset_in_tail(int first, int present, u32 row_stride_bytes) const {
    const ValueLane lane;
    const int row = max_int(0, min_int(first + lane.row, present - 1));
    // Not one multiply-add: it would be a 64-bit one with an upper half that nobody has written.
    return opaque(row * row_stride_bytes) + first_bytes_ + lane.column_bytes;
  }

  static constexpr int kTileBytes = kFragmentDim * sizeof(Element);
  u32 first_bytes_;  // the same for all lanes
  u32 offset_;       // this lane's, in bytes from the start of a block
  int last_column_;  // of the head that this lane may read, in bytes from its first
};

// Keys past the length are copies of the last key, which the mask gives weight 0, since the
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
    const int first = fragment * kFragmentDim;
    const char* base = keys_.value(place.base) + place.offset;
    if (__builtin_expect(first + kFragmentDim <= place.present, 1)) {
      return {base, this->offset_ + first * keys_.row_stride_bytes()};
    }
    // Rare: only the last block of a sequence, and those past it in the same tile.
    return {base, this->offset_in_tail(first, place.present, keys_.row_stride_bytes())};
  }

 private:
  Keys keys_;
};

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX1201_LDS_H_
