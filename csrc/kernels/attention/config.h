// Every number of a kernel instantiation, checked against the chip.
#ifndef JAX_FA_KERNELS_ATTENTION_CONFIG_H_
#define JAX_FA_KERNELS_ATTENTION_CONFIG_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/tiles.h"
#include "kernels/device.h"

namespace jax_fa {

// Whether scores are capped: in no launch of the kernel, in all, or in those that ask for it.
enum class SoftCap { kNever, kAlways, kAsked };

// What is the same for all kernels: types, tile, fragments of one wave.
template <class Element_, AttentionTile kTile_>
struct TileConfig {
  using Element = Element_;
  static constexpr AttentionTile kTile = kTile_;
  static constexpr int kHeadDim = kTile.head_dim;

  static constexpr int kWaves = kTile.waves;
  static constexpr int kKeyParts = kTile.key_parts;
  static constexpr int kBlockQ = kTile.block_q();
  static constexpr int kBlockKv = kTile.block_kv;
  static constexpr int kRowsPerWave = kTile.rows_per_wave();
  static constexpr int kQueryTiles = kTile.query_tiles;

  static constexpr int kScoreTiles = kBlockKv / arch::kFragmentDim;        // 16-key rows of S^T
  static constexpr int kHeadSteps = kHeadDim / arch::kFragmentDepth;       // depth steps of K.Q^T
  static constexpr int kHeadTiles = kHeadDim / arch::kFragmentDim;         // 16-element rows of O^T
  static constexpr int kKeySteps = kScoreTiles / arch::kScoresPerOperand;  // depth steps of V^T.P^T

  // A row's reference maximum moves when the maximum passes it by more than kRescaleLimit (log2),
  // and then jumps kReferenceJump above the new maximum, so that it moves seldom. P is at most
  // 2^kRescaleLimit. float16 cannot jump: P near 2^-16 would be subnormal.
  static constexpr float kRescaleLimit = 8.0f;
  // The packing loss is taken off, so that a P that is a power of two before it is one after it.
  static constexpr float kReferenceJump =
      (__is_same(Element, float16) ? 0.0f : 16.0f) - arch::kPackingLossLog2<Element, kHeadDim>;

  static_assert(kHeadDim > 0, "mainloop/<target>/tiles.h has no tile of this head size");
  static_assert(kTile.wave_size == target::kWaveSize);
  static_assert(kWaves % kKeyParts == 0);
  static_assert(kTile.lds_bytes() <= target::kMaxLdsBytes);
  static_assert(kBlockKv % (arch::kFragmentDim * arch::kScoresPerOperand) == 0);
  static_assert(kHeadDim % arch::kFragmentDepth == 0 && kHeadDim % arch::kFragmentDim == 0);
};

// Many query rows of one head.
template <class Element, AttentionTile kTile, bool kCapped, bool kPaged_>
struct FlashConfig : TileConfig<Element, kTile> {
  static constexpr SoftCap kSoftCap = kCapped ? SoftCap::kAlways : SoftCap::kNever;
  static constexpr bool kPaged = kPaged_;
  static constexpr bool kPackHeads = false;  // the heads of a group are rows of one tile
  static constexpr bool kSplits = false;     // the keys may be split over workgroups
};

// Few query rows of all heads that share a key head.
template <class Element, AttentionTile kTile, bool kPaged_>
struct DecodeConfig : TileConfig<Element, kTile> {
  static constexpr SoftCap kSoftCap = SoftCap::kAsked;
  static constexpr bool kPaged = kPaged_;
  static constexpr bool kPackHeads = true;
  static constexpr bool kSplits = true;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_CONFIG_H_
