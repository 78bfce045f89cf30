// What the hardware leaves to the program between two instructions: wait states on gfx950
// (target/gfx950/hazards.h), and on gfx1201 waits for scalar results and instructions to stand
// between (target/gfx1201/hazards.h).
//
// The rules are those of the ISA documents as LLVM's hazard recogniser has them, with its
// corrections for the two chips. A compiler knows them; it cannot see into inline assembly.
#ifndef JAX_FA_EMULATOR_CHECK_HAZARD_H_
#define JAX_FA_EMULATOR_CHECK_HAZARD_H_

#include "emulator/decode/decode.h"
#include "emulator/object/launch_context.h"
#include "emulator/target/gfx1201/hazards.h"
#include "emulator/target/gfx950/hazards.h"

namespace jax_fa::emulator {

// What an instruction is to these rules: worked out once, at decode, from its registers.
HazardTraits PlanHazards(const Instruction& instruction, const AccessPlan& plan, Isa isa);

class HazardChecker {
 public:
  // A new workgroup: everything was written long ago.
  void Begin(const Workgroup& group) {
    isa_ = group.launch->program->isa->isa;
    if (isa_ == Isa::kGfx950) {
      gfx950_.Begin(group);
    } else {
      gfx1201_.Begin(group);
    }
  }
  // Before an instruction executes: reports what comes too early, and notes what it writes.
  void Step(Wave& wave, const Instruction& instruction, const AccessPlan& plan) {
    if (isa_ == Isa::kGfx950) {
      gfx950_.Step(wave, instruction, plan);
    } else {
      gfx1201_.Step(wave, instruction, plan);
    }
  }

 private:
  Isa isa_ = {};
  Gfx950Hazards gfx950_;
  Gfx1201Hazards gfx1201_;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_CHECK_HAZARD_H_
