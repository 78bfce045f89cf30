// Attention forward: out = softmax(mask(cap(scale Q.K^T))) V and its log-sum-exp, over dense,
// packed and paged operands.
//
// One workgroup makes Config::kBlockQ query rows of one head of one sequence (scheduler.h says
// which), a wave its own share of them. What happens per key tile, the schedule, and the register
// and LDS budget are in mainloop/<target>/mainloop.h.
#include "kernels/mainloop/forward.h"

// The list of instantiations. `benchmarks/run.py ablations` compiles one of them.
#ifndef JAX_FA_VARIANTS
#define JAX_FA_VARIANTS "kernels/variants.def"
#endif

namespace jax_fa {

// The waves that should share a SIMD bound the registers that the compiler may use.
#define JAX_FA_FLASH(name, dtype, head_dim_tile, soft_cap, paged)                              \
  extern "C" JAX_FA_GLOBAL                                                                     \
      __attribute__((amdgpu_flat_work_group_size(target::flash_tile(head_dim_tile).threads(),  \
                                                 target::flash_tile(head_dim_tile).threads()), \
                     amdgpu_waves_per_eu(target::flash_waves_per_simd(head_dim_tile),          \
                                         target::flash_waves_per_simd(head_dim_tile)))) void   \
      name(const AttentionParams params) {                                                     \
    forward<FlashConfig<dtype, target::flash_tile(head_dim_tile), soft_cap, paged>>(params);   \
  }
#include JAX_FA_VARIANTS

}  // namespace jax_fa
