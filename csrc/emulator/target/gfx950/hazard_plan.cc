// What an instruction is to the rules of gfx950, worked out once, at decode.
#include "emulator/target/gfx950/hazards.h"

namespace jax_fa::emulator {
namespace {

using Traits = HazardTraits;

// How long a matrix instruction takes, in groups of 4 cycles.
uint8_t Passes(const MatrixTraits& matrix, const Modifiers& mod) {
  const bool has_bytes = mod.cbsz < 2 || mod.blgp < 2;
  return static_cast<uint8_t>(matrix.passes * (matrix.twice_for_bytes && has_bytes ? 2 : 1));
}

// What the operation alone says.
uint32_t ClassFlags(HazardClass hazard) {
  switch (hazard) {
    case HazardClass::kReadLane:
      return Gfx950Hazard::kReadsLane | Gfx950Hazard::kPicksLane;
    case HazardClass::kReadFirstLane:
      return Gfx950Hazard::kReadsLane;
    case HazardClass::kWriteLane:
      return Gfx950Hazard::kPicksLane;
    case HazardClass::kSwapLanes:
      return Gfx950Hazard::kSwapsLanes;
    case HazardClass::kDot:
      return Gfx950Hazard::kDot;
    case HazardClass::kDivFmas:
      return Gfx950Hazard::kDivFmas;
    case HazardClass::kReadMask:
      return Gfx950Hazard::kReadsMask;
    case HazardClass::kUsesM0:
      return Gfx950Hazard::kUsesM0;
    case HazardClass::kSetRegister:
      return Gfx950Hazard::kSetsRegister;
    case HazardClass::kGetRegister:
      return Gfx950Hazard::kGetsRegister;
    default:
      return 0;
  }
}

bool ShiftsResult(const Instruction& instruction) {
  const Modifiers& mod = instruction.mod;
  if (mod.sdwa) return mod.sdwa_dst_sel != 6;
  return instruction.opcode->encoding == kVop3 && (mod.op_sel & 8) != 0;
}

uint32_t VectorFlags(const Instruction& instruction) {
  const Opcode& opcode = *instruction.opcode;
  uint32_t flags = 0;
  if (instruction.mod.dpp != 0) flags |= Gfx950Hazard::kDpp;
  if (opcode.op_class == OpClass::kValuPacked) flags |= Gfx950Hazard::kPacked;
  if (opcode.op_class == OpClass::kTrans) flags |= Gfx950Hazard::kTranscendental;
  if ((opcode.flags & kWritesExec) != 0) flags |= Gfx950Hazard::kWritesExecMask;
  if (ShiftsResult(instruction)) flags |= Gfx950Hazard::kShiftsResult;
  return flags;
}

// The data of a wide store goes on being read.
bool IsWideStore(const Instruction& instruction) {
  return instruction.opcode->op_class == OpClass::kVmemStore && instruction.src[1].dwords > 2;
}

}  // namespace

HazardTraits PlanGfx950Hazards(const Instruction& instruction, const AccessPlan&) {
  Traits traits;
  traits.unit = HazardUnit(*instruction.opcode);
  const Opcode& opcode = *instruction.opcode;
  if (opcode.traits.hazard == HazardClass::kWaitStates) {
    traits.wait_states = static_cast<uint8_t>((instruction.simm16 & 15) + 1);
  }
  traits.flags |= ClassFlags(opcode.traits.hazard);
  // Buffer loads to LDS are not in the documents' list, and kernels that are right on the chip do
  // without.
  const bool dma = opcode.op_class == OpClass::kLdsDma && opcode.encoding != kMubuf;
  if (dma) traits.flags |= Gfx950Hazard::kUsesM0;
  if (traits.unit == Traits::kVectorUnit) traits.flags |= VectorFlags(instruction);
  if (opcode.op_class == OpClass::kBarrier) traits.flags |= Gfx950Hazard::kMeets;
  if (IsWideStore(instruction)) traits.flags |= Gfx950Hazard::kWideStore;
  if (traits.unit == Traits::kMatrixUnit) {
    traits.single = opcode.traits.matrix.single;
    traits.passes = Passes(opcode.traits.matrix, instruction.mod);
  }
  return traits;
}

}  // namespace jax_fa::emulator
