// Register rows of 64 lanes: masks, blends, and how lane types lie in them.
//
// Included by the files of simd/ only: everything is in the namespace of the SIMD level.
#ifndef JAX_FA_EMULATOR_SIMD_ROW_H_
#define JAX_FA_EMULATOR_SIMD_ROW_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "emulator/simd/valu_op.h"

// No iteration of the loop that follows depends on another one's stores: a result row is either a
// source row lane for lane, or another row.
#if defined(__clang__)
// Some lane functions (divisions by pieces, 64-bit products) stay scalar: no need to say so.
#pragma clang diagnostic ignored "-Wpass-failed"
// A loop that is unrolled before the vectoriser sees it leaves the loop around it to be vectorised,
// by gathers and scatters: hence no unrolling.
#define JAX_FA_LANES \
  _Pragma("clang loop vectorize(assume_safety) interleave(disable) unroll(disable)")
#else
#define JAX_FA_LANES _Pragma("GCC ivdep")
#endif

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

// A half precision number; arithmetic on it is in simd/math.h.
struct Half {
  uint16_t bits;
};
// One lane of a mask operand: 0 or ~0.
struct LaneBit {
  uint32_t bits;
  explicit operator bool() const { return bits != 0; }
};
// A 32-bit value that is moved and may carry float modifiers.
struct Bits32 {
  uint32_t bits;
};
// A result with a second one per lane: carry out, division scale flag.
template <class T>
struct WithBit {
  T value;
  bool bit;
};

alignas(64) constexpr uint32_t kBitOfLane[32] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

// row[l] = ~0 where bit l of the mask is set, else 0.
inline void ExpandMask(uint64_t mask, uint32_t* row) {
  for (int half = 0; half < 2; ++half) {
    const uint32_t bits = static_cast<uint32_t>(mask >> (32 * half));
    uint32_t* out = row + 32 * half;
    for (int l = 0; l < 32; ++l) out[l] = (bits & kBitOfLane[l]) != 0 ? ~0u : 0u;
  }
}

// Bit l = the sign bit of row[l].
inline uint64_t PackMask(const uint32_t* row, int lanes) {
  uint64_t mask = 0;
#if defined(__AVX2__)
  for (int l = 0; l < lanes; l += 8) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + l));
    mask |= uint64_t{static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(v)))} << l;
  }
#elif defined(__SSE2__)
  for (int l = 0; l < lanes; l += 4) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + l));
    mask |= uint64_t{static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(v)))} << l;
  }
#else
  for (int l = 0; l < lanes; ++l) mask |= uint64_t{row[l] >> 31} << l;
#endif
  return mask;
}

// dst[l] = value[l] where bit l of the mask is set.
inline void BlendRow(uint32_t* dst, const uint32_t* value, uint64_t mask) {
  for (int half = 0; half < 2; ++half) {
    const uint32_t bits = static_cast<uint32_t>(mask >> (32 * half));
    if (bits == 0) continue;
    uint32_t* d = dst + 32 * half;
    const uint32_t* v = value + 32 * half;
    JAX_FA_LANES
    for (int l = 0; l < 32; ++l) d[l] = (bits & kBitOfLane[l]) != 0 ? v[l] : d[l];
  }
}

template <class T>
struct LaneOf;
#define JAX_FA_LANE_TYPE(T, k)                     \
  template <>                                      \
  struct LaneOf<T> {                               \
    static constexpr LaneType kType = LaneType::k; \
  };
JAX_FA_LANE_TYPE(Bits32, kB32)
JAX_FA_LANE_TYPE(float, kF32)
JAX_FA_LANE_TYPE(Half, kF16)
JAX_FA_LANE_TYPE(double, kF64)
JAX_FA_LANE_TYPE(uint32_t, kU32)
JAX_FA_LANE_TYPE(int32_t, kI32)
JAX_FA_LANE_TYPE(uint16_t, kU16)
JAX_FA_LANE_TYPE(int16_t, kI16)
JAX_FA_LANE_TYPE(uint64_t, kU64)
JAX_FA_LANE_TYPE(int64_t, kI64)
JAX_FA_LANE_TYPE(LaneBit, kLaneBit)
#undef JAX_FA_LANE_TYPE

// One lane's value from its low and high dword.
template <class T>
inline T FromDwords(uint32_t low, const uint32_t* high) {
  if constexpr (sizeof(T) == 8) {
    return std::bit_cast<T>(uint64_t{low} | (uint64_t{*high} << 32));
  } else if constexpr (sizeof(T) == 2) {
    return std::bit_cast<T>(static_cast<uint16_t>(low));
  } else {
    return std::bit_cast<T>(low);
  }
}

// NaN results are the one quiet NaN: which operand's payload a host's instruction passes on depends
// on operand order, which compilers are free to change.
inline uint32_t ToDword(float value) {
  return value == value ? std::bit_cast<uint32_t>(value) : 0x7fc00000u;
}
inline uint64_t ToQword(double value) {
  return value == value ? std::bit_cast<uint64_t>(value) : uint64_t{0x7ff80000} << 32;
}

template <class T>
inline void StoreLane(uint32_t* low, uint32_t* high, T value) {
  if constexpr (std::is_same_v<T, float>) {
    *low = ToDword(value);
  } else if constexpr (std::is_same_v<T, double>) {
    const uint64_t bits = ToQword(value);
    *low = static_cast<uint32_t>(bits);
    *high = static_cast<uint32_t>(bits >> 32);
  } else if constexpr (sizeof(T) == 8) {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    *low = static_cast<uint32_t>(bits);
    *high = static_cast<uint32_t>(bits >> 32);
  } else if constexpr (sizeof(T) == 2) {
    *low = std::bit_cast<uint16_t>(value);
  } else {
    *low = std::bit_cast<uint32_t>(value);
  }
}

}  // namespace
}  // namespace jax_fa::emulator::JAX_FA_SIMD

#endif  // JAX_FA_EMULATOR_SIMD_ROW_H_
