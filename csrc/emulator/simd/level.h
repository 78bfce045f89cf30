// Which copy of the vector families runs.
//
// The files of simd/ are compiled once per level, with -DJAX_FA_SIMD=sse2|avx2|avx512 and the
// matching instruction-set options. Everything in them lives in `namespace
// jax_fa::emulator::JAX_FA_SIMD` (helpers in an unnamed namespace within it), and each file hands
// out its Opcode rows, whose exec pointers are those of its own copy:
//
//     // simd/valu_int.cc
//     namespace jax_fa::emulator::JAX_FA_SIMD {
//     namespace { constexpr Opcode kRows[] = {...}; }
//     std::span<const Opcode> ValuIntRows() { return kRows; }
//     }
//
//     // exec/families.cc
//     JAX_FA_DECLARE_SIMD_ROWS(ValuIntRows)   // at namespace jax_fa::emulator scope
//     ... SimdValuIntRows() ...               // the rows of the level this host runs
//     ... SimdValuIntRows(SimdLevel::kSse2) ...
//
// The levels differ in speed only: never fused multiply-add, never reassociation.
#ifndef JAX_FA_EMULATOR_SIMD_LEVEL_H_
#define JAX_FA_EMULATOR_SIMD_LEVEL_H_

#include <cstdint>
#include <span>

#include "emulator/state/instruction.h"

namespace jax_fa::emulator {

// sse2 is plain C++ on any host; the other two exist on x86-64 only.
enum class SimdLevel : uint8_t { kSse2, kAvx2, kAvx512 };

// The best level of this host; the environment variable JAX_FA_EMULATOR_SIMD (sse2, avx2, avx512)
// lowers it. Fixed for the life of the process.
SimdLevel HostSimdLevel();

const char* SimdLevelName(SimdLevel level);  // "avx512"

#if defined(__x86_64__)
inline constexpr SimdLevel kSimdLevels[] = {SimdLevel::kSse2, SimdLevel::kAvx2, SimdLevel::kAvx512};
#else
inline constexpr SimdLevel kSimdLevels[] = {SimdLevel::kSse2};
#endif

}  // namespace jax_fa::emulator

#if defined(__x86_64__)
#define JAX_FA_DECLARE_SIMD_ROWS(Function)                                           \
  namespace sse2 {                                                                   \
  std::span<const Opcode> Function();                                                \
  }                                                                                  \
  namespace avx2 {                                                                   \
  std::span<const Opcode> Function();                                                \
  }                                                                                  \
  namespace avx512 {                                                                 \
  std::span<const Opcode> Function();                                                \
  }                                                                                  \
  inline std::span<const Opcode> Simd##Function(SimdLevel level = HostSimdLevel()) { \
    return level == SimdLevel::kAvx512 ? avx512::Function()                          \
           : level == SimdLevel::kAvx2 ? avx2::Function()                            \
                                       : sse2::Function();                           \
  }
#else
#define JAX_FA_DECLARE_SIMD_ROWS(Function)                                      \
  namespace sse2 {                                                              \
  std::span<const Opcode> Function();                                           \
  }                                                                             \
  inline std::span<const Opcode> Simd##Function(SimdLevel = SimdLevel::kSse2) { \
    return sse2::Function();                                                    \
  }
#endif

#endif  // JAX_FA_EMULATOR_SIMD_LEVEL_H_
