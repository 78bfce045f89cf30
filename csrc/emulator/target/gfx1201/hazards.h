// What gfx1201 leaves to the program; for everything else its hardware waits by itself. As LLVM has
// it (AMDGPUWaitSGPRHazards.cpp, GCNHazardRecognizer.cpp):
//
// Scalar registers. Vector instructions keep copies of the pairs of scalar registers (s[2n:2n+1],
// VCC) that they have read. Once one has read a pair, a register of it that is written again must
// be waited for before it is read again:
//   written by                  read by           waits that do
//   a scalar instruction        vector or scalar  s_wait_alu depctr_sa_sdst(0)
//   a vector one, not VCC       vector            s_wait_alu depctr_va_sdst(0), or a scalar read
//                                                 of any register but VCC
//   a vector one, VCC           vector            s_wait_alu depctr_va_vcc(0), or a scalar read of
//                                                 VCC
// SMEM and buffer instructions wait for all three, and four ds_nop in a row (waves of 32) drop the
// copies. M0, EXEC and null are not concerned, nor are the addresses of memory instructions.
//
// EXEC. Between a v_cmpx and a v_permlane* stands a vector instruction other than v_nop.
//
// WMMA. After a WMMA, one that reads its result as A or B takes a vector instruction between (v_nop
// will do). As C it may follow.
#ifndef JAX_FA_EMULATOR_TARGET_GFX1201_HAZARDS_H_
#define JAX_FA_EMULATOR_TARGET_GFX1201_HAZARDS_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "emulator/check/hazard.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

// HazardTraits::flags of this target.
struct Gfx1201Hazard {
  enum Flags : uint32_t {
    kSwapsLanes = 1u << 3,  // v_permlane*
    kWritesExecMask = 1u << 9,
    kTouchesScalars = 1u << 13,   // reads or writes s0.. or VCC, other than for an address
    kWaitsForScalars = 1u << 14,  // SMEM, buffer instructions
    kWaitsForAlu = 1u << 15,      // s_wait_alu
    kDropsCopies = 1u << 16,      // ds_nop
    kVectorNop = 1u << 17,
  };
};

// The unit and the flags of an instruction (hazard_plan.cc).
HazardTraits PlanGfx1201Hazards(const Instruction& instruction, const AccessPlan& plan);

class Gfx1201Hazards final : public HazardRules {
 public:
  void Begin(const Workgroup& group) override;
  void Step(Wave& wave, const Instruction& instruction, const AccessPlan& plan) override {
    const HazardTraits::Unit unit = plan.hazard.unit;
    WaveState& state = waves_[wave.index_in_group];
    if (plan.hazard.flags != 0) {
      StepFlagged(wave, instruction, plan, &state);
    } else if (unit == HazardTraits::kVectorUnit || unit == HazardTraits::kMatrixUnit) {
      state.exec_written = false;
    }
    if (unit == HazardTraits::kVectorUnit) {
      state.last_matrix = nullptr;
    } else if (unit == HazardTraits::kMatrixUnit) {
      if (state.last_matrix) CheckMatrix(wave, instruction, *state.last_matrix);
      state.last_matrix = &instruction;
    }
  }

 private:
  static constexpr uint32_t kRegisters = kSgprTtmp0;  // s0.. and VCC
  using Registers = std::bitset<kRegisters>;
  struct WaveState {
    const Instruction* last_matrix = nullptr;  // where it is the vector instruction before
    bool exec_written = false;                 // by a v_cmpx, and no vector instruction since
    uint32_t ds_nops = 0, after_ds_nop = 0;    // in a row; where the next would stand
    std::bitset<kRegisters / 2> copied;        // pairs
    // Written after they were copied, and not waited for.
    Registers by_scalar, by_vector;
    std::array<const Instruction*, kRegisters> writer;
  };

  void StepFlagged(Wave& wave, const Instruction& instruction, const AccessPlan& plan,
                   WaveState* state);
  void Wait(const Instruction& instruction, const HazardTraits& traits, WaveState* state);
  void Read(Wave& wave, const Instruction& instruction, const Access& access, bool vector,
            WaveState* state);
  void CheckMatrix(Wave& wave, const Instruction& instruction, const Instruction& before);

  std::vector<WaveState> waves_;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TARGET_GFX1201_HAZARDS_H_
