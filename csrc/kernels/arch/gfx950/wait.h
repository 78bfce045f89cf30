// gfx950: waiting for memory and for the other waves, and keeping instructions in their place.
#ifndef JAX_FA_KERNELS_ARCH_GFX950_WAIT_H_
#define JAX_FA_KERNELS_ARCH_GFX950_WAIT_H_

#include "kernels/device.h"

namespace jax_fa::arch {

// Waits until at most kPending of this wave's global loads, stores and LDS-DMA copies are under
// way. The compiler does not count the copies, which are inline assembly, so it never waits for
// them.
template <int kPending>
JAX_FA_DEVICE void wait_for_copies() {
  static_assert(kPending < 64, "vmcnt has six bits");
  __builtin_amdgcn_s_waitcnt((kPending & 15) | ((kPending >> 4) << 14) | 0x0f70);
  asm volatile("" ::: "memory");
}

// The same, and until this wave has no LDS read under way.
template <int kPending>
JAX_FA_DEVICE void wait_for_copies_and_lds() {
  static_assert(kPending < 64, "vmcnt has six bits");
  __builtin_amdgcn_s_waitcnt((kPending & 15) | ((kPending >> 4) << 14) | 0x0070);
  asm volatile("" ::: "memory");
}

// All waves of the workgroup meet. LDS reads before it have been consumed, hence finished; the
// copies into LDS that others are to see must have been waited for.
JAX_FA_DEVICE void workgroup_barrier() {
  asm volatile("" ::: "memory");
  __builtin_amdgcn_s_barrier();
  asm volatile("" ::: "memory");
}

// All waves of the workgroup meet; what they wrote to LDS before it, all see after it.
JAX_FA_DEVICE void share_lds() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// The compiler's scheduler moves nothing across it: this keeps phases, and operand reads inside
// one, in written order, without which live ranges grow past the register budget.
JAX_FA_DEVICE void fence_schedule() { __builtin_amdgcn_sched_barrier(0); }

// Which of the waves of a SIMD goes first, where both have an instruction ready.
template <int kPriority>
JAX_FA_DEVICE void set_priority() {
  __builtin_amdgcn_s_setprio(kPriority);
}

// --- Scalar steps in a place of their own
// --------------------------------------------------------- What a schedule puts between two matrix
// instructions stays there: the compiler's selection of instructions knows no fence and moves plain
// arithmetic from gap to gap.
JAX_FA_DEVICE u32 placed_copy(u32 a) {
  u32 copy;
  asm volatile("s_mov_b32 %0, %1" : "=s"(copy) : "s"(a));
  return copy;
}
JAX_FA_DEVICE u32 placed_add(u32 a, u32 b) {
  u32 sum;
  asm volatile("s_add_i32 %0, %1, %2" : "=s"(sum) : "s"(a), "s"(b) : "scc");
  return sum;
}
// a + kStep, or 0 where that is kEnd.
template <u32 kStep, u32 kEnd>
JAX_FA_DEVICE u32 placed_step(u32 a) {
  u32 next;
  asm volatile(
      "s_add_i32 %0, %1, %2\n\t"
      "s_cmp_lg_u32 %0, %3\n\t"
      "s_cselect_b32 %0, %0, 0"
      : "=&s"(next)
      : "s"(a), "i"(kStep), "i"(kEnd)
      : "scc");
  return next;
}
// From index == end on `value` becomes `next`, and `next` 0.
JAX_FA_DEVICE void placed_shift_from(int index, int end, u32& value, u32& next) {
  asm volatile(
      "s_cmp_lt_i32 %2, %3\n\t"
      "s_cselect_b32 %0, %0, %1\n\t"
      "s_cselect_b32 %1, %1, 0"
      : "+s"(value), "+s"(next)
      : "s"(index), "s"(end)
      : "scc");
}
// Two vector additions, since a pair fills what a matrix instruction leaves of its time: alone, one
// lets a late exponential of the other wave hold up the next matrix instruction.
JAX_FA_DEVICE void placed_add_pair(u32 scalar, u32 a, u32 b, u32& sum_a, u32& sum_b) {
  asm volatile(
      "v_add_u32 %0, %2, %3\n\t"
      "v_add_u32 %1, %2, %4"
      : "=&v"(sum_a), "=v"(sum_b)
      : "s"(scalar), "v"(a), "v"(b));
}

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX950_WAIT_H_
