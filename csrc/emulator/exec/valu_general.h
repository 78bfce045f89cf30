// What the general forms of vector instructions share: signs, denormals, output modifiers.
#ifndef JAX_FA_EMULATOR_EXEC_VALU_GENERAL_H_
#define JAX_FA_EMULATOR_EXEC_VALU_GENERAL_H_

#include <cstdint>

#include "emulator/simd/valu_op.h"

namespace jax_fa::emulator {

using Row = uint32_t[kLaneStride];

// Where the sign of a float of this type lies: dword and bit mask. 0: no float.
uint32_t SignMask(LaneType type);
// Denormals of rows of this type become zeros; `high` only counts for 64 bits.
void FlushRows(LaneType type, uint32_t* low, uint32_t* high, int lanes);
// Bit 0: sources keep their denormals; bit 1: results do.
int DenormMode(const Wave& wave, LaneType type);
// Output multiplier and clamp of a float result.
void FinishFloat(const Wave& wave, const Modifiers& mod, LaneType type, uint32_t* low,
                 uint32_t* high);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_EXEC_VALU_GENERAL_H_
