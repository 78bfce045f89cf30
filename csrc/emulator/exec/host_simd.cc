#include <cstdlib>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "emulator/simd/level.h"

namespace jax_fa::emulator {
namespace {

#if defined(__x86_64__)
// The processor itself is asked: __builtin_cpu_supports reads what the compiler's runtime library
// has found out, and that of zig finds nothing.
SimdLevel ProcessorLevel() {
  constexpr uint32_t kFma = 1u << 12, kOsSavesState = 1u << 27, kAvx = 1u << 28, kF16c = 1u << 29;
  constexpr uint32_t kAvx2 = 1u << 5;
  constexpr uint32_t kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
  // Which registers the operating system keeps for a thread: SSE and AVX; masks and all of ZMM.
  constexpr uint32_t kYmmState = 0x06, kZmmState = 0xe6;
  constexpr uint32_t kLeaf1 = kFma | kOsSavesState | kAvx | kF16c;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kLeaf1) != kLeaf1) {
    return SimdLevel::kSse2;
  }
  uint32_t state = 0;
  __asm__("xgetbv" : "=a"(state), "=d"(edx) : "c"(0));
  if ((state & kYmmState) != kYmmState || __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 ||
      (ebx & kAvx2) == 0) {
    return SimdLevel::kSse2;
  }
  const bool avx512 = (state & kZmmState) == kZmmState && (ebx & kAvx512) == kAvx512;
  return avx512 ? SimdLevel::kAvx512 : SimdLevel::kAvx2;
}
#else
SimdLevel ProcessorLevel() { return SimdLevel::kSse2; }
#endif

SimdLevel Detect() {
  const SimdLevel level = ProcessorLevel();
  const char* wanted = std::getenv("JAX_FA_EMULATOR_SIMD");
  if (!wanted) return level;
  for (const SimdLevel lower : kSimdLevels) {
    if (lower < level && std::string_view(wanted) == SimdLevelName(lower)) return lower;
  }
  return level;
}

}  // namespace

SimdLevel HostSimdLevel() {
  static const SimdLevel level = Detect();
  return level;
}

const char* SimdLevelName(SimdLevel level) {
  return level == SimdLevel::kAvx512 ? "avx512" : level == SimdLevel::kAvx2 ? "avx2" : "sse2";
}

}  // namespace jax_fa::emulator
