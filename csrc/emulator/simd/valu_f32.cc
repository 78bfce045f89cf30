// Lane functions of single precision: arithmetic, minimum and maximum, rounding, transcendentals,
// the pieces of an IEEE division.
#include "emulator/simd/level.h"
#include "emulator/simd/math.h"
#include "emulator/simd/valu_rows.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

inline int ExponentOf(float v) { return static_cast<int>((AsBits(v) >> 23) & 0xff); }
inline bool IsDenorm(float v) { return v != 0 && Abs(v) < 0x1p-126f; }

// v_div_scale_f32: source 0 (one of the other two) scaled so that numerator / denominator by
// Newton steps neither overflows nor loses bits; the lane bit asks v_div_fmas to undo it.
inline WithBit<float> DivScale(float scaled, float denominator, float numerator) {
  const bool is_denominator = AsBits(scaled) == AsBits(denominator);
  const bool is_numerator = AsBits(scaled) == AsBits(numerator);
  const int difference = ExponentOf(numerator) - ExponentOf(denominator);
  const float up = scaled * 0x1p64f;
  if (numerator == 0 || denominator == 0) return {AsFloat(0x7fc00000u), false};
  if (difference >= 96) return {is_denominator ? up : scaled, true};
  if (IsDenorm(denominator)) return {up, false};
  const bool reciprocal_denorm = IsDenorm(1.0f / denominator);
  const double quotient = static_cast<double>(numerator) / static_cast<double>(denominator);
  const bool quotient_denorm = quotient != 0 && std::fabs(quotient) < 0x1p-126;
  // The documents print an exponent of +64 for the first case, which would overflow the
  // denominator.
  if (reciprocal_denorm && quotient_denorm) {
    return {is_denominator ? scaled * 0x1p-64f : scaled, true};
  }
  if (reciprocal_denorm) return {scaled * 0x1p-64f, false};
  if (quotient_denorm) return {is_numerator ? up : scaled, true};
  if (ExponentOf(numerator) <= 23) return {up, false};
  return {scaled, false};
}

// The quotient with the special cases of division put right. A quotient that overflows has become
// NaN in the steps before.
inline float DivFixup(float quotient, float denominator, float numerator) {
  const uint32_t sign = (AsBits(denominator) ^ AsBits(numerator)) & 0x80000000u;
  const float infinity = AsFloat(0x7f800000u | sign);
  const float zero = AsFloat(sign);
  const bool denominator_inf = Abs(denominator) == AsFloat(0x7f800000u);
  const bool numerator_inf = Abs(numerator) == AsFloat(0x7f800000u);
  if (numerator != numerator || denominator != denominator) return AsFloat(0x7fc00000u);
  if ((denominator == 0 && numerator == 0) || (denominator_inf && numerator_inf)) {
    return AsFloat(0x7fc00000u);
  }
  if (denominator == 0 || numerator_inf) return infinity;
  if (denominator_inf || numerator == 0) return zero;
  if (quotient != quotient) return infinity;
  return AsFloat((AsBits(quotient) & 0x7fffffffu) | sign);
}

inline float FrexpMantissa(float v) {
  const float scaled = IsDenorm(v) ? v * 0x1p24f : v;
  const float mantissa = AsFloat((AsBits(scaled) & 0x807fffffu) | (126u << 23));
  return v == 0 || !(Abs(v) < AsFloat(0x7f800000u)) ? v : mantissa;
}
inline int32_t FrexpExponent(float v) {
  const bool denorm = IsDenorm(v);
  const int32_t exponent = ExponentOf(denorm ? v * 0x1p24f : v) - 126 - (denorm ? 24 : 0);
  return v == 0 || !(Abs(v) < AsFloat(0x7f800000u)) ? 0 : exponent;
}
// Below 1 by definition: the subtraction of a tiny negative number would round up to it.
inline float Fract(float v) {
  const float fraction = v - Floor(v);
  const float bounded = fraction < 1.0f ? fraction : AsFloat(0x3f7fffffu);
  return Abs(v) == AsFloat(0x7f800000u) ? 0.0f : v == v ? bounded : v;
}
inline float Median(float a, float b, float c) {
  if (a != a || b != b || c != c) return Min(Min(a, b), c);
  return Max(Min(a, b), Min(Max(a, b), c));
}

constexpr Opcode kValuF32Rows[] = {
    Lanes<[](float a, float b) { return a + b; }>("v_add_f32"),
    Lanes<[](float a, float b) { return a - b; }>("v_sub_f32"),
    Lanes<[](float a, float b) { return b - a; }>("v_subrev_f32"),
    Lanes<[](float a, float b) { return a * b; }>("v_mul_f32"),
    // Zero times anything is zero.
    Lanes<[](float a, float b) { return a == 0 || b == 0 ? 0.0f : a * b; }>("v_mul_legacy_f32"),
    Lanes<[](float a, float b, float c) { return Fma(a, b, c); }>("v_fma_f32"),
    Lanes<[](float a, float b, float c) { return Fma(a, b, c); }>("v_fmamk_f32"),
    Lanes<[](float a, float b, float c) { return Fma(a, b, c); }>("v_fmaak_f32"),
    Lanes<[](float a, float b, float c) { return Fma(a, b, c); }, kNoClamp, kAccumulates>(
        "v_fmac_f32"),
    Lanes<[](float a, float b) { return Min(a, b); }>("v_min_f32"),
    Lanes<[](float a, float b) { return Max(a, b); }>("v_max_f32"),
    Lanes<[](float a, float b, float c) { return Min(Min(a, b), c); }>("v_min3_f32"),
    Lanes<[](float a, float b, float c) { return Max(Max(a, b), c); }>("v_max3_f32"),
    Lanes<[](float a, float b, float c) { return Median(a, b, c); }>("v_med3_f32"),
    Lanes<[](float a, float b, float c) { return Max(Min(a, b), c); }>("v_minmax_f32"),
    Lanes<[](float a, float b, float c) { return Min(Max(a, b), c); }>("v_maxmin_f32"),
    Lanes<[](float a, float b) { return Minimum(a, b); }>("v_minimum_f32"),
    Lanes<[](float a, float b) { return Maximum(a, b); }>("v_maximum_f32"),
    Lanes<[](float a, float b, float c) { return Minimum(Minimum(a, b), c); }>("v_minimum3_f32"),
    Lanes<[](float a, float b, float c) { return Maximum(Maximum(a, b), c); }>("v_maximum3_f32"),
    Lanes<[](float a, float b, float c) { return Maximum(Minimum(a, b), c); }>(
        "v_minimummaximum_f32"),
    Lanes<[](float a, float b, float c) { return Minimum(Maximum(a, b), c); }>(
        "v_maximumminimum_f32"),
    Lanes<[](float v) { return Truncate(v); }, kNoClamp, kIgnoresMode>("v_trunc_f32"),
    Lanes<[](float v) { return Ceil(v); }, kNoClamp, kIgnoresMode>("v_ceil_f32"),
    Lanes<[](float v) { return Floor(v); }, kNoClamp, kIgnoresMode>("v_floor_f32"),
    Lanes<[](float v) { return RoundEven(v); }, kNoClamp, kIgnoresMode>("v_rndne_f32"),
    Lanes<[](float v) { return Fract(v); }>("v_fract_f32"),
    Lanes<[](float v, int32_t e) { return Ldexp(v, e); }>("v_ldexp_f32"),
    Lanes<[](float v) { return FrexpMantissa(v); }>("v_frexp_mant_f32"),
    Lanes<[](float v) { return FrexpExponent(v); }>("v_frexp_exp_i32_f32"),
    Lanes<[](float v) { return Exp2(v); }, kNoClamp, kIgnoresMode>("v_exp_f32", kTransClass),
    Lanes<[](float v) { return Log2(v); }, kNoClamp, kIgnoresMode>("v_log_f32", kTransClass),
    Lanes<[](float v) { return Reciprocal(v); }, kNoClamp, kIgnoresMode>("v_rcp_f32", kTransClass),
    Lanes<[](float v) { return Reciprocal(v); }, kNoClamp, kIgnoresMode>("v_rcp_iflag_f32",
                                                                         kTransClass),
    Lanes<[](float v) { return ReciprocalRoot(v); }, kNoClamp, kIgnoresMode>("v_rsq_f32",
                                                                             kTransClass),
    Lanes<[](float v) { return SquareRoot(v); }, kNoClamp, kIgnoresMode>("v_sqrt_f32", kTransClass),
    Lanes<[](float v) { return SinTurns(v, 0); }, kNoClamp, kIgnoresMode>("v_sin_f32", kTransClass),
    Lanes<[](float v) { return SinTurns(v, 1); }, kNoClamp, kIgnoresMode>("v_cos_f32", kTransClass),
    Lanes<[](float a, float b, float c) { return DivScale(a, b, c); }>("v_div_scale_f32"),
    Lanes<[](float a, float b, float c) { return DivFixup(a, b, c); }>("v_div_fixup_f32"),
};

}  // namespace

std::span<const Opcode> ValuF32Rows() { return kValuF32Rows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
