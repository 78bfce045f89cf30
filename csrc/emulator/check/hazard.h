// What the hardware leaves to the program between two instructions: wait states, waits for scalar
// results, instructions to stand between. Each target has its own rules (target/<name>/hazards.h).
//
// They are those of the ISA documents as LLVM's hazard recogniser has them, with its corrections
// for the chips. A compiler knows them; it cannot see into inline assembly.
#ifndef JAX_FA_EMULATOR_CHECK_HAZARD_H_
#define JAX_FA_EMULATOR_CHECK_HAZARD_H_

#include "emulator/check/access_plan.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

// The rules of one target for one workgroup at a time.
class HazardRules {
 public:
  virtual ~HazardRules() = default;
  // A new workgroup: everything was written long ago.
  virtual void Begin(const Workgroup& group) = 0;
  // Before an instruction executes whose plan is not idle: reports what comes too early, and notes
  // what it reads and writes.
  virtual void Step(Wave& wave, const Instruction& instruction, const AccessPlan& plan) = 0;
};

// The unit that executes an operation: the beginning of each target's plan.
HazardTraits::Unit HazardUnit(const Opcode& opcode);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_CHECK_HAZARD_H_
