// gfx1201: matrix operands of K and V of tiles that do not lie in one page.
//
// NearKeys: one buffer reaches both pages of a tile; the lanes of rows in the second add a
// distance. Values are read where the lanes of keys read: lanes only exchange their offsets.
// FragmentKeys: each fragment of 16 rows has an address of its own, the same for all lanes. Keys
// past the length are read, since their page is there whole, and dropped by the mask.
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
    u32 key_offset[kFragments];  // this lane's, in bytes from the start of the pool
    u32 value_offset[kFragments];
  };

  JAX_FA_DEVICE explicit KeyOperands(const NearKeys& keys)
      : keys_(keys), buffer_(keys.keys()), value_lane_bytes_(ValueLane::key_lane() * sizeof(u32)) {
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      const u32 row = f * kFragmentDim + fragment_column();
      offset_[f] = row * keys.row_stride_bytes() + depth_bytes();
    }
  }

  JAX_FA_DEVICE void start(int first_key) { keys_.start(first_key, kFragments * kFragmentDim); }
  JAX_FA_DEVICE void fetch(int /*first_key*/) {}
  JAX_FA_DEVICE void begin_tile() {}

  JAX_FA_DEVICE Tile tile(int first_key) {
    constexpr int kRows = kFragments * kFragmentDim;
    const NearPlace place = keys_.place(first_key, kRows);
    Tile tile;
    const auto paged = [&](u32 offset) {
      return offset + (offset >= place.cut ? place.offset + place.jump : place.offset);
    };
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) { tile.key_offset[f] = paged(offset_[f]); }
    if (__builtin_expect(!place.whole, 0)) {
      // The last key in place of those that are not there.
      const int last_row = max_int(0, keys_.end() - opaque_uniform(first_key) - 1);
      const u32 last = last_row * keys_.row_stride_bytes();
      JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
        tile.key_offset[f] = paged(min_u32(opaque(offset_[f]), last + depth_bytes()));
      }
    }
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      tile.value_offset[f] = permute_lanes(tile.key_offset[f], value_lane_bytes_);
    }
    return tile;
  }

  template <bool kWholeHead>
  JAX_FA_DEVICE Operand<Element> read(const Tile& tile, int fragment, int step) const {
    static_assert(kWholeHead);
    const u32 step_bytes = step * kFragmentDepth * sizeof(Element);
    return __builtin_bit_cast(Operand<Element>,
                              load_16_bytes(buffer_, tile.key_offset[fragment] + step_bytes));
  }

 private:
  JAX_FA_DEVICE static u32 depth_bytes() { return operand_depth() * sizeof(Element); }

  NearKeys keys_;
  Buffer buffer_;
  u32 value_lane_bytes_;    // of the lane whose key row and depth are this lane's of values
  u32 offset_[kFragments];  // this lane's, in bytes from the start of a tile in one page
};

template <class Element>
class ValueOperands<Element, NearKeys> : public ValueColumns<Element> {
  using Base = ValueColumns<Element>;

 public:
  using typename Base::Block;
  JAX_FA_DEVICE explicit ValueOperands(const NearKeys& keys) : Base(keys), keys_(keys) {}

  template <class Tile>
  JAX_FA_DEVICE Block block(const Tile& tile, int /*first_key*/, int fragment) const {
    return {keys_.value(0), tile.value_offset[fragment]};
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
