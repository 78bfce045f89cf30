// Lane functions of 64-bit values (double precision, integers), of pairs of single precision
// numbers, and the single precision operations that need VCC or mixed operands.
#include "emulator/simd/level.h"
#include "emulator/simd/math.h"
#include "emulator/simd/valu_rows.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

inline int ExponentOf(double v) { return static_cast<int>((AsBits(v) >> 52) & 0x7ff); }
inline bool IsDenorm(double v) { return v != 0 && std::fabs(v) < 0x1p-1022; }

// v_div_scale_f64 does what v_div_scale_f32 does, with the bounds of double precision.
inline WithBit<double> DivScale(double scaled, double denominator, double numerator) {
  const bool is_denominator = AsBits(scaled) == AsBits(denominator);
  const bool is_numerator = AsBits(scaled) == AsBits(numerator);
  const double up = scaled * 0x1p128;
  if (numerator == 0 || denominator == 0) return {AsDouble(uint64_t{0x7ff80000} << 32), false};
  if (ExponentOf(numerator) - ExponentOf(denominator) >= 768) {
    return {is_denominator ? up : scaled, true};
  }
  if (IsDenorm(denominator)) return {up, false};
  const bool reciprocal_denorm = IsDenorm(1.0 / denominator);
  const bool quotient_denorm = IsDenorm(numerator / denominator);
  if (reciprocal_denorm && quotient_denorm) {
    return {is_denominator ? scaled * 0x1p-128 : scaled, true};
  }
  if (reciprocal_denorm) return {scaled * 0x1p-128, false};
  if (quotient_denorm) return {is_numerator ? up : scaled, true};
  if (ExponentOf(numerator) <= 53) return {up, false};
  return {scaled, false};
}
inline double DivFixup(double quotient, double denominator, double numerator) {
  const uint64_t sign = (AsBits(denominator) ^ AsBits(numerator)) & (uint64_t{1} << 63);
  const bool denominator_inf = std::fabs(denominator) == HUGE_VAL;
  const bool numerator_inf = std::fabs(numerator) == HUGE_VAL;
  if (numerator != numerator || denominator != denominator ||
      (denominator == 0 && numerator == 0) || (denominator_inf && numerator_inf)) {
    return AsDouble(uint64_t{0x7ff80000} << 32);
  }
  const double infinity = AsDouble((uint64_t{0x7ff} << 52) | sign);
  if (denominator == 0 || numerator_inf) return infinity;
  if (denominator_inf || numerator == 0) return AsDouble(sign);
  if (quotient != quotient) return infinity;
  return AsDouble((AsBits(quotient) & ~(uint64_t{1} << 63)) | sign);
}

// The last step of a division: undoes what v_div_scale did, which the sign of the exponent of the
// running quotient tells. One rounding also where the result is a denormal.
inline float DivFmasF32(float a, float b, float c, bool scaled) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = c;
  const double sum = product + addend;
  const double back = sum - product;
  const double error = (product - (sum - back)) + (addend - back);
  const uint64_t bits = AsBits(sum);
  const uint64_t toward = ((AsBits(error) ^ bits) >> 63) != 0 ? ~uint64_t{0} : uint64_t{1};
  const bool inexact = error != 0 && (bits & 1) == 0 && sum - sum == 0;
  const double exact = AsDouble(inexact ? bits + toward : bits);
  const double scale = ((AsBits(c) >> 23) & 0xff) > 127 ? 0x1p64 : 0x1p-64;
  return static_cast<float>(scaled ? exact * scale : exact);
}
inline double DivFmasF64(double a, double b, double c, bool scaled) {
  const double sum = Fma(a, b, c);
  return scaled ? sum * (ExponentOf(c) > 1023 ? 0x1p128 : 0x1p-128) : sum;
}
template <class T, T (*kFunction)(T, T, T, bool)>
void DivFmasRows(uint32_t* const* out, const uint32_t* const* in, int lanes) {
  for (int l = 0; l < lanes; ++l) {
    StoreLane(out[0] + l, out[1] + l,
              kFunction(FromDwords<T>(in[0][l], in[1] + l), FromDwords<T>(in[2][l], in[3] + l),
                        FromDwords<T>(in[4][l], in[5] + l), in[6][l] != 0));
  }
}
template <class T, T (*kFunction)(T, T, T, bool)>
constexpr ValuOp kDivFmas = {.rows = &DivFmasRows<T, kFunction>,
                             .clamped = nullptr,
                             .result = LaneOf<T>::kType,
                             .sources = {LaneOf<T>::kType, LaneOf<T>::kType, LaneOf<T>::kType},
                             .lane_bits = false,
                             .accumulates = false,
                             .ignores_mode = false,
                             .reads_vcc = true};

inline double FrexpMantissa(double v) {
  int exponent = 0;
  return std::fabs(v) < HUGE_VAL ? std::frexp(v, &exponent) : v;
}
inline int32_t FrexpExponent(double v) {
  int exponent = 0;
  if (std::fabs(v) < HUGE_VAL) static_cast<void>(std::frexp(v, &exponent));
  return exponent;
}
inline double FractF64(double v) {
  const double fraction = v - std::floor(v);
  return std::fabs(v) == HUGE_VAL ? 0.0 : fraction < 1.0 ? fraction : 0x1.fffffffffffffp-1;
}

constexpr auto kFma = [](float a, float b, float c) { return Fma(a, b, c); };
template <MixResult kResult>
void ExecFmaMix(Wave& wave, const Instruction& instruction) {
  ExecMix(wave, instruction, kOp<kFma, kNoClamp, kPlain>, kResult);
}
// The half that a 16-bit result leaves alone is kept, not read: it may never have been written.
template <MixResult kResult>
constexpr Opcode MixRow(const char* mnemonic) {
  return OpRow(kOp<kFma, kNoClamp, kPlain>, &ExecFmaMix<kResult>, mnemonic, OpClass::kValu,
               kPackedMath);
}

// v_pk_mov_b32: op_sel picks the low result from source 0, op_sel's second bit the high one from
// source 1.
void ExecPackedMove(Wave& wave, const Instruction& instruction) {
  alignas(64) uint32_t value[2][kLaneStride];
  for (int half = 0; half < 2; ++half) {
    const int dword = (instruction.mod.op_sel >> half) & 1;
    const Operand& operand = instruction.src[static_cast<size_t>(half)];
    const uint32_t* row = SourceRow(wave, operand, dword, value[half]);
    if (row != value[half]) std::memcpy(value[half], row, sizeof value[half]);
  }
  uint32_t* const low = wave.Row(instruction.dst.index);
  BlendRow(low, value[0], wave.exec);
  BlendRow(low + kLaneStride, value[1], wave.exec);
}
constexpr Opcode PackedMoveRow() {
  Opcode row{};
  row.mnemonic = "v_pk_mov_b32";
  row.op_class = OpClass::kValu;
  row.exec = &ExecPackedMove;
  row.dst_dwords = 2;
  row.src_dwords = {2, 2, 0};
  row.flags = kPackedMath | kIntSources;
  return row;
}

constexpr OpClass kPackedClass = OpClass::kValuPacked;

constexpr Opcode kValuWideRows[] = {
    Lanes<[](double a, double b) { return a + b; }>("v_add_f64"),
    Lanes<[](double a, double b) { return a * b; }>("v_mul_f64"),
    Lanes<[](double a, double b) { return Min(a, b); }>("v_min_f64"),
    Lanes<[](double a, double b) { return Max(a, b); }>("v_max_f64"),
    Lanes<[](double a, double b, double c) { return Fma(a, b, c); }>("v_fma_f64"),
    Lanes<[](double a, double b, double c) { return Fma(a, b, c); }, kNoClamp, kAccumulates>(
        "v_fmac_f64"),
    Lanes<[](double v, int32_t e) { return Ldexp(v, e); }>("v_ldexp_f64"),
    Lanes<[](double v) { return std::trunc(v); }, kNoClamp, kIgnoresMode>("v_trunc_f64"),
    Lanes<[](double v) { return std::ceil(v); }, kNoClamp, kIgnoresMode>("v_ceil_f64"),
    Lanes<[](double v) { return std::floor(v); }, kNoClamp, kIgnoresMode>("v_floor_f64"),
    Lanes<[](double v) { return std::nearbyint(v); }, kNoClamp, kIgnoresMode>("v_rndne_f64"),
    Lanes<[](double v) { return FractF64(v); }>("v_fract_f64"),
    Lanes<[](double v) { return FrexpMantissa(v); }>("v_frexp_mant_f64"),
    Lanes<[](double v) { return FrexpExponent(v); }>("v_frexp_exp_i32_f64"),
    Lanes<[](double v) { return 1.0 / v; }>("v_rcp_f64", OpClass::kTrans),
    Lanes<[](double v) { return 1.0 / __builtin_sqrt(v); }>("v_rsq_f64", OpClass::kTrans),
    Lanes<[](double v) { return __builtin_sqrt(v); }>("v_sqrt_f64", OpClass::kTrans),
    Lanes<[](double a, double b, double c) { return DivScale(a, b, c); }>("v_div_scale_f64"),
    Lanes<[](double a, double b, double c) { return DivFixup(a, b, c); }>("v_div_fixup_f64"),
    With(OpRow(kDivFmas<float, DivFmasF32>, &ExecOp<kDivFmas<float, DivFmasF32>>, "v_div_fmas_f32",
               OpClass::kValu, 0),
         HazardClass::kDivFmas),
    With(OpRow(kDivFmas<double, DivFmasF64>, &ExecOp<kDivFmas<double, DivFmasF64>>,
               "v_div_fmas_f64", OpClass::kValu, 0),
         HazardClass::kDivFmas),
    With(Lanes<[](uint64_t v) { return v; }>("v_mov_b64"), AccessClass::kHighToHigh),
    With(Lanes<[](uint32_t a, uint64_t b) { return b << (a & 63); }>("v_lshlrev_b64"),
         TimingClass::kHalfRate),
    With(Lanes<[](uint32_t a, uint64_t b) { return (b >> (a & 63)); }>("v_lshrrev_b64"),
         TimingClass::kHalfRate),
    With(Lanes<[](uint32_t a, int64_t b) { return (b >> (a & 63)); }>("v_ashrrev_i64"),
         TimingClass::kHalfRate),
    With(Lanes<[](uint64_t a, uint32_t b, uint64_t c) { return (a << (b & 63)) + c; }>(
             "v_lshl_add_u64"),
         AccessClass::kHighToHigh),
    With(With(Lanes<[](uint32_t a, uint32_t b, uint64_t c) {
                const uint64_t sum = uint64_t{a} * b + c;
                return WithBit<uint64_t>{sum, sum < c};
              }>("v_mad_u64_u32"),
              TimingClass::kQuarterRate),
         AccessClass::kSumHigh),
    With(Lanes<[](int32_t a, int32_t b, int64_t c) {
           int64_t sum = 0;
           const bool carry = __builtin_add_overflow(int64_t{a} * b, c, &sum);
           return WithBit<int64_t>{sum, carry};
         }>("v_mad_i64_i32"),
         AccessClass::kSumHigh),
    With(Packed<kFma>("v_pk_fma_f32", kPackedClass), AccessClass::kPairs),
    With(Packed<[](float a, float b) { return a * b; }>("v_pk_mul_f32", kPackedClass),
         AccessClass::kPairs),
    With(Packed<[](float a, float b) { return a + b; }>("v_pk_add_f32", kPackedClass),
         AccessClass::kPairs),
    PackedMoveRow(),
    MixRow<MixResult::kFloat>("v_fma_mix_f32"),
    MixRow<MixResult::kLowHalf>("v_fma_mixlo_f16"),
    MixRow<MixResult::kHighHalf>("v_fma_mixhi_f16"),
};

}  // namespace

std::span<const Opcode> ValuWideRows() { return kValuWideRows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
