// gfx1201: matrix operands of K and V of tiles in several pages of a pool that one buffer reaches.
//
// Each lane has an offset of its own in each fragment of keys. Values are read where other lanes
// read the keys: lanes only exchange their offsets. In place of rows past the length the last one
// is read, which the mask gives weight 0.
//   NearKeys      lanes of rows in the second page of a tile add a distance
//   NearRowKeys   lanes look up their rows' pages, a phase ahead: a lane for each key of the tile
#ifndef JAX_FA_KERNELS_ARCH_GFX1201_POOLED_H_
#define JAX_FA_KERNELS_ARCH_GFX1201_POOLED_H_

#include "kernels/arch/gfx1201/lds.h"
#include "kernels/attention/paged_keys.h"
#include "kernels/device.h"

namespace jax_fa::arch {

// What both share.
template <class Element, class Keys, int kFragments>
class PooledKeyOperands {
 public:
  struct Tile {
    u32 key_offset[kFragments];  // this lane's, in bytes from the start of the pool
    u32 value_offset[kFragments];
  };

  // Steps of keys, and with them tiles of values, are counted from `first_step`.
  JAX_FA_DEVICE explicit PooledKeyOperands(const Keys& keys, u32 first_step)
      : keys_(keys),
        buffer_(keys.keys()),
        first_bytes_(first_step * kFragmentDepth * sizeof(Element)),
        value_lane_bytes_(ValueLane::key_lane() * sizeof(u32)) {
    static_assert(kFragmentDepth == kFragmentDim, "a step of keys is as wide as a tile of values");
  }

  JAX_FA_DEVICE void begin_tile() {}

  template <bool kWholeHead>
  JAX_FA_DEVICE Operand<Element> read(const Tile& tile, int fragment, int step) const {
    static_assert(kWholeHead);
    const u32 step_bytes = step * kFragmentDepth * sizeof(Element);
    return __builtin_bit_cast(Operand<Element>,
                              load_16_bytes(buffer_, tile.key_offset[fragment] + step_bytes));
  }

 protected:
  static constexpr int kRows = kFragments * kFragmentDim;
  JAX_FA_DEVICE u32 depth_bytes() const { return first_bytes_ + operand_depth() * sizeof(Element); }

  Keys keys_;
  Buffer buffer_;
  u32 first_bytes_;       // the same for all lanes
  u32 value_lane_bytes_;  // of the lane whose key row and depth are this lane's of values
};

template <class Element, int kFragments>
class KeyOperands<Element, NearKeys, kFragments>
    : public PooledKeyOperands<Element, NearKeys, kFragments> {
  using Base = PooledKeyOperands<Element, NearKeys, kFragments>;
  using Base::depth_bytes, Base::keys_, Base::kRows, Base::value_lane_bytes_;

 public:
  using typename Base::Tile;

  JAX_FA_DEVICE explicit KeyOperands(const NearKeys& keys, u32 first_step = 0)
      : Base(keys, first_step) {
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      const u32 row = f * kFragmentDim + fragment_column();
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

 private:
  u32 offset_[kFragments];  // this lane's, in bytes from the start of a tile in one page
};

template <class Element, int kFragments>
class KeyOperands<Element, NearRowKeys, kFragments>
    : public PooledKeyOperands<Element, NearRowKeys, kFragments> {
  using Base = PooledKeyOperands<Element, NearRowKeys, kFragments>;
  using Base::depth_bytes, Base::keys_, Base::kRows, Base::value_lane_bytes_;
  static constexpr int kFragmentsPerWave = kWaveSize / kFragmentDim;
  // Of lanes, for the keys of a tile. Keys past those are the next tile's, or the last one.
  static constexpr int kWaves = ceil_div(kFragments, kFragmentsPerWave);

 public:
  using typename Base::Tile;

  JAX_FA_DEVICE explicit KeyOperands(const NearRowKeys& keys, u32 first_step = 0)
      : Base(keys, first_step), key_lane_bytes_(fragment_column() * sizeof(u32)) {}

  JAX_FA_DEVICE void start(int first_key) { fetch(first_key); }
  JAX_FA_DEVICE void fetch(int first_key) {
    JAX_FA_UNROLL for (int w = 0; w < kWaves; ++w) {
      rows_[w] = keys_.fetch(first_key + w * kWaveSize + lane_id());
    }
  }

  JAX_FA_DEVICE Tile tile(int first_key) const {
    Tile tile;
    JAX_FA_UNROLL for (int f = 0; f < kFragments; ++f) {
      const u32 lane_bytes = f % kFragmentsPerWave * kFragmentDim * sizeof(u32);
      u32 row = keys_.offset(rows_[f / kFragmentsPerWave]);
      tile.key_offset[f] = permute_lanes(row, key_lane_bytes_ + lane_bytes) + depth_bytes();
      tile.value_offset[f] = permute_lanes(tile.key_offset[f], value_lane_bytes_);
    }
    // Past the last tile, which is loaded from but not used: nothing is read twice.
    if (__builtin_expect(first_key >= keys_.end(), 0)) {
      JAX_FA_UNROLL for (u32& offset : tile.key_offset) offset = kOutOfRange;
    }
    return tile;
  }

 private:
  u32 key_lane_bytes_;
  NearRowKeys::Row rows_[kWaves];  // of the tile that comes next
};

template <class Element, class Keys>
class PooledValueOperands : public ValueColumns<Element> {
  using Base = ValueColumns<Element>;

 public:
  using typename Base::Block;
  JAX_FA_DEVICE explicit PooledValueOperands(const Keys& keys, u32 first_tile = 0)
      : Base(keys, first_tile), keys_(keys) {}

  template <class Tile>
  JAX_FA_DEVICE Block block(const Tile& tile, int /*first_key*/, int fragment) const {
    return {keys_.value(0), tile.value_offset[fragment]};
  }

 private:
  Keys keys_;
};

template <class Element>
class ValueOperands<Element, NearKeys> : public PooledValueOperands<Element, NearKeys> {
  using PooledValueOperands<Element, NearKeys>::PooledValueOperands;
};
template <class Element>
class ValueOperands<Element, NearRowKeys> : public PooledValueOperands<Element, NearRowKeys> {
  using PooledValueOperands<Element, NearRowKeys>::PooledValueOperands;
};

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX1201_POOLED_H_
