// The matrix instructions of gfx950 on floats of 4, 6 and 8 bits: v_mfma_*_f8f6f4 and, with scales
// for blocks of 32 along k, v_mfma_scale_*_f8f6f4; those on a quarter of the depth, which have
// their formats of 8 bits in the name and the layouts of simd/matrix.cc; and sparse ones.
//
// Formats by cbsz (of A) and blgp (of B): 0 e4m3, 1 e5m2, 2 e2m3, 3 e3m2, 4 e2m1. A lane holds 32
// elements of a row, the first in the lowest bits, in 8, 6 or 4 registers. With g = lane / S:
//     8 bits    k = 16 g + e % 16 + (1024 / S) (e / 16)
//     6, 4      k = 32 g + e
// C and D are as in simd/matrix.cc. Scales are powers of two, exponents with a bias of 127 and 255
// for NaN: lane S b + i of their register has those of row i, block b, in the byte that op_sel
// picks.
//
// Numerics: without scales as in simd/matrix.cc. With scales each block is summed from zero in that
// way, multiplied by both of its scales and added to the sum of the blocks before; the hardware's
// own order is not documented.
#include <cmath>
#include <limits>

#include "emulator/simd/level.h"
#include "emulator/simd/matrix.h"
#include "emulator/simd/narrow.h"
#include "emulator/simd/valu_rows.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

constexpr int kMostElements = 32;  // of a lane
constexpr int kBlock = 32;         // of k, with one scale
constexpr uint32_t kNan = 255, kBias = 127;

template <class Type>
inline uint32_t ElementBits(const uint32_t* registers, int lane, int element) {
  const int bit = element * Type::kBits, shift = bit % 32;
  const uint32_t* from = registers + bit / 32 * kLaneStride + lane;
  uint32_t bits = from[0] >> shift;
  if (shift + Type::kBits > 32) bits |= from[kLaneStride] << (32 - shift);
  return bits & ((1u << Type::kBits) - 1);
}

// Rows [k][row or column] of an operand.
template <class Type, int kSize, int kElements = kMostElements>
void UnpackAs(const uint32_t* registers, float (*rows)[kMaxSize]) {
  constexpr bool kSplit = Type::kBits == 8 && kElements > 16;
  for (int lane = 0; lane < kLaneStride; ++lane) {
    const int group = lane / kSize;
    for (int e = 0; e < kElements; ++e) {
      const int k = kSplit ? 16 * group + e % 16 + 16 * (kLaneStride / kSize) * (e / 16)
                           : kElements * group + e;
      rows[k][lane % kSize] = Type::Value(ElementBits<Type>(registers, lane, e));
    }
  }
}

template <int kSize>
void UnpackNarrow(Wave& wave, const Instruction& instruction, int source, uint32_t format,
                  float (*rows)[kMaxSize]) {
  const uint32_t* registers = wave.Row(instruction.src[static_cast<size_t>(source)].index);
  constexpr void (*kUnpack[])(const uint32_t*, float (*)[kMaxSize]) = {
      UnpackAs<Fp8, kSize>, UnpackAs<Bf8, kSize>, UnpackAs<Fp6, kSize>, UnpackAs<Bf6, kSize>,
      UnpackAs<Fp4, kSize>};
  kUnpack[format](registers, rows);
}

template <int kSize>
void UnpackBoth(Wave& wave, const Instruction& instruction, Operands* in) {
  UnpackNarrow<kSize>(wave, instruction, 0, instruction.mod.cbsz, in->a);
  UnpackNarrow<kSize>(wave, instruction, 1, instruction.mod.blgp, in->b);
}

template <int kSize, int kDepth>
void MultiplyNarrow(Wave& wave, const Instruction& instruction, const Operands& in) {
  constexpr int kRegisters = kSize * kSize / kLaneStride;
  alignas(64) uint32_t copy[kRegisters * kLaneStride];
  bool c_is_constant = false;
  const uint32_t* c = Accumulator<kRegisters>(wave, instruction, copy, &c_is_constant);
  // Products are exact, as those of halves are.
  MultiplyAll<Format::kF16, MfmaRowOffset<kSize>, kSize, kDepth, false>(
      in, kDepth, c, c_is_constant, wave.Row(instruction.dst.index));
}

template <int kSize>
void ExecNarrow(Wave& wave, const Instruction& instruction) {
  if (instruction.mod.abid != 0) Fail(wave, instruction, "abid without scales");
  Operands in;
  UnpackBoth<kSize>(wave, instruction, &in);
  MultiplyNarrow<kSize, 2048 / kSize>(wave, instruction, in);
}

template <class A, class B, int kSize>
void ExecShort(Wave& wave, const Instruction& instruction) {
  const Modifiers& mod = instruction.mod;
  if ((mod.cbsz | mod.abid | mod.blgp) != 0) {
    Fail(wave, instruction, "cbsz, abid or blgp on this matrix instruction");
  }
  Operands in;
  UnpackAs<A, kSize, kMostElements / 4>(wave.Row(instruction.src[0].index), in.a);
  UnpackAs<B, kSize, kMostElements / 4>(wave.Row(instruction.src[1].index), in.b);
  MultiplyNarrow<kSize, 512 / kSize>(wave, instruction, in);
}

// The exponents of an operand's scales, by lane.
inline void Exponents(Wave& wave, const Instruction& scales, int source, uint32_t* exponents) {
  const uint32_t* from = wave.Row(scales.src[static_cast<size_t>(source)].index);
  const Modifiers& mod = scales.mod;
  const int byte = (mod.op_sel >> source & 1) | (mod.op_sel_hi >> source & 1) << 1;
  for (int l = 0; l < kLaneStride; ++l) exponents[l] = from[l] >> (8 * byte) & 255;
}

inline float Scaled(float sum, uint32_t a, uint32_t b) {
  if (a == kNan || b == kNan) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(sum, static_cast<int>(a + b) - 2 * static_cast<int>(kBias));
}

template <int kSize>
void ExecScaled(Wave& wave, const Instruction& instruction) {
  constexpr int kRegisters = kSize * kSize / kLaneStride, kDepth = 2048 / kSize;
  Operands in, block;
  UnpackBoth<kSize>(wave, instruction, &in);
  uint32_t a[kLaneStride], b[kLaneStride];
  Exponents(wave, *instruction.dual, 0, a);
  Exponents(wave, *instruction.dual, 1, b);
  alignas(64) uint32_t sums[kRegisters * kLaneStride], part[kRegisters * kLaneStride];
  const Operand& c = instruction.src[2];
  for (int i = 0; i < kRegisters * kLaneStride; ++i) {
    sums[i] = c.kind == OperandKind::kVgpr ? wave.Row(c.index)[i] : c.value;
  }
  const uint32_t zero = 0;
  for (int k = 0; k < kDepth; k += kBlock) {
    std::memcpy(block.a, in.a[k], sizeof(in.a[0]) * kBlock);
    std::memcpy(block.b, in.b[k], sizeof(in.b[0]) * kBlock);
    MultiplyAll<Format::kF16, MfmaRowOffset<kSize>, kSize, kBlock, false>(block, kBlock, &zero,
                                                                          true, part);
    const int first = kSize * (k / kBlock);  // lane of the scales of row 0
    for (int i = 0; i < kSize; ++i) {
      const size_t row = MfmaRowOffset<kSize>(i);
      for (int j = 0; j < kSize; ++j) {
        const size_t at = row + static_cast<size_t>(j);
        const float scaled = Scaled(AsFloat(part[at]), a[first + i], b[first + j]);
        sums[at] = ToDword(AsFloat(sums[at]) + scaled);
      }
    }
  }
  std::memcpy(wave.Row(instruction.dst.index), sums, sizeof(sums));
}

// Sparse: as simd/matrix.cc has it for 16 bits. The 16 stored elements of a lane stand for 32
// columns of A in a row; B goes round the groups of lanes in blocks of 16. Positions fill their
// register, so that there is one set.
template <class A, class B, int kSize>
void ExecSparse(Wave& wave, const Instruction& instruction) {
  constexpr int kDepth = 2048 / kSize, kStored = kMostElements / 2;
  const Modifiers& mod = instruction.mod;
  if ((mod.abid | mod.blgp) != 0) {
    Fail(wave, instruction, "abid or blgp on this sparse matrix instruction");
  }
  Operands in;
  UnpackAs<A, kSize, kStored>(wave.Row(instruction.src[0].index), in.a);
  UnpackAs<B, kSize>(wave.Row(instruction.src[1].index), in.b);
  const uint32_t* positions = wave.Row(instruction.src[2].index);
  for (int l = 0; l < kLaneStride; ++l) {
    const int group = l / kSize;
    uint8_t* k_of = in.k_of[l % kSize] + group * kStored;
    for (int e = 0; e < kStored; ++e) {
      const auto in_four = static_cast<int>((positions[l] >> (2 * e)) & 3);
      k_of[e] = static_cast<uint8_t>(2 * kStored * group + 4 * (e / 2) + in_four);
    }
  }
  uint32_t* d = wave.Row(instruction.dst.index);
  MultiplyAll<Format::kF16, MfmaRowOffset<kSize>, kSize, kDepth / 2, true>(in, kDepth, d, false, d);
}

template <class A, class B, int kSize>
constexpr Opcode Sparse(const char* mnemonic) {
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kSparseMatrix;
  row.exec = &ExecSparse<A, B, kSize>;
  row.dst_dwords = kSize * kSize / kLaneStride;
  row.src_dwords = {4, 8, 1};
  row.flags = kIgnoresExec | kCrossLane | kReadsDst;
  row.traits.matrix = {.passes = kSize == 32 ? 8 : 4, .wide = kSize == 32};
  return row;
}

template <int kSize, uint8_t kDwords = 8>
constexpr Opcode Row(const char* mnemonic, ExecFn exec) {
  constexpr uint8_t kRegisters = kSize * kSize / kLaneStride;
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kMatrix;
  row.exec = exec;
  row.dst_dwords = kRegisters;
  row.src_dwords = {kDwords, kDwords, kRegisters};  // of 8 bits; the decoder knows the formats
  row.flags = kIgnoresExec | kCrossLane;
  row.traits.matrix = {
      .passes = kSize == 32 ? 8 : 4, .twice_for_bytes = kDwords == 8, .wide = kSize == 32};
  return row;
}
// Stands before a product with scales and is a part of it.
constexpr Opcode LoadScale() {
  Opcode row{};
  row.mnemonic = "v_mfma_ld_scale_b32";
  row.op_class = OpClass::kMatrix;
  row.exec = [](Wave& wave, const Instruction& instruction) {
    Fail(wave, instruction, "scales without a matrix instruction");
  };
  row.src_dwords = {1, 1, 0};
  row.flags = kIgnoresExec | kCrossLane;
  row.traits.matrix = {.passes = 4};
  return row;
}

constexpr Opcode kMatrixNarrowRows[] = {
    Row<16>("v_mfma_f32_16x16x128_f8f6f4", &ExecNarrow<16>),
    Row<32>("v_mfma_f32_32x32x64_f8f6f4", &ExecNarrow<32>),
    Row<16>("v_mfma_scale_f32_16x16x128_f8f6f4", &ExecScaled<16>),
    Row<32>("v_mfma_scale_f32_32x32x64_f8f6f4", &ExecScaled<32>),
    LoadScale(),
    Row<16, 2>("v_mfma_f32_16x16x32_fp8_fp8", &ExecShort<Fp8, Fp8, 16>),
    Row<16, 2>("v_mfma_f32_16x16x32_fp8_bf8", &ExecShort<Fp8, Bf8, 16>),
    Row<16, 2>("v_mfma_f32_16x16x32_bf8_fp8", &ExecShort<Bf8, Fp8, 16>),
    Row<16, 2>("v_mfma_f32_16x16x32_bf8_bf8", &ExecShort<Bf8, Bf8, 16>),
    Row<32, 2>("v_mfma_f32_32x32x16_fp8_fp8", &ExecShort<Fp8, Fp8, 32>),
    Row<32, 2>("v_mfma_f32_32x32x16_fp8_bf8", &ExecShort<Fp8, Bf8, 32>),
    Row<32, 2>("v_mfma_f32_32x32x16_bf8_fp8", &ExecShort<Bf8, Fp8, 32>),
    Row<32, 2>("v_mfma_f32_32x32x16_bf8_bf8", &ExecShort<Bf8, Bf8, 32>),
    Sparse<Fp8, Fp8, 16>("v_smfmac_f32_16x16x128_fp8_fp8"),
    Sparse<Fp8, Bf8, 16>("v_smfmac_f32_16x16x128_fp8_bf8"),
    Sparse<Bf8, Fp8, 16>("v_smfmac_f32_16x16x128_bf8_fp8"),
    Sparse<Bf8, Bf8, 16>("v_smfmac_f32_16x16x128_bf8_bf8"),
    Sparse<Fp8, Fp8, 32>("v_smfmac_f32_32x32x64_fp8_fp8"),
    Sparse<Fp8, Bf8, 32>("v_smfmac_f32_32x32x64_fp8_bf8"),
    Sparse<Bf8, Fp8, 32>("v_smfmac_f32_32x32x64_bf8_fp8"),
    Sparse<Bf8, Bf8, 32>("v_smfmac_f32_32x32x64_bf8_bf8"),
};

}  // namespace

std::span<const Opcode> MatrixNarrowRows() { return kMatrixNarrowRows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
