// Attention forward: out = softmax(mask(cap(scale Q.K^T))) V and its log-sum-exp, over dense,
// packed and paged operands.
//
// One workgroup makes Config::kBlockQ query rows of one head of one sequence (scheduler.h says
// which), a wave its own share of them. What happens per key tile, the schedule, and the register
// and LDS budget are in arch/<target>/mainloop.h.
#include "kernels/attention/forward.h"

namespace jax_fa {

// The waves that should share a SIMD bound the registers that the compiler may use.
#define JAX_FA_FLASH(name, dtype, head_dim_tile, soft_cap, paged)                            \
  extern "C" JAX_FA_GLOBAL                                                                   \
      __attribute__((amdgpu_flat_work_group_size(arch::flash_tile(head_dim_tile).threads(),  \
                                                 arch::flash_tile(head_dim_tile).threads()), \
                     amdgpu_waves_per_eu(arch::flash_waves_per_simd(head_dim_tile),          \
                                         arch::flash_waves_per_simd(head_dim_tile)))) void   \
      name(const AttentionParams params) {                                                   \
    forward<FlashConfig<dtype, head_dim_tile, soft_cap, paged>>(params);                     \
  }
#include "kernels/variants.def"

}  // namespace jax_fa
