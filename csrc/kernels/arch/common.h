// What is the same on every chip: values that are uniform or hidden from the compiler, plain loads,
// and the transcendental unit. Included by the lane.h and global.h of the chips.
#ifndef JAX_FA_KERNELS_ARCH_COMMON_H_
#define JAX_FA_KERNELS_ARCH_COMMON_H_

#include "kernels/device.h"

namespace jax_fa::arch {

JAX_FA_DEVICE u32 workgroup_id() { return __builtin_amdgcn_workgroup_id_x(); }
// This lane's number in the workgroup; lane_id() is its number in the wave.
JAX_FA_DEVICE u32 workgroup_lane() { return __builtin_amdgcn_workitem_id_x(); }

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
// results in vector registers even when its operands are uniform. The inner opaque keeps the
// compiler, which may know that x is uniform, from dropping the move.
JAX_FA_DEVICE u32 uniform(u32 x) {
  return opaque_uniform(__builtin_amdgcn_readfirstlane(opaque(x)));
}
JAX_FA_DEVICE float uniform(float x) {
  return __builtin_bit_cast(float, uniform(__builtin_bit_cast(u32, x)));
}

// Gives all lanes the x of lane `lane` of the wave.
JAX_FA_DEVICE u32 read_lane(u32 x, u32 lane) { return __builtin_amdgcn_readlane(x, lane); }

// The maximum is NaN where an operand is: the clang builtin becomes v_maximum3_f32.
JAX_FA_DEVICE float maximum(float a, float b) { return __builtin_elementwise_maximum(a, b); }
JAX_FA_DEVICE float maximum3(float a, float b, float c) { return maximum(maximum(a, b), c); }
// The maximum of the operands that are numbers.
JAX_FA_DEVICE float maximum_number(float a, float b) { return __builtin_fmaxf(a, b); }
JAX_FA_DEVICE float exp2(float x) { return __builtin_amdgcn_exp2f(x); }
JAX_FA_DEVICE float log2(float x) { return __builtin_amdgcn_logf(x); }
JAX_FA_DEVICE float reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }

// Loads 4 bytes from an address of the lane's own.
JAX_FA_DEVICE i32 load_4_bytes(const i32* address) { return *(const JAX_FA_IN_GLOBAL i32*)address; }

// A scalar load of a value that is the same for all lanes and that no kernel writes.
JAX_FA_DEVICE i32 load_uniform(const i32* address) {
  return *(const JAX_FA_IN_CONSTANT i32*)reinterpret_cast<u64>(address);
}

// Reads the kernel's argument block again: what only the end of a kernel needs would otherwise be
// loaded at its start and lie in scalar registers through the main loop.
template <class Params>
JAX_FA_DEVICE Params reload_params() {
  const u64 address = opaque_uniform(reinterpret_cast<u64>(__builtin_amdgcn_kernarg_segment_ptr()));
  struct Words {
    u64 word[sizeof(Params) / sizeof(u64)];
  } words;
  static_assert(sizeof(words) == sizeof(Params));
  JAX_FA_UNROLL for (u32 i = 0; i < sizeof(Params) / sizeof(u64); ++i) {
    words.word[i] = ((const JAX_FA_IN_CONSTANT u64*)address)[i];
  }
  return __builtin_bit_cast(Params, words);
}

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_COMMON_H_
