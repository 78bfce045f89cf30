// The facts of gfx950, and what other files of this folder give to them.
#ifndef JAX_FA_EMULATOR_TARGET_GFX950_CHIP_H_
#define JAX_FA_EMULATOR_TARGET_GFX950_CHIP_H_

#include "emulator/chip/chip.h"

namespace jax_fa::emulator {

extern const Chip kGfx950Chip;
extern const ConstantRow kGfx950Constants[kConstantCount];  // timing.cc: a row for each Constant

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TARGET_GFX950_CHIP_H_
