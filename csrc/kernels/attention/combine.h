// Puts together what was made of parts of the keys: out = sum_i w_i out_i / sum_i w_i with
// w_i = e^lse_i, in the order of i. A part without a key weighs nothing, whatever its out holds.
#ifndef JAX_FA_KERNELS_ATTENTION_COMBINE_H_
#define JAX_FA_KERNELS_ATTENTION_COMBINE_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/epilogue.h"
#include "kernels/device.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

// The weight of a part, relative to `maximum`, the largest lse of all parts. Every lse is -inf
// where there is no key at all.
JAX_FA_DEVICE float part_weight(float lse, float maximum) {
  return lse == -infinity() ? 0.0f : arch::exp2((lse - maximum) * kLog2E);
}
JAX_FA_DEVICE float combined_lse(float weights, float maximum) {
  return weights == 0.0f ? -infinity() : __builtin_fmaf(arch::log2(weights), kLn2, maximum);
}

// Puts together the waves that share their rows, each of which has made its part of the keys. The
// first of them has the results afterwards; true is returned in it alone.
template <class Config>
JAX_FA_DEVICE bool combine_waves(u32 wave, RowResults<Config>& results,
                                 OutputFragments<Config>& output) {
  constexpr int kParts = Config::kKeyParts;
  constexpr int kVectors = arch::kAccumulatorRows / 4;  // 16-byte parts of a lane's fragment
  constexpr int kFragments = Config::kQueryTiles * Config::kHeadTiles;
  using Quad = Vector<float, 4>;
  struct Part {
    Quad out[kFragments][kVectors][target::kWaveSize];
    float lse[Config::kQueryTiles][target::kWaveSize];
  };
  static_assert(sizeof(Part) == Config::kTile.part_bytes());
  static JAX_FA_SHARED Part parts[Config::kWaves / kParts][kParts - 1];

  const u32 lane = arch::lane_id();
  const u32 part = wave % kParts;
  auto& row_parts = parts[wave / kParts];
  const auto for_each_quad = [&](auto visit) {
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
      JAX_FA_UNROLL for (int d = 0; d < Config::kHeadTiles; ++d) {
        JAX_FA_UNROLL for (int v = 0; v < kVectors; ++v) {
          visit(q, d, v, q * Config::kHeadTiles + d);
        }
      }
    }
  };

  if (part != 0) {
    Part& mine = row_parts[part - 1];
    for_each_quad([&](int q, int d, int v, int fragment) {
      Quad quad;
      JAX_FA_UNROLL for (int r = 0; r < 4; ++r) {
        quad[r] = output.head[q][d][4 * v + r] * results.factor[q];
      }
      mine.out[fragment][v][lane] = quad;
    });
    JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) mine.lse[q][lane] = results.lse[q];
  }
  arch::share_lds();
  if (part != 0) return false;

  float weight[Config::kQueryTiles][kParts];
  JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
    float lse[kParts];
    lse[0] = results.lse[q];
    float maximum = lse[0];
    JAX_FA_UNROLL for (int i = 1; i < kParts; ++i) {
      lse[i] = row_parts[i - 1].lse[q][lane];
      maximum = arch::maximum(maximum, lse[i]);
    }
    float sum = 0.0f;
    JAX_FA_UNROLL for (int i = 0; i < kParts; ++i) {
      weight[q][i] = part_weight(lse[i], maximum);
      sum += weight[q][i];
    }
    weight[q][0] *= results.empty[q] ? 0.0f : results.factor[q];
    if (results.empty[q]) {
      JAX_FA_UNROLL for (auto& fragment : output.head[q]) fragment = 0.0f;
    }
    results.lse[q] = combined_lse(sum, maximum);
    results.empty[q] = sum == 0.0f;
    results.factor[q] = 1.0f / sum;
  }
  for_each_quad([&](int q, int d, int v, int fragment) {
    JAX_FA_UNROLL for (int r = 0; r < 4; ++r) output.head[q][d][4 * v + r] *= weight[q][0];
    JAX_FA_UNROLL for (int i = 1; i < kParts; ++i) {
      const Quad quad = row_parts[i - 1].out[fragment][v][lane];
      if (weight[q][i] != 0.0f) {
        JAX_FA_UNROLL for (int r = 0; r < 4; ++r) {
          output.head[q][d][4 * v + r] =
              __builtin_fmaf(quad[r], weight[q][i], output.head[q][d][4 * v + r]);
        }
      }
    }
  });
  return true;
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_COMBINE_H_
