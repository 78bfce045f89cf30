// What device code needs of the language: qualifiers, unrolling, fixed-width and vector types.
//
// Kernels are built without HIP's headers; this file and the builtins of clang are all they see.
#ifndef JAX_FA_KERNELS_DEVICE_H_
#define JAX_FA_KERNELS_DEVICE_H_

#define JAX_FA_GLOBAL __attribute__((global))
#define JAX_FA_DEVICE __attribute__((device, always_inline)) inline
#define JAX_FA_SHARED __attribute__((shared))
#define JAX_FA_UNROLL _Pragma("unroll")

// Address spaces of the AMDGPU back end.
#define JAX_FA_IN_GLOBAL __attribute__((address_space(1)))
#define JAX_FA_IN_LDS __attribute__((address_space(3)))
#define JAX_FA_IN_CONSTANT __attribute__((address_space(4)))

namespace jax_fa {

using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

using bfloat16 = __bf16;
using float16 = _Float16;

template <class T, int kCount>
using Vector = T __attribute__((ext_vector_type(kCount)));

inline constexpr float kLog2E = 1.44269504088896340736f;
inline constexpr float kLn2 = 0.693147180559945309417f;

JAX_FA_DEVICE constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
JAX_FA_DEVICE int min_int(int a, int b) { return a < b ? a : b; }
JAX_FA_DEVICE int max_int(int a, int b) { return a > b ? a : b; }
JAX_FA_DEVICE u32 min_u32(u32 a, u32 b) { return a < b ? a : b; }
JAX_FA_DEVICE float infinity() { return __builtin_inff(); }

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_DEVICE_H_
