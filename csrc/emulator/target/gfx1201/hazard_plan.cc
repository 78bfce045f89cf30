// What an instruction is to the rules of gfx1201, worked out once, at decode.
#include <algorithm>

#include "emulator/target/gfx1201/hazards.h"

namespace jax_fa::emulator {

HazardTraits PlanGfx1201Hazards(const Instruction& instruction, const AccessPlan& plan) {
  using Traits = HazardTraits;
  Traits traits;
  traits.unit = HazardUnit(*instruction.opcode);
  const Opcode& opcode = *instruction.opcode;
  const bool vector = traits.unit == Traits::kVectorUnit || traits.unit == Traits::kMatrixUnit;
  const bool scalar = traits.unit == Traits::kScalarUnit && opcode.op_class != OpClass::kSmem;
  const auto touches = [](const auto& accesses, uint32_t count) {
    return std::any_of(accesses.begin(), accesses.begin() + count, IsPlainScalar);
  };
  if ((vector || scalar) && (touches(plan.read, plan.reads) || touches(plan.write, plan.writes))) {
    traits.flags |= Gfx1201Hazard::kTouchesScalars;
  }
  if (opcode.op_class == OpClass::kSmem || opcode.encoding == kMubuf) {
    traits.flags |= Gfx1201Hazard::kWaitsForScalars;
  }
  switch (opcode.traits.hazard) {
    case HazardClass::kWaitAlu:
      traits.flags |= Gfx1201Hazard::kWaitsForAlu;
      break;
    case HazardClass::kLdsNop:
      traits.flags |= Gfx1201Hazard::kDropsCopies;
      break;
    case HazardClass::kVectorNop:
      traits.flags |= Gfx1201Hazard::kVectorNop;
      break;
    case HazardClass::kSwapLanes:
      traits.flags |= Gfx1201Hazard::kSwapsLanes;
      break;
    default:
      break;
  }
  if (vector && (opcode.flags & kWritesExec) != 0) traits.flags |= Gfx1201Hazard::kWritesExecMask;
  traits.idle = traits.flags == 0 && !vector;
  return traits;
}

}  // namespace jax_fa::emulator
