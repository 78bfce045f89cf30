// Scalar arithmetic of the lanes, written so that loops over it vectorise, and with the same bits
// at every SIMD level and on every host: no library calls, a fixed order of operations, fused
// multiply-add either by the host's instruction or by an exact substitute.
//
// Included by the files of simd/ only: everything is in the namespace of the SIMD level.
#ifndef JAX_FA_EMULATOR_SIMD_MATH_H_
#define JAX_FA_EMULATOR_SIMD_MATH_H_

#include <cmath>

#include "emulator/simd/row.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

inline uint32_t AsBits(float v) { return std::bit_cast<uint32_t>(v); }
inline float AsFloat(uint32_t v) { return std::bit_cast<float>(v); }
inline uint64_t AsBits(double v) { return std::bit_cast<uint64_t>(v); }
inline double AsDouble(uint64_t v) { return std::bit_cast<double>(v); }
inline float Abs(float v) { return AsFloat(AsBits(v) & 0x7fffffffu); }
inline float CopySign(float magnitude, float sign) {
  return AsFloat((AsBits(magnitude) & 0x7fffffffu) | (AsBits(sign) & 0x80000000u));
}
// v_exp_f32 and its like take denormals as zero, and give none, whatever the mode says.
inline float FlushDenorm(float v) {
  return Abs(v) < 0x1p-126f ? AsFloat(AsBits(v) & 0x80000000u) : v;
}

// fma with one rounding.
inline float Fma(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  // The product is exact in double; the sum is rounded to odd there, after which rounding to float
  // cannot go wrong twice (53 bits hold more than 24 + 2).
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = c;
  const double sum = product + addend;
  const double back = sum - product;
  const double error = (product - (sum - back)) + (addend - back);
  const uint64_t bits = AsBits(sum);
  const uint64_t toward = ((AsBits(error) ^ bits) >> 63) != 0 ? ~uint64_t{0} : uint64_t{1};
  const bool inexact = error != 0 && (bits & 1) == 0 && sum - sum == 0;
  return static_cast<float>(AsDouble(inexact ? bits + toward : bits));
#endif
}
inline double Fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

// ---- half precision and bfloat16 ----
inline float ToFloat(Half h) {
  constexpr uint32_t kExponent = 0x7c00u << 13;
  uint32_t bits = (uint32_t{h.bits} & 0x7fffu) << 13;
  const uint32_t exponent = bits & kExponent;
  bits += (127u - 15u) << 23;
  const uint32_t special = bits + ((128u - 16u) << 23);
  const uint32_t denorm = AsBits(AsFloat(bits + (1u << 23)) - 0x1p-14f);
  bits = exponent == kExponent ? special : exponent == 0 ? denorm : bits;
  return AsFloat(bits | (uint32_t{h.bits} & 0x8000u) << 16);
}
// Round to nearest even.
inline Half ToHalf(float v) {
  const uint32_t bits = AsBits(v);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t denorm = AsBits(AsFloat(magnitude) + 0.5f) - AsBits(0.5f);
  const uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t half = magnitude >= 0x47800000u  ? special
                        : magnitude < 0x38800000u ? denorm
                                                  : normal;
  const uint32_t sign = magnitude > 0x7f800000u ? 0 : (bits >> 16) & 0x8000u;
  return {static_cast<uint16_t>(half | sign)};
}
// Round toward zero: finite values never become infinite.
inline Half ToHalfTowardZero(float v) {
  const uint32_t bits = AsBits(v);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t special = magnitude > 0x7f800000u    ? 0x7e00u
                           : magnitude == 0x7f800000u ? 0x7c00u
                                                      : 0x7bffu;
  const float small = magnitude < 0x38800000u ? AsFloat(magnitude) * 0x1p24f : 0.0f;
  const uint32_t denorm = static_cast<uint32_t>(static_cast<int32_t>(small));
  const uint32_t normal = (magnitude - (112u << 23)) >> 13;
  const uint32_t half = magnitude >= 0x47800000u  ? special
                        : magnitude < 0x38800000u ? denorm
                                                  : normal;
  const uint32_t sign = magnitude > 0x7f800000u ? 0 : (bits >> 16) & 0x8000u;
  return {static_cast<uint16_t>(half | sign)};
}
// Round to nearest even; in the low half of the result.
inline uint32_t ToBfloat(float v) {
  const uint32_t bits = AsBits(v);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded;
}
inline float FromBfloat(uint32_t low_half) { return AsFloat(low_half << 16); }

// Sums and products of two halves are right when rounded to float first (24 >= 2 * 11 + 2). A fused
// multiply-add is not: its float sum is rounded to odd.
inline Half FmaHalf(Half a, Half b, Half c) {
  const float product = ToFloat(a) * ToFloat(b);
  const float addend = ToFloat(c);
  const float sum = product + addend;
  const float back = sum - product;
  const float error = (product - (sum - back)) + (addend - back);
  const uint32_t bits = AsBits(sum);
  const uint32_t toward = ((AsBits(error) ^ bits) >> 31) != 0 ? ~0u : 1u;
  const bool inexact = error != 0 && (bits & 1) == 0 && sum - sum == 0;
  return ToHalf(AsFloat(inexact ? bits + toward : bits));
}

// Two halves of a register.
inline uint32_t Pair(Half low, Half high) { return low.bits | uint32_t{high.bits} << 16; }
inline uint32_t Pair(uint32_t low, uint32_t high) { return (low & 0xffffu) | high << 16; }

// ---- rounding to integers ----
inline float Truncate(float v) {
  const float magnitude = Abs(v);
  const float nearest = (magnitude + 0x1p23f) - 0x1p23f;
  const float whole = CopySign(nearest > magnitude ? nearest - 1.0f : nearest, v);
  return magnitude < 0x1p23f ? whole : v;
}
inline float RoundEven(float v) {
  const float magnitude = Abs(v);
  const float whole = CopySign((magnitude + 0x1p23f) - 0x1p23f, v);
  return magnitude < 0x1p23f ? whole : v;
}
inline float Floor(float v) {
  const float whole = Truncate(v);
  return whole > v ? whole - 1.0f : whole;
}
inline float Ceil(float v) {
  const float whole = Truncate(v);
  return whole < v ? CopySign(whole + 1.0f, v) : whole;
}
// Out of range saturates, NaN gives 0.
inline int32_t ToInt32(float v) {
  const bool inside = v >= -0x1p31f && v < 0x1p31f;
  const int32_t value = static_cast<int32_t>(inside ? v : 0.0f);
  return inside ? value : v >= 0x1p31f ? INT32_MAX : v < 0 ? INT32_MIN : 0;
}
inline uint32_t ToUint32(float v) {
  const bool upper = v >= 0x1p31f;
  const float shifted = upper ? v - 0x1p31f : v;
  const float safe = shifted > 0.0f && shifted < 0x1p31f ? shifted : 0.0f;
  const uint32_t value =
      static_cast<uint32_t>(static_cast<int32_t>(safe)) + (upper ? 1u << 31 : 0u);
  return v >= 0x1p32f ? UINT32_MAX : value;
}
inline int32_t ToInt32(double v) {
  return v >= 0x1p31 ? INT32_MAX : v <= -0x1p31 ? INT32_MIN : v == v ? static_cast<int32_t>(v) : 0;
}
inline uint32_t ToUint32(double v) {
  return v >= 0x1p32 ? UINT32_MAX : v > 0 ? static_cast<uint32_t>(v) : 0;
}

// ---- minimum and maximum: a NaN loses against a number; -0 is less than +0 ----
inline float Min(float a, float b) {
  const float smaller = a < b ? a : b < a ? b : AsFloat(AsBits(a) | AsBits(b));
  return a != a ? b : b != b ? a : smaller;
}
inline float Max(float a, float b) {
  const float larger = a > b ? a : b > a ? b : AsFloat(AsBits(a) & AsBits(b));
  return a != a ? b : b != b ? a : larger;
}
inline double Min(double a, double b) {
  const double smaller = a < b ? a : b < a ? b : AsDouble(AsBits(a) | AsBits(b));
  return a != a ? b : b != b ? a : smaller;
}
inline double Max(double a, double b) {
  const double larger = a > b ? a : b > a ? b : AsDouble(AsBits(a) & AsBits(b));
  return a != a ? b : b != b ? a : larger;
}
// Minimum and maximum where a NaN wins (v_minimum, v_maximum).
inline float Minimum(float a, float b) {
  const float smaller = a < b ? a : b < a ? b : AsFloat(AsBits(a) | AsBits(b));
  return a != a ? a : b != b ? b : smaller;
}
inline float Maximum(float a, float b) {
  const float larger = a > b ? a : b > a ? b : AsFloat(AsBits(a) & AsBits(b));
  return a != a ? a : b != b ? b : larger;
}

// ---- the same of integers ----
template <class T>
inline T Smaller(T a, T b) {
  return a < b ? a : b;
}
template <class T>
inline T Larger(T a, T b) {
  return a > b ? a : b;
}
template <class T>
inline T Middle(T a, T b, T c) {
  return Larger(Smaller(a, b), Smaller(Larger(a, b), c));
}

// ---- transcendentals, at most 1 ulp from the true value ----
// 2^v. v = n + f with f in [-1/2, 1/2] is exact; the polynomial is the Taylor series of 2^f.
inline float Exp2(float input) {
  const float v = FlushDenorm(input);
  const float bounded = v > 129.0f ? 129.0f : v < -127.0f ? -127.0f : v == v ? v : 0.0f;
  const float n = RoundEven(bounded);
  const float f = bounded - n;
  float p = 1.5252734e-5f;
  p = p * f + 1.5403530e-4f;
  p = p * f + 1.3333558e-3f;
  p = p * f + 9.6181291e-3f;
  p = p * f + 5.5504109e-2f;
  p = p * f + 2.4022651e-1f;
  p = p * f + 6.9314718e-1f;
  const float fraction = p * f + 1.0f;  // in [0.70, 1.42]
  // Scaled in two steps, so that 2^128 and denormal results come out by arithmetic.
  const int32_t exponent = static_cast<int32_t>(n);
  const int32_t half = exponent >> 1;
  const float first = AsFloat(static_cast<uint32_t>(half + 127) << 23);
  const float second = AsFloat(static_cast<uint32_t>(exponent - half + 127) << 23);
  const float result = FlushDenorm(fraction * first * second);
  return v == v ? result : v;
}

// log2 in double: (m - 1) / (m + 1) = s, log2 m = 2 / ln 2 * (s + s^3 / 3 + s^5 / 5 + ...) with
// |s| <= 0.172, so that seven terms reach 2^-36 relative to the result also near 1.
inline float Log2(float input) {
  const float v = FlushDenorm(input);
  const uint32_t bits = AsBits(v);
  // m in [sqrt(1/2), sqrt(2)): take the exponent after adding what lies above sqrt(1/2).
  const uint32_t shifted = bits + (0x3f800000u - 0x3f3504f3u);
  const int32_t exponent = static_cast<int32_t>(shifted >> 23) - 127;
  const double m = AsFloat((shifted & 0x007fffffu) + 0x3f3504f3u);
  const double s = (m - 1.0) / (m + 1.0);
  const double s2 = s * s;
  double p = 1.0 / 15;
  p = p * s2 + 1.0 / 13;
  p = p * s2 + 1.0 / 11;
  p = p * s2 + 1.0 / 9;
  p = p * s2 + 1.0 / 7;
  p = p * s2 + 1.0 / 5;
  p = p * s2 + 1.0 / 3;
  p = p * s2 + 1.0;
  const double log = p * s * 2.8853900817779268147 + static_cast<double>(exponent);
  const float finite = static_cast<float>(log);
  const float zero = AsFloat(0xff800000u);
  return v > 0 ? (bits == 0x7f800000u ? v : finite) : v == 0 ? zero : AsFloat(0x7fc00000u);
}

inline float Reciprocal(float input) { return FlushDenorm(1.0f / FlushDenorm(input)); }
inline float SquareRoot(float input) { return __builtin_sqrtf(FlushDenorm(input)); }
inline float ReciprocalRoot(float input) {
  return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(FlushDenorm(input))));
}

// sin and cos of v turns: sin(2 pi v). The quadrant is exact, the rest a Taylor series in double.
inline double SinQuarter(double t) {  // sin(pi/2 t), |t| <= 1/2
  const double u = t * 1.5707963267948966192;
  const double u2 = u * u;
  double p = -1.0 / 39916800;
  p = p * u2 + 1.0 / 362880;
  p = p * u2 - 1.0 / 5040;
  p = p * u2 + 1.0 / 120;
  p = p * u2 - 1.0 / 6;
  return u + u * u2 * p;
}
inline double CosQuarter(double t) {
  const double u = t * 1.5707963267948966192;
  const double u2 = u * u;
  double p = 1.0 / 479001600;
  p = p * u2 - 1.0 / 3628800;
  p = p * u2 + 1.0 / 40320;
  p = p * u2 - 1.0 / 720;
  p = p * u2 + 1.0 / 24;
  p = p * u2 - 1.0 / 2;
  return 1.0 + u2 * p;
}
inline float SinTurns(float input, int quadrant_offset) {
  const float v = FlushDenorm(input);
  const float turn = v - Truncate(v);  // exact
  const float quarters = turn * 4.0f;
  const float nearest = RoundEven(quarters);
  const double rest = static_cast<double>(quarters - nearest);
  const uint32_t quadrant =
      (static_cast<uint32_t>(static_cast<int32_t>(nearest == nearest ? nearest : 0.0f)) +
       static_cast<uint32_t>(quadrant_offset)) &
      3u;
  const double value = (quadrant & 1u) != 0 ? CosQuarter(rest) : SinQuarter(rest);
  const float result = static_cast<float>((quadrant & 2u) != 0 ? -value : value);
  // sin(-0) is -0; infinities have no angle.
  const float signed_zero = quadrant_offset == 0 && v == 0 ? v : result;
  return Abs(v) < AsFloat(0x7f800000u) ? signed_zero : AsFloat(0x7fc00000u);
}

// v * 2^exponent with one rounding; denormal results are kept.
inline float Ldexp(float v, int32_t exponent) {
  const int32_t e = exponent > 300 ? 300 : exponent < -300 ? -300 : exponent;
  const double scale = AsDouble(static_cast<uint64_t>(e + 1023) << 52);
  return static_cast<float>(static_cast<double>(v) * scale);
}
inline double Ldexp(double v, int32_t exponent) { return std::scalbn(v, exponent); }

}  // namespace
}  // namespace jax_fa::emulator::JAX_FA_SIMD

#endif  // JAX_FA_EMULATOR_SIMD_MATH_H_
