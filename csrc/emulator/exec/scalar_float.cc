// gfx12's scalar floating point: SOP1, SOP2 and SOPC on float32 and half precision.
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "emulator/exec/scalar.h"

namespace jax_fa::emulator {
namespace {

using u32 = uint32_t;

constexpr int kFeRounding[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};  // by MODE

// The host's rounding direction while one operation runs; operands go through volatile so that the
// compiler does not move the operation out.
class Rounding {
 public:
  explicit Rounding(uint8_t mode) : mode_(mode) {
    if (mode_ != 0) std::fesetround(kFeRounding[mode_]);
  }
  ~Rounding() {
    if (mode_ != 0) std::fesetround(FE_TONEAREST);
  }
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;

 private:
  uint8_t mode_;
};

float Flush(float value, uint8_t denormals) {
  return denormals == 0 && std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value)
                                                                  : value;
}
u32 Bits(float value) { return std::isnan(value) ? 0x7fc00000u : std::bit_cast<u32>(value); }

double HalfToDouble(u32 bits) {
  const int exponent = static_cast<int>((bits >> 10) & 31);
  const double fraction = bits & 0x3ff;
  double magnitude;
  if (exponent == 31) {
    magnitude = fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Rounds as the host's current direction says.
u32 DoubleToHalf(double value) {
  const u32 sign = std::signbit(value) ? 0x8000u : 0u;
  if (std::isnan(value)) return 0x7e00;
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return sign | 0x7c00;
  // Units of the last place of the result; nearbyint of the signed value honours the direction.
  const int exponent = magnitude == 0 ? -14 : std::max(std::ilogb(magnitude), -14);
  const double units = std::fabs(std::nearbyint(std::ldexp(value, 10 - exponent)));
  const double rounded = std::ldexp(units, exponent - 10);
  if (rounded > 65504) {
    const int direction = std::fegetround();
    const bool to_largest = direction == FE_TOWARDZERO || (direction == FE_UPWARD && sign != 0) ||
                            (direction == FE_DOWNWARD && sign == 0);
    return sign | (to_largest ? 0x7bffu : 0x7c00u);
  }
  // Consecutive encodings are consecutive magnitudes, so the exponent needs no case of its own.
  return sign | (static_cast<u32>(exponent + 14) * 1024 + static_cast<u32>(units));
}
u32 FlushHalf(u32 bits, uint8_t denormals) {
  return denormals == 0 && (bits & 0x7c00) == 0 ? bits & 0x8000 : bits;
}

struct F32 {
  using Type = float;
  static float Read(const Wave& wave, const Operand& operand) {
    return Flush(std::bit_cast<float>(ReadScalar32(wave, operand)), wave.denorm_f32);
  }
  static u32 Result(const Wave& wave, float value) { return Bits(Flush(value, wave.denorm_f32)); }
  static uint8_t RoundMode(const Wave& wave) { return wave.round_f32; }
};
// Half precision computes in double, where sums and products of halves are exact or innocuously
// rounded before the one rounding that counts.
struct F16 {
  using Type = double;
  static double Read(const Wave& wave, const Operand& operand) {
    return HalfToDouble(FlushHalf(ReadScalar32(wave, operand) & 0xffff, wave.denorm_f64));
  }
  static u32 Result(const Wave& wave, double value) {
    return FlushHalf(DoubleToHalf(value), wave.denorm_f64);
  }
  static uint8_t RoundMode(const Wave& wave) { return wave.round_f64; }
};

template <class Format, auto kFn>
void Unary(Wave& wave, const Instruction& instruction) {
  const Rounding rounding(Format::RoundMode(wave));
  const volatile auto a = Format::Read(wave, instruction.src[0]);
  const volatile typename Format::Type result = kFn(a);
  WriteScalar32(wave, instruction.dst, Format::Result(wave, result));
}
template <class Format, auto kFn>
void Binary(Wave& wave, const Instruction& instruction) {
  const Rounding rounding(Format::RoundMode(wave));
  const volatile auto a = Format::Read(wave, instruction.src[0]);
  const volatile auto b = Format::Read(wave, instruction.src[1]);
  const volatile typename Format::Type result = kFn(a, b);
  WriteScalar32(wave, instruction.dst, Format::Result(wave, result));
}
template <class Format, auto kFn>
void Compare(Wave& wave, const Instruction& instruction) {
  wave.scc = kFn(Format::Read(wave, instruction.src[0]), Format::Read(wave, instruction.src[1]));
}

// fma of the operands at these places; the destination is place 3.
template <class Format, int kA, int kB, int kC>
void Fma(Wave& wave, const Instruction& instruction) {
  const auto read = [&](int place) {
    return Format::Read(wave,
                        place == 3 ? instruction.dst : instruction.src[static_cast<size_t>(place)]);
  };
  const Rounding rounding(Format::RoundMode(wave));
  const volatile auto a = read(kA), b = read(kB), c = read(kC);
  const volatile typename Format::Type result =
      std::fma(static_cast<typename Format::Type>(a), static_cast<typename Format::Type>(b),
               static_cast<typename Format::Type>(c));
  WriteScalar32(wave, instruction.dst, Format::Result(wave, result));
}

template <class T>
constexpr auto kMinNumber = [](T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
};
template <class T>
constexpr auto kMaxNumber = [](T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
};
template <class T>
constexpr auto kMinimum = [](T a, T b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : kMinNumber<T>(a, b);
};
template <class T>
constexpr auto kMaximum = [](T a, T b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : kMaxNumber<T>(a, b);
};
// To nearest even, whatever MODE says.
template <class T>
constexpr auto kRoundEven = [](T a) {
  const T floor = std::floor(a);
  const T rest = a - floor;
  if (rest < T(0.5) || std::isinf(a)) return std::copysign(floor, a);
  if (rest > T(0.5)) return std::copysign(floor + 1, a);
  return std::copysign(std::fmod(floor, T(2)) == 0 ? floor : floor + 1, a);
};

template <class Integer>
void FloatToInteger(Wave& wave, const Instruction& instruction) {
  const double value = std::trunc(F32::Read(wave, instruction.src[0]));
  const double low = std::numeric_limits<Integer>::min(),
               high = std::numeric_limits<Integer>::max();
  const Integer result = std::isnan(value) ? Integer{0}
                         : value <= low    ? std::numeric_limits<Integer>::min()
                         : value >= high   ? std::numeric_limits<Integer>::max()
                                           : static_cast<Integer>(value);
  WriteScalar32(wave, instruction.dst, static_cast<u32>(result));
}
template <class Integer>
void IntegerToFloat(Wave& wave, const Instruction& instruction) {
  const Rounding rounding(wave.round_f32);
  const volatile Integer value = static_cast<Integer>(ReadScalar32(wave, instruction.src[0]));
  const volatile float result = static_cast<float>(value);
  WriteScalar32(wave, instruction.dst, Bits(result));
}
void FloatToHalf(Wave& wave, const Instruction& instruction) {
  const Rounding rounding(wave.round_f64);
  WriteScalar32(wave, instruction.dst, F16::Result(wave, F32::Read(wave, instruction.src[0])));
}
template <int kShift>
void HalfToFloat(Wave& wave, const Instruction& instruction) {
  const u32 bits = (ReadScalar32(wave, instruction.src[0]) >> kShift) & 0xffff;
  const double value = HalfToDouble(FlushHalf(bits, wave.denorm_f64));
  WriteScalar32(wave, instruction.dst, F32::Result(wave, static_cast<float>(value)));
}
void PackHalvesTowardZero(Wave& wave, const Instruction& instruction) {
  const Rounding rounding(3);
  const u32 low = F16::Result(wave, F32::Read(wave, instruction.src[0]));
  const u32 high = F16::Result(wave, F32::Read(wave, instruction.src[1]));
  WriteScalar32(wave, instruction.dst, low | (high << 16));
}

#define FLOAT_UNARY(name, exec, flags) {kSop1, name, kAlu, exec, 1, k1, flags}
#define BINARY(name, exec, flags) {kSop2, name, kAlu, exec, 1, k11, flags}
#define FLOAT_COMPARES(type, Format, flags)                               \
  FLOAT_COMPARE("s_cmp_lt_" type, Format, a < b, flags),                  \
      FLOAT_COMPARE("s_cmp_eq_" type, Format, a == b, flags),             \
      FLOAT_COMPARE("s_cmp_le_" type, Format, a <= b, flags),             \
      FLOAT_COMPARE("s_cmp_gt_" type, Format, a > b, flags),              \
      FLOAT_COMPARE("s_cmp_lg_" type, Format, a<b || a> b, flags),        \
      FLOAT_COMPARE("s_cmp_ge_" type, Format, a >= b, flags),             \
      FLOAT_COMPARE("s_cmp_o_" type, Format, a == a && b == b, flags),    \
      FLOAT_COMPARE("s_cmp_u_" type, Format, a != a || b != b, flags),    \
      FLOAT_COMPARE("s_cmp_nge_" type, Format, !(a >= b), flags),         \
      FLOAT_COMPARE("s_cmp_nlg_" type, Format, !(a < b || a > b), flags), \
      FLOAT_COMPARE("s_cmp_ngt_" type, Format, !(a > b), flags),          \
      FLOAT_COMPARE("s_cmp_nle_" type, Format, !(a <= b), flags),         \
      FLOAT_COMPARE("s_cmp_neq_" type, Format, a != b, flags),            \
      FLOAT_COMPARE("s_cmp_nlt_" type, Format, !(a < b), flags)
#define FLOAT_COMPARE(name, Format, expression, flags)                           \
  {kSopc,                                                                        \
   name,                                                                         \
   kAlu,                                                                         \
   Compare<Format, [](Format::Type a, Format::Type b) { return (expression); }>, \
   0,                                                                            \
   k11,                                                                          \
   kWritesScc | flags}

constexpr ScalarOp kScalarFloatOps[] = {
    BINARY("s_add_f32", (Binary<F32, [](float a, float b) { return a + b; }>), 0),
    BINARY("s_sub_f32", (Binary<F32, [](float a, float b) { return a - b; }>), 0),
    BINARY("s_min_num_f32", (Binary<F32, kMinNumber<float>>), 0),
    BINARY("s_max_num_f32", (Binary<F32, kMaxNumber<float>>), 0),
    BINARY("s_mul_f32", (Binary<F32, [](float a, float b) { return a * b; }>), 0),
    {kSop2, "s_fmaak_f32", kAlu, Fma<F32, 0, 1, 2>, 1, k111, kTakesLiteral},
    {kSop2, "s_fmamk_f32", kAlu, Fma<F32, 0, 2, 1>, 1, k111, kTakesLiteral},
    BINARY("s_fmac_f32", (Fma<F32, 0, 1, 3>), kReadsDst),
    BINARY("s_cvt_pk_rtz_f16_f32", PackHalvesTowardZero, 0),
    BINARY("s_add_f16", (Binary<F16, [](double a, double b) { return a + b; }>), kF16Sources),
    BINARY("s_sub_f16", (Binary<F16, [](double a, double b) { return a - b; }>), kF16Sources),
    BINARY("s_min_num_f16", (Binary<F16, kMinNumber<double>>), kF16Sources),
    BINARY("s_max_num_f16", (Binary<F16, kMaxNumber<double>>), kF16Sources),
    BINARY("s_mul_f16", (Binary<F16, [](double a, double b) { return a * b; }>), kF16Sources),
    BINARY("s_fmac_f16", (Fma<F16, 0, 1, 3>), kReadsDst | kF16Sources),
    BINARY("s_minimum_f32", (Binary<F32, kMinimum<float>>), 0),
    BINARY("s_maximum_f32", (Binary<F32, kMaximum<float>>), 0),
    BINARY("s_minimum_f16", (Binary<F16, kMinimum<double>>), kF16Sources),
    BINARY("s_maximum_f16", (Binary<F16, kMaximum<double>>), kF16Sources),

    FLOAT_UNARY("s_ceil_f32", (Unary<F32, [](float a) { return std::ceil(a); }>), 0),
    FLOAT_UNARY("s_floor_f32", (Unary<F32, [](float a) { return std::floor(a); }>), 0),
    FLOAT_UNARY("s_trunc_f32", (Unary<F32, [](float a) { return std::trunc(a); }>), 0),
    FLOAT_UNARY("s_rndne_f32", (Unary<F32, kRoundEven<float>>), 0),
    FLOAT_UNARY("s_cvt_f32_i32", IntegerToFloat<int32_t>, 0),
    FLOAT_UNARY("s_cvt_f32_u32", IntegerToFloat<uint32_t>, 0),
    FLOAT_UNARY("s_cvt_i32_f32", FloatToInteger<int32_t>, 0),
    FLOAT_UNARY("s_cvt_u32_f32", FloatToInteger<uint32_t>, 0),
    FLOAT_UNARY("s_cvt_f16_f32", FloatToHalf, 0),
    FLOAT_UNARY("s_cvt_f32_f16", HalfToFloat<0>, kF16Sources),
    FLOAT_UNARY("s_cvt_hi_f32_f16", HalfToFloat<16>, kF16Sources),
    FLOAT_UNARY("s_ceil_f16", (Unary<F16, [](double a) { return std::ceil(a); }>), kF16Sources),
    FLOAT_UNARY("s_floor_f16", (Unary<F16, [](double a) { return std::floor(a); }>), kF16Sources),
    FLOAT_UNARY("s_trunc_f16", (Unary<F16, [](double a) { return std::trunc(a); }>), kF16Sources),
    FLOAT_UNARY("s_rndne_f16", (Unary<F16, kRoundEven<double>>), kF16Sources),

    FLOAT_COMPARES("f32", F32, 0),
    FLOAT_COMPARES("f16", F16, kF16Sources),
};

}  // namespace

std::span<const ScalarOp> ScalarFloatOps() { return kScalarFloatOps; }

}  // namespace jax_fa::emulator
