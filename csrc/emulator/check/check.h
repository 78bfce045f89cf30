// What is wrong with a kernel though it may run: the checks of registers, LDS and barriers.
//
// Who executes instructions tells only what their operands do not show: the LDS bytes that each
// lane touches, results under way and their arrival, barriers. Everything else the checker derives
// from the decoded instruction. All of these do nothing when checks are off.
#ifndef JAX_FA_EMULATOR_CHECK_CHECK_H_
#define JAX_FA_EMULATOR_CHECK_CHECK_H_

#include <cstdint>

#include "emulator/state/wave.h"

namespace jax_fa::emulator {

void CheckLdsReadSlow(Wave& wave, const Instruction& instruction, uint64_t lanes,
                      const uint32_t* addresses, uint32_t bytes);
void CheckLdsWriteSlow(Wave& wave, const Instruction& instruction, uint64_t lanes,
                       const uint32_t* addresses, uint32_t bytes);

// Call before reading LDS: lane l of `lanes` reads `bytes` bytes at addresses[l], all within the
// workgroup's LDS (the family fails before that otherwise).
inline void CheckLdsRead(Wave& wave, const Instruction& instruction, uint64_t lanes,
                         const uint32_t* addresses, uint32_t bytes) {
  if (wave.checker) CheckLdsReadSlow(wave, instruction, lanes, addresses, bytes);
}
// Call before writing LDS (LDS-DMA: nothing to call, Push sees it).
inline void CheckLdsWrite(Wave& wave, const Instruction& instruction, uint64_t lanes,
                          const uint32_t* addresses, uint32_t bytes) {
  if (wave.checker) CheckLdsWriteSlow(wave, instruction, lanes, addresses, bytes);
}

// What a memory instruction hands in (exec/in_flight.h), and its arrival.
void CheckIssuedSlow(Wave& wave, const Instruction& instruction, const InFlight& result);
void CheckArrivedSlow(Wave& wave, const InFlight& result);
inline void CheckIssued(Wave& wave, const Instruction& instruction, const InFlight& result) {
  if (wave.checker) CheckIssuedSlow(wave, instruction, result);
}
inline void CheckArrived(Wave& wave, const InFlight& result) {
  if (wave.checker) CheckArrivedSlow(wave, result);
}

// The barrier (exec/barrier.h): one wave has signalled, all have, one goes on behind it.
void CheckBarrierSignal(const Wave& wave);
void CheckBarrierComplete(const Workgroup& group);
void CheckBarrierPass(const Wave& wave);

// Registers that hold something before the first instruction.
void DeclareVgpr(const Wave& wave, uint32_t index);
void DeclareSgpr(const Wave& wave, uint32_t index);

// A defect that need not stop the run: raised, or listed under `collect`.
void Report(Wave& wave, const Instruction& instruction, const std::string& what, int lane = -1);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_CHECK_CHECK_H_
