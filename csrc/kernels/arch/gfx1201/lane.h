// gfx1201: who a lane is, what it shares with other lanes, and the transcendental unit.
#ifndef JAX_FA_KERNELS_ARCH_GFX1201_LANE_H_
#define JAX_FA_KERNELS_ARCH_GFX1201_LANE_H_

#include "kernels/arch/gfx1201/limits.h"
#include "kernels/device.h"

namespace jax_fa::arch {

JAX_FA_DEVICE u32 workgroup_id() { return __builtin_amdgcn_workgroup_id_x(); }
// Of the workgroup, whereas lane_id() is of the wave.
JAX_FA_DEVICE u32 workgroup_lane() { return __builtin_amdgcn_workitem_id_x(); }

// Hides how x was made, so that the compiler neither makes it again nor keeps values derived from
// it. Volatile, or the hiding itself is hoisted out of loops and rare paths, and its result takes a
// register there.
template <class T>
JAX_FA_DEVICE T opaque(T x) {
  asm volatile("" : "+v"(x));
  return x;
}
template <class T>
JAX_FA_DEVICE T opaque_uniform(T x) {
  asm volatile("" : "+s"(x));
  return x;
}

// Made afresh, by v_mbcnt, wherever it is wanted: held in a register, it and what follows from it
// would lie there through the main loop for the sake of masks and tails.
JAX_FA_DEVICE u32 lane_id() { return __builtin_amdgcn_mbcnt_lo(~0u, opaque_uniform(0u)); }

// Moves what is the same for all lanes to a scalar register.
// The inner opaque keeps the compiler from dropping the move because it knows x to be uniform.
JAX_FA_DEVICE u32 uniform(u32 x) {
  return opaque_uniform(__builtin_amdgcn_readfirstlane(opaque(x)));
}
JAX_FA_DEVICE float uniform(float x) {
  return __builtin_bit_cast(float, uniform(__builtin_bit_cast(u32, x)));
}

JAX_FA_DEVICE u32 wave_id() { return uniform(__builtin_amdgcn_workitem_id_x() / kWaveSize); }

// True in every lane when `condition` is true in one.
JAX_FA_DEVICE bool any_lane(bool condition) { return __builtin_amdgcn_ballot_w32(condition) != 0; }
JAX_FA_DEVICE int count_lanes(bool condition) {
  return __builtin_popcount(__builtin_amdgcn_ballot_w32(condition));
}

// v_maximum3_f32 and v_exp_f32; a NaN among the operands is the result.
JAX_FA_DEVICE float maximum(float a, float b) { return __builtin_elementwise_maximum(a, b); }
JAX_FA_DEVICE float maximum3(float a, float b, float c) { return maximum(maximum(a, b), c); }
JAX_FA_DEVICE float exp2(float x) { return __builtin_amdgcn_exp2f(x); }
JAX_FA_DEVICE float log2(float x) { return __builtin_amdgcn_logf(x); }
JAX_FA_DEVICE float reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }

// x of lane l^16, which holds the same query row.
JAX_FA_DEVICE float other_half(float x) {
  const u32 bits = __builtin_bit_cast(u32, x);
  return __builtin_bit_cast(
      float, __builtin_amdgcn_permlanex16(bits, bits, 0x76543210, 0xfedcba98, false, false));
}

// The maximum over the two lanes that hold one query row.
JAX_FA_DEVICE float row_maximum(float x) { return maximum(x, other_half(x)); }

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX1201_LANE_H_
