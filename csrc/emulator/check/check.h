// What is wrong with a kernel though it may run: the checks of registers, LDS and barriers.
//
// Exec families report only what the operands of an instruction do not show: the LDS bytes that
// each lane touches. Everything else the engine derives from the decoded instruction. All of these
// do nothing when checks are off.
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

// A defect that need not stop the run: raised, or listed under `collect`.
void Report(Wave& wave, const Instruction& instruction, const std::string& what, int lane = -1);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_CHECK_CHECK_H_
