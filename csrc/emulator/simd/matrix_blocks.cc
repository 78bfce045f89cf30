// The less common matrix instructions of gfx950: several small products at once, and 8-bit
// integers.
//
// Several blocks: 64 / S products of an S x K by a K x S matrix, S = 4, 16, 32; all K elements of a
// row lie in one lane.
//     A, B    lane S * block + i (or j), element k
//     C, D    S = 4: register i, lane 4 * block + j; else registers of one block after those of
//     another,
//             within a block as in simd/matrix.cc
// cbsz and abid make every 2^cbsz blocks use the A of the abid-th among them.
//
// Integers: layouts of simd/matrix.cc with four elements a register; sums wrap.
#include "emulator/simd/level.h"
#include "emulator/simd/matrix.h"
#include "emulator/simd/valu_rows.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

template <Format kFormat>
inline float Element(const uint32_t* registers, int lane, int k) {
  if constexpr (kFormat == Format::kF32) return AsFloat(registers[k * kLaneStride + lane]);
  const uint32_t half = registers[k / 2 * kLaneStride + lane] >> (16 * (k % 2)) & 0xffffu;
  return kFormat == Format::kBf16 ? FromBfloat(half) : ToFloat(Half{static_cast<uint16_t>(half)});
}

// Register and lane of D[i][j] of a block.
template <int kSize>
inline size_t ResultPlace(int block, int i, int j) {
  if (kSize == 4) return static_cast<size_t>(i * kLaneStride + 4 * block + j);
  const int reg = kSize == 16 ? 4 * block + i % 4 : 16 * block + 4 * (i / 8) + i % 4;
  const int lane = kSize == 16 ? 16 * (i / 4) + j : 32 * (i / 4 % 2) + j;
  return static_cast<size_t>(reg * kLaneStride + lane);
}

template <Format kFormat, int kSize, int kDepth>
void ExecBlocks(Wave& wave, const Instruction& instruction) {
  constexpr int kBlocks = kLaneStride / kSize;
  constexpr int kRegisters = kBlocks * kSize * kSize / kLaneStride;
  const Modifiers& mod = instruction.mod;
  if (mod.blgp != 0 || (1 << mod.cbsz) > kBlocks || mod.abid >= (1 << mod.cbsz)) {
    Fail(wave, instruction, "blgp, or cbsz and abid past the blocks of this matrix instruction");
  }
  const uint32_t* a = wave.Row(instruction.src[0].index);
  const uint32_t* b = wave.Row(instruction.src[1].index);
  const Operand& c = instruction.src[2];
  const bool constant = c.kind != OperandKind::kVgpr;
  const uint32_t* from = constant ? &c.value : wave.Row(c.index);
  alignas(64) uint32_t result[kRegisters * kLaneStride];
  for (int block = 0; block < kBlocks; ++block) {
    const int group = 1 << mod.cbsz;
    const int a_block = block / group * group + mod.abid % group;
    const int a_used = mod.cbsz == 0 ? block : a_block;
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j < kSize; ++j) {
        const size_t place = ResultPlace<kSize>(block, i, j);
        float sum = AsFloat(constant ? *from : from[place]);
        for (int k = 0; k < kDepth; ++k) {
          sum = Fma(Element<kFormat>(a, kSize * a_used + i, k),
                    Element<kFormat>(b, kSize * block + j, k), sum);
        }
        result[place] = ToDword(sum);
      }
    }
  }
  std::memcpy(wave.Row(instruction.dst.index), result, sizeof result);
}

template <int kSize, int kDepth>
void ExecIntegers(Wave& wave, const Instruction& instruction) {
  constexpr int kElements = kDepth * kSize / kLaneStride;
  constexpr int kRegisters = kSize * kSize / kLaneStride;
  const Modifiers& mod = instruction.mod;
  if ((mod.cbsz | mod.abid | mod.blgp) != 0) {
    Fail(wave, instruction, "cbsz, abid or blgp on this matrix instruction");
  }
  int32_t unpacked[2][kDepth][kSize];
  for (int operand = 0; operand < 2; ++operand) {
    const uint32_t* in = wave.Row(instruction.src[static_cast<size_t>(operand)].index);
    for (int l = 0; l < kLaneStride; ++l) {
      for (int e = 0; e < kElements; ++e) {
        unpacked[operand][l / kSize * kElements + e][l % kSize] =
            static_cast<int8_t>(in[e / 4 * kLaneStride + l] >> (8 * (e % 4)));
      }
    }
  }
  const Operand& c = instruction.src[2];
  const bool constant = c.kind != OperandKind::kVgpr;
  const uint32_t* from = constant ? &c.value : wave.Row(c.index);
  alignas(64) uint32_t result[kRegisters * kLaneStride];
  for (int i = 0; i < kSize; ++i) {
    const size_t place = ResultPlace<kSize>(0, i, 0);
    uint32_t sum[kSize];
    for (int j = 0; j < kSize; ++j)
      sum[j] = constant ? *from : from[place + static_cast<size_t>(j)];
    for (int k = 0; k < kDepth; ++k) {
      for (int j = 0; j < kSize; ++j) {
        sum[j] += static_cast<uint32_t>(unpacked[0][k][i] * unpacked[1][k][j]);
      }
    }
    std::memcpy(result + place, sum, sizeof sum);
  }
  std::memcpy(wave.Row(instruction.dst.index), result, sizeof result);
}

constexpr Opcode Row(const char* mnemonic, ExecFn exec, int operand_dwords, int registers,
                     MatrixTraits matrix) {
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kMatrix;
  row.exec = exec;
  row.dst_dwords = static_cast<uint8_t>(registers);
  row.src_dwords = {static_cast<uint8_t>(operand_dwords), static_cast<uint8_t>(operand_dwords),
                    static_cast<uint8_t>(registers)};
  row.flags = kIgnoresExec | kCrossLane;
  row.traits.matrix = matrix;
  return row;
}
template <Format kFormat, int kSize>
constexpr Opcode Blocks(const char* mnemonic) {
  constexpr int kDepth = kFormat == Format::kF32 ? 1 : 4;
  return Row(mnemonic, &ExecBlocks<kFormat, kSize, kDepth>, kFormat == Format::kF32 ? 1 : 2, kSize,
             {.passes = kSize == 4    ? 2
                        : kSize == 16 ? 8
                                      : 16,
              .single = kFormat == Format::kF32,
              .wide = kSize == 32});
}
template <int kSize, int kDepth>
constexpr Opcode Integers(const char* mnemonic) {
  return Row(mnemonic, &ExecIntegers<kSize, kDepth>, kDepth * kSize / kLaneStride / 4,
             kSize * kSize / kLaneStride, {.passes = kSize == 32 ? 8 : 4, .wide = kSize == 32});
}

constexpr Opcode kMatrixBlockRows[] = {
    Blocks<Format::kBf16, 4>("v_mfma_f32_4x4x4_16b_bf16"),
    Blocks<Format::kBf16, 16>("v_mfma_f32_16x16x4_4b_bf16"),
    Blocks<Format::kBf16, 32>("v_mfma_f32_32x32x4_2b_bf16"),
    Blocks<Format::kF16, 4>("v_mfma_f32_4x4x4_16b_f16"),
    Blocks<Format::kF16, 16>("v_mfma_f32_16x16x4_4b_f16"),
    Blocks<Format::kF16, 32>("v_mfma_f32_32x32x4_2b_f16"),
    Blocks<Format::kF32, 4>("v_mfma_f32_4x4x1_16b_f32"),
    Blocks<Format::kF32, 16>("v_mfma_f32_16x16x1_4b_f32"),
    Blocks<Format::kF32, 32>("v_mfma_f32_32x32x1_2b_f32"),
    Integers<16, 32>("v_mfma_i32_16x16x32_i8"),
    Integers<16, 64>("v_mfma_i32_16x16x64_i8"),
    Integers<32, 16>("v_mfma_i32_32x32x16_i8"),
    Integers<32, 32>("v_mfma_i32_32x32x32_i8"),
};

}  // namespace

std::span<const Opcode> MatrixBlockRows() { return kMatrixBlockRows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
