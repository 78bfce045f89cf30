#include <cstdlib>
#include <string_view>

#include "emulator/simd/level.h"

namespace jax_fa::emulator {
namespace {

SimdLevel Detect() {
  SimdLevel level = SimdLevel::kSse2;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") &&
      __builtin_cpu_supports("fma")) {
    level = SimdLevel::kAvx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
      level = SimdLevel::kAvx512;
    }
  }
#endif
  const char* wanted = std::getenv("JAX_FA_EMULATOR_SIMD");
  if (!wanted) return level;
  if (std::string_view(wanted) == "sse2") return SimdLevel::kSse2;
  if (std::string_view(wanted) == "avx2" && level > SimdLevel::kAvx2) return SimdLevel::kAvx2;
  return level;
}

}  // namespace

SimdLevel HostSimdLevel() {
  static const SimdLevel level = Detect();
  return level;
}

}  // namespace jax_fa::emulator
