// Runs the waves of one workgroup in the order that the schedule says.
#ifndef JAX_FA_EMULATOR_RUN_SCHEDULER_H_
#define JAX_FA_EMULATOR_RUN_SCHEDULER_H_

#include <cstdint>
#include <vector>

#include "emulator/check/checker.h"
#include "emulator/object/launch_context.h"
#include "emulator/run/follower.h"
#include "emulator/state/wave.h"
#include "emulator/timing/trace.h"

namespace jax_fa::emulator {

// One thread's engine: it runs workgroups one after another and keeps their totals.
class Worker {
 public:
  explicit Worker(LaunchContext* launch);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs a workgroup to its end. Throws EmulatorError. `poll`: this thread asks
  // LaunchOptions::interrupted now and then.
  void Run(uint64_t group_index, bool poll);

  // Totals so far.
  const std::vector<uint64_t>& slot_counts() const { return slot_counts_; }
  const Workgroup& group() const { return group_; }
  // What the last workgroup executed, of a timed launch; taken away.
  GroupTrace TakeTrace() { return tracer_.Take(); }
  // What the followed wave did, if it was of the last workgroup; taken away.
  std::vector<WaveStep> TakeSteps() { return follower_.Take(); }
  // Findings of the last workgroup, taken away.
  std::vector<std::string> TakeFindings() { return std::move(group_.findings); }

 private:
  void Reset(uint64_t group_index);
  // kSpecial: of the followed wave, and of one under modes that change what instructions do.
  template <bool kChecked, bool kTraced, bool kSpecial>
  void RunWave(Wave& wave, int64_t budget);
  template <bool kChecked, bool kTraced>
  void RunWave(Wave& wave, int64_t budget) {
    &wave == followed_ || wave.indexes_vgprs || wave.skips_vectors
        ? RunWave<kChecked, kTraced, true>(wave, budget)
        : RunWave<kChecked, kTraced, false>(wave, budget);
  }
  void Turn(Wave& wave, int64_t budget);
  bool RunRound(bool reversed, int64_t budget);
  bool RunRandom(uint64_t* state);
  void Poll();

  LaunchContext& launch_;
  Workgroup group_;
  Checker checker_;
  Tracer tracer_;
  Follower follower_;
  const Wave* followed_ = nullptr;  // if it is of this workgroup
  std::vector<uint32_t> vgprs_;
  std::vector<uint8_t> scratch_;
  std::vector<uint64_t> slot_counts_;
  bool poll_ = false;
  uint32_t turns_ = 0;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_RUN_SCHEDULER_H_
