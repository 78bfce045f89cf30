// Follows one wave of a launch: what each of its instructions changed.
#ifndef JAX_FA_EMULATOR_RUN_FOLLOWER_H_
#define JAX_FA_EMULATOR_RUN_FOLLOWER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/check/access_plan.h"
#include "emulator/emulator.h"
#include "emulator/object/program.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

class Follower {
 public:
  // `rows`: the vector registers that the kernel has.
  explicit Follower(const VgprRows& rows) : rows_(rows) {}

  // Before the wave's first instruction.
  void Begin(const Wave& wave);
  // After each. Past kMaxSteps nothing is kept.
  void After(const Wave& wave, const Instruction& instruction, const AccessPlan& plan);
  std::vector<WaveStep> Take() { return std::move(steps_); }

 private:
  // Of a wave: v0.., a0.. (from row 256 on), scalars, SCC.
  struct State {
    std::vector<uint32_t> vector;
    std::array<uint32_t, kSgprCount> scalar = {};
    bool scc = false;
  };

  template <class Visit>
  void ForEachRow(const Visit& visit) const;
  void NoteVectors(const Wave& wave, const AccessPlan& plan, WaveStep* step);
  void NoteScalars(const Wave& wave, const AccessPlan& plan, WaveStep* step);

  const VgprRows rows_;
  State known_;
  std::vector<WaveStep> steps_;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_RUN_FOLLOWER_H_
