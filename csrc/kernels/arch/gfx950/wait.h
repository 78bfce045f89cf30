// gfx950: waiting for memory and for the other waves.
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

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX950_WAIT_H_
