#include "emulator/object/occupancy.h"

#include <algorithm>

namespace jax_fa::emulator {
namespace {

constexpr uint32_t kWgpMode = 1u << 29;  // COMPUTE_PGM_RSRC1

constexpr uint32_t RoundUp(uint32_t value, uint32_t granule) {
  return (value + granule - 1) / granule * granule;
}

}  // namespace

Occupancy GetOccupancy(const Program& program, const Kernel& kernel, uint32_t lanes,
                       uint32_t lds_bytes) {
  const Chip& chip = *program.chip;
  const ComputeUnit& unit =
      (kernel.descriptor.resource1 & kWgpMode) != 0 ? chip.wide_unit : chip.unit;
  const VgprRows rows = program.AllocatedVgprs(kernel);
  const uint32_t waves = std::max((lanes + kernel.info.wave_size - 1) / kernel.info.wave_size, 1u);

  Occupancy occupancy;
  occupancy.simds = unit.simds;
  uint32_t per_simd = std::min<uint32_t>(
      unit.max_waves, chip.registers.rows / RoundUp(rows.allocated, chip.registers.granule));
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
