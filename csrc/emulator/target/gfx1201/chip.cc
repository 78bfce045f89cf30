// The chip, as LLVM's AMDGPUSubtarget, the ISA document and the vendor's specifications have it.
#include "emulator/target/gfx1201/chip.h"

#include "emulator/target/gfx1201/decode.h"
#include "emulator/target/gfx1201/hazards.h"

namespace jax_fa::emulator {
namespace {

// LDS: consecutive lanes, whose bytes fill the banks once.
constexpr uint64_t kAll[] = {LaneRange(0, 32)};
constexpr uint64_t kHalves[] = {LaneRange(0, 16), LaneRange(16, 16)};
constexpr uint64_t kQuarters[] = {LaneRange(0, 8), LaneRange(8, 8), LaneRange(16, 8),
                                  LaneRange(24, 8)};

std::unique_ptr<HazardRules> MakeHazardRules() { return std::make_unique<Gfx1201Hazards>(); }

}  // namespace

constinit const Chip kGfx1201Chip = {
    .name = "gfx1201",
    .elf_machine = 0x4e,
    .wave_size = 32,
    .compute_units = 64,
    .dies = 1,
    .max_lds_bytes = 64 * 1024,
    .max_waves = 32,
    .workgroup_id_in_ttmp = true,
    .has_clamp_and_ieee = false,
    .judges_buffers_by_index = false,  // by OOB_SELECT
    .loads_write_in_order = false,
    .registers =
        {
            .rows = 1536,
            .granule = 24,
            .descriptor_granule = 8,
            .has_accumulation = false,
            .even_tuples = false,
        },
    .unit =
        {
            .simds = 2,
            .max_waves = 16,
            .sgprs = 0,
            .sgpr_granule = 1,
            .lds_bytes = 64 * 1024,
            .lds_granule = 1024,
        },
    .wide_unit =
        {
            .simds = 4,
            .max_waves = 16,
            .sgprs = 0,
            .sgpr_granule = 1,
            .lds_bytes = 128 * 1024,
            .lds_granule = 1024,
        },
    .lds_banks =
        {
            .banks = 32,
            .read = LanePasses{kAll, kHalves, kQuarters},
            .write = LanePasses{kAll, kHalves, kQuarters},
        },
    .scalar_codes =
        {
            .m0 = 125,
            .null = 124,
            .flat_scratch = kNoCode,
            .has_vccz_and_execz = false,
        },
    .decode = &DecodeGfx1201,
    .opcodes = &Gfx1201Opcodes,
    .plan_hazards = &PlanGfx1201Hazards,
    .make_hazard_rules = &MakeHazardRules,
    .timing =
        {
            .constants = kGfx1201Constants,
            .issue_clk = 1,
            .grid_clk = 0.5,  // an exponential is modelled to hold the VALU for 3.5
            .memory_counter_limit = 63,
            .lds_counter_limit = 63,
            .has_store_counter = true,
            .flops_per_clk = 512,
            .simds_per_l1 = 2,  // there called L0
            .lds_write_passes = 1,
            .memory_follows_alu = true,  // SQTT traces
        },
};

}  // namespace jax_fa::emulator
