#include "emulator/run/scheduler.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "emulator/decode/disassemble.h"
#include "emulator/exec/in_flight.h"
#include "emulator/run/modes.h"
#include "emulator/run/wave_setup.h"
#include "emulator/state/random.h"

namespace jax_fa::emulator {
namespace {

// Instructions of one turn: few enough that waves interleave within a tile, enough that a wave's
// registers are worth fetching.
constexpr int64_t kTurn = 32;
constexpr int64_t kLongTurn = 1 << 16;
constexpr uint32_t kTurnsPerPoll = 1024;

// What registers and LDS hold before anything is written: not a number in every float format, so
// that it shows.
constexpr uint8_t kPoison = 0xff;

// Between the seeds of workgroups, and of waves.
constexpr uint64_t kGroupStep = 0x9e3779b97f4a7c15, kWaveStep = 64;

constexpr Opcode kNoOpcode = {
    kEncodingCount, 0, "(no instruction)", OpClass::kNop, nullptr, 0, 0, {}, 0};

[[noreturn]] void FailAtPc(Wave& wave, uint32_t pc) {
  Instruction instruction;
  instruction.opcode = &kNoOpcode;
  instruction.pc = pc;
  Fail(wave, instruction, "the program counter is at no instruction of the kernel");
}

}  // namespace

Worker::Worker(LaunchContext* launch)
    : launch_(*launch), checker_(*launch->program->chip), follower_(launch->vgprs) {
  const uint32_t lanes = launch->block[0] * launch->block[1] * launch->block[2];
  const uint32_t wave_size = launch->kernel->info.wave_size;
  const uint32_t waves = (lanes + wave_size - 1) / wave_size;
  group_.waves.resize(waves);
  group_.lds.resize(launch->lds_bytes);
  group_.banks.Reset(launch->program->chip->lds_banks, wave_size);
  group_.memory = launch->memory;
  group_.regions = launch->memory->regions().data();
  group_.buffer_traffic.resize(launch->memory->regions().size());
  group_.scratch_bytes = launch->kernel->descriptor.private_segment_bytes;
  group_.code_base = launch->code_address;
  group_.launch = launch;
  group_.checker = launch->options->checks ? &checker_ : nullptr;
  slot_counts_.resize(launch->code->slots.size());

  // Rows are aligned to their SIMD width.
  constexpr size_t kWaveDwords = size_t{kVgprRows} * kLaneStride;
  constexpr size_t kAlignDwords = 64 / sizeof(uint32_t);
  vgprs_.assign(waves * kWaveDwords + kAlignDwords, ~0u);
  const size_t misaligned =
      reinterpret_cast<uintptr_t>(vgprs_.data()) / sizeof(uint32_t) % kAlignDwords;
  uint32_t* rows = vgprs_.data() + (kAlignDwords - misaligned) % kAlignDwords;
  const size_t wave_scratch = size_t{group_.scratch_bytes} * wave_size;
  scratch_.resize(wave_scratch * waves);
  for (uint32_t w = 0; w < waves; ++w) {
    Wave& wave = group_.waves[w];
    wave.group = &group_;
    wave.checker = group_.checker;
    wave.index_in_group = w;
    wave.vgpr = rows + w * kWaveDwords;
    wave.scratch = scratch_.data() + w * wave_scratch;
  }
}

Worker::~Worker() = default;

void Worker::Reset(uint64_t group_index) {
  group_.id[0] = static_cast<uint32_t>(group_index % launch_.grid[0]);
  group_.id[1] = static_cast<uint32_t>(group_index / launch_.grid[0] % launch_.grid[1]);
  group_.id[2] = static_cast<uint32_t>(group_index / launch_.grid[0] / launch_.grid[1]);
  group_.barrier_phase = 0;
  group_.barrier_signals = 0;
  group_.findings.clear();
  group_.finding_kinds.clear();
  if (launch_.timing) tracer_.Begin(launch_, group_, group_index);
  std::fill(group_.lds.begin(), group_.lds.end(), kPoison);
  std::fill(scratch_.begin(), scratch_.end(), kPoison);
  if (group_.checker) group_.checker->Begin(group_);
  constexpr size_t kRowBytes = kLaneStride * sizeof(uint32_t);
  for (Wave& wave : group_.waves) {
    std::memset(wave.Row(0), kPoison, launch_.vgprs.vector * kRowBytes);
    std::memset(wave.Row(256), kPoison, launch_.vgprs.accumulation * kRowBytes);
    std::memset(wave.sgpr, kPoison, sizeof(wave.sgpr));
    wave.scc = false;
    wave.indexes_vgprs = wave.skips_vectors = false;
    wave.done = false;
    wave.at_barrier = false;
    wave.barrier_signalled = false;
    wave.barrier_phase = 0;
    for (auto& result : wave.in_flight) wave.recycled.push_back(std::move(result));
    wave.in_flight.clear();
    wave.pending = {};
    wave.issued = 0;
    wave.executed = 0;
    wave.priority = 0;
    wave.arrival = launch_.options->arrival;
    wave.random =
        launch_.options->seed * kGroupStep + group_index * kWaveStep + wave.index_in_group;
    SetUpWave(launch_, &wave);
  }
  const std::optional<WavePlace>& follow = launch_.options->follow;
  followed_ = follow && follow->group == group_index ? &group_.waves[follow->wave] : nullptr;
  if (followed_ != nullptr) follower_.Begin(*followed_);
}

template <bool kChecked, bool kTraced, bool kSpecial>
void Worker::RunWave(Wave& wave, int64_t budget) {
  const KernelCode& code = *launch_.code;
  const Instruction* const* const slots = code.slots.data();
  const AccessPlan* const plans = code.plans.data();
  uint64_t* const counts = slot_counts_.data();
  const uint32_t begin = code.begin;
  const auto slot_count = static_cast<uint32_t>(code.slots.size());
  wave.budget = budget;
  int64_t executed = 0;
  do {
    const uint32_t slot = (wave.pc - begin) >> 2;
    if (slot >= slot_count || !slots[slot]) [[unlikely]]
      FailAtPc(wave, wave.pc);
    std::optional<IndexedInstruction> indexed;
    if constexpr (kSpecial) {
      if (wave.skips_vectors && IsVector(*slots[slot])) {
        wave.pc += slots[slot]->size_bytes;
        ++executed;
        continue;
      }
      if (wave.indexes_vgprs && IsIndexed(*slots[slot])) indexed.emplace(wave, *slots[slot]);
    }
    const Instruction& instruction = kSpecial && indexed ? indexed->instruction : *slots[slot];
    const AccessPlan& plan = kSpecial && indexed ? indexed->plan : plans[slot];
    ++counts[slot];
    wave.pc += instruction.size_bytes;
    if constexpr (kTraced) tracer_.Before(wave, instruction);
    if constexpr (kChecked) {
      const uint64_t exec = wave.exec;
      checker_.Before(wave, instruction, plan);
      instruction.exec(wave, instruction);
      checker_.After(wave, plan, exec);
    } else {
      instruction.exec(wave, instruction);
    }
    if constexpr (kTraced) tracer_.After(wave, slot);
    if constexpr (kSpecial) {
      if (&wave == followed_) follower_.After(wave, instruction, plan);
    }
    ++executed;
  } while (executed < wave.budget);
  wave.executed += static_cast<uint64_t>(executed);
}

void Worker::Turn(Wave& wave, int64_t budget) {
  if (wave.arrival == Arrival::kRandom) LetSomeLand(wave);
  if (launch_.timing) {
    group_.checker ? RunWave<true, true>(wave, budget) : RunWave<false, true>(wave, budget);
  } else {
    group_.checker ? RunWave<true, false>(wave, budget) : RunWave<false, false>(wave, budget);
  }
  if (++turns_ % kTurnsPerPoll == 0 || budget >= kLongTurn) Poll();
  if (wave.executed > launch_.options->max_instructions_per_wave) {
    Instruction instruction;
    instruction.opcode = &kNoOpcode;
    instruction.pc = wave.pc;
    Fail(wave, instruction,
         "has run " + std::to_string(wave.executed) +
             " instructions, more than the limit (max_instructions_per_wave = " +
             std::to_string(launch_.options->max_instructions_per_wave) + "): an endless loop?");
  }
}

void Worker::Poll() {
  if (poll_ && launch_.options->interrupted && launch_.options->interrupted()) {
    launch_.cancelled = true;
  }
  if (launch_.cancelled) throw EmulatorError("the emulated launch was interrupted");
}

// A turn for each wave that can run; false when none could.
bool Worker::RunRound(bool reversed, int64_t budget) {
  bool ran = false;
  const size_t count = group_.waves.size();
  for (size_t i = 0; i < count; ++i) {
    Wave& wave = group_.waves[reversed ? count - 1 - i : i];
    // A long turn runs to the next barrier or the end.
    while (!wave.done && !wave.at_barrier) {
      Turn(wave, budget);
      ran = true;
      if (budget != kLongTurn) break;
    }
  }
  return ran;
}

bool Worker::RunRandom(uint64_t* state) {
  size_t ready = 0;
  for (const Wave& wave : group_.waves) ready += wave.done || wave.at_barrier ? 0 : 1;
  if (ready == 0) return false;
  size_t pick = NextRandom(state) % ready;
  for (Wave& wave : group_.waves) {
    if (wave.done || wave.at_barrier || pick-- != 0) continue;
    Turn(wave, 1 + static_cast<int64_t>(NextRandom(state) % (2 * kTurn)));
    break;
  }
  return true;
}

void Worker::Run(uint64_t group_index, bool poll) {
  poll_ = poll;
  Reset(group_index);
  uint64_t random = launch_.options->seed * kGroupStep + group_index;
  bool ran = true;
  while (ran) {
    switch (launch_.options->schedule) {
      case Schedule::kRoundRobin:
        ran = RunRound(/*reversed=*/false, kTurn);
        break;
      case Schedule::kReverse:
        ran = RunRound(/*reversed=*/true, kTurn);
        break;
      case Schedule::kRunToBarrier:
        ran = RunRound(/*reversed=*/false, kLongTurn);
        break;
      case Schedule::kRandom:
        ran = RunRandom(&random);
        break;
    }
  }
  for (Wave& wave : group_.waves) {
    if (!wave.done) Fail(wave, *wave.blocked_at, "waits at a barrier that is never completed");
  }
}

}  // namespace jax_fa::emulator
