// gfx1201: matrix operands of K and V of tiles that do not lie in one page.
//
// FragmentKeys: each fragment of 16 rows has an address of its own, the same for all lanes. Keys
// past the length are read, since their page is there whole, and masked; those of a page outside
// the pool are read from the first page, and their scores cleared. ScatteredKeys: each lane has
// addresses of its own, made once per tile and fragment. The pages of a lane's keys are fetched a
// phase ahead. Rows and head elements that are not there are read from a row of zeros.
#ifndef JAX_FA_KERNELS_ARCH_GFX1201_SCATTERED_H_
#define JAX_FA_KERNELS_ARCH_GFX1201_SCATTERED_H_

#include "kernels/arch/gfx1201/lds.h"
#include "kernels/attention/page_table.h"
#include "kernels/device.h"

namespace jax_fa::arch {

template <class Element, int kFragments>
class KeyOperands<Element, FragmentKeys, kFragments> {
 public:
  struct Tile {
    const char* fragment[kFragments];
    u32 held;    // bit f: the pool has the page of fragment f
    bool whole;  // it has them all, and all their keys lie within the length
  };

  JAX_FA_DEVICE explicit KeyOperands(const FragmentKeys& keys) : keys_(keys) {
    const u32 depth_bytes = operand_depth() * sizeof(Element);
    offset_ = fragment_column() * keys.row_stride_bytes() + depth_bytes;
  }

  JAX_FA_DEVICE void start(int first_key) { keys_.start(first_key, kFragmentDim); }
  JAX_FA_DEVICE void fetch(int /*first_key*/) {}
  JAX_FA_DEVICE void begin_tile() { offset_ = opaque(offset_); }

  JAX_FA_DEVICE Tile tile(int first_key) {
    Tile tile;
    tile.held = (1u << kFragments) - 1;
    tile.whole = first_key + kFragments * kFragmentDim <= keys_.end();
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      const bool held = keys_.page_is_held();
      const Place place = keys_.place(first_key + f * kFragmentDim, kFragmentDim);
      tile.fragment[f] = keys_.key(place.offset);
      if (__builtin_expect(!held, 0)) {
        tile.fragment[f] = keys_.key(0);
        tile.held &= ~(1u << f);
        tile.whole = false;
      }
    }
    if (__builtin_expect(!tile.whole, 0) && first_key >= keys_.end()) {
      // Past the last tile, which is loaded from but not used: nothing is read twice.
      offset_ = 0;
      JAX_FA_UNROLL for (const char*& fragment : tile.fragment) fragment = zero_row();
    }
    return tile;
  }

  JAX_FA_DEVICE static void clear_absent(const Tile& tile, int fragment, Accumulator& scores) {
    if (__builtin_expect(!(tile.held >> fragment & 1), 0)) scores = 0.0f;
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
class ValueOperands<Element, FragmentKeys> : public ValueOperands<Element, PagedKeys> {
  using Base = ValueOperands<Element, PagedKeys>;

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
    const ValueLane lane;
    if (present <= 0 || !(tile.held >> fragment & 1)) return {zero_row(), lane.column_bytes};
    const int row = min_int(lane.row, present - 1);
    const u32 row_offset = opaque(row * keys.row_stride_bytes());  // as in lds.h
    return {base, row_offset + lane.column_bytes};
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
  JAX_FA_DEVICE static void clear_absent(const auto& /*tile*/, int /*fragment*/, Accumulator&) {}

  JAX_FA_DEVICE Tile tile(int first_key) const {
    const u32 lane = fragment_column();
    const u32 depth_bytes = operand_depth() * sizeof(Element);
    Tile tile;
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      const int key = first_key + f * kFragmentDim + lane;
      tile.row[f] = key < keys_.end() && keys_.held(pages_[f])
                        ? keys_.key(keys_.offset(key, pages_[f]))
                        : zero_row();
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
    const char* row =
        key < keys_.end() && keys_.held(page) ? keys_.value(keys_.offset(key, page)) : zero_row();
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
