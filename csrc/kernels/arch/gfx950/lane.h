// gfx950: who a lane is, what it shares with other lanes, and the transcendental unit.
#ifndef JAX_FA_KERNELS_ARCH_GFX950_LANE_H_
#define JAX_FA_KERNELS_ARCH_GFX950_LANE_H_

#include "kernels/arch/gfx950/limits.h"
#include "kernels/device.h"

namespace jax_fa::arch {

JAX_FA_DEVICE u32 workgroup_id() { return __builtin_amdgcn_workgroup_id_x(); }
// Of the workgroup, whereas lane_id() is of the wave.
JAX_FA_DEVICE u32 workgroup_lane() { return __builtin_amdgcn_workitem_id_x(); }
JAX_FA_DEVICE u32 lane_id() { return __builtin_amdgcn_workitem_id_x() % kWaveSize; }

// Hides how x was made, so that the compiler neither makes it again nor keeps values derived from
// it: loop strength reduction would hold one register per LDS address or mask bound. Volatile, or
// the hiding itself is hoisted out of loops and rare paths, and its result takes a register there.
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

// Moves what is the same for all lanes to a scalar register: floating-point arithmetic leaves its
// results in vector registers even when its operands are uniform.
// The inner opaque keeps the compiler from dropping the move because it knows x to be uniform.
JAX_FA_DEVICE u32 uniform(u32 x) {
  return opaque_uniform(__builtin_amdgcn_readfirstlane(opaque(x)));
}
JAX_FA_DEVICE float uniform(float x) {
  return __builtin_bit_cast(float, uniform(__builtin_bit_cast(u32, x)));
}

JAX_FA_DEVICE u32 wave_id() { return uniform(__builtin_amdgcn_workitem_id_x() / kWaveSize); }

// True in every lane when `condition` is true in one.
JAX_FA_DEVICE bool any_lane(bool condition) { return __builtin_amdgcn_ballot_w64(condition) != 0; }
JAX_FA_DEVICE int count_lanes(bool condition) {
  return __builtin_popcountll(__builtin_amdgcn_ballot_w64(condition));
}

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
