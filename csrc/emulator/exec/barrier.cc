#include "emulator/exec/barrier.h"

#include "emulator/check/check.h"

namespace jax_fa::emulator {
namespace {

// The wave has signalled the phase that is not yet complete.
bool HasSignalled(const Wave& wave) {
  return wave.barrier_signalled && wave.barrier_phase == wave.group->barrier_phase;
}

void CompleteIfAllSignalled(Workgroup& group) {
  uint32_t alive = 0;
  for (const Wave& wave : group.waves) alive += wave.done ? 0 : 1;
  if (group.barrier_signals == 0 || group.barrier_signals < alive) return;
  group.barrier_signals = 0;
  ++group.barrier_phase;
  CheckBarrierComplete(group);
  for (Wave& wave : group.waves) {
    if (!wave.at_barrier) continue;
    wave.at_barrier = false;
    wave.barrier_signalled = false;
    CheckBarrierPass(wave);
  }
}

}  // namespace

void SignalBarrier(Wave& wave, const Instruction& instruction) {
  Workgroup& group = *wave.group;
  if (HasSignalled(wave)) Fail(wave, instruction, "signals a barrier twice before it is complete");
  wave.barrier_signalled = true;
  wave.barrier_phase = group.barrier_phase;
  ++group.barrier_signals;
  if (group.checker) {
    CheckBarrierSignal(wave);
    for (const Wave& other : group.waves) {
      if (!other.done) continue;
      Report(wave, instruction,
             "wave " + std::to_string(other.index_in_group) +
                 " of this workgroup has ended without reaching this barrier");
      break;
    }
  }
  CompleteIfAllSignalled(group);
}

void WaitAtBarrier(Wave& wave, const Instruction& instruction) {
  if (!wave.barrier_signalled) Fail(wave, instruction, "waits at a barrier it has not signalled");
  if (HasSignalled(wave)) {
    wave.at_barrier = true;
    wave.blocked_at = &instruction;
    wave.budget = 0;
  } else {
    wave.barrier_signalled = false;
    CheckBarrierPass(wave);
  }
}

void EndWave(Wave& wave, const Instruction& instruction) {
  Workgroup& group = *wave.group;
  wave.done = true;
  wave.budget = 0;
  if (HasSignalled(wave)) --group.barrier_signals;
  if (group.checker && group.barrier_signals > 0) {
    Report(wave, instruction, "ends while others wait at a barrier that it has not reached");
  }
  CompleteIfAllSignalled(group);
}

}  // namespace jax_fa::emulator
