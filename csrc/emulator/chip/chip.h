// What a chip is: every fact that the engine asks of a target, in one structure that each target
// fills once (target/<name>/chip.cc).
//
// All members are `Required`: a target that leaves a fact out does not compile. The targets
// themselves are listed in target/targets.cc, and nowhere else.
#ifndef JAX_FA_EMULATOR_CHIP_CHIP_H_
#define JAX_FA_EMULATOR_CHIP_CHIP_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "emulator/chip/timing_constants.h"
#include "emulator/required.h"
#include "emulator/state/bank_conflicts.h"
#include "emulator/state/instruction.h"

namespace jax_fa::emulator {

struct AccessPlan;    // check/access_plan.h
struct HazardTraits;  // check/access_plan.h
class HazardRules;    // check/hazard.h
class OpcodeIndex;    // decode/decode.h

// Owns what an Instruction points to beside its row: second halves of VOPD.
using InstructionStore = std::deque<Instruction>;

// Decodes the instruction at words[0] (words runs to the end of the text). Returns an empty text
// and fills exec, opcode, size_bytes and the operands, or says which opcode, field or format is
// unknown. `pc` is set by the caller.
using DecodeFn = std::string (*)(std::span<const uint32_t> words, InstructionStore* store,
                                 Instruction* instruction);

// Scalar operands whose code of 7 bits is not that of every target.
inline constexpr uint32_t kNoCode = ~0u;
struct ScalarCodes {
  Required<uint32_t> m0;
  Required<uint32_t> null;          // kNoCode: there is none
  Required<uint32_t> flat_scratch;  // the first of FLAT_SCRATCH and XNACK_MASK; kNoCode: none
  Required<bool> has_vccz_and_execz;
};

// The vector registers of one SIMD, and how a wave gets its share.
struct RegisterFile {
  Required<uint32_t> rows;                // per lane
  Required<uint32_t> granule;             // a wave is given a multiple of this
  Required<uint32_t> descriptor_granule;  // what COMPUTE_PGM_RSRC1 counts in
  Required<bool> has_accumulation;        // a0.. lie in the same file, from ACCUM_OFFSET on
  Required<bool> even_tuples;             // several registers begin at an even one
};

// What a workgroup runs on.
struct ComputeUnit {
  Required<uint32_t> simds;
  Required<uint32_t> max_waves;               // wave slots of a SIMD
  Required<uint32_t> sgprs, sgpr_granule;     // of a SIMD; 0: never the limit
  Required<uint32_t> lds_bytes, lds_granule;  // shared by its workgroups
};

// The structure of the chip as the timing model sees it; its measured numbers are `constants`.
struct TimingShape {
  Required<ConstantRows> constants;
  Required<double> issue_clk;  // a wave issues at most one instruction in this time
  Required<double> grid_clk;   // issue times are multiples of this
  Required<uint32_t> memory_counter_limit, lds_counter_limit;  // results under way
  Required<bool> has_store_counter;                            // stores do not count as loads
  Required<double> flops_per_clk;                              // dense 16-bit, of one SIMD
  Required<uint32_t> simds_per_l1;
  Required<uint32_t> lds_write_passes;  // times the passes of a read
  // LDS and memory instructions wait for all that their wave has given the vector unit before, and
  // those that go to memory for its scalar instructions; else for what they read alone.
  Required<bool> memory_follows_alu;
};

struct Chip {
  Required<const char*> name;      // "gfx950"
  Required<uint32_t> elf_machine;  // EF_AMDGPU_MACH of the ELF's e_flags
  Required<uint32_t> wave_size;
  Required<uint32_t> compute_units;
  Required<uint32_t> dies;  // workgroup ids go round them

  // What one workgroup may have, and how it begins.
  Required<uint32_t> max_lds_bytes;
  Required<uint32_t> max_waves;
  Required<bool> workgroup_id_in_ttmp;  // in ttmp7 and ttmp9, not in SGPRs
  Required<bool> has_clamp_and_ieee;    // MODE.DX10_CLAMP and MODE.IEEE

  // Whether a buffer with a stride is in range is told by its index alone, by no mode of the
  // resource. Where it is not, such buffers are not emulated.
  Required<bool> judges_buffers_by_index;
  // Two loads from memory into one register: the later one stays (LLVM: vmem-write-vgpr-in-order).
  Required<bool> loads_write_in_order;

  RegisterFile registers;
  ComputeUnit unit;       // one compute unit
  ComputeUnit wide_unit;  // what a workgroup of a kernel in work-group-processor mode runs on
  LdsBanks lds_banks;
  ScalarCodes scalar_codes;

  Required<DecodeFn> decode;
  Required<const OpcodeIndex& (*)()> opcodes;
  Required<HazardTraits (*)(const Instruction&, const AccessPlan&)> plan_hazards;
  Required<std::unique_ptr<HazardRules> (*)()> make_hazard_rules;

  TimingShape timing;

  uint32_t simds() const { return compute_units * unit.simds; }
  // Scalar registers that hold a lane mask.
  uint8_t mask_dwords() const { return static_cast<uint8_t>(wave_size / 32); }
};

// target/targets.cc.
std::span<const Chip* const> Targets();
const Chip* TargetNamed(const std::string& name);     // null: none
const Chip* TargetOfElf(uint32_t machine);            // null: none
std::string TargetNames(const std::string& between);  // "gfx950 or gfx1201"

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_CHIP_CHIP_H_
