// Floats of 4, 6 and 8 bits (OCP), to single precision, and those of 8 bits from it.
//
// Included by the files of simd/ only: everything is in the namespace of the SIMD level.
#ifndef JAX_FA_EMULATOR_SIMD_NARROW_H_
#define JAX_FA_EMULATOR_SIMD_NARROW_H_

#include "emulator/simd/math.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

// Sign, exponent and mantissa, with numbers only. The bias is that of IEEE formats.
template <int kExponent, int kMantissa>
struct NarrowFloat {
  static constexpr int kBits = 1 + kExponent + kMantissa;
  static constexpr uint32_t kBias = (1u << (kExponent - 1)) - 1;
  static float Value(uint32_t bits, bool = true) {
    const uint32_t magnitude = bits & ((1u << (kBits - 1)) - 1);
    const float normal = AsFloat((magnitude << (23 - kMantissa)) + ((127 - kBias) << 23));
    const float denorm = static_cast<float>(static_cast<int32_t>(magnitude)) *
                         AsFloat((128 - kBias - kMantissa) << 23);
    const float value = magnitude < (1u << kMantissa) ? denorm : normal;
    return AsFloat(AsBits(value) | (bits >> (kBits - 1)) << 31);
  }
};
using Fp4 = NarrowFloat<2, 1>;
using Fp6 = NarrowFloat<2, 3>;
using Bf6 = NarrowFloat<3, 2>;
// e4m3 has NaN but no infinity; e5m2 is the upper byte of a half.
struct Fp8 : NarrowFloat<4, 3> {
  static float Value(uint32_t bits, bool = true) {
    const bool is_nan = (bits & 0x7f) == 0x7f;
    return is_nan ? AsFloat(0x7fc00000u | (bits & 0x80u) << 24) : NarrowFloat<4, 3>::Value(bits);
  }
};
struct Bf8 {
  static constexpr int kBits = 8;
  static constexpr uint32_t kBias = 15;
  static float Value(uint32_t bits, bool = true) {
    return ToFloat(Half{static_cast<uint16_t>(bits << 8)});
  }
};

// Magnitude of a finite number, to nearest: a carry may take it past the largest.
template <int kMantissa, uint32_t kBias>
inline uint32_t NarrowMagnitude(float value) {
  constexpr int kDropped = 23 - kMantissa;
  const uint32_t bits = AsBits(value) & 0x7fffffffu;
  const uint32_t rounded = bits + ((1u << (kDropped - 1)) - 1) + (bits >> kDropped & 1);
  // In steps of the smallest denormal, by way of a number whose last place that is.
  const float anchor = AsFloat((127 + kDropped + 1 - kBias) << 23);
  const uint32_t denorm = AsBits(AsFloat(bits) + anchor) - AsBits(anchor);
  return bits < (128 - kBias) << 23 ? denorm : (rounded >> kDropped) - ((127 - kBias) << kMantissa);
}
// What is too large becomes NaN in e4m3, which has no infinity, and infinity in e5m2.
inline uint32_t ToFp8(float value) {
  const uint32_t sign = AsBits(value) >> 24 & 0x80u;
  const bool finite = (AsBits(value) & 0x7f800000u) != 0x7f800000u;
  const uint32_t magnitude = finite ? NarrowMagnitude<3, Fp8::kBias>(value) : 0x7fu;
  return sign | (magnitude > 0x7fu ? 0x7fu : magnitude);
}
inline uint32_t ToBf8(float value) {
  const uint32_t sign = AsBits(value) >> 24 & 0x80u;
  if (value != value) return sign | 0x7fu;
  const bool finite = (AsBits(value) & 0x7f800000u) != 0x7f800000u;
  const uint32_t magnitude = finite ? NarrowMagnitude<2, Bf8::kBias>(value) : 0x7cu;
  return sign | (magnitude > 0x7cu ? 0x7cu : magnitude);
}

}  // namespace
}  // namespace jax_fa::emulator::JAX_FA_SIMD

#endif  // JAX_FA_EMULATOR_SIMD_NARROW_H_
