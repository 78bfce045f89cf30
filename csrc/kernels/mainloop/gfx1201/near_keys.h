// gfx1201: matrix operands of K and V of tiles in several pages of a near pool.
//
// Each lane has an offset of its own in each fragment of keys. Values are read where other lanes
// read the keys: lanes only exchange their offsets. In place of rows past the length the last row
// is read, which the mask gives weight 0.
//   NearTwoPageKeys  lanes of rows in the second page of a tile add a distance
//   NearRowKeys      lanes look up their rows' pages, a phase ahead: a lane for each key
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX1201_NEAR_KEYS_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX1201_NEAR_KEYS_H_

#include "kernels/attention/paged_keys.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx1201/buffered_keys.h"

namespace jax_fa {

// NearPageKeys are left to FarPageKeys, which serve the same pages.
template <>
inline constexpr ServedHeads kServedHeads<NearPageKeys> = ServedHeads::kNone;
template <>
inline constexpr ServedHeads kServedHeads<NearTwoPageKeys> = ServedHeads::kWhole;
template <>
inline constexpr ServedHeads kServedHeads<NearRowKeys> = ServedHeads::kWhole;

// What the keys of both providers share.
template <class Element, class Keys, int kFragments>
class NearKeyOperands {
 public:
  struct Tile {
    u32 key_offset[kFragments];  // this lane's, in bytes from the start of the pool
    u32 value_offset[kFragments];
  };

  // Steps of keys, and with them tiles of values, are counted from `first_step`.
  JAX_FA_DEVICE explicit NearKeyOperands(const Keys& keys, u32 first_step)
      : keys_(keys),
        buffer_(keys.keys()),
        first_bytes_(first_step * arch::kFragmentDepth * sizeof(Element)),
        value_lane_bytes_(ValueLane::key_lane() * sizeof(u32)) {
    static_assert(arch::kFragmentDepth == arch::kFragmentDim,
                  "a step of keys is as wide as a tile of values");
  }

  JAX_FA_DEVICE void begin_tile() {}

  JAX_FA_DEVICE void hold(int /*first_step*/) {}

  template <HeadCut kCut>
  JAX_FA_DEVICE arch::Operand<Element> read(const Tile& tile, int fragment, int step) const {
    static_assert(kCut.first == kWholeHead.first);
    const u32 step_bytes = step * arch::kFragmentDepth * sizeof(Element);
    return __builtin_bit_cast(arch::Operand<Element>,
                              arch::load_16_bytes(buffer_, tile.key_offset[fragment] + step_bytes));
  }

 protected:
  static constexpr int kRows = kFragments * arch::kFragmentDim;
  JAX_FA_DEVICE u32 depth_bytes() const {
    return first_bytes_ + arch::operand_depth() * sizeof(Element);
  }

  Keys keys_;
  arch::Buffer buffer_;
  u32 first_bytes_;       // the same for all lanes
  u32 value_lane_bytes_;  // the lane whose key row and depth this lane has of values, times 4
};

template <class Element, int kFragments>
class KeyOperands<Element, NearTwoPageKeys, kFragments>
    : public NearKeyOperands<Element, NearTwoPageKeys, kFragments> {
  using Base = NearKeyOperands<Element, NearTwoPageKeys, kFragments>;
  using Base::depth_bytes, Base::keys_, Base::kRows, Base::value_lane_bytes_;

 public:
  using typename Base::Tile;

  JAX_FA_DEVICE explicit KeyOperands(const NearTwoPageKeys& keys, u32 first_step = 0)
      : Base(keys, first_step) {
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      const u32 row = f * arch::kFragmentDim + arch::fragment_column();
      offset_[f] = row * keys.row_stride_bytes() + depth_bytes();
    }
  }

  JAX_FA_DEVICE void start(int first_key) { keys_.start(first_key, kRows); }
  JAX_FA_DEVICE void fetch(int /*first_key*/) {}

  JAX_FA_DEVICE Tile tile(int first_key) {
    const NearPlace place = keys_.place(first_key, kRows);
    Tile tile;
    const auto paged = [&](u32 offset) {
      return offset + (offset >= place.cut ? place.offset + place.jump : place.offset);
    };
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) tile.key_offset[f] = paged(offset_[f]);
    if (__builtin_expect(!place.whole, 0)) {
      const int last_row = max_int(0, keys_.end() - arch::opaque_uniform(first_key) - 1);
      const u32 last = last_row * keys_.row_stride_bytes();
      JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
        tile.key_offset[f] = paged(min_u32(arch::opaque(offset_[f]), last + depth_bytes()));
      }
    }
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      tile.value_offset[f] = arch::permute_lanes(tile.key_offset[f], value_lane_bytes_);
    }
    return tile;
  }

 private:
  u32 offset_[kFragments];  // this lane's, in bytes from the start of a tile in one page
};

template <class Element, int kFragments>
class KeyOperands<Element, NearRowKeys, kFragments>
    : public NearKeyOperands<Element, NearRowKeys, kFragments> {
  using Base = NearKeyOperands<Element, NearRowKeys, kFragments>;
  using Base::depth_bytes, Base::keys_, Base::kRows, Base::value_lane_bytes_;
  static constexpr int kFragmentsPerWave = target::kWaveSize / arch::kFragmentDim;
  // How often a wave looks up rows, a key a lane, for the keys of a tile. Lanes past the tile look
  // up keys of the next one, or the last key.
  static constexpr int kWaves = ceil_div(kFragments, kFragmentsPerWave);

 public:
  using typename Base::Tile;

  JAX_FA_DEVICE explicit KeyOperands(const NearRowKeys& keys, u32 first_step = 0)
      : Base(keys, first_step), key_lane_bytes_(arch::fragment_column() * sizeof(u32)) {}

  JAX_FA_DEVICE void start(int first_key) { fetch(first_key); }
  JAX_FA_DEVICE void fetch(int first_key) {
    JAX_FA_UNROLL for (int w = 0; w < kWaves; ++w) {
      rows_[w] = keys_.fetch(first_key + w * target::kWaveSize + arch::lane_id());
    }
  }

  JAX_FA_DEVICE Tile tile(int first_key) const {
    Tile tile;
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      const u32 lane_bytes = f % kFragmentsPerWave * arch::kFragmentDim * sizeof(u32);
      u32 row = keys_.offset(rows_[f / kFragmentsPerWave]);
      tile.key_offset[f] = arch::permute_lanes(row, key_lane_bytes_ + lane_bytes) + depth_bytes();
      tile.value_offset[f] = arch::permute_lanes(tile.key_offset[f], value_lane_bytes_);
    }
    // Past the last tile operands are loaded but not used: out of range, nothing is read twice.
    if (__builtin_expect(first_key >= keys_.end(), 0)) {
      JAX_FA_UNROLL for (u32& offset : tile.key_offset) offset = arch::kOutOfRange;
    }
    return tile;
  }

 private:
  u32 key_lane_bytes_;
  NearRowKeys::Row rows_[kWaves];  // those of the next tile
};

template <class Element, class Keys>
class NearValueOperands : public ValueColumns<Element> {
  using Base = ValueColumns<Element>;

 public:
  // Where this lane reads 16 keys.
  struct Block {
    const char* base;  // the same for all lanes
    u32 offset;
  };

  JAX_FA_DEVICE explicit NearValueOperands(const Keys& keys, u32 first_tile = 0)
      : Base(keys, first_tile), keys_(keys) {}

  template <class Tile>
  JAX_FA_DEVICE Block block(const Tile& tile, int /*first_key*/, int fragment) const {
    return {keys_.value(0), tile.value_offset[fragment]};
  }
  JAX_FA_DEVICE static void hide(Block& block) { block.offset = arch::opaque(block.offset); }
  JAX_FA_DEVICE void hold(int /*first_tile*/) {}

  template <HeadCut kCut>
  JAX_FA_DEVICE arch::Operand<Element> read(const Block& block, int tile) const {
    static_assert(kCut.first == kWholeHead.first);
    return __builtin_bit_cast(
        arch::Operand<Element>,
        arch::load_transposed(block.base, block.offset, tile * Base::kTileBytes));
  }

 private:
  Keys keys_;
};

template <class Element>
class ValueOperands<Element, NearTwoPageKeys> : public NearValueOperands<Element, NearTwoPageKeys> {
  using NearValueOperands<Element, NearTwoPageKeys>::NearValueOperands;
};
template <class Element>
class ValueOperands<Element, NearRowKeys> : public NearValueOperands<Element, NearRowKeys> {
  using NearValueOperands<Element, NearRowKeys>::NearValueOperands;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX1201_NEAR_KEYS_H_
