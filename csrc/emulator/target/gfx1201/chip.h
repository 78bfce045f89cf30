// The facts of gfx1201, and what other files of this folder give to them.
#ifndef JAX_FA_EMULATOR_TARGET_GFX1201_CHIP_H_
#define JAX_FA_EMULATOR_TARGET_GFX1201_CHIP_H_

#include "emulator/chip/chip.h"

namespace jax_fa::emulator {

extern const Chip kGfx1201Chip;
extern const ConstantRow kGfx1201Constants[kConstantCount];  // timing.cc: a row for each Constant

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TARGET_GFX1201_CHIP_H_
