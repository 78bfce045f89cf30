// Every number of a kernel instantiation, checked against the chip.
#ifndef JAX_FA_KERNELS_ATTENTION_CONFIG_H_
#define JAX_FA_KERNELS_ATTENTION_CONFIG_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/tiles.h"
#include "kernels/device.h"

namespace jax_fa {

// What changes the loop itself, hence is its own kernel. Masks and lengths are run-time options.
enum class Variant { plain, softcap };

template <class Element_, int kHeadDim_, Variant kVariant>
struct Config {
  using Element = Element_;
  static constexpr FlashTile kTile = arch::flash_tile(kHeadDim_);
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr bool kSoftCap = kVariant == Variant::softcap;

  static constexpr int kWaves = kTile.waves;
  static constexpr int kBlockQ = kTile.block_q();
  static constexpr int kBlockKv = kTile.block_kv;
  static constexpr int kRowsPerWave = kTile.rows_per_wave();
  static constexpr int kQueryTiles = kTile.query_tiles;

  // Fragments of one wave.
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
      (__is_same(Element, float16) ? 0.0f : 16.0f) - arch::kPackingLossLog2<Element>;

  static_assert(kTile.head_dim == kHeadDim, "limits.h has no tile of this head size");
  static_assert(kTile.wave_size == arch::kWaveSize);
  static_assert(kTile.lds_bytes() <= arch::kMaxLdsBytes);
  static_assert(kBlockKv % (arch::kFragmentDim * arch::kScoresPerOperand) == 0);
  static_assert(kHeadDim % arch::kFragmentDepth == 0 && kHeadDim % arch::kFragmentDim == 0);
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_CONFIG_H_
