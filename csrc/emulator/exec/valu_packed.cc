// The general forms of packed and of mixed precision instructions.
#include "emulator/exec/valu_general.h"

// The helpers of the SIMD families, in a copy of their own: this file exists once.
#define JAX_FA_SIMD general
#include "emulator/simd/math.h"
#include "emulator/simd/row.h"

namespace jax_fa::emulator {

using namespace general;  // NOLINT: the copy above, private to this file

void ExecPackedGeneral(Wave& wave, const Instruction& instruction, const ValuOp& op) {
  const Modifiers& mod = instruction.mod;
  const bool dwords = !Is16Bit(op.result);
  const int count = op.sources[2] != LaneType::kNone ? 3 : op.sources[1] != LaneType::kNone ? 2 : 1;
  if (op.result == LaneType::kF16 ? wave.round_f64 != 0
                                  : IsFloat(op.result) && wave.round_f32 != 0) {
    Fail(wave, instruction, "packed arithmetic under a rounding mode other than nearest even");
  }
  alignas(64) Row result[2];
  for (int half = 0; half < 2; ++half) {
    alignas(64) Row source[3];
    const uint32_t* in[8] = {};
    for (int i = 0; i < count; ++i) {
      const LaneType type = op.sources[static_cast<size_t>(i)];
      const bool accumulator = op.accumulates && i == count - 1;
      const Operand& operand =
          accumulator ? instruction.dst : instruction.src[static_cast<size_t>(i)];
      const uint32_t select = accumulator ? static_cast<uint32_t>(half)
                                          : ((half == 0 ? mod.op_sel : mod.op_sel_hi) >> i) & 1u;
      uint32_t* row = source[i];
      in[2 * i] = in[2 * i + 1] = row;
      if (dwords && operand.kind != OperandKind::kVgpr && operand.kind != OperandKind::kSgpr &&
          select != 0) {
        Fail(wave, instruction, "the upper half of a constant in packed single precision");
      }
      const uint32_t* from = SourceRow(wave, operand, dwords ? static_cast<int>(select) : 0, row);
      const uint32_t shift = dwords ? 0 : 16 * select;
      const uint32_t mask = dwords ? ~0u : 0xffffu;
      const uint32_t sign = ((half == 0 ? mod.neg : mod.abs) >> i) & 1u ? SignMask(type) : 0;
      if (!accumulator && (((half == 0 ? mod.neg : mod.abs) >> i) & 1u) != 0 && sign == 0) {
        Fail(wave, instruction, "neg on an integer operand");
      }
      for (int l = 0; l < wave.lanes; ++l) row[l] = ((from[l] >> shift) & mask) ^ sign;
      if (!op.ignores_mode && (DenormMode(wave, type) & 1) == 0) {
        FlushRows(type, row, row, wave.lanes);
      }
    }
    uint32_t* const out[3] = {result[half], result[half], nullptr};
    const bool saturate = mod.clamp && !IsFloat(op.result);
    if (saturate && op.clamped == nullptr) {
      Fail(wave, instruction, "clamp on an operation that has none");
    }
    (saturate ? op.clamped : op.rows)(out, in, wave.lanes);
    if (IsFloat(op.result)) {
      if (mod.clamp) FinishFloat(wave, mod, op.result, result[half], result[half]);
      if (!op.ignores_mode && (DenormMode(wave, op.result) & 2) == 0) {
        FlushRows(op.result, result[half], result[half], wave.lanes);
      }
    }
  }
  uint32_t* const low = wave.Row(instruction.dst.index);
  if (dwords) {
    BlendRow(low, result[0], wave.exec);
    BlendRow(low + kLaneStride, result[1], wave.exec);
  } else {
    for (int l = 0; l < wave.lanes; ++l) {
      result[0][l] = (result[0][l] & 0xffffu) | (result[1][l] << 16);
    }
    BlendRow(low, result[0], wave.exec);
  }
}

void ExecMix(Wave& wave, const Instruction& instruction, const ValuOp& op, MixResult kind) {
  const Modifiers& mod = instruction.mod;
  if (wave.round_f32 != 0 || wave.round_f64 != 0) {
    Fail(wave, instruction, "mixed precision under a rounding mode other than nearest even");
  }
  alignas(64) Row source[3];
  const uint32_t* in[8] = {};
  for (int i = 0; i < 3; ++i) {
    uint32_t* row = source[i];
    in[2 * i] = in[2 * i + 1] = row;
    const uint32_t* from = SourceRow(wave, instruction.src[static_cast<size_t>(i)], 0, row);
    const bool is_half = ((mod.op_sel_hi >> i) & 1) != 0;
    const uint32_t shift = ((mod.op_sel >> i) & 1) != 0 ? 16 : 0;
    const bool abs = ((mod.abs >> i) & 1) != 0;
    const uint32_t sign = ((mod.neg >> i) & 1) != 0 ? 0x80000000u : 0;
    const bool flush = ((is_half ? wave.denorm_f64 : wave.denorm_f32) & 1) == 0;
    for (int l = 0; l < wave.lanes; ++l) {
      uint32_t value = is_half ? (from[l] >> shift) & 0xffffu : from[l];
      if (flush) FlushRows(is_half ? LaneType::kF16 : LaneType::kF32, &value, &value, 1);
      if (is_half) value = AsBits(ToFloat(Half{static_cast<uint16_t>(value)}));
      row[l] = (abs ? value & 0x7fffffffu : value) ^ sign;
    }
  }
  alignas(64) Row result;
  uint32_t* const out[3] = {result, result, nullptr};
  op.rows(out, in, wave.lanes);
  uint32_t* const low = wave.Row(instruction.dst.index);
  LaneType type = LaneType::kF32;
  if (kind != MixResult::kFloat) {
    type = LaneType::kF16;
    for (int l = 0; l < wave.lanes; ++l) result[l] = ToHalf(AsFloat(result[l])).bits;
  }
  if (mod.clamp) FinishFloat(wave, mod, type, result, result);
  if ((DenormMode(wave, type) & 2) == 0) FlushRows(type, result, result, wave.lanes);
  for (int l = 0; kind != MixResult::kFloat && l < wave.lanes; ++l) {
    result[l] = kind == MixResult::kLowHalf ? (low[l] & 0xffff0000u) | result[l]
                                            : (low[l] & 0xffffu) | (result[l] << 16);
  }
  BlendRow(low, result, wave.exec);
}

}  // namespace jax_fa::emulator
