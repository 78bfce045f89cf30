// Lane functions that only gfx12 has.
#include "emulator/simd/level.h"
#include "emulator/simd/math.h"
#include "emulator/simd/valu_rows.h"
#include "emulator/state/operand.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

using U16 = uint16_t;
using I16 = int16_t;

inline float Smaller(Half a, Half b) { return Min(ToFloat(a), ToFloat(b)); }
inline float Larger(Half a, Half b) { return Max(ToFloat(a), ToFloat(b)); }

// A NaN wins, -0 is less than +0.
inline double Minimum(double a, double b) {
  const double smaller = a < b ? a : b < a ? b : AsDouble(AsBits(a) | AsBits(b));
  return a != a ? a : b != b ? b : smaller;
}
inline double Maximum(double a, double b) {
  const double larger = a > b ? a : b > a ? b : AsDouble(AsBits(a) & AsBits(b));
  return a != a ? a : b != b ? b : larger;
}

inline uint32_t SaturateI16(float v) {
  const float bounded = v > 32767.0f ? 32767.0f : v < -32768.0f ? -32768.0f : v == v ? v : 0.0f;
  return static_cast<uint32_t>(static_cast<int32_t>(bounded));
}
inline uint32_t SaturateU16(float v) {
  const float bounded = v > 65535.0f ? 65535.0f : v > 0.0f ? v : 0.0f;
  return static_cast<uint32_t>(static_cast<int32_t>(bounded));
}

constexpr int ExponentBits(Half v) { return (v.bits >> 10) & 31; }
inline bool IsFinite(Half v) { return ExponentBits(v) != 31; }
// Exponent and mantissa of the value as a normal single precision number: mantissa * 2^exponent,
// mantissa in [1/2, 1).
inline int32_t FrexpExponent(Half v) {
  const int32_t exponent = static_cast<int32_t>((AsBits(ToFloat(v)) >> 23) & 0xff) - 126;
  return (v.bits & 0x7fff) == 0 || !IsFinite(v) ? 0 : exponent;
}
inline Half FrexpMantissa(Half v) {
  const float mantissa = AsFloat((AsBits(ToFloat(v)) & 0x807fffffu) | (126u << 23));
  return (v.bits & 0x7fff) == 0 || !IsFinite(v) ? v : ToHalf(mantissa);
}

// A transcendental of one scalar register.
template <auto Fn>
void ExecScalarTrans(Wave& wave, const Instruction& instruction) {
  const Modifiers& mod = instruction.mod;
  if (mod.omod != 0 || mod.clamp || mod.op_sel != 0) {
    Fail(wave, instruction, "output modifiers on a scalar transcendental");
  }
  float value = AsFloat(static_cast<uint32_t>(ReadScalarSource(wave, instruction.src[0])));
  if ((mod.abs & 1) != 0) value = Abs(value);
  if ((mod.neg & 1) != 0) value = -value;
  wave.WriteSgpr(instruction.dst.index, ToDword(Fn(value)));
}
template <auto Fn>
constexpr Opcode ScalarTrans(const char* mnemonic) {
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kTrans;
  row.exec = &ExecScalarTrans<Fn>;
  row.dst_dwords = 1;
  row.src_dwords = {1, 0, 0};
  row.flags = kIgnoresExec;
  row.traits.timing = TimingClass::kScalarTrans;
  return row;
}

constexpr Opcode kValuGfx1201Rows[] = {
    ScalarTrans<[](float v) { return Exp2(v); }>("v_s_exp_f32"),
    ScalarTrans<[](float v) { return Log2(v); }>("v_s_log_f32"),
    ScalarTrans<[](float v) { return Reciprocal(v); }>("v_s_rcp_f32"),
    ScalarTrans<[](float v) { return ReciprocalRoot(v); }>("v_s_rsq_f32"),
    ScalarTrans<[](float v) { return SquareRoot(v); }>("v_s_sqrt_f32"),
    Lanes<[](U16 v) { return v; }>("v_mov_b16"),
    Lanes<[](U16 v) { return static_cast<U16>(~v); }>("v_not_b16"),
    With(Lanes<[](Half a, Half b, LaneBit second) { return second ? b : a; }, kNoClamp,
               kIgnoresMode>("v_cndmask_b16"),
         HazardClass::kReadMask),
    Lanes<[](I16 v) { return int32_t{v}; }>("v_cvt_i32_i16"),
    Lanes<[](U16 v) { return uint32_t{v}; }>("v_cvt_u32_u16"),
    Lanes<[](float a, float b) { return Pair(SaturateI16(a), SaturateI16(b)); }, kNoClamp,
          kIgnoresMode>("v_cvt_pk_i16_f32"),
    Lanes<[](float a, float b) { return Pair(SaturateU16(a), SaturateU16(b)); }, kNoClamp,
          kIgnoresMode>("v_cvt_pk_u16_f32"),
    // Zero times anything is zero.
    Lanes<[](float a, float b, float c) {
      const bool zero = a == 0 || b == 0;
      return Fma(zero ? 0.0f : a, zero ? 0.0f : b, c);
    }>("v_fma_dx9_zero_f32"),
    Lanes<[](Half a, Half b, Half c) { return ToHalf(Max(Smaller(a, b), ToFloat(c))); }>(
        "v_minmax_f16"),
    Lanes<[](Half a, Half b, Half c) { return ToHalf(Min(Larger(a, b), ToFloat(c))); }>(
        "v_maxmin_f16"),
    Lanes<[](Half a, Half b, Half c) {
      return ToHalf(Maximum(Minimum(ToFloat(a), ToFloat(b)), ToFloat(c)));
    }>("v_minimummaximum_f16"),
    Lanes<[](Half a, Half b, Half c) {
      return ToHalf(Minimum(Maximum(ToFloat(a), ToFloat(b)), ToFloat(c)));
    }>("v_maximumminimum_f16"),
    Lanes<[](double a, double b) { return Minimum(a, b); }>("v_minimum_f64"),
    Lanes<[](double a, double b) { return Maximum(a, b); }>("v_maximum_f64"),
    Lanes<[](Half v) { return FrexpMantissa(v); }>("v_frexp_mant_f16"),
    Lanes<[](Half v) { return static_cast<I16>(FrexpExponent(v)); }>("v_frexp_exp_i16_f16"),
};

}  // namespace

std::span<const Opcode> ValuGfx1201Rows() { return kValuGfx1201Rows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
