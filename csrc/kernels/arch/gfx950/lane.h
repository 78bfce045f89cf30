// gfx950: who a lane is, and what it shares with other lanes.
#ifndef JAX_FA_KERNELS_ARCH_GFX950_LANE_H_
#define JAX_FA_KERNELS_ARCH_GFX950_LANE_H_

#include "kernels/arch/common.h"
#include "kernels/arch/gfx950/limits.h"
#include "kernels/device.h"

namespace jax_fa::arch {

// This lane's number in the wave. It is made afresh wherever it is wanted, and not from the
// work-item's id, which would lie in a register through the main loop for the sake of prologue and
// epilogue.
JAX_FA_DEVICE u32 lane_id() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, opaque_uniform(0u)));
}

JAX_FA_DEVICE u32 wave_id() {
  return uniform(__builtin_amdgcn_workitem_id_x() / gfx950::kWaveSize);
}

// True in every lane when `condition` is true in one.
JAX_FA_DEVICE bool any_lane(bool condition) { return __builtin_amdgcn_ballot_w64(condition) != 0; }
JAX_FA_DEVICE int count_lanes(bool condition) {
  return __builtin_popcountll(__builtin_amdgcn_ballot_w64(condition));
}

// The maxima of three pairs, each of two float16 or two positive bfloat16, whose bits are in the
// order of float16's: NaN where an operand is, and from 2^121 on a bfloat16 is as NaN.
JAX_FA_DEVICE u32 maximum3_of_pairs(u32 a, u32 b, u32 c) {
  using Pair = Vector<float16, 2>;
  const auto pair = [](u32 bits) { return __builtin_bit_cast(Pair, bits); };
  return __builtin_bit_cast(
      u32, __builtin_elementwise_maximum(__builtin_elementwise_maximum(pair(a), pair(b)), pair(c)));
}

// What `combine` makes of the four lanes l%16, +16, +32, +48 that hold one query row.
template <class Combine>
JAX_FA_DEVICE float across_row(float x, Combine combine) {
  u32 bits = __builtin_bit_cast(u32, x);
  const auto rows = __builtin_amdgcn_permlane16_swap(bits, bits, false, false);
  u32 first = rows[0], second = rows[1];  // elements of a vector bit-cast as element 0 otherwise
  x = combine(__builtin_bit_cast(float, first), __builtin_bit_cast(float, second));
  bits = __builtin_bit_cast(u32, x);
  const auto halves = __builtin_amdgcn_permlane32_swap(bits, bits, false, false);
  first = halves[0];
  second = halves[1];
  return combine(__builtin_bit_cast(float, first), __builtin_bit_cast(float, second));
}
JAX_FA_DEVICE float row_maximum(float x) {
  return across_row(x, [](float a, float b) { return maximum(a, b); });
}
JAX_FA_DEVICE float row_sum(float x) {
  return across_row(x, [](float a, float b) { return a + b; });
}

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX950_LANE_H_
