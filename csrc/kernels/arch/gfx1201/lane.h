// gfx1201: who a lane is, and what it shares with other lanes.
#ifndef JAX_FA_KERNELS_ARCH_GFX1201_LANE_H_
#define JAX_FA_KERNELS_ARCH_GFX1201_LANE_H_

#include "kernels/arch/common.h"
#include "kernels/arch/gfx1201/limits.h"
#include "kernels/device.h"

namespace jax_fa::arch {

// This lane's number in the wave. v_mbcnt makes it afresh wherever it is wanted: held in a
// register, it and what follows from it would lie there through the main loop for the sake of masks
// and tails.
JAX_FA_DEVICE u32 lane_id() { return __builtin_amdgcn_mbcnt_lo(~0u, opaque_uniform(0u)); }

JAX_FA_DEVICE u32 wave_id() {
  return uniform(__builtin_amdgcn_workitem_id_x() / gfx1201::kWaveSize);
}

// The lanes of which `condition` is true, as bits of a scalar register. Loops that a flag ends want
// it in this form: the compiler would carry a bool from turn to turn as a vector's.
JAX_FA_DEVICE u32 lanes_where(bool condition) { return __builtin_amdgcn_ballot_w32(condition); }
// True in every lane when `condition` is true in one.
JAX_FA_DEVICE bool any_lane(bool condition) { return lanes_where(condition) != 0; }
JAX_FA_DEVICE int count_lanes(bool condition) {
  return __builtin_popcount(__builtin_amdgcn_ballot_w32(condition));
}

// Gives each lane the x of lane `lane_bytes` / 4.
JAX_FA_DEVICE u32 permute_lanes(u32 x, u32 lane_bytes) {
  return __builtin_amdgcn_ds_bpermute(lane_bytes, x);
}

// Gives lane l the x of lane l^16, which holds the same query row.
JAX_FA_DEVICE float other_half(float x) {
  const u32 bits = __builtin_bit_cast(u32, x);
  return __builtin_bit_cast(
      float, __builtin_amdgcn_permlanex16(bits, bits, 0x76543210, 0xfedcba98, false, false));
}

// The maximum over the two lanes that hold one query row.
JAX_FA_DEVICE float row_maximum(float x) { return maximum(x, other_half(x)); }

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX1201_LANE_H_
