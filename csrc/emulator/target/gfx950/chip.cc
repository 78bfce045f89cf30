// The chip, as LLVM's AMDGPUSubtarget, the ISA document and the vendor's specifications have it.
#include "emulator/target/gfx950/chip.h"

#include "emulator/target/gfx950/decode.h"
#include "emulator/target/gfx950/hazards.h"

namespace jax_fa::emulator {
namespace {

// LDS: the lane groups of 16-byte reads as HipKittens measured them; of the other widths
// consecutive lanes, as many passes as the timing model has.
constexpr uint64_t kRead16a = LaneRange(0, 4) | LaneRange(12, 4) | LaneRange(20, 8);
constexpr uint64_t kRead16b = LaneRange(4, 8) | LaneRange(16, 4) | LaneRange(28, 4);
constexpr uint64_t kReads16[] = {kRead16a, kRead16b, kRead16a << 32, kRead16b << 32};
constexpr uint64_t kAll[] = {LaneRange(0, 64)};
constexpr uint64_t kHalves[] = {LaneRange(0, 32), LaneRange(32, 32)};
constexpr uint64_t kQuarters[] = {LaneRange(0, 16), LaneRange(16, 16), LaneRange(32, 16),
                                  LaneRange(48, 16)};
constexpr uint64_t kEighths[] = {LaneRange(0, 8),  LaneRange(8, 8),  LaneRange(16, 8),
                                 LaneRange(24, 8), LaneRange(32, 8), LaneRange(40, 8),
                                 LaneRange(48, 8), LaneRange(56, 8)};

constexpr ComputeUnit kUnit = {
    .simds = 4,
    .max_waves = 8,
    .sgprs = 800,
    .sgpr_granule = 16,
    .lds_bytes = 160 * 1024,
    .lds_granule = 1280,
};

std::unique_ptr<HazardRules> MakeHazardRules() { return std::make_unique<Gfx950Hazards>(); }

}  // namespace

constinit const Chip kGfx950Chip = {
    .name = "gfx950",
    .elf_machine = 0x4f,
    .wave_size = 64,
    .compute_units = 256,
    .dies = 8,
    .max_lds_bytes = 160 * 1024,
    .max_waves = 16,
    .workgroup_id_in_ttmp = false,
    .has_clamp_and_ieee = true,
    .judges_buffers_by_index = true,
    .loads_write_in_order = true,
    .registers =
        {
            .rows = 512,
            .granule = 8,
            .descriptor_granule = 8,
            .has_accumulation = true,
            .even_tuples = true,
        },
    .unit = kUnit,
    .wide_unit = kUnit,  // no such mode
    .lds_banks =
        {
            .banks = 64,
            .read = LanePasses{kAll, kHalves, kReads16},
            .write = LanePasses{kHalves, kQuarters, kEighths},
        },
    .scalar_codes =
        {
            .m0 = 124,
            .null = kNoCode,
            .flat_scratch = 102,
            .has_vccz_and_execz = true,
        },
    .decode = &DecodeGfx950,
    .opcodes = &Gfx950Opcodes,
    .plan_hazards = &PlanGfx950Hazards,
    .make_hazard_rules = &MakeHazardRules,
    .timing =
        {
            .constants = kGfx950Constants,
            .issue_clk = 4,  // a SIMD has its turn every fourth clock
            .grid_clk = 4,
            .memory_counter_limit = 63,
            .lds_counter_limit = 15,
            .has_store_counter = false,
            .flops_per_clk = 1024,
            .simds_per_l1 = 4,
            .lds_write_passes = 2,  // as its lane groups are
            .memory_follows_alu = false,
        },
};

}  // namespace jax_fa::emulator
