#include <algorithm>
#include <string_view>

#include "emulator/check/hazard.h"

namespace jax_fa::emulator {
namespace {

using Traits = HazardTraits;

bool IsMatrix(OpClass op_class) {
  return op_class == OpClass::kMatrix || op_class == OpClass::kSparseMatrix;
}

Traits::Unit UnitOf(const Opcode& opcode) {
  switch (opcode.op_class) {
    case OpClass::kVmemLoad:
    case OpClass::kVmemStore:
    case OpClass::kLdsDma:
      return Traits::kMemory;
    case OpClass::kLdsRead:
    case OpClass::kLdsWrite:
      return Traits::kLds;
    default:
      if (IsMatrix(opcode.op_class)) return Traits::kMatrixUnit;
      return std::string_view(opcode.mnemonic).starts_with("v_") ? Traits::kVectorUnit
                                                                 : Traits::kScalarUnit;
  }
}

// How long a matrix instruction takes, in groups of 4 cycles.
uint8_t Passes(std::string_view mnemonic, const Modifiers& mod, bool single) {
  if (mnemonic.find("_4x4x") != mnemonic.npos) return 2;
  const bool wide = mnemonic.find("_32x32x") != mnemonic.npos;
  if (single) return wide ? 16 : 8;
  if (mnemonic.find("f8f6f4") != mnemonic.npos) {
    const bool has_8_bits = mod.cbsz < 2 || mod.blgp < 2;
    return static_cast<uint8_t>((wide ? 8 : 4) * (has_8_bits ? 2 : 1));
  }
  const bool blocks = mnemonic.find("_2b_") != mnemonic.npos ||
                      mnemonic.find("_4b_") != mnemonic.npos;  // several products in one
  return static_cast<uint8_t>((wide ? 8 : 4) * (blocks ? 2 : 1));
}

bool ShiftsResult(const Instruction& instruction) {
  const Modifiers& mod = instruction.mod;
  if (mod.sdwa) return mod.sdwa_dst_sel != 6;
  return instruction.opcode->encoding == kVop3 && (mod.op_sel & 8) != 0;
}

uint32_t VectorFlags(const Instruction& instruction) {
  const Opcode& opcode = *instruction.opcode;
  const std::string_view name = opcode.mnemonic;
  uint32_t flags = 0;
  if (instruction.mod.dpp != 0) flags |= Traits::kDpp;
  if (name.starts_with("v_readlane")) flags |= Traits::kReadsLane | Traits::kPicksLane;
  if (name.starts_with("v_readfirstlane")) flags |= Traits::kReadsLane;
  if (name.starts_with("v_writelane")) flags |= Traits::kPicksLane;
  if (name.starts_with("v_permlane")) flags |= Traits::kSwapsLanes;
  if (name.starts_with("v_dot")) flags |= Traits::kDot;
  if (name.starts_with("v_div_fmas")) flags |= Traits::kDivFmas;
  if (name.starts_with("v_cndmask") || name.starts_with("v_addc") || name.starts_with("v_subb")) {
    flags |= Traits::kReadsMask;
  }
  if (opcode.op_class == OpClass::kTrans) flags |= Traits::kTranscendental;
  if ((opcode.flags & kWritesExec) != 0) flags |= Traits::kWritesExecMask;
  if (ShiftsResult(instruction)) flags |= Traits::kShiftsResult;
  return flags;
}

// The data of a wide store goes on being read.
bool IsWideStore(const Instruction& instruction) {
  return instruction.opcode->op_class == OpClass::kVmemStore && instruction.src[1].dwords > 2;
}

void PlanGfx950(const Instruction& instruction, Traits* traits) {
  const Opcode& opcode = *instruction.opcode;
  const std::string_view name = opcode.mnemonic;
  if (name == "s_nop") {
    traits->wait_states = static_cast<uint8_t>((instruction.simm16 & 15) + 1);
  }
  if (name.starts_with("s_setreg")) traits->flags |= Traits::kSetsRegister;
  if (name.starts_with("s_getreg")) traits->flags |= Traits::kGetsRegister;
  // Buffer loads to LDS are not in the documents' list, and kernels that are right on the chip do
  // without.
  const bool dma = opcode.op_class == OpClass::kLdsDma && opcode.encoding != kMubuf;
  if (dma || name == "s_sendmsg" || name.starts_with("s_movrel")) traits->flags |= Traits::kUsesM0;
  if (traits->unit == Traits::kVectorUnit) traits->flags |= VectorFlags(instruction);
  if (IsWideStore(instruction)) traits->flags |= Traits::kWideStore;
  if (traits->unit == Traits::kMatrixUnit) {
    traits->single = name.ends_with("_f32") || name.ends_with("_f64");
    traits->passes = Passes(name, instruction.mod, traits->single);
  }
}

void PlanGfx1201(const Instruction& instruction, const AccessPlan& plan, Traits* traits) {
  const Opcode& opcode = *instruction.opcode;
  const std::string_view name = opcode.mnemonic;
  const bool vector = traits->unit == Traits::kVectorUnit || traits->unit == Traits::kMatrixUnit;
  const bool scalar = traits->unit == Traits::kScalarUnit && opcode.op_class != OpClass::kSmem;
  const auto touches = [](const auto& accesses, uint32_t count) {
    return std::any_of(accesses.begin(), accesses.begin() + count, IsPlainScalar);
  };
  if ((vector || scalar) && (touches(plan.read, plan.reads) || touches(plan.write, plan.writes))) {
    traits->flags |= Traits::kTouchesScalars;
  }
  if (opcode.op_class == OpClass::kSmem || opcode.encoding == kMubuf) {
    traits->flags |= Traits::kWaitsForScalars;
  }
  if (name == "s_wait_alu") traits->flags |= Traits::kWaitsForAlu;
  if (name == "ds_nop") traits->flags |= Traits::kDropsCopies;
  if (name == "v_nop") traits->flags |= Traits::kVectorNop;
  if (name.starts_with("v_permlane")) traits->flags |= Traits::kSwapsLanes;
  if (vector && (opcode.flags & kWritesExec) != 0) traits->flags |= Traits::kWritesExecMask;
}

}  // namespace

HazardTraits PlanHazards(const Instruction& instruction, const AccessPlan& plan, Isa isa) {
  Traits traits;
  traits.unit = UnitOf(*instruction.opcode);
  if (isa == Isa::kGfx950) {
    PlanGfx950(instruction, &traits);
  } else {
    PlanGfx1201(instruction, plan, &traits);
  }
  return traits;
}

}  // namespace jax_fa::emulator
