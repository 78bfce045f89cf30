// gfx1201: the order of instructions. The compiler itself counts the loads that an instruction must
// wait for.
#ifndef JAX_FA_KERNELS_ARCH_GFX1201_WAIT_H_
#define JAX_FA_KERNELS_ARCH_GFX1201_WAIT_H_

#include "kernels/device.h"

namespace jax_fa::arch {

// All waves of the workgroup meet; what they wrote to LDS before it, all see after it. The fences
// order "local" memory, LDS, alone: others would wait for the global loads under way.
JAX_FA_DEVICE void share_lds() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}

// The compiler's scheduler moves nothing across it: this keeps phases, and operand loads inside
// one, in written order, without which live ranges grow past the register budget.
JAX_FA_DEVICE void fence_schedule() { __builtin_amdgcn_sched_barrier(0); }

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX1201_WAIT_H_
