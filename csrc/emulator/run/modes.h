// What modes of gfx9 make of an instruction (exec/modes.cc sets them).
#ifndef JAX_FA_EMULATOR_RUN_MODES_H_
#define JAX_FA_EMULATOR_RUN_MODES_H_

#include "emulator/check/access_plan.h"
#include "emulator/state/instruction.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

// Under MODE.VSKIP it is not issued.
bool IsVector(const Instruction& instruction);
// Under MODE.GPR_IDX_EN its vector registers are relative.
bool IsIndexed(const Instruction& instruction);

// The instruction with the registers that M0 moves it to. A register past those of the kernel stops
// the run.
struct IndexedInstruction {
  IndexedInstruction(const Wave& wave, const Instruction& relative);
  Instruction instruction;
  AccessPlan plan;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_RUN_MODES_H_
