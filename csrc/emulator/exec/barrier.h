// The workgroup barrier, in gfx12's two halves (gfx950's s_barrier is both at once).
//
// A phase is complete when every wave that has not ended has signalled. Waves that have ended do
// not count, as in hardware; with checks on, a barrier that some waves only reach is reported.
#ifndef JAX_FA_EMULATOR_EXEC_BARRIER_H_
#define JAX_FA_EMULATOR_EXEC_BARRIER_H_

#include "emulator/state/wave.h"

namespace jax_fa::emulator {

void SignalBarrier(Wave& wave, const Instruction& instruction);
// Lets the wave go on once the phase that it has signalled is complete.
void WaitAtBarrier(Wave& wave, const Instruction& instruction);
// Ends the wave, which may complete the phase for the others.
void EndWave(Wave& wave, const Instruction& instruction);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_EXEC_BARRIER_H_
