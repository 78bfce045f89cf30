// gfx1201: matrix operands of K and V of tiles that do not lie in one page.
//
// NearKeys: one buffer reaches both pages of a tile; the lanes of rows in the second add a
// distance. FragmentKeys: each fragment of 16 rows has an address of its own, the same for all
// lanes. Both read keys past the length, which the mask drops, since their page is there whole.
// ScatteredKeys: each lane has addresses of its own, made once per tile and fragment; the pages of
// its keys are fetched a phase ahead. Rows and head elements that are not there are read from a row
// of zeros.
#ifndef JAX_FA_KERNELS_ARCH_GFX1201_SCATTERED_H_
#define JAX_FA_KERNELS_ARCH_GFX1201_SCATTERED_H_

#include "kernels/arch/gfx1201/lds.h"
#include "kernels/attention/paged_keys.h"
#include "kernels/device.h"

namespace jax_fa::arch {

template <class Element, int kFragments>
class KeyOperands<Element, NearKeys, kFragments> {
 public:
  struct Tile {
    NearPlace place;
    u32 scalar_offset;  // of the tile, where it is not part of the lanes' offsets
  };

  JAX_FA_DEVICE explicit KeyOperands(const NearKeys& keys) : keys_(keys), buffer_(keys.keys()) {
    const u32 depth_bytes = operand_depth() * sizeof(Element);
    lane_offset_ = fragment_column() * keys.row_stride_bytes() + depth_bytes;
  }

  JAX_FA_DEVICE void start(int first_key) {
    keys_.start(first_key, kFragments * kFragmentDim);
    set_offsets();
  }
  JAX_FA_DEVICE void fetch(int /*first_key*/) {}
  JAX_FA_DEVICE void begin_tile() {
    JAX_FA_UNROLL for (u32& offset : offset_) offset = opaque(offset);
  }

  JAX_FA_DEVICE Tile tile(int first_key) {
    constexpr int kRows = kFragments * kFragmentDim;
    NearPlace place = keys_.place(first_key, kRows);
    Tile tile = {place, place.offset};
    if (__builtin_expect((place.special | last_special_) != 0, 0)) {
      set_offsets();
      if (place.special != 0) {
        keys_.look_closer(opaque_uniform(first_key), place);
        JAX_FA_UNROLL for (u32& offset : offset_) {
          offset += place.offset + (offset >= place.cut ? place.jump : 0);
        }
        tile = {place, 0};
      }
    }
    last_special_ = place.special;
    return tile;
  }

  template <bool kWholeHead>
  JAX_FA_DEVICE Operand<Element> read(const Tile& tile, int fragment, int step) const {
    static_assert(kWholeHead);
    const u32 step_bytes = step * kFragmentDepth * sizeof(Element);
    return __builtin_bit_cast(
        Operand<Element>,
        load_16_bytes(buffer_, offset_[fragment] + step_bytes, tile.scalar_offset));
  }

 private:
  JAX_FA_DEVICE void set_offsets() {
    lane_offset_ = opaque(lane_offset_);
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      offset_[f] = lane_offset_ + f * kFragmentDim * keys_.row_stride_bytes();
    }
  }

  NearKeys keys_;
  Buffer buffer_;
  u32 last_special_ = 0;
  u32 lane_offset_;         // this lane's, in bytes from the start of a fragment,
  u32 offset_[kFragments];  // and from the start of the tile, or of the pool
};

template <class Element>
class ValueOperands<Element, NearKeys> : public ValueColumns<Element> {
  using Base = ValueColumns<Element>;

 public:
  using typename Base::Block;
  JAX_FA_DEVICE explicit ValueOperands(const NearKeys& keys) : Base(keys), keys_(keys) {}

  template <class Tile>
  JAX_FA_DEVICE Block block(const Tile& tile, int /*first_key*/, int fragment) {
    const NearPlace& place = tile.place;
    this->hide_lane();
    const int first = fragment * kFragmentDim;
    const char* base = keys_.value(tile.scalar_offset);
    u32 offset = this->offset_ + first * keys_.row_stride_bytes();
    if (__builtin_expect(place.special == 0, 1)) return {base, offset};
    const int present = opaque_uniform(place.present);  // or it is read early, where it is not set
    if (first + kFragmentDim > present) {
      offset = Base::offset_in_tail(first, present, keys_.row_stride_bytes());
    }
    offset += place.offset + (offset >= place.cut ? place.jump : 0);
    return {base, offset};
  }

 private:
  NearKeys keys_;
};

template <class Element, int kFragments>
class KeyOperands<Element, FragmentKeys, kFragments> {
 public:
  struct Tile {
    const char* fragment[kFragments];
    bool whole;  // all its keys lie within the length
  };

  JAX_FA_DEVICE explicit KeyOperands(const FragmentKeys& keys) : keys_(keys) {
    const u32 depth_bytes = operand_depth() * sizeof(Element);
    offset_ = fragment_column() * keys.row_stride_bytes() + depth_bytes;
  }

  JAX_FA_DEVICE void start(int first_key) { keys_.start(first_key); }
  JAX_FA_DEVICE void fetch(int /*first_key*/) {}
  JAX_FA_DEVICE void begin_tile() { offset_ = opaque(offset_); }

  JAX_FA_DEVICE Tile tile(int first_key) {
    Tile tile;
    tile.whole = first_key + kFragments * kFragmentDim <= keys_.end();
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      tile.fragment[f] = keys_.key(keys_.place(first_key + f * kFragmentDim));
    }
    if (__builtin_expect(!tile.whole, 0) && first_key >= keys_.end()) {
      // Past the last tile, which is loaded from but not used: nothing is read twice.
      offset_ = 0;
      JAX_FA_UNROLL for (const char*& fragment : tile.fragment) fragment = zero_row();
    }
    return tile;
  }

  template <bool kWholeHead>
  JAX_FA_DEVICE Operand<Element> read(const Tile& tile, int fragment, int step) const {
    static_assert(kWholeHead);
    const u32 step_bytes = step * kFragmentDepth * sizeof(Element);
    return __builtin_bit_cast(Operand<Element>,
                              load_16_bytes(tile.fragment[fragment], offset_, step_bytes));
  }

 private:
  FragmentKeys keys_;
  u32 offset_;  // this lane's, in bytes from the start of a fragment
};

template <class Element>
class ValueOperands<Element, FragmentKeys> : public ValueColumns<Element> {
  using Base = ValueColumns<Element>;

 public:
  using typename Base::Block;
  JAX_FA_DEVICE explicit ValueOperands(const FragmentKeys& keys) : Base(keys), keys_(keys) {}

  template <class Tile>
  JAX_FA_DEVICE Block block(const Tile& tile, int first_key, int fragment) {
    const FragmentKeys& keys = keys_;
    this->hide_lane();
    const char* base = tile.fragment[fragment] + (keys.value(0) - keys.key(0));
    if (__builtin_expect(tile.whole, 1)) return {base, this->offset_};
    const int present = keys.end() - first_key - fragment * kFragmentDim;
    if (present <= 0) return {zero_row(), ValueLane().column_bytes};
    return {base, Base::offset_in_tail(0, present, keys.row_stride_bytes())};
  }

 private:
  FragmentKeys keys_;
};

template <class Element, int kFragments>
class KeyOperands<Element, ScatteredKeys, kFragments> {
 public:
  struct Tile {
    const char* row[kFragments];  // this lane's, at its first element
  };

  JAX_FA_DEVICE explicit KeyOperands(const ScatteredKeys& keys) : keys_(keys) {}

  JAX_FA_DEVICE void start(int first_key) { fetch(first_key); }
  JAX_FA_DEVICE void fetch(int first_key) {
    const u32 lane = fragment_column();
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      pages_[f] = keys_.fetch(first_key + f * kFragmentDim + lane);
    }
  }
  JAX_FA_DEVICE void begin_tile() {}

  JAX_FA_DEVICE Tile tile(int first_key) const {
    const u32 lane = fragment_column();
    const u32 depth_bytes = operand_depth() * sizeof(Element);
    Tile tile;
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      const int key = first_key + f * kFragmentDim + lane;
      tile.row[f] = key < keys_.end() ? keys_.key(keys_.offset(key, pages_[f])) : zero_row();
      tile.row[f] += depth_bytes;
    }
    return tile;
  }

  template <bool kWholeHead>
  JAX_FA_DEVICE Operand<Element> read(const Tile& tile, int fragment, int step) const {
    const u32 step_bytes = step * kFragmentDepth * sizeof(Element);
    const char* address = tile.row[fragment] + step_bytes;
    if (!kWholeHead && step_bytes + operand_depth() * sizeof(Element) >= keys_.head_bytes()) {
      address = zero_row();
    }
    return __builtin_bit_cast(Operand<Element>, load_16_bytes(address));
  }

 private:
  ScatteredKeys keys_;
  int pages_[kFragments];
};

template <class Element>
class ValueOperands<Element, ScatteredKeys> {
 public:
  struct Block {
    const char* row;  // this lane's, at its first element
  };

  JAX_FA_DEVICE explicit ValueOperands(const ScatteredKeys& keys) : keys_(keys) {}

  JAX_FA_DEVICE void begin_tile() {}

  template <class Tile>
  JAX_FA_DEVICE Block block(const Tile& /*tile*/, int first_key, int fragment) const {
    const ValueLane lane;
    const int key = first_key + fragment * kFragmentDim + lane.row;
    const int page = keys_.fetch(key);
    const char* row = key < keys_.end() ? keys_.value(keys_.offset(key, page)) : zero_row();
    return {row + lane.column_bytes};
  }
  JAX_FA_DEVICE static void hide(Block& block) { block.row = opaque(block.row); }

  // Head elements past the run-time H are copies, whose output is not stored.
  template <bool kWholeHead>
  JAX_FA_DEVICE Operand<Element> read(const Block& block, int tile) const {
    int column = tile * kFragmentDim * static_cast<int>(sizeof(Element));
    if constexpr (!kWholeHead) {
      const ValueLane lane;
      column = min_int(
          column, static_cast<int>(keys_.head_bytes() - ValueLane::kBytes - lane.column_bytes));
    }
    return __builtin_bit_cast(Operand<Element>, load_transposed(block.row + column));
  }

 private:
  ScatteredKeys keys_;
};

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX1201_SCATTERED_H_
