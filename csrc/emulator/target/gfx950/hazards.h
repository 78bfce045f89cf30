// Wait states on gfx950: between the write of a register and a use of it by another kind of unit, a
// kernel has to keep a number of instructions (s_nop n counts n + 1). That is so around the matrix
// cores, lane moves, DPP, M0 and scalar registers that vector instructions write. The numbers are
// those of the CDNA3 ISA document as LLVM's GCNHazardRecognizer.cpp has them for gfx950.
//
// A compiler counts instructions. The chip needs time, and some of it passes in stalls, which
// count here, as far as they are sure whatever the other waves do:
//   vector instructions behind a matrix instruction issue no sooner than the chip lets them (LLVM
//   PR 233721, traces on MI350X);
//   across a taken branch, and across a barrier of several waves, kernels that are right on the
//   chip leave 5 of 8 wait states: each has cost three more than its own.
// A matrix instruction behind another one counts as one: that it waits in its wave and not in a
// queue is in no trace.
#ifndef JAX_FA_EMULATOR_TARGET_GFX950_HAZARDS_H_
#define JAX_FA_EMULATOR_TARGET_GFX950_HAZARDS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/check/hazard.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

// HazardTraits::flags of this target.
struct Gfx950Hazard {
  enum Flags : uint32_t {
    kDpp = 1u << 0,
    kReadsLane = 1u << 1,   // v_readlane, v_readfirstlane
    kPicksLane = 1u << 2,   // v_readlane, v_writelane: source 1 is a lane
    kSwapsLanes = 1u << 3,  // v_permlane*
    kTranscendental = 1u << 4,
    kShiftsResult = 1u << 5,  // SDWA and op_sel that write a part of the register
    kDot = 1u << 6,
    kUsesM0 = 1u << 7,  // LDS-DMA, s_sendmsg, s_movrel
    kDivFmas = 1u << 8,
    kWritesExecMask = 1u << 9,
    kWideStore = 1u << 10,  // of more than 8 bytes a lane
    kSetsRegister = 1u << 11,
    kGetsRegister = 1u << 12,
    kReadsMask = 1u << 18,  // source 2 is a bit for each lane
    kPacked = 1u << 19,     // on two float32
    kMeets = 1u << 20,      // s_barrier
  };
};

// The unit and the flags of an instruction (hazard_plan.cc).
HazardTraits PlanGfx950Hazards(const Instruction& instruction, const AccessPlan& plan);

class Gfx950Hazards final : public HazardRules {
 public:
  void Begin(const Workgroup& group) override;
  void Step(Wave& wave, const Instruction& instruction, const AccessPlan& plan) override;

 private:
  static constexpr uint32_t kStart = 64;  // more than any rule asks for
  struct Write {
    uint32_t when = 0;  // in wait states of the wave
    uint32_t slot = 0;  // KernelCode::slots: by which instruction
  };
  struct WaveState {
    uint32_t now = kStart;
    uint32_t next_pc = 0;                       // behind the last instruction
    uint32_t vector_free = 0, packed_free = 0;  // the first slots after a matrix instruction
    std::array<Write, kVgprRows> vector = {};
    // Read by a matrix instruction as C, or by a wide store, which go on reading for a while.
    std::array<Write, kVgprRows> read = {};
    // By vector instructions.
    std::array<Write, kSgprCount> scalar = {};
    Write exec;
    Write m0;            // by scalar instructions
    Write set_register;  // s_setreg
  };

  // Lets the stalls pass that come before the instruction.
  static void Stall(const Instruction& instruction, const HazardTraits& traits, WaveState* state);
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
