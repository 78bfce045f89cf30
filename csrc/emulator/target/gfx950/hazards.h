// Wait states on gfx950: between the write of a register and a use of it by another kind of unit, a
// kernel has to keep a number of instructions (s_nop n counts n + 1). That is so around the matrix
// cores, lane moves, DPP, M0 and scalar registers that vector instructions write. The numbers are
// those of the CDNA3 ISA document as LLVM's GCNHazardRecognizer.cpp has them for gfx950.
#ifndef JAX_FA_EMULATOR_TARGET_GFX950_HAZARDS_H_
#define JAX_FA_EMULATOR_TARGET_GFX950_HAZARDS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/check/access_plan.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

class Gfx950Hazards {
 public:
  // A new workgroup: everything was written long ago.
  void Begin(const Workgroup& group);
  // Before an instruction executes: reports what comes too early, and notes what it writes.
  void Step(Wave& wave, const Instruction& instruction, const AccessPlan& plan);

 private:
  static constexpr uint32_t kStart = 64;  // more than any rule asks for
  struct Write {
    uint32_t when = 0;  // in wait states of the wave
    uint32_t slot = 0;  // KernelCode::slots: by which instruction
  };
  struct WaveState {
    uint32_t now = kStart;
    std::array<Write, kVgprRows> vector = {};
    // Read by a matrix instruction as C, or by a wide store, which go on reading for a while.
    std::array<Write, kVgprRows> read = {};
    // By vector instructions.
    std::array<Write, kSgprCount> scalar = {};
    Write exec;
    Write m0;            // by scalar instructions
    Write set_register;  // s_setreg
  };

  void Check(Wave& wave, const Instruction& instruction, const AccessPlan& plan,
             const WaveState& state);
  void CheckVectorRead(Wave& wave, const Instruction& instruction, const AccessPlan& plan,
                       const Access& access, const WaveState& state);
  void CheckVectorWrite(Wave& wave, const Instruction& instruction, const AccessPlan& plan,
                        const Access& access, const WaveState& state);
  void CheckScalarRead(Wave& wave, const Instruction& instruction, const AccessPlan& plan,
                       const Access& access, const WaveState& state);
  void CheckOthers(Wave& wave, const Instruction& instruction, const HazardTraits& traits,
                   const WaveState& state);
  static void Note(const Instruction& instruction, const AccessPlan& plan, Write here,
                   WaveState* state);

  uint32_t first_pc_ = 0;  // KernelCode::begin
  std::vector<WaveState> waves_;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TARGET_GFX950_HAZARDS_H_
