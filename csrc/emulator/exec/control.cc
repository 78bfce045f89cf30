// Program flow: branches, waits, barriers, the MODE register, the end of a wave.
#include <algorithm>

#include "emulator/exec/barrier.h"
#include "emulator/exec/in_flight.h"
#include "emulator/exec/scalar.h"

namespace jax_fa::emulator {
namespace {

using u32 = uint32_t;

void Branch(Wave& wave, const Instruction& instruction) {
  wave.pc += static_cast<u32>(instruction.simm16) * 4;
}
template <auto kCondition>
void BranchIf(Wave& wave, const Instruction& instruction) {
  if (kCondition(wave)) Branch(wave, instruction);
}

void JumpTo(Wave& wave, const Instruction& instruction, uint64_t address) {
  const uint64_t pc = address - wave.group->code_base;
  if (pc > 0xffffffff) Fail(wave, instruction, "jumps out of the code object");
  wave.pc = static_cast<u32>(pc);
}
void GetPc(Wave& wave, const Instruction& instruction) {
  WriteScalar64(wave, instruction.dst, wave.group->code_base + wave.pc);
}
void SetPc(Wave& wave, const Instruction& instruction) {
  JumpTo(wave, instruction, ReadScalarSource(wave, instruction.src[0]));
}
void SwapPc(Wave& wave, const Instruction& instruction) {
  const uint64_t target = ReadScalarSource(wave, instruction.src[0]);
  GetPc(wave, instruction);
  JumpTo(wave, instruction, target);
}
void Call(Wave& wave, const Instruction& instruction) {
  GetPc(wave, instruction);
  Branch(wave, instruction);
}

void Trap(Wave& wave, const Instruction& instruction) {
  Fail(wave, instruction, "the kernel traps");
}

void WaitCountsOf(Wave& wave, const Instruction& instruction) {
  const auto [vmcnt, lgkmcnt] = PackedWaitCounts(static_cast<u32>(instruction.simm16));
  if (vmcnt != 63) {
    WaitFor(wave, CounterBit(Counter::kLoad) | CounterBit(Counter::kStore), vmcnt);
  }
  if (lgkmcnt != 15) {
    WaitFor(wave, CounterBit(Counter::kDs) | CounterBit(Counter::kKm), lgkmcnt);
  }
}
template <Counter kCounter>
void WaitOne(Wave& wave, const Instruction& instruction) {
  WaitFor(wave, CounterBit(kCounter), static_cast<u32>(instruction.simm16) & 63);
}
// The other counter in bits [13:8], dscnt in [5:0].
template <Counter kCounter>
void WaitAndDs(Wave& wave, const Instruction& instruction) {
  const u32 bits = static_cast<u32>(instruction.simm16);
  WaitFor(wave, CounterBit(kCounter), (bits >> 8) & 63);
  WaitFor(wave, CounterBit(Counter::kDs), bits & 63);
}
void WaitIdle(Wave& wave, const Instruction&) {
  for (u32 counter = 0; counter < static_cast<u32>(Counter::kCount); ++counter) {
    WaitFor(wave, 1u << counter, 0);
  }
}

void Barrier(Wave& wave, const Instruction& instruction) {
  SignalBarrier(wave, instruction);
  WaitAtBarrier(wave, instruction);
}
void RequireWorkgroupBarrier(Wave& wave, const Instruction& instruction, int32_t number) {
  if (number != -1) {
    Fail(wave, instruction,
         "only the workgroup barrier -1 exists here, not " + std::to_string(number));
  }
}
int32_t BarrierNumber(const Wave& wave, const Instruction& instruction) {
  return static_cast<int32_t>(ReadScalar32(wave, instruction.src[0]));
}
void BarrierSignal(Wave& wave, const Instruction& instruction) {
  RequireWorkgroupBarrier(wave, instruction, BarrierNumber(wave, instruction));
  SignalBarrier(wave, instruction);
}
void BarrierSignalIsFirst(Wave& wave, const Instruction& instruction) {
  RequireWorkgroupBarrier(wave, instruction, BarrierNumber(wave, instruction));
  wave.scc = wave.group->barrier_signals == 0;
  SignalBarrier(wave, instruction);
}
void BarrierWait(Wave& wave, const Instruction& instruction) {
  RequireWorkgroupBarrier(wave, instruction, instruction.simm16);
  WaitAtBarrier(wave, instruction);
}

void SetPriority(Wave& wave, const Instruction& instruction) {
  wave.priority = instruction.simm16 & 3;
}

// hwreg: number in [5:0], first bit in [10:6], width - 1 in [15:11].
struct HardwareRegister {
  u32 number, first_bit, mask;
};
HardwareRegister HardwareField(const Instruction& instruction) {
  const u32 bits = static_cast<u32>(instruction.simm16);
  const u32 width = ((bits >> 11) & 31) + 1;
  return {bits & 63, (bits >> 6) & 31, width == 32 ? ~0u : (1u << width) - 1};
}
constexpr u32 kModeRegister = 1;

u32 ReadMode(const Wave& wave) {
  return u32{wave.round_f32} | u32{wave.round_f64} << 2 | u32{wave.denorm_f32} << 4 |
         u32{wave.denorm_f64} << 6 | (wave.dx10_clamp ? 1u << 8 : 0) | (wave.ieee ? 1u << 9 : 0) |
         (wave.indexes_vgprs ? 1u << 27 : 0) | (wave.skips_vectors ? 1u << 28 : 0);
}
void WriteMode(Wave& wave, const Instruction& instruction, u32 mode) {
  wave.round_f32 = mode & 3;
  wave.round_f64 = (mode >> 2) & 3;
  wave.denorm_f32 = (mode >> 4) & 3;
  wave.denorm_f64 = (mode >> 6) & 3;
  wave.dx10_clamp = (mode & (1u << 8)) != 0;
  wave.ieee = (mode & (1u << 9)) != 0;
  if ((mode & (1u << 23)) != 0) {
    Fail(wave, instruction, "sets MODE.FP16_OVFL, which is not emulated");
  }
  if (((mode ^ ReadMode(wave)) & (3u << 27)) != 0) {
    Fail(wave, instruction,
         "sets MODE.GPR_IDX_EN or MODE.VSKIP, which it does by instructions only");
  }
}
void GetRegister(Wave& wave, const Instruction& instruction) {
  const HardwareRegister field = HardwareField(instruction);
  // Where a wave runs (HW_ID, XCC_ID, ...) and its status read as 0: no result may depend on it.
  const u32 value = field.number == kModeRegister ? ReadMode(wave) : 0;
  WriteScalar32(wave, instruction.dst, (value >> field.first_bit) & field.mask);
}
void SetRegisterField(Wave& wave, const Instruction& instruction, u32 value) {
  const HardwareRegister field = HardwareField(instruction);
  if (field.number != kModeRegister) {
    Fail(wave, instruction,
         "writes hardware register " + std::to_string(field.number) + ", which is not emulated");
  }
  const u32 mask = field.mask << field.first_bit;
  WriteMode(wave, instruction, (ReadMode(wave) & ~mask) | ((value << field.first_bit) & mask));
}
void SetRegister(Wave& wave, const Instruction& instruction) {
  SetRegisterField(wave, instruction, ReadScalar32(wave, instruction.src[0]));
}
void SetRegisterImmediate(Wave& wave, const Instruction& instruction) {
  SetRegisterField(wave, instruction, instruction.src[2].value);
}
void RoundMode(Wave& wave, const Instruction& instruction) {
  WriteMode(wave, instruction,
            (ReadMode(wave) & ~0xfu) | (static_cast<u32>(instruction.simm16) & 0xf));
}
void DenormMode(Wave& wave, const Instruction& instruction) {
  WriteMode(wave, instruction,
            (ReadMode(wave) & ~0xf0u) | ((static_cast<u32>(instruction.simm16) & 0xf) << 4));
}

#define CONTROL(name, op_class, exec, flags) {kSopp, name, op_class, exec, 0, {}, flags}
#define BRANCH_IF(name, condition, flags) \
  CONTROL(name, OpClass::kBranch,         \
          (BranchIf<[](const Wave& wave) -> bool { return (condition); }>), flags)
#define NOP(name) CONTROL(name, OpClass::kNop, Nothing, 0)
#define WAIT(name, exec) CONTROL(name, OpClass::kWait, exec, 0)

constexpr uint32_t kVcc = kReadsVccImplicitly;
constexpr ScalarOp kScalarControlOps[] = {
    {kSopp,
     "s_nop",
     OpClass::kNop,
     Nothing,
     0,
     {},
     0,
     {.hazard = HazardClass::kWaitStates, .timing = TimingClass::kWaitStates}},
    {kSopp,
     "s_endpgm",
     OpClass::kBranch,
     EndWave,
     0,
     {},
     kTerminator,
     {.timing = TimingClass::kEnd}},
    {kSopp,
     "s_endpgm_saved",
     OpClass::kBranch,
     EndWave,
     0,
     {},
     kTerminator,
     {.timing = TimingClass::kEnd}},
    CONTROL("s_branch", OpClass::kBranch, Branch, kTerminator),
    BRANCH_IF("s_cbranch_scc0", !wave.scc, kReadsScc),
    BRANCH_IF("s_cbranch_scc1", wave.scc, kReadsScc),
    BRANCH_IF("s_cbranch_vccz", wave.ReadMask(kSgprVccLo) == 0, kVcc),
    BRANCH_IF("s_cbranch_vccnz", wave.ReadMask(kSgprVccLo) != 0, kVcc),
    BRANCH_IF("s_cbranch_execz", wave.exec == 0, kReadsExec),
    BRANCH_IF("s_cbranch_execnz", wave.exec != 0, kReadsExec),
    {kSop1, "s_getpc_b64", OpClass::kSalu, GetPc, 2, {}, 0},
    {kSop1, "s_setpc_b64", OpClass::kBranch, SetPc, 0, {2, 0, 0}, kTerminator},
    {kSop1, "s_swappc_b64", OpClass::kBranch, SwapPc, 2, {2, 0, 0}, 0},
    {kSopk, "s_call_b64", OpClass::kBranch, Call, 2, {}, 0},
    CONTROL("s_trap", OpClass::kBranch, Trap, 0),

    {kSopp,
     "s_waitcnt",
     OpClass::kWait,
     WaitCountsOf,
     0,
     {},
     0,
     {.timing = TimingClass::kWaitPacked}},
    {kSopp,
     "s_wait_loadcnt",
     OpClass::kWait,
     WaitOne<Counter::kLoad>,
     0,
     {},
     0,
     {.timing = TimingClass::kWaitLoads}},
    {kSopp,
     "s_wait_storecnt",
     OpClass::kWait,
     WaitOne<Counter::kStore>,
     0,
     {},
     0,
     {.timing = TimingClass::kWaitStores}},
    WAIT("s_wait_samplecnt", WaitOne<Counter::kSample>),
    WAIT("s_wait_bvhcnt", WaitOne<Counter::kBvh>),
    WAIT("s_wait_expcnt", WaitOne<Counter::kExp>),
    {kSopp,
     "s_wait_dscnt",
     OpClass::kWait,
     WaitOne<Counter::kDs>,
     0,
     {},
     0,
     {.timing = TimingClass::kWaitLds}},
    {kSopp,
     "s_wait_kmcnt",
     OpClass::kWait,
     WaitOne<Counter::kKm>,
     0,
     {},
     0,
     {.timing = TimingClass::kWaitScalars}},
    {kSopp,
     "s_wait_loadcnt_dscnt",
     OpClass::kWait,
     WaitAndDs<Counter::kLoad>,
     0,
     {},
     0,
     {.timing = TimingClass::kWaitLoadsAndLds}},
    {kSopp,
     "s_wait_storecnt_dscnt",
     OpClass::kWait,
     WaitAndDs<Counter::kStore>,
     0,
     {},
     0,
     {.timing = TimingClass::kWaitStoresAndLds}},
    {kSopp, "s_wait_idle", OpClass::kWait, WaitIdle, 0, {}, 0, {.timing = TimingClass::kWaitAll}},

    {kSopp, "s_barrier", OpClass::kBarrier, Barrier, 0, {}, 0, {.timing = TimingClass::kBarrier}},
    {kSop1,
     "s_barrier_signal",
     OpClass::kBarrier,
     BarrierSignal,
     0,
     {1, 0, 0},
     0,
     {.timing = TimingClass::kBarrierSignal}},
    {kSop1,
     "s_barrier_signal_isfirst",
     OpClass::kBarrier,
     BarrierSignalIsFirst,
     0,
     {1, 0, 0},
     kWritesScc,
     {.timing = TimingClass::kBarrierSignal}},
    {kSopp,
     "s_barrier_wait",
     OpClass::kBarrier,
     BarrierWait,
     0,
     {},
     0,
     {.timing = TimingClass::kBarrierWait}},

    // Hints, and dependencies that the hardware or the compiler has to mind, with no effect on
    // results.
    NOP("s_clause"),
    NOP("s_delay_alu"),
    {kSopp,
     "s_wait_alu",
     OpClass::kNop,
     Nothing,
     0,
     {},
     0,
     {.hazard = HazardClass::kWaitAlu, .timing = TimingClass::kWaitAlu}},
    NOP("s_wait_event"),
    {kSopp, "s_sleep", OpClass::kNop, Nothing, 0, {}, 0, {.timing = TimingClass::kSleep}},
    NOP("s_icache_inv"),
    NOP("s_wakeup"),
    {kSopp, "s_sendmsg", OpClass::kNop, Nothing, 0, {}, 0, {.hazard = HazardClass::kUsesM0}},
    NOP("s_incperflevel"),
    NOP("s_decperflevel"),
    NOP("s_ttracedata"),
    NOP("s_ttracedata_imm"),
    {kSopk, "s_version", OpClass::kNop, Nothing, 0, {}, 0},
    {kSop1, "s_sleep_var", OpClass::kNop, Nothing, 0, {1, 0, 0}, 0},
    {kSopp, "s_setprio", OpClass::kNop, SetPriority, 0, {}, 0, {.timing = TimingClass::kPriority}},

    {kSopk,
     "s_getreg_b32",
     OpClass::kSalu,
     GetRegister,
     1,
     {},
     0,
     {.hazard = HazardClass::kGetRegister}},
    {kSopk,
     "s_setreg_b32",
     OpClass::kSalu,
     SetRegister,
     0,
     {1, 0, 0},
     0,
     {.hazard = HazardClass::kSetRegister}},
    {kSopk,
     "s_setreg_imm32_b32",
     OpClass::kSalu,
     SetRegisterImmediate,
     0,
     {0, 0, 1},
     kTakesLiteral,
     {.hazard = HazardClass::kSetRegister}},
    CONTROL("s_round_mode", OpClass::kSalu, RoundMode, 0),
    CONTROL("s_denorm_mode", OpClass::kSalu, DenormMode, 0),
};

}  // namespace

std::span<const ScalarOp> ScalarControlOps() { return kScalarControlOps; }

}  // namespace jax_fa::emulator
