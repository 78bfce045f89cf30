// gfx1201 (RDNA4): what the chip has. Plain C++, since the launcher reads it too.
#ifndef JAX_FA_KERNELS_ARCH_GFX1201_LIMITS_H_
#define JAX_FA_KERNELS_ARCH_GFX1201_LIMITS_H_

namespace jax_fa::gfx1201 {

inline constexpr int kWaveSize = 32;            // lanes
inline constexpr int kMaxLdsBytes = 64 * 1024;  // that a workgroup may use
inline constexpr int kDies = 1;                 // workgroup ids go round them; each has its own L2

}  // namespace jax_fa::gfx1201

#endif  // JAX_FA_KERNELS_ARCH_GFX1201_LIMITS_H_
