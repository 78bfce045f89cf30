// Matrix instructions of gfx950 on half precision, bfloat16 and single precision: D = A B + C.
//
// One instruction multiplies an S x K by a K x S matrix (S = 16 or 32) held by the wave's 64 lanes:
//     A[i][k], B[k][j]   lane S * (k / e) + i (or j), element k % e, e = K * S / 64 elements a lane
//     C, D[i][j]         S = 16: register i % 4, lane 16 * (i / 4) + j
//                        S = 32: register 4 * (i / 8) + i % 4, lane 32 * (i / 4 % 2) + j
// Sparse ones (smfmac) take an A with two of every four elements, and where they stand as 2-bit
// numbers.
//
// Numerics: D[i][j] = fma(A[i][k], B[k][j], ...) in single precision over ascending k, starting
// from C. Products of 16-bit numbers are exact, so this is one rounding per step; what the hardware
// does inside is not documented. EXEC is ignored.
#include "emulator/simd/matrix.h"

#include "emulator/simd/level.h"
#include "emulator/simd/valu_rows.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

template <Format kFormat, int kSize, int kDepth>
void ExecMfma(Wave& wave, const Instruction& instruction) {
  const Modifiers& mod = instruction.mod;
  if ((mod.cbsz | mod.abid | mod.blgp) != 0) {
    Fail(wave, instruction, "cbsz, abid or blgp on this matrix instruction");
  }
  constexpr int kElements = kDepth * kSize / kLaneStride;  // of A or B, per lane
  constexpr int kDwords = kFormat == Format::kF32 ? kElements : kElements / 2;
  constexpr int kRegisters = kSize * kSize / kLaneStride;
  Operands in;
  const auto k_of = [](int group, int e) { return group * kElements + e; };
  Unpack<kFormat, kSize, kLaneStride / kSize, kDwords>(wave.Row(instruction.src[0].index), in.a,
                                                       k_of);
  Unpack<kFormat, kSize, kLaneStride / kSize, kDwords>(wave.Row(instruction.src[1].index), in.b,
                                                       k_of);
  alignas(64) uint32_t copy[kRegisters * kLaneStride];
  bool c_is_constant = false;
  const uint32_t* c = Accumulator<kRegisters>(wave, instruction, copy, &c_is_constant);
  MultiplyAll<kFormat, MfmaRowOffset<kSize>, kSize, kDepth, false>(in, kDepth, c, c_is_constant,
                                                                   wave.Row(instruction.dst.index));
}

// smfmac: kDepth counts the columns of A with its zeros; half as many are stored. D is also C, and
// source 2 holds the positions: of the elements of one lane, 2 bits each, in the low bits or, with
// cbsz zero, in set number abid.
template <Format kFormat, int kSize, int kDepth>
void ExecSmfmac(Wave& wave, const Instruction& instruction) {
  constexpr int kGroups = kLaneStride / kSize;
  constexpr int kStored = kDepth / 2 / kGroups;  // elements of A per lane
  constexpr int kIndexBits = 2 * kStored;
  const Modifiers& mod = instruction.mod;
  const uint32_t set = mod.cbsz == 0 ? mod.abid : 0;
  if (mod.blgp != 0 || set * kIndexBits >= 32) {
    Fail(wave, instruction, "abid or blgp on this sparse matrix instruction");
  }
  Operands in;
  Unpack<kFormat, kSize, kGroups, kStored / 2>(
      wave.Row(instruction.src[0].index), in.a,
      [](int group, int e) { return group * kStored + e; });
  // B: blocks of 8 rows go round the groups of lanes.
  Unpack<kFormat, kSize, kGroups, kStored>(
      wave.Row(instruction.src[1].index), in.b,
      [](int group, int e) { return 8 * group + e % 8 + 8 * kGroups * (e / 8); });
  const uint32_t* positions = wave.Row(instruction.src[2].index);
  for (int l = 0; l < kLaneStride; ++l) {
    const uint32_t bits = positions[l] >> (set * kIndexBits);
    uint8_t* k_of = in.k_of[l % kSize] + (l / kSize) * kStored;
    for (int e = 0; e < kStored; ++e) {
      const uint32_t in_four = (bits >> (2 * e)) & 3;
      k_of[e] = static_cast<uint8_t>(2u * kStored * static_cast<uint32_t>(l / kSize) +
                                     4u * static_cast<uint32_t>(e / 2) + in_four);
    }
  }
  uint32_t* d = wave.Row(instruction.dst.index);
  MultiplyAll<kFormat, MfmaRowOffset<kSize>, kSize, kDepth / 2, true>(in, kDepth, d, false, d);
}

template <Format kFormat, int kSize, int kDepth>
constexpr Opcode Mfma(const char* mnemonic) {
  constexpr int kElements = kDepth * kSize / kLaneStride;
  constexpr uint8_t kDwords = kFormat == Format::kF32 ? kElements : kElements / 2;
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kMatrix;
  row.exec = &ExecMfma<kFormat, kSize, kDepth>;
  row.dst_dwords = kSize * kSize / kLaneStride;
  row.src_dwords = {kDwords, kDwords, kSize * kSize / kLaneStride};
  row.flags = kIgnoresExec | kCrossLane;
  constexpr bool kSingle = kFormat == Format::kF32, kWide = kSize == 32;
  row.traits.matrix = {
      .passes = (kWide ? 8 : 4) * (kSingle ? 2 : 1), .single = kSingle, .wide = kWide};
  return row;
}
template <Format kFormat, int kSize, int kDepth>
constexpr Opcode Smfmac(const char* mnemonic) {
  constexpr int kStored = kDepth * kSize / kLaneStride / 2;
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kSparseMatrix;
  row.exec = &ExecSmfmac<kFormat, kSize, kDepth>;
  row.dst_dwords = kSize * kSize / kLaneStride;
  row.src_dwords = {kStored / 2, kStored, 1};
  row.flags = kIgnoresExec | kCrossLane | kReadsDst;
  row.traits.matrix = {.passes = kSize == 32 ? 8 : 4, .wide = kSize == 32};
  return row;
}

constexpr Opcode kMatrixRows[] = {
    Mfma<Format::kBf16, 16, 32>("v_mfma_f32_16x16x32_bf16"),
    Mfma<Format::kF16, 16, 32>("v_mfma_f32_16x16x32_f16"),
    Mfma<Format::kBf16, 32, 16>("v_mfma_f32_32x32x16_bf16"),
    Mfma<Format::kF16, 32, 16>("v_mfma_f32_32x32x16_f16"),
    Mfma<Format::kBf16, 16, 16>("v_mfma_f32_16x16x16_bf16"),
    Mfma<Format::kF16, 16, 16>("v_mfma_f32_16x16x16_f16"),
    Mfma<Format::kBf16, 32, 8>("v_mfma_f32_32x32x8_bf16"),
    Mfma<Format::kF16, 32, 8>("v_mfma_f32_32x32x8_f16"),
    Mfma<Format::kF32, 16, 4>("v_mfma_f32_16x16x4_f32"),
    Mfma<Format::kF32, 32, 2>("v_mfma_f32_32x32x2_f32"),
    Smfmac<Format::kBf16, 16, 64>("v_smfmac_f32_16x16x64_bf16"),
    Smfmac<Format::kF16, 16, 64>("v_smfmac_f32_16x16x64_f16"),
    Smfmac<Format::kBf16, 32, 32>("v_smfmac_f32_32x32x32_bf16"),
    Smfmac<Format::kF16, 32, 32>("v_smfmac_f32_32x32x32_f16"),
    Smfmac<Format::kBf16, 16, 32>("v_smfmac_f32_16x16x32_bf16"),
    Smfmac<Format::kF16, 16, 32>("v_smfmac_f32_16x16x32_f16"),
    Smfmac<Format::kBf16, 32, 16>("v_smfmac_f32_32x32x16_bf16"),
    Smfmac<Format::kF16, 32, 16>("v_smfmac_f32_32x32x16_f16"),
};

}  // namespace

std::span<const Opcode> MatrixRows() { return kMatrixRows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
