// How many waves of a kernel the registers, the LDS and the wave slots of a compute unit hold.
#ifndef JAX_FA_EMULATOR_OBJECT_OCCUPANCY_H_
#define JAX_FA_EMULATOR_OBJECT_OCCUPANCY_H_

#include <cstdint>

#include "emulator/object/program.h"

namespace jax_fa::emulator {

// "Unit" is what a workgroup runs on: a CU of gfx950; on gfx1201 a work-group processor (two CUs)
// or, in CU mode, one CU.
struct Occupancy {
  uint32_t simds = 0;                // of a unit
  uint32_t waves_per_simd = 0;       // as registers, LDS and wave slots allow
  uint32_t workgroups_per_unit = 0;  // the same in whole workgroups
};

// `lanes` of a workgroup and all of its `lds_bytes`.
Occupancy GetOccupancy(const Program& program, const Kernel& kernel, uint32_t lanes,
                       uint32_t lds_bytes);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_OBJECT_OCCUPANCY_H_
