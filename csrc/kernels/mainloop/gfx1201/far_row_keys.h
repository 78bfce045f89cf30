// gfx1201: matrix operands of K and V whose rows lie anywhere (FarRowKeys). Each lane has
// addresses of its own, made once per tile and fragment; the pages of its keys are fetched a phase
// ahead. Rows and head elements that are not there are read from a row of zeros.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX1201_FAR_ROW_KEYS_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX1201_FAR_ROW_KEYS_H_

#include "kernels/attention/paged_keys.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx1201/buffered_keys.h"

namespace jax_fa {

template <class Element, int kFragments>
class KeyOperands<Element, FarRowKeys, kFragments> {
 public:
  struct Tile {
    const char* row[kFragments];  // this lane's, at its first element
  };

  JAX_FA_DEVICE explicit KeyOperands(const FarRowKeys& keys, u32 first_step = 0)
      : keys_(keys), first_bytes_(first_step * arch::kFragmentDepth * sizeof(Element)) {}

  JAX_FA_DEVICE void start(int first_key) { fetch(first_key); }
  JAX_FA_DEVICE void fetch(int first_key) {
    const u32 lane = arch::fragment_column();
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      pages_[f] = keys_.fetch(first_key + f * arch::kFragmentDim + lane);
    }
  }
  JAX_FA_DEVICE void begin_tile() {}
  JAX_FA_DEVICE void hold(int /*first_step*/) {}

  JAX_FA_DEVICE Tile tile(int first_key) const {
    const u32 lane = arch::fragment_column();
    const u32 depth_bytes = first_bytes_ + arch::operand_depth() * sizeof(Element);
    Tile tile;
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      const int key = first_key + f * arch::kFragmentDim + lane;
      tile.row[f] = key < keys_.end() ? keys_.key(keys_.offset(key, pages_[f])) : zero_row();
      tile.row[f] += depth_bytes;
    }
    return tile;
  }

  template <HeadCut kCut>
  JAX_FA_DEVICE arch::Operand<Element> read(const Tile& tile, int fragment, int step) const {
    const u32 step_bytes = step * arch::kFragmentDepth * sizeof(Element);
    const char* address = tile.row[fragment] + step_bytes;
    const u32 depth_bytes = first_bytes_ + arch::operand_depth() * sizeof(Element);
    if (step >= kCut.first && depth_bytes + step_bytes >= keys_.head_bytes()) {
      address = zero_row();
    }
    return __builtin_bit_cast(arch::Operand<Element>, arch::load_16_bytes(address));
  }

 private:
  FarRowKeys keys_;
  u32 first_bytes_;
  int pages_[kFragments];
};

template <class Element>
class ValueOperands<Element, FarRowKeys> {
 public:
  struct Block {
    const char* row;  // this lane's, at its first element
  };

  JAX_FA_DEVICE explicit ValueOperands(const FarRowKeys& keys, u32 first_tile = 0)
      : keys_(keys), first_bytes_(first_tile * kTileBytes) {}

  JAX_FA_DEVICE void begin_tile() {}
  JAX_FA_DEVICE void hold(int /*first_tile*/) {}

  template <class Tile>
  JAX_FA_DEVICE Block block(const Tile& /*tile*/, int first_key, int fragment) const {
    const ValueLane lane;
    const int key = first_key + fragment * arch::kFragmentDim + lane.row;
    const int page = keys_.fetch(key);
    const char* row = key < keys_.end() ? keys_.value(keys_.offset(key, page)) : zero_row();
    return {row + first_bytes_ + lane.column_bytes};
  }
  JAX_FA_DEVICE static void hide(Block& block) { block.row = arch::opaque(block.row); }

  // Head elements past the run-time H are copies, whose output is not stored.
  template <HeadCut kCut>
  JAX_FA_DEVICE arch::Operand<Element> read(const Block& block, int tile) const {
    int column = tile * kTileBytes;
    if (tile >= kCut.first) {
      const u32 lane_bytes = first_bytes_ + ValueLane().column_bytes;
      column =
          min_int(column, static_cast<int>(keys_.head_bytes() - ValueLane::kBytes - lane_bytes));
    }
    return __builtin_bit_cast(arch::Operand<Element>, arch::load_transposed(block.row + column));
  }

 private:
  static constexpr int kTileBytes = arch::kFragmentDim * sizeof(Element);
  FarRowKeys keys_;
  u32 first_bytes_;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX1201_FAR_ROW_KEYS_H_
