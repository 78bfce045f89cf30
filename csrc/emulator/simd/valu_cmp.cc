// Compares: one lane bit each, to a scalar mask; the v_cmpx forms write EXEC as well.
#include "emulator/simd/level.h"
#include "emulator/simd/math.h"
#include "emulator/simd/valu_rows.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

inline float Number(float v) { return v; }
inline double Number(double v) { return v; }
inline float Number(Half v) { return ToFloat(v); }

// Bits of v_cmp_class: signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal,
// +normal, +inf.
inline bool ClassTest(bool negative, bool exponent_zero, bool exponent_full, bool fraction_zero,
                      bool quiet, uint32_t classes) {
  const uint32_t number = exponent_full ? 9u : !exponent_zero ? 8u : fraction_zero ? 6u : 7u;
  const uint32_t mirrored = negative ? 11u - number : number;
  const uint32_t bit = exponent_full && !fraction_zero ? (quiet ? 1u : 0u) : mirrored;
  return ((classes >> bit) & 1u) != 0;
}
inline bool ClassOf(float v, uint32_t classes) {
  const uint32_t bits = AsBits(v);
  const uint32_t exponent = bits & 0x7f800000u;
  return ClassTest((bits >> 31) != 0, exponent == 0, exponent == 0x7f800000u,
                   (bits & 0x007fffffu) == 0, (bits & 0x00400000u) != 0, classes);
}
inline bool ClassOf(Half v, uint32_t classes) {
  const uint32_t bits = v.bits;
  const uint32_t exponent = bits & 0x7c00u;
  return ClassTest((bits >> 15) != 0, exponent == 0, exponent == 0x7c00u, (bits & 0x03ffu) == 0,
                   (bits & 0x0200u) != 0, classes);
}
inline bool ClassOf(double v, uint32_t classes) {
  const uint64_t bits = AsBits(v);
  const uint64_t exponent = bits & 0x7ff0000000000000u;
  return ClassTest((bits >> 63) != 0, exponent == 0, exponent == 0x7ff0000000000000u,
                   (bits & 0x000fffffffffffffu) == 0, (bits & 0x0008000000000000u) != 0, classes);
}

// The rows of both forms, of one lane function.
template <auto Fn, uint32_t kOptions = kPlain>
constexpr std::array<Opcode, 2> Both(const char* mnemonic, const char* mnemonic_x) {
  return {Lanes<Fn, kNoClamp, kOptions>(mnemonic),
          Lanes<Fn, kNoClamp, kOptions>(mnemonic_x, OpClass::kValu, kWritesExec)};
}

#define JAX_FA_COMPARE(T, name, type, expression) \
  Both<[](T x, T y) -> bool {                     \
    [[maybe_unused]] const auto a = Number(x);    \
    [[maybe_unused]] const auto b = Number(y);    \
    return (expression);                          \
  }>("v_cmp_" name "_" type, "v_cmpx_" name "_" type)

// `lg`: ordered and different. The n-forms are true for NaN.
#define JAX_FA_FLOAT_COMPARES(T, type)                                                             \
  JAX_FA_COMPARE(T, "f", type, false), JAX_FA_COMPARE(T, "lt", type, a < b),                       \
      JAX_FA_COMPARE(T, "eq", type, a == b), JAX_FA_COMPARE(T, "le", type, a <= b),                \
      JAX_FA_COMPARE(T, "gt", type, (a > b)), JAX_FA_COMPARE(T, "lg", type, a < b || b < a),       \
      JAX_FA_COMPARE(T, "ge", type, (a >= b)), JAX_FA_COMPARE(T, "o", type, a == a && b == b),     \
      JAX_FA_COMPARE(T, "u", type, a != a || b != b), JAX_FA_COMPARE(T, "nge", type, !(a >= b)),   \
      JAX_FA_COMPARE(T, "nlg", type, !(a < b || b < a)), JAX_FA_COMPARE(T, "ngt", type, !(a > b)), \
      JAX_FA_COMPARE(T, "nle", type, !(a <= b)), JAX_FA_COMPARE(T, "neq", type, a != b),           \
      JAX_FA_COMPARE(T, "nlt", type, !(a < b)), JAX_FA_COMPARE(T, "tru", type, true)

template <class T>
inline T Number(T v) {
  return v;
}
#define JAX_FA_INT_COMPARES(T, type)                                                 \
  JAX_FA_COMPARE(T, "f", type, false), JAX_FA_COMPARE(T, "lt", type, a < b),         \
      JAX_FA_COMPARE(T, "eq", type, a == b), JAX_FA_COMPARE(T, "le", type, a <= b),  \
      JAX_FA_COMPARE(T, "gt", type, (a > b)), JAX_FA_COMPARE(T, "ne", type, a != b), \
      JAX_FA_COMPARE(T, "ge", type, (a >= b)), JAX_FA_COMPARE(T, "t", type, true)

#define JAX_FA_CLASS(T, type)                                                            \
  Both<[](T v, uint32_t classes) -> bool { return ClassOf(v, classes); }, kIgnoresMode>( \
      "v_cmp_class_" type, "v_cmpx_class_" type)

constexpr std::array<Opcode, 2> kPairs[] = {
    JAX_FA_FLOAT_COMPARES(float, "f32"),
    JAX_FA_FLOAT_COMPARES(Half, "f16"),
    JAX_FA_FLOAT_COMPARES(double, "f64"),
    JAX_FA_INT_COMPARES(int32_t, "i32"),
    JAX_FA_INT_COMPARES(uint32_t, "u32"),
    JAX_FA_INT_COMPARES(int16_t, "i16"),
    JAX_FA_INT_COMPARES(uint16_t, "u16"),
    JAX_FA_INT_COMPARES(int64_t, "i64"),
    JAX_FA_INT_COMPARES(uint64_t, "u64"),
    JAX_FA_CLASS(float, "f32"),
    JAX_FA_CLASS(Half, "f16"),
    JAX_FA_CLASS(double, "f64"),
};
constexpr auto kValuCompareRows = [] {
  std::array<Opcode, 2 * std::size(kPairs)> rows{};
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = kPairs[i / 2][i % 2];
  return rows;
}();

}  // namespace

std::span<const Opcode> ValuCompareRows() { return kValuCompareRows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
