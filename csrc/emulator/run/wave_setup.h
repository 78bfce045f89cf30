// The registers that a wave begins with.
#ifndef JAX_FA_EMULATOR_RUN_WAVE_SETUP_H_
#define JAX_FA_EMULATOR_RUN_WAVE_SETUP_H_

#include "emulator/object/launch_context.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

// Sets EXEC, MODE, the user and system SGPRs and v0 of `wave` as the kernel descriptor says, and
// declares them written. All else of the wave is as new.
void SetUpWave(const LaunchContext& launch, Wave* wave);

// Fills the hidden arguments that lie past the first `given_bytes` of the kernel arguments.
void FillHiddenArguments(const LaunchContext& launch, size_t given_bytes,
                         std::span<uint8_t> kernarg);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_RUN_WAVE_SETUP_H_
