// How a vector ALU operation is described, apart from target and SIMD level.
//
// A lane function such as `[](float a, float b) { return a + b; }` becomes a row function that runs
// it over the 64 lanes of a register row. What surrounds it (source modifiers, DPP, SDWA, halves of
// registers, rounding and denormal modes, output modifiers, EXEC) is data-driven and common:
// ExecValuGeneral. Row functions are compiled once per SIMD level (simd/valu_rows.h), this part
// once.
#ifndef JAX_FA_EMULATOR_SIMD_VALU_OP_H_
#define JAX_FA_EMULATOR_SIMD_VALU_OP_H_

#include <array>
#include <cstdint>

#include "emulator/state/instruction.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

// What a source or result row holds. 16-bit types use the low half of each dword.
enum class LaneType : uint8_t {
  kNone,
  kB32,  // moved, not computed with: abs and neg act on bit 31, as the float moves need
  kF32,
  kF16,
  kF64,
  kU32,
  kI32,
  kU16,
  kI16,
  kU64,
  kI64,
  kLaneBit,  // one bit per lane of a scalar mask: 0 or ~0 in a row
};
constexpr bool Is16Bit(LaneType type) {
  return type == LaneType::kF16 || type == LaneType::kU16 || type == LaneType::kI16;
}
constexpr bool Is64Bit(LaneType type) {
  return type == LaneType::kF64 || type == LaneType::kU64 || type == LaneType::kI64;
}
constexpr bool IsFloat(LaneType type) {
  return type == LaneType::kF32 || type == LaneType::kF16 || type == LaneType::kF64;
}

// Rows in: source i has its low dwords in in[2i], its high ones in in[2i + 1] (64-bit types only).
// Rows out: [0] low, [1] high, [2] lane bits (carry, compare). A result row may be a source row.
// `lanes` is 32 or 64.
using RowFn = void (*)(uint32_t* const* out, const uint32_t* const* in, int lanes);

struct ValuOp {
  RowFn rows;
  RowFn clamped;    // integers: the saturating form; null: `clamp` is an error
  LaneType result;  // kNone: a compare
  std::array<LaneType, 3> sources;
  bool lane_bits;     // writes out[2]: carry out, compare
  bool accumulates;   // the last source is the destination register
  bool ignores_mode;  // neither rounds nor flushes as MODE says: transcendentals, float to integer
  bool reads_vcc;     // in[6]: VCC, one lane bit each
};

// Bits of Opcode::flags beside OpFlags, set where a target joins its numbers with the rows.
enum ValuFlags : uint32_t {
  // A 16-bit result leaves the other half of its register alone (all of gfx12, some of gfx9);
  // without this it clears the upper half.
  kKeepsOtherHalf = 1u << 24,
};

// Any instruction with one or two 32/64-bit results per lane: modifiers, modes and all.
void ExecValuGeneral(Wave& wave, const Instruction& instruction, const ValuOp& op);
// A packed instruction (VOP3P) whose halves each do `op`: 16-bit halves of a register, or the two
// registers of a pair.
void ExecPackedGeneral(Wave& wave, const Instruction& instruction, const ValuOp& op);
// v_fma_mix_*: `op` is the float fma; each source is a float or a half of its register.
enum class MixResult : uint8_t { kFloat, kLowHalf, kHighHalf };
void ExecMix(Wave& wave, const Instruction& instruction, const ValuOp& op, MixResult result);

// True when the instruction does not need ExecValuGeneral; signs of sources apart.
inline bool IsPlainButSigns(const Modifiers& mod) {
  return (mod.op_sel | mod.omod | static_cast<uint8_t>(mod.clamp) | mod.dpp |
          static_cast<uint8_t>(mod.sdwa)) == 0;
}
inline bool IsPlain(const Modifiers& mod) {
  return (mod.neg | mod.abs) == 0 && IsPlainButSigns(mod);
}
inline bool DefaultMode(const Wave& wave) {
  return (wave.round_f32 | wave.round_f64 | (wave.denorm_f32 ^ 3) | (wave.denorm_f64 ^ 3)) == 0;
}

// One dword of a source operand for all lanes: its register row, or `scratch` filled with the
// scalar. `dword` 1 is the high half.
const uint32_t* SourceRowSlow(const Wave& wave, const Operand& operand, int dword,
                              uint32_t* scratch);
inline const uint32_t* SourceRow(const Wave& wave, const Operand& operand, int dword,
                                 uint32_t* scratch) {
  if (operand.kind == OperandKind::kVgpr)
    return wave.Row(operand.index + static_cast<uint32_t>(dword));
  return SourceRowSlow(wave, operand, dword, scratch);
}
// A lane mask held in SGPRs (VCC, a pair; wave32: one register), or a constant.
uint64_t SourceMask(const Wave& wave, const Operand& operand);

// The lane that DPP control word `ctrl` makes `lane` read, -1 when there is none, -2 when the
// control word is unknown.
int DppSource(uint32_t ctrl, int lane, int lanes);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_SIMD_VALU_OP_H_
