// The matrix instructions of gfx12, wave32: D = A * B + C with a 16 x 16 result.
//
// Lane l holds row l % 16 of A and column l % 16 of B. Its elements come in groups of four: group g
// is k = 8 g + 4 (l / 16) .. + 3. Of C and D it holds column l % 16, rows 8 (l / 16) + r in
// register r (in half r of packed 16-bit results).
//
// Numerics: floats as in simd/matrix.h; 16-bit results are rounded once, at the end. Integers are
// exact. EXEC is ignored.
#include "emulator/simd/level.h"
#include "emulator/simd/matrix.h"
#include "emulator/simd/narrow.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

constexpr int kSide = 16;
constexpr int kRegisters = kSide / 2;  // of C and D, one element each

template <int kWidth>
struct Integer {
  static constexpr int kBits = kWidth;
  static int32_t Value(uint32_t bits, bool is_signed) {
    const int32_t raised = static_cast<int32_t>(bits << (32 - kWidth));
    return is_signed ? raised >> (32 - kWidth) : static_cast<int32_t>(bits);
  }
};

// k of element e in the lower (0) or upper (1) lanes.
constexpr int KOf(int upper, int element) { return 8 * (element / 4) + 4 * upper + element % 4; }

// Where row i of C or D starts.
constexpr size_t RowOffset(int i) {
  return static_cast<size_t>((i % 8) * kLaneStride + kSide * (i / 8));
}

// Narrow elements to values[k][row or column], rows `kStride` apart.
template <class Type, int kDepth, class T, int kStride>
inline void UnpackNarrow(const uint32_t* registers, bool is_signed, T (*values)[kStride]) {
  constexpr int kPerDword = 32 / Type::kBits;
  constexpr uint32_t kMask = (1u << Type::kBits) - 1;
  for (int d = 0; d < kDepth / 2 / kPerDword; ++d) {
    for (int upper = 0; upper < 2; ++upper) {
      const uint32_t* from = registers + d * kLaneStride + kSide * upper;
      for (int part = 0; part < kPerDword; ++part) {
        T* to = values[KOf(upper, d * kPerDword + part)];
        for (int i = 0; i < kSide; ++i) {
          to[i] = Type::Value((from[i] >> (Type::kBits * part)) & kMask, is_signed);
        }
      }
    }
  }
}

// Modifiers of A and B: `neg` flips the even elements, `abs` (neg_hi) the odd ones.
inline void FlipSigns(const Modifiers& mod, int source, float (*values)[kMaxSize]) {
  for (int k = 0; k < kSide; ++k) {
    if ((((k & 1) == 0 ? mod.neg : mod.abs) >> source & 1) == 0) continue;
    for (int i = 0; i < kSide; ++i) values[k][i] = -values[k][i];
  }
}

// Modifiers of C: absolute value, then sign.
inline bool HasSigns(const Modifiers& mod) { return ((mod.neg | mod.abs) & 4) != 0; }
inline uint32_t WithSigns(const Modifiers& mod, uint32_t bits) {
  if ((mod.abs & 4) != 0) bits &= 0x7fffffffu;
  return (mod.neg & 4) != 0 ? bits ^ 0x80000000u : bits;
}

// kFormat says whether the products are exact without a fused multiply-add.
template <Format kFormat, class Unpacked>
inline void MultiplyInto(const Instruction& instruction, const Unpacked& unpack, const uint32_t* c,
                         bool c_is_constant, uint32_t* d) {
  Operands in;
  unpack(&in);
  const Modifiers& mod = instruction.mod;
  if (((mod.neg | mod.abs) & 3) != 0) {
    FlipSigns(mod, 0, in.a);
    FlipSigns(mod, 1, in.b);
  }
  MultiplyAll<kFormat, RowOffset, kSide, kSide, false>(in, kSide, c, c_is_constant, d);
}

template <Format kFormat, class Unpacked>
inline void ExecF32(Wave& wave, const Instruction& instruction, const Unpacked& unpack) {
  alignas(64) uint32_t copy[kRegisters * kLaneStride];
  bool c_is_constant = false;
  const uint32_t* c = Accumulator<kRegisters>(wave, instruction, copy, &c_is_constant);
  uint32_t constant = 0;
  if (HasSigns(instruction.mod)) {
    if (c_is_constant) {
      constant = WithSigns(instruction.mod, *c);
      c = &constant;
    } else {
      for (int i = 0; i < kRegisters * kLaneStride; ++i) {
        copy[i] = WithSigns(instruction.mod, c[i]);
      }
      c = copy;
    }
  }
  MultiplyInto<kFormat>(instruction, unpack, c, c_is_constant, wave.Row(instruction.dst.index));
}

template <Format kFormat>
inline void Unpack16Bit(const Wave& wave, const Instruction& instruction, Operands* in) {
  Unpack<kFormat, kSide, 2, 4>(wave.Row(instruction.src[0].index), in->a, KOf);
  Unpack<kFormat, kSide, 2, 4>(wave.Row(instruction.src[1].index), in->b, KOf);
}

template <Format kFormat>
void ExecWmmaF32(Wave& wave, const Instruction& instruction) {
  ExecF32<kFormat>(wave, instruction,
                   [&](Operands* in) { Unpack16Bit<kFormat>(wave, instruction, in); });
}

template <class A, class B>
void ExecWmmaF32Fp8(Wave& wave, const Instruction& instruction) {
  ExecF32<Format::kF16>(wave, instruction, [&](Operands* in) {
    UnpackNarrow<A, kSide>(wave.Row(instruction.src[0].index), false, in->a);
    UnpackNarrow<B, kSide>(wave.Row(instruction.src[1].index), false, in->b);
  });
}

template <Format kFormat>
inline float Widen(uint32_t bits) {
  return kFormat == Format::kF16 ? ToFloat(Half{static_cast<uint16_t>(bits)})
                                 : FromBfloat(bits & 0xffffu);
}
template <Format kFormat>
inline uint32_t Narrow(uint32_t bits) {
  const float value = AsFloat(bits);
  return kFormat == Format::kF16 ? ToHalf(value).bits : ToBfloat(value);
}

template <Format kFormat>
void ExecWmma16(Wave& wave, const Instruction& instruction) {
  const Operand& c = instruction.src[2];
  const bool is_constant = c.kind != OperandKind::kVgpr;
  alignas(64) uint32_t sum[kRegisters * kLaneStride];
  for (int r = 0; r < kRegisters; ++r) {
    uint32_t* to = sum + r * kLaneStride;
    for (int l = 0; l < 2 * kSide; ++l) {
      // A constant stands in both halves.
      const uint32_t bits =
          is_constant ? c.value
                      : wave.Row(c.index + static_cast<uint32_t>(r / 2))[l] >> (16 *(r % 2));
      to[l] = WithSigns(instruction.mod, AsBits(Widen<kFormat>(bits)));
    }
  }
  MultiplyInto<kFormat>(
      instruction, [&](Operands* in) { Unpack16Bit<kFormat>(wave, instruction, in); }, sum, false,
      sum);
  for (int r = 0; r < kRegisters; r += 2) {
    uint32_t* row = wave.Row(instruction.dst.index + static_cast<uint32_t>(r / 2));
    const uint32_t* low = sum + r * kLaneStride;
    for (int l = 0; l < 2 * kSide; ++l) {
      row[l] = Narrow<kFormat>(low[l]) | Narrow<kFormat>(low[kLaneStride + l]) << 16;
    }
  }
}

// Signedness of A and B is in their neg bits; clamp saturates the sum with C.
template <int kWidth, int kDepth>
void ExecWmmaI32(Wave& wave, const Instruction& instruction) {
  const Modifiers& mod = instruction.mod;
  alignas(64) int32_t a[kDepth][kSide], b[kDepth][kSide];
  using Type = Integer<kWidth>;
  UnpackNarrow<Type, kDepth>(wave.Row(instruction.src[0].index), (mod.neg & 1) != 0, a);
  UnpackNarrow<Type, kDepth>(wave.Row(instruction.src[1].index), (mod.neg & 2) != 0, b);
  alignas(64) uint32_t copy[kRegisters * kLaneStride];
  bool c_is_constant = false;
  const uint32_t* c = Accumulator<kRegisters>(wave, instruction, copy, &c_is_constant);
  uint32_t* d = wave.Row(instruction.dst.index);
  for (int i = 0; i < kSide; ++i) {
    int32_t sum[kSide] = {};
    for (int k = 0; k < kDepth; ++k) {
      for (int j = 0; j < kSide; ++j) sum[j] += a[k][i] * b[k][j];
    }
    for (int j = 0; j < kSide; ++j) {
      const size_t at = RowOffset(i) + static_cast<size_t>(j);
      const int64_t total = int64_t{static_cast<int32_t>(c_is_constant ? *c : c[at])} + sum[j];
      const int64_t saturated = total > INT32_MAX   ? INT32_MAX
                                : total < INT32_MIN ? INT32_MIN
                                                    : total;
      d[at] = static_cast<uint32_t>(mod.clamp ? saturated : total);
    }
  }
}

// A pass works through one register of A: four for elements of 16 bits, two for those of 8.
constexpr Opcode Row(const char* mnemonic, ExecFn exec, uint8_t a, uint8_t b, uint8_t c,
                     uint32_t flags = 0) {
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kMatrix;
  row.exec = exec;
  row.dst_dwords = c;
  row.src_dwords = {a, b, c};
  row.flags = kIgnoresExec | flags;
  row.traits.matrix.passes = a;
  return row;
}

constexpr Opcode kWmmaRows[] = {
    Row("v_wmma_f32_16x16x16_f16", ExecWmmaF32<Format::kF16>, 4, 4, 8),
    Row("v_wmma_f32_16x16x16_bf16", ExecWmmaF32<Format::kBf16>, 4, 4, 8),
    Row("v_wmma_f16_16x16x16_f16", ExecWmma16<Format::kF16>, 4, 4, 4, kF16Sources),
    Row("v_wmma_bf16_16x16x16_bf16", ExecWmma16<Format::kBf16>, 4, 4, 4, kBf16Sources),
    Row("v_wmma_i32_16x16x16_iu8", ExecWmmaI32<8, 16>, 2, 2, 8, kIntSources),
    Row("v_wmma_i32_16x16x16_iu4", ExecWmmaI32<4, 16>, 1, 1, 8, kIntSources),
    Row("v_wmma_i32_16x16x32_iu4", ExecWmmaI32<4, 32>, 2, 2, 8, kIntSources),
    Row("v_wmma_f32_16x16x16_fp8_fp8", ExecWmmaF32Fp8<Fp8, Fp8>, 2, 2, 8),
    Row("v_wmma_f32_16x16x16_fp8_bf8", ExecWmmaF32Fp8<Fp8, Bf8>, 2, 2, 8),
    Row("v_wmma_f32_16x16x16_bf8_fp8", ExecWmmaF32Fp8<Bf8, Fp8>, 2, 2, 8),
    Row("v_wmma_f32_16x16x16_bf8_bf8", ExecWmmaF32Fp8<Bf8, Bf8>, 2, 2, 8),
};

}  // namespace

std::span<const Opcode> WmmaRows() { return kWmmaRows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
