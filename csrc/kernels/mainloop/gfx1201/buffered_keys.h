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

// Where the run-time H may end in the steps of a loop over the head.
struct HeadCut {
  int first;  // the first step that may lie past H, in part or whole
  bool held;  // what lanes read in those steps is found by hold() before the loop, not by each read
};
inline constexpr HeadCut kWholeHead = {.first = 1 << 30, .held = false};
inline constexpr HeadCut kCutAnywhere = {.first = 0, .held = false};
// Steps at the end of a loop that hold() provides for.
inline constexpr int kMaxHeldSteps = 2;

// K in S^T = K.Q^T: rows as A rows, in tiles of 16 kFragments keys. Rows past the length and head
// elements past the run-time H are zero.
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
    offset_ = arch::fragment_column() * keys.row_stride_bytes() + depth_bytes;
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
  JAX_FA_DEVICE void begin_tile() { offset_ = arch::opaque(offset_); }

  // Comes before loops with a HeadCut that is held, for its first step and those that follow.
  JAX_FA_DEVICE void hold(int first_step) {
    JAX_FA_UNROLL for (int i = 0; i < kMaxHeldSteps; ++i) {
      held_[i] = arch::opaque(cut_offset(first_step + i));
    }
  }

  JAX_FA_DEVICE Tile tile(int first_key) {
    const Place place = keys_.place(first_key, kFragments * arch::kFragmentDim);
    return {keys_.keys(), place};
  }

  // Keys 16 fragment .. +15 of a tile, head elements 16 step .. +15.
  template <HeadCut kCut>
  JAX_FA_DEVICE arch::Operand<Element> read(const Tile& tile, int fragment, int step) const {
    u32 offset = offset_ + step * kStepBytes;
    if (step >= kCut.first) offset = kCut.held ? held_[step - kCut.first] : cut_offset(step);
    // The fragment's rows are the same for all lanes: the scalar unit adds them.
    const u32 first_row = fragment * arch::kFragmentDim * keys_.row_stride_bytes();
    return __builtin_bit_cast(
        arch::Operand<Element>,
        arch::load_16_bytes(tile.keys, offset, tile.place.offset + first_row));
  }

 private:
  static constexpr int kStepBytes = arch::kFragmentDepth * sizeof(Element);
  JAX_FA_DEVICE u32 cut_offset(int step) const {
    return step * kStepBytes < head_end_ ? offset_ + step * kStepBytes : arch::kOutOfRange;
  }

  Keys keys_;
  u32 offset_;    // this lane's, in bytes from the start of a fragment
  int head_end_;  // where the head ends, in bytes from this lane's first element
  u32 held_[kMaxHeldSteps];
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
  // Tiles of the head are counted from `first_tile`.
  JAX_FA_DEVICE explicit ValueColumns(const KeyRows& keys, u32 first_tile)
      : first_bytes_(first_tile * kTileBytes) {
    const ValueLane lane;
    const u32 column_bytes = first_bytes_ + lane.column_bytes;
    offset_ = lane.row * keys.row_stride_bytes() + column_bytes;
    last_column_ = static_cast<int>(keys.head_bytes() - ValueLane::kBytes - column_bytes);
  }

  JAX_FA_DEVICE void begin_tile() {}

 protected:
  // The column of head elements 16 tile .. +15, in bytes, or the last one: negative where H = 8.
  JAX_FA_DEVICE int cut_column(int tile) const { return min_int(tile * kTileBytes, last_column_); }

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
  using Base::kTileBytes, Base::last_column_, Base::offset_;

 public:
  // 16 keys: the start of their first row or, past the length, that of the tile.
  struct Block {
    const char* base;
  };

  JAX_FA_DEVICE explicit ValueOperands(const Keys& keys, u32 first_tile = 0)
      : Base(keys, first_tile), keys_(keys) {}

  // As KeyOperands::hold().
  JAX_FA_DEVICE void hold(int first_tile) {
    first_held_ = first_tile;
    find_held();
    JAX_FA_UNROLL for (u32& offset : held_) offset = arch::opaque(offset);
  }

  // Keys 16 fragment .. +15 of a tile.
  template <class Tile>
  JAX_FA_DEVICE Block block(const Tile& tile, int /*first_key*/, int fragment) {
    hide_lane();
    const Place& place = tile.place;
    const u32 stride = keys_.row_stride_bytes();
    const int first = fragment * arch::kFragmentDim;
    const char* base = keys_.value(place.base) + place.offset;
    if (__builtin_expect(first + arch::kFragmentDim <= place.present, 1)) {
      return {base + first * stride};
    }
    // Few blocks come here: the last one of a sequence, and those past it in the same tile. No
    // whole block follows, so that lanes keep their new places.
    offset_ = this->offset_in_tail(first, place.present, stride);
    find_held();
    return {base};
  }

  // Keeps the compiler from adding a block's base early, in vector registers.
  JAX_FA_DEVICE void hide(Block& /*block*/) { offset_ = arch::opaque(offset_); }

  // Head elements 16 tile .. +15 as A rows.
  template <HeadCut kCut>
  JAX_FA_DEVICE arch::Operand<Element> read(const Block& block, int tile) const {
    Vector<u32, 4> loaded;
    if (tile < kCut.first) {
      loaded = arch::load_transposed(block.base, offset_, tile * kTileBytes);
    } else {
      loaded = arch::load_transposed(
          block.base, kCut.held ? held_[tile - kCut.first] : offset_ + this->cut_column(tile), 0);
    }
    return __builtin_bit_cast(arch::Operand<Element>, loaded);
  }

 private:
  // Keeps the compiler from holding a register per column, as begin_tile() does for keys. It comes
  // once per block, since all blocks have the same columns.
  JAX_FA_DEVICE void hide_lane() {
    offset_ = arch::opaque(offset_);
    last_column_ = arch::opaque(last_column_);
  }
  JAX_FA_DEVICE void find_held() {
    JAX_FA_UNROLL for (int i = 0; i < kMaxHeldSteps; ++i) {
      held_[i] = offset_ + this->cut_column(first_held_ + i);
    }
  }

  Keys keys_;
  int first_held_ = 0;
  u32 held_[kMaxHeldSteps];
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX1201_BUFFERED_KEYS_H_
