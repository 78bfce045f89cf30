// gfx950: who a lane is, what it shares with other lanes, and the transcendental unit.
#ifndef JAX_FA_KERNELS_ARCH_GFX950_LANE_H_
#define JAX_FA_KERNELS_ARCH_GFX950_LANE_H_

#include "kernels/arch/gfx950/limits.h"
#include "kernels/device.h"

namespace jax_fa::arch {

JAX_FA_DEVICE u32 workgroup_id() { return __builtin_amdgcn_workgroup_id_x(); }
JAX_FA_DEVICE u32 lane_id() { return __builtin_amdgcn_workitem_id_x() % kWaveSize; }
// The same for all lanes of a wave, so it is kept in a scalar register.
JAX_FA_DEVICE u32 wave_id() {
  return __builtin_amdgcn_readfirstlane(__builtin_amdgcn_workitem_id_x() / kWaveSize);
}
JAX_FA_DEVICE i32 uniform(i32 x) { return __builtin_amdgcn_readfirstlane(x); }

// Hides how x was made. Without it loop strength reduction keeps one pointer per LDS address.
JAX_FA_DEVICE u32 opaque(u32 x) {
  asm("" : "+v"(x));
  return x;
}

// True in every lane when `condition` is true in one.
JAX_FA_DEVICE bool any_lane(bool condition) { return __builtin_amdgcn_ballot_w64(condition) != 0; }

// v_maximum3_f32 and v_exp_f32; a NaN among the operands is the result.
JAX_FA_DEVICE float maximum(float a, float b) { return __builtin_elementwise_maximum(a, b); }
JAX_FA_DEVICE float maximum3(float a, float b, float c) { return maximum(maximum(a, b), c); }
JAX_FA_DEVICE float exp2(float x) { return __builtin_amdgcn_exp2f(x); }
JAX_FA_DEVICE float log2(float x) { return __builtin_amdgcn_logf(x); }
JAX_FA_DEVICE float reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }

// The maximum over the four lanes l%16, +16, +32, +48 that hold one query row.
JAX_FA_DEVICE float row_maximum(float x) {
  u32 bits = __builtin_bit_cast(u32, x);
  const auto rows = __builtin_amdgcn_permlane16_swap(bits, bits, false, false);
  u32 first = rows[0], second = rows[1];  // elements of a vector bit-cast as element 0 otherwise
  x = maximum(__builtin_bit_cast(float, first), __builtin_bit_cast(float, second));
  bits = __builtin_bit_cast(u32, x);
  const auto halves = __builtin_amdgcn_permlane32_swap(bits, bits, false, false);
  first = halves[0];
  second = halves[1];
  return maximum(__builtin_bit_cast(float, first), __builtin_bit_cast(float, second));
}

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX950_LANE_H_
