// The matrix instructions of gfx12, wave32: D = A * B + C with a 16 x 16 result.
//
// Lane l holds row l % 16 of A and column l % 16 of B. Its elements come in groups of four: group g
// is k = 8 g + 4 (l / 16) .. + 3. Of C and D it holds column l % 16, rows 8 (l / 16) + r in
// register r (in half r of packed 16-bit results). Sums start from C and add the products in the
// order of k, each rounded to float32 (integers: exact); 16-bit results are rounded once, at the
// end.
#include "emulator/simd_level.h"
#include "emulator/simd_math.h"
#include "emulator/simd_row.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

constexpr int kSide = 16;
using Floats = float __attribute__((vector_size(64)));
using Ints = int32_t __attribute__((vector_size(64)));
template <class V>
using Matrix = V[kSide];  // [row][column]

struct Float16 {
  static constexpr int kBits = 16;
  static float Value(uint32_t bits, bool) { return ToFloat(Half{static_cast<uint16_t>(bits)}); }
};
struct Bfloat16 {
  static constexpr int kBits = 16;
  static float Value(uint32_t bits, bool) { return FromBfloat(bits); }
};
// OCP 8-bit floats: e4m3 has NaN but no infinity, e5m2 is the upper byte of a half.
struct Fp8 {
  static constexpr int kBits = 8;
  static float Value(uint32_t bits, bool) {
    const uint32_t magnitude = bits & 0x7f;
    const float normal = AsFloat((magnitude << 20) + (120u << 23));
    const float denorm = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-9f;
    const float value = magnitude == 0x7f ? AsFloat(0x7fc00000u) : magnitude < 8 ? denorm : normal;
    return AsFloat(AsBits(value) | (bits & 0x80u) << 24);
  }
};
struct Bf8 {
  static constexpr int kBits = 8;
  static float Value(uint32_t bits, bool) {
    return ToFloat(Half{static_cast<uint16_t>(bits << 8)});
  }
};
template <int kWidth>
struct Integer {
  static constexpr int kBits = kWidth;
  static int32_t Value(uint32_t bits, bool is_signed) {
    const int32_t raised = static_cast<int32_t>(bits << (32 - kWidth));
    return is_signed ? raised >> (32 - kWidth) : static_cast<int32_t>(bits);
  }
};

// Element e of a lane in the upper (1) or lower (0) half of the wave, as k.
constexpr int KOf(int element, int upper) { return 8 * (element / 4) + 4 * upper + element % 4; }

// values[k][row or column] of A or B. `flip` and `flip_odd` negate the even and odd elements
// (floats); integers take `is_signed`.
template <class Type, int kK, class T>
inline void Unpack(const Wave& wave, const Operand& operand, bool is_signed, bool flip,
                   bool flip_odd, T (&values)[kK][kSide]) {
  constexpr int kPerDword = 32 / Type::kBits;
  constexpr uint32_t kMask = (1u << Type::kBits) - 1;
  for (int d = 0; d < kK / 2 / kPerDword; ++d) {
    const uint32_t* row = wave.Row(operand.index + static_cast<uint32_t>(d));
    for (int upper = 0; upper < 2; ++upper) {
      const uint32_t* from = row + kSide * upper;
      for (int part = 0; part < kPerDword; ++part) {
        T* to = values[KOf(d * kPerDword + part, upper)];
        const bool negate = (part & 1) != 0 ? flip_odd : flip;
        for (int i = 0; i < kSide; ++i) {
          const T value = Type::Value((from[i] >> (Type::kBits * part)) & kMask, is_signed);
          to[i] = value;
        }
        if (negate) {
          for (int i = 0; i < kSide; ++i) to[i] = -to[i];
        }
      }
    }
  }
}

template <int kK, class T, class V>
inline void Multiply(const T (&a)[kK][kSide], const T (&b)[kK][kSide], Matrix<V>& sum) {
  constexpr int kBlock = 4;  // rows at a time, so that their sums stay in registers
  for (int row = 0; row < kSide; row += kBlock) {
    V s0 = sum[row], s1 = sum[row + 1], s2 = sum[row + 2], s3 = sum[row + 3];
    for (int k = 0; k < kK; ++k) {
      V column;
      std::memcpy(&column, b[k], sizeof column);
      s0 = s0 + column * a[k][row];
      s1 = s1 + column * a[k][row + 1];
      s2 = s2 + column * a[k][row + 2];
      s3 = s3 + column * a[k][row + 3];
    }
    sum[row] = s0, sum[row + 1] = s1, sum[row + 2] = s2, sum[row + 3] = s3;
  }
}

// Registers of C, constants spread out.
inline const uint32_t* AccumulatorRow(const Wave& wave, const Operand& operand, int dword,
                                      uint32_t* scratch) {
  if (operand.kind == OperandKind::kVgpr) {
    return wave.Row(operand.index + static_cast<uint32_t>(dword));
  }
  return SourceRow(wave, operand, 0, scratch);
}

inline void ApplySigns(const Instruction& instruction, Matrix<Floats>& sum) {
  const bool abs = (instruction.mod.abs & 4) != 0, neg = (instruction.mod.neg & 4) != 0;
  if (!abs && !neg) return;
  for (Floats& row : sum) {
    for (int j = 0; j < kSide; ++j) {
      const float value = abs ? Abs(row[j]) : row[j];
      row[j] = neg ? -value : value;
    }
  }
}

template <class A, class B, int kK>
inline void Products(const Wave& wave, const Instruction& instruction, Matrix<Floats>& sum) {
  const Modifiers& mod = instruction.mod;
  alignas(64) float a[kK][kSide], b[kK][kSide];
  Unpack<A>(wave, instruction.src[0], false, (mod.neg & 1) != 0, (mod.abs & 1) != 0, a);
  Unpack<B>(wave, instruction.src[1], false, (mod.neg & 2) != 0, (mod.abs & 2) != 0, b);
  Multiply(a, b, sum);
}

template <class A, class B, int kK>
void WmmaF32(Wave& wave, const Instruction& instruction) {
  Matrix<Floats> sum;
  alignas(64) uint32_t scratch[kLaneStride];
  for (int r = 0; r < 8; ++r) {
    const uint32_t* row = AccumulatorRow(wave, instruction.src[2], r, scratch);
    std::memcpy(&sum[r], row, sizeof sum[r]);
    std::memcpy(&sum[8 + r], row + kSide, sizeof sum[r]);
  }
  ApplySigns(instruction, sum);
  Products<A, B, kK>(wave, instruction, sum);
  for (int i = 0; i < kSide; ++i) {
    uint32_t* row =
        wave.Row(instruction.dst.index + static_cast<uint32_t>(i % 8)) + kSide * (i / 8);
    for (int j = 0; j < kSide; ++j) row[j] = ToDword(sum[i][j]);
  }
}

inline uint32_t To16Bit(float value, Float16) { return ToHalf(value).bits; }
inline uint32_t To16Bit(float value, Bfloat16) { return ToBfloat(value); }

template <class Type>
void Wmma16(Wave& wave, const Instruction& instruction) {
  Matrix<Floats> sum;
  alignas(64) uint32_t scratch[kLaneStride];
  for (int r = 0; r < 8; ++r) {
    const Operand& c = instruction.src[2];
    const uint32_t* row = AccumulatorRow(wave, c, r / 2, scratch);
    // A constant stands in both halves.
    const int shift = c.kind == OperandKind::kVgpr ? 16 * (r % 2) : 0;
    for (int j = 0; j < kSide; ++j) {
      sum[r][j] = Type::Value((row[j] >> shift) & 0xffffu, false);
      sum[8 + r][j] = Type::Value((row[kSide + j] >> shift) & 0xffffu, false);
    }
  }
  ApplySigns(instruction, sum);
  Products<Type, Type, 16>(wave, instruction, sum);
  for (int i = 0; i < kSide; i += 2) {
    uint32_t* row =
        wave.Row(instruction.dst.index + static_cast<uint32_t>(i % 8 / 2)) + kSide * (i / 8);
    for (int j = 0; j < kSide; ++j) {
      row[j] = To16Bit(sum[i][j], Type{}) | To16Bit(sum[i + 1][j], Type{}) << 16;
    }
  }
}

// Signedness of A and B is in their neg bits; clamp saturates the sum with C.
template <int kWidth, int kK>
void WmmaI32(Wave& wave, const Instruction& instruction) {
  const Modifiers& mod = instruction.mod;
  alignas(64) int32_t a[kK][kSide], b[kK][kSide];
  using Type = Integer<kWidth>;
  Unpack<Type>(wave, instruction.src[0], (mod.neg & 1) != 0, false, false, a);
  Unpack<Type>(wave, instruction.src[1], (mod.neg & 2) != 0, false, false, b);
  Matrix<Ints> sum;
  for (Ints& row : sum) row = Ints{};
  Multiply(a, b, sum);
  int64_t c[kSide][kSide];
  alignas(64) uint32_t scratch[kLaneStride];
  for (int i = 0; i < kSide; ++i) {
    const uint32_t* row =
        AccumulatorRow(wave, instruction.src[2], i % 8, scratch) + kSide * (i / 8);
    for (int j = 0; j < kSide; ++j) c[i][j] = static_cast<int32_t>(row[j]);
  }
  for (int i = 0; i < kSide; ++i) {
    uint32_t* row =
        wave.Row(instruction.dst.index + static_cast<uint32_t>(i % 8)) + kSide * (i / 8);
    for (int j = 0; j < kSide; ++j) {
      const int64_t total = c[i][j] + sum[i][j];
      const int64_t saturated = total > INT32_MAX   ? INT32_MAX
                                : total < INT32_MIN ? INT32_MIN
                                                    : total;
      row[j] = static_cast<uint32_t>(mod.clamp ? saturated : total);
    }
  }
}

constexpr Opcode Row(const char* mnemonic, ExecFn exec, uint8_t a, uint8_t b, uint8_t c,
                     uint32_t flags = 0) {
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kMatrix;
  row.exec = exec;
  row.dst_dwords = c;
  row.src_dwords = {a, b, c};
  row.flags = kIgnoresExec | flags;
  return row;
}

constexpr Opcode kRows[] = {
    Row("v_wmma_f32_16x16x16_f16", WmmaF32<Float16, Float16, 16>, 4, 4, 8),
    Row("v_wmma_f32_16x16x16_bf16", WmmaF32<Bfloat16, Bfloat16, 16>, 4, 4, 8),
    Row("v_wmma_f16_16x16x16_f16", Wmma16<Float16>, 4, 4, 4, kF16Sources),
    Row("v_wmma_bf16_16x16x16_bf16", Wmma16<Bfloat16>, 4, 4, 4, kBf16Sources),
    Row("v_wmma_i32_16x16x16_iu8", WmmaI32<8, 16>, 2, 2, 8, kIntSources),
    Row("v_wmma_i32_16x16x16_iu4", WmmaI32<4, 16>, 1, 1, 8, kIntSources),
    Row("v_wmma_i32_16x16x32_iu4", WmmaI32<4, 32>, 2, 2, 8, kIntSources),
    Row("v_wmma_f32_16x16x16_fp8_fp8", WmmaF32<Fp8, Fp8, 16>, 2, 2, 8),
    Row("v_wmma_f32_16x16x16_fp8_bf8", WmmaF32<Fp8, Bf8, 16>, 2, 2, 8),
    Row("v_wmma_f32_16x16x16_bf8_fp8", WmmaF32<Bf8, Fp8, 16>, 2, 2, 8),
    Row("v_wmma_f32_16x16x16_bf8_bf8", WmmaF32<Bf8, Bf8, 16>, 2, 2, 8),
};

}  // namespace

std::span<const Opcode> WmmaRows() { return kRows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
