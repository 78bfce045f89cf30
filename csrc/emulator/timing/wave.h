// A wave of the timing model: where it is in its trace, and when its next instruction could issue
// for all that the wave itself knows.
#ifndef JAX_FA_EMULATOR_TIMING_WAVE_H_
#define JAX_FA_EMULATOR_TIMING_WAVE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "emulator/timing/constants.h"
#include "emulator/timing/instruction.h"
#include "emulator/timing/trace.h"

namespace jax_fa::emulator {

inline constexpr double kLongAgo = -1e9;

// The barrier of a workgroup.
struct TimedGroup {
  uint32_t alive = 0, signals = 0;
  uint32_t first_line = 0;
  uint64_t phase = 0;    // barriers completed
  double completed = 0;  // when the last one released
};

struct TimedWave {
  const WaveTrace* trace = nullptr;
  TimedGroup* group = nullptr;
  uint32_t place = 0, group_index = 0, index_in_group = 0, simd = 0;
  size_t next = 0;                                // in the trace
  const TimedInstruction* instruction = nullptr;  // what stands there; null: the wave has ended
  double turn = 0;                                // the wave may issue again
  double ready = 0;                               // and the operands are there
  double operands = 0;                            // a queued matrix instruction's operands are
  double last_issue = kLongAgo;
  int priority = 0;
  bool blocked = false;    // at a barrier
  uint64_t signalled = 0;  // phase that its last signal was for

  // Takes up the next instruction of the trace, `timed` by slot.
  void Advance(std::span<const TimedInstruction> timed, const TimingConstants& constants,
               const Chip& chip);
  // The instruction has begun: what it writes, and when what it loads arrives.
  void Write(const TimedInstruction& instruction, double begin);
  void Load(const TimedInstruction& instruction, double arrives);
  // What it is to instructions that wait for all of a kind before them; `end`: of a queued one.
  void Follow(const TimedInstruction& instruction, double begin, double end);

 private:
  // When a register was last written, and how: what reads it waits accordingly.
  struct Result {
    double issued = kLongAgo;
    uint16_t first = 0;  // of the registers written with it
    const TimedInstruction* by = nullptr;
  };
  static double ReadyFor(const Result& result, const TimedInstruction& reader,
                         const TimedInstruction::Use& use, const TimingConstants& constants);
  double Arrived(const TimedInstruction::Wait& wait);

  void WaitForAll(const Chip& chip, const TimingConstants& constants);

  double last_vector_ = kLongAgo, last_scalar_ = kLongAgo;    // when they began
  double drained_ = kLongAgo;                                 // no vector instruction under way
  double stored_ = kLongAgo;                                  // no store under way
  std::array<std::deque<double>, kTimedCounters> under_way_;  // arrival times, oldest first
  std::vector<Result> results_ = std::vector<Result>(kTimedRegisters);
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TIMING_WAVE_H_
