#include "emulator/object/occupancy.h"

#include <algorithm>

namespace jax_fa::emulator {
namespace {

// One SIMD and the LDS that its workgroups share.
struct Unit {
  uint32_t simds, max_waves;         // wave slots of a SIMD
  uint32_t vgpr_rows, vgpr_granule;  // per lane
  uint32_t sgprs, sgpr_granule;      // 0: never the limit
  uint32_t lds_bytes, lds_granule;
};

// LLVM's AMDGPUSubtarget and the vendor's specifications.
constexpr Unit kGfx950 = {4, 8, 512, 8, 800, 16, 160 * 1024, 1280};
constexpr Unit kGfx1201Wgp = {4, 16, 1536, 24, 0, 1, 128 * 1024, 1024};
constexpr Unit kGfx1201Cu = {2, 16, 1536, 24, 0, 1, 64 * 1024, 1024};

constexpr uint32_t kWgpMode = 1u << 29;  // COMPUTE_PGM_RSRC1

constexpr uint32_t RoundUp(uint32_t value, uint32_t granule) {
  return (value + granule - 1) / granule * granule;
}

}  // namespace

Occupancy GetOccupancy(const Program& program, const Kernel& kernel, uint32_t lanes,
                       uint32_t lds_bytes) {
  const bool gfx950 = program.isa->isa == Isa::kGfx950;
  const Unit& unit = gfx950                                          ? kGfx950
                     : (kernel.descriptor.resource1 & kWgpMode) != 0 ? kGfx1201Wgp
                                                                     : kGfx1201Cu;
  const VgprRows rows = program.AllocatedVgprs(kernel);
  const uint32_t waves = std::max((lanes + kernel.info.wave_size - 1) / kernel.info.wave_size, 1u);

  Occupancy occupancy;
  occupancy.simds = unit.simds;
  uint32_t per_simd =
      std::min(unit.max_waves, unit.vgpr_rows / RoundUp(rows.allocated, unit.vgpr_granule));
  if (unit.sgprs != 0) {
    per_simd = std::min(per_simd,
                        unit.sgprs / RoundUp(std::max(kernel.info.sgprs, 1u), unit.sgpr_granule));
  }
  // The waves of a workgroup spread evenly over the SIMDs.
  uint32_t groups = waves >= unit.simds ? per_simd / ((waves + unit.simds - 1) / unit.simds)
                                        : per_simd * unit.simds / waves;
  if (lds_bytes != 0) {
    const uint32_t by_lds = unit.lds_bytes / RoundUp(lds_bytes, unit.lds_granule);
    groups = std::min(groups, by_lds);
    per_simd = std::min(per_simd, (by_lds * waves + unit.simds - 1) / unit.simds);
  }
  occupancy.waves_per_simd = std::max(per_simd, 1u);
  occupancy.workgroups_per_unit = std::max(groups, 1u);
  return occupancy;
}

}  // namespace jax_fa::emulator
