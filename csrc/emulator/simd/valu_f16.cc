// Lane functions of 16-bit types: half precision and short integers, single and packed.
//
// Half precision results are those of single precision rounded once more, which is exact for sums,
// products and quotients; a fused multiply-add has its own (simd/math.h).
#include "emulator/simd/level.h"
#include "emulator/simd/math.h"
#include "emulator/simd/valu_rows.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

inline Half Add(Half a, Half b) { return ToHalf(ToFloat(a) + ToFloat(b)); }
inline Half Sub(Half a, Half b) { return ToHalf(ToFloat(a) - ToFloat(b)); }
inline Half Mul(Half a, Half b) { return ToHalf(ToFloat(a) * ToFloat(b)); }
// Two roundings: the multiply-add that is not fused.
inline Half Mad(Half a, Half b, Half c) { return Add(Mul(a, b), c); }
inline Half Min(Half a, Half b) { return ToHalf(Min(ToFloat(a), ToFloat(b))); }
inline Half Max(Half a, Half b) { return ToHalf(Max(ToFloat(a), ToFloat(b))); }
inline Half Minimum(Half a, Half b) { return ToHalf(Minimum(ToFloat(a), ToFloat(b))); }
inline Half Maximum(Half a, Half b) { return ToHalf(Maximum(ToFloat(a), ToFloat(b))); }
inline Half Median(Half x, Half y, Half z) {
  const float a = ToFloat(x), b = ToFloat(y), c = ToFloat(z);
  const float middle = Max(Min(a, b), Min(Max(a, b), c));
  return ToHalf(a != a || b != b || c != c ? Min(Min(a, b), c) : middle);
}
inline Half Fract(Half v) {
  const float f = ToFloat(v);
  const Half fraction = ToHalf(f - Floor(f));
  return fraction.bits == 0x3c00 ? Half{0x3bff} : fraction;
}
inline Half DivFixup(Half quotient, Half denominator, Half numerator) {
  const float d = ToFloat(denominator), n = ToFloat(numerator);
  const uint32_t sign = (denominator.bits ^ numerator.bits) & 0x8000u;
  const uint32_t dm = denominator.bits & 0x7fffu, nm = numerator.bits & 0x7fffu;
  const bool invalid = d != d || n != n || (dm == 0 && nm == 0) || (dm == 0x7c00 && nm == 0x7c00);
  const uint32_t qm = quotient.bits & 0x7fffu;
  const uint32_t value = dm == 0 || nm == 0x7c00   ? 0x7c00u
                         : dm == 0x7c00 || nm == 0 ? 0u
                         : qm > 0x7c00             ? 0x7c00u
                                                   : qm;
  return {static_cast<uint16_t>(invalid ? 0x7e00u : value | sign)};
}

template <class T>
inline T Wrap(int32_t v) {
  return static_cast<T>(v);
}
inline uint16_t SaturateU16(int64_t v) {
  return static_cast<uint16_t>(v < 0 ? 0 : v > 65535 ? 65535 : v);
}
inline int16_t SaturateI16(int64_t v) {
  return static_cast<int16_t>(v < -32768 ? -32768 : v > 32767 ? 32767 : v);
}
using U16 = uint16_t;
using I16 = int16_t;

constexpr auto kFmaHalf = [](Half a, Half b, Half c) { return FmaHalf(a, b, c); };
constexpr auto kMadHalf = [](Half a, Half b, Half c) { return Mad(a, b, c); };
constexpr auto kFixupHalf = [](Half a, Half b, Half c) { return DivFixup(a, b, c); };
constexpr auto kAddHalf = [](Half a, Half b) { return Add(a, b); };
constexpr auto kMulHalf = [](Half a, Half b) { return Mul(a, b); };
constexpr auto kMinHalf = [](Half a, Half b) { return Min(a, b); };
constexpr auto kMaxHalf = [](Half a, Half b) { return Max(a, b); };
constexpr auto kMinimum3 = [](Half a, Half b, Half c) { return Minimum(Minimum(a, b), c); };
constexpr auto kMaximum3 = [](Half a, Half b, Half c) { return Maximum(Maximum(a, b), c); };

constexpr auto kAddU16 = [](U16 a, U16 b) { return Wrap<U16>(a + b); };
constexpr auto kAddU16Sat = [](U16 a, U16 b) { return SaturateU16(a + b); };
constexpr auto kSubU16 = [](U16 a, U16 b) { return Wrap<U16>(a - b); };
constexpr auto kSubU16Sat = [](U16 a, U16 b) { return SaturateU16(a - b); };
constexpr auto kAddI16 = [](I16 a, I16 b) { return Wrap<I16>(a + b); };
constexpr auto kAddI16Sat = [](I16 a, I16 b) { return SaturateI16(a + b); };
constexpr auto kSubI16 = [](I16 a, I16 b) { return Wrap<I16>(a - b); };
constexpr auto kSubI16Sat = [](I16 a, I16 b) { return SaturateI16(a - b); };
constexpr auto kMulU16 = [](U16 a, U16 b) { return static_cast<U16>(uint32_t{a} * b); };
constexpr auto kMadU16 = [](U16 a, U16 b, U16 c) { return static_cast<U16>(uint32_t{a} * b + c); };
constexpr auto kMadU16Sat = [](U16 a, U16 b, U16 c) { return SaturateU16(int64_t{a} * b + c); };
constexpr auto kMadI16 = [](I16 a, I16 b, I16 c) { return Wrap<I16>(a * b + c); };
constexpr auto kMadI16Sat = [](I16 a, I16 b, I16 c) { return SaturateI16(int64_t{a} * b + c); };
constexpr auto kMinU16 = [](U16 a, U16 b) { return Smaller(a, b); };
constexpr auto kMaxU16 = [](U16 a, U16 b) { return Larger(a, b); };
constexpr auto kMinI16 = [](I16 a, I16 b) { return Smaller(a, b); };
constexpr auto kMaxI16 = [](I16 a, I16 b) { return Larger(a, b); };
constexpr auto kShiftLeft = [](U16 a, U16 b) { return static_cast<U16>(uint32_t{b} << (a & 15)); };
constexpr auto kShiftRight = [](U16 a, U16 b) { return static_cast<U16>(b >> (a & 15)); };
constexpr auto kShiftRightSigned = [](U16 a, I16 b) { return static_cast<I16>(b >> (a & 15)); };

constexpr Opcode kValuF16Rows[] = {
    Lanes<kAddHalf>("v_add_f16"),
    Lanes<[](Half a, Half b) { return Sub(a, b); }>("v_sub_f16"),
    Lanes<[](Half a, Half b) { return Sub(b, a); }>("v_subrev_f16"),
    Lanes<kMulHalf>("v_mul_f16"),
    Lanes<kMadHalf, kNoClamp, kAccumulates>("v_mac_f16"),
    Lanes<kMadHalf>("v_madmk_f16"),
    Lanes<kMadHalf>("v_madak_f16"),
    Lanes<kMadHalf>("v_mad_f16"),
    Lanes<kFmaHalf>("v_fma_f16"),
    Lanes<kFmaHalf>("v_fmamk_f16"),
    Lanes<kFmaHalf>("v_fmaak_f16"),
    Lanes<kFmaHalf, kNoClamp, kAccumulates>("v_fmac_f16"),
    Lanes<kFixupHalf>("v_div_fixup_f16"),
    Lanes<kMinHalf>("v_min_f16"),
    Lanes<kMaxHalf>("v_max_f16"),
    Lanes<[](Half a, Half b, Half c) { return Min(Min(a, b), c); }>("v_min3_f16"),
    Lanes<[](Half a, Half b, Half c) { return Max(Max(a, b), c); }>("v_max3_f16"),
    Lanes<[](Half a, Half b, Half c) { return Median(a, b, c); }>("v_med3_f16"),
    Lanes<[](Half a, Half b) { return Minimum(a, b); }>("v_minimum_f16"),
    Lanes<[](Half a, Half b) { return Maximum(a, b); }>("v_maximum_f16"),
    Lanes<kMinimum3>("v_minimum3_f16"),
    Lanes<kMaximum3>("v_maximum3_f16"),
    Lanes<[](Half v, int16_t e) { return ToHalf(Ldexp(ToFloat(v), e)); }>("v_ldexp_f16"),
    Lanes<[](Half v) { return ToHalf(Truncate(ToFloat(v))); }>("v_trunc_f16"),
    Lanes<[](Half v) { return ToHalf(Ceil(ToFloat(v))); }>("v_ceil_f16"),
    Lanes<[](Half v) { return ToHalf(Floor(ToFloat(v))); }>("v_floor_f16"),
    Lanes<[](Half v) { return ToHalf(RoundEven(ToFloat(v))); }>("v_rndne_f16"),
    Lanes<[](Half v) { return Fract(v); }>("v_fract_f16"),
    Lanes<[](Half v) { return ToHalf(Exp2(ToFloat(v))); }>("v_exp_f16", kTransClass),
    Lanes<[](Half v) { return ToHalf(Log2(ToFloat(v))); }>("v_log_f16", kTransClass),
    Lanes<[](Half v) { return ToHalf(1.0f / ToFloat(v)); }>("v_rcp_f16", kTransClass),
    Lanes<[](Half v) { return ToHalf(ReciprocalRoot(ToFloat(v))); }>("v_rsq_f16", kTransClass),
    Lanes<[](Half v) { return ToHalf(SquareRoot(ToFloat(v))); }>("v_sqrt_f16", kTransClass),
    Lanes<[](Half v) { return ToHalf(SinTurns(ToFloat(v), 0)); }>("v_sin_f16", kTransClass),
    Lanes<[](Half v) { return ToHalf(SinTurns(ToFloat(v), 1)); }>("v_cos_f16", kTransClass),
    Lanes<kAddU16, kAddU16Sat>("v_add_u16"),
    Lanes<kSubU16, kSubU16Sat>("v_sub_u16"),
    Lanes<[](U16 a, U16 b) { return Wrap<U16>(b - a); },
          [](U16 a, U16 b) { return SaturateU16(b - a); }>("v_subrev_u16"),
    Lanes<kAddI16, kAddI16Sat>("v_add_i16"),
    Lanes<kSubI16, kSubI16Sat>("v_sub_i16"),
    Lanes<kMulU16>("v_mul_lo_u16"),
    Lanes<kMadU16, kMadU16Sat>("v_mad_u16"),
    Lanes<kMadI16, kMadI16Sat>("v_mad_i16"),
    Lanes<kShiftLeft>("v_lshlrev_b16"),
    Lanes<kShiftRight>("v_lshrrev_b16"),
    Lanes<kShiftRightSigned>("v_ashrrev_i16"),
    Lanes<kMinU16>("v_min_u16"),
    Lanes<kMaxU16>("v_max_u16"),
    Lanes<kMinI16>("v_min_i16"),
    Lanes<kMaxI16>("v_max_i16"),
    Lanes<[](U16 a, U16 b, U16 c) { return Smaller(Smaller(a, b), c); }>("v_min3_u16"),
    Lanes<[](U16 a, U16 b, U16 c) { return Larger(Larger(a, b), c); }>("v_max3_u16"),
    Lanes<[](U16 a, U16 b, U16 c) { return Middle(a, b, c); }>("v_med3_u16"),
    Lanes<[](I16 a, I16 b, I16 c) { return Smaller(Smaller(a, b), c); }>("v_min3_i16"),
    Lanes<[](I16 a, I16 b, I16 c) { return Larger(Larger(a, b), c); }>("v_max3_i16"),
    Lanes<[](I16 a, I16 b, I16 c) { return Middle(a, b, c); }>("v_med3_i16"),
    Lanes<[](U16 a, U16 b) { return static_cast<U16>(a & b); }>("v_and_b16"),
    Lanes<[](U16 a, U16 b) { return static_cast<U16>(a | b); }>("v_or_b16"),
    Lanes<[](U16 a, U16 b) { return static_cast<U16>(a ^ b); }>("v_xor_b16"),
    Lanes<[](U16 a, U16 b, uint32_t c) { return uint32_t{a} * b + c; }>("v_mad_u32_u16"),
    Lanes<[](I16 a, I16 b, int32_t c) {
      return static_cast<int32_t>(static_cast<uint32_t>(a * b) + static_cast<uint32_t>(c));
    }>("v_mad_i32_i16"),
    // Both halves at once.
    Packed<kFmaHalf>("v_pk_fma_f16"),
    Packed<kFmaHalf, kNoClamp, kAccumulates>("v_pk_fmac_f16"),
    Packed<kAddHalf>("v_pk_add_f16"),
    Packed<kMulHalf>("v_pk_mul_f16"),
    Packed<kMinHalf>("v_pk_min_f16"),
    Packed<kMaxHalf>("v_pk_max_f16"),
    Packed<[](Half a, Half b) { return Minimum(a, b); }>("v_pk_minimum_f16"),
    Packed<[](Half a, Half b) { return Maximum(a, b); }>("v_pk_maximum_f16"),
    Packed<kMinimum3>("v_pk_minimum3_f16"),
    Packed<kMaximum3>("v_pk_maximum3_f16"),
    Packed<kMadI16, kMadI16Sat>("v_pk_mad_i16"),
    Packed<kMadU16, kMadU16Sat>("v_pk_mad_u16"),
    Packed<kMulU16>("v_pk_mul_lo_u16"),
    Packed<kAddI16, kAddI16Sat>("v_pk_add_i16"),
    Packed<kSubI16, kSubI16Sat>("v_pk_sub_i16"),
    Packed<kAddU16, kAddU16Sat>("v_pk_add_u16"),
    Packed<kSubU16, kSubU16Sat>("v_pk_sub_u16"),
    Packed<kShiftLeft>("v_pk_lshlrev_b16"),
    Packed<kShiftRight>("v_pk_lshrrev_b16"),
    Packed<kShiftRightSigned>("v_pk_ashrrev_i16"),
    Packed<kMinI16>("v_pk_min_i16"),
    Packed<kMaxI16>("v_pk_max_i16"),
    Packed<kMinU16>("v_pk_min_u16"),
    Packed<kMaxU16>("v_pk_max_u16"),
};

}  // namespace

std::span<const Opcode> ValuF16Rows() { return kValuF16Rows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
