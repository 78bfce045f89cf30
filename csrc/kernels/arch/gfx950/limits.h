// gfx950 (CDNA4): what the chip has. Plain C++, since the launcher reads it too.
#ifndef JAX_FA_KERNELS_ARCH_GFX950_LIMITS_H_
#define JAX_FA_KERNELS_ARCH_GFX950_LIMITS_H_

namespace jax_fa::gfx950 {

inline constexpr int kWaveSize = 64;             // lanes
inline constexpr int kMaxLdsBytes = 160 * 1024;  // of a CU, all of which one workgroup may use
inline constexpr int kDies = 8;                  // workgroup ids go round them; each has its own L2

}  // namespace jax_fa::gfx950

#endif  // JAX_FA_KERNELS_ARCH_GFX950_LIMITS_H_
