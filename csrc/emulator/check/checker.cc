#include "emulator/check/checker.h"

#include <algorithm>
#include <bit>

#include "emulator/check/check.h"
#include "emulator/chip/chip.h"
#include "emulator/decode/disassemble.h"

namespace jax_fa::emulator {
namespace {

Operand Register(Access::Kind kind, uint32_t index) {
  Operand operand;
  operand.kind = kind == Access::kVector ? OperandKind::kVgpr : OperandKind::kSgpr;
  operand.dwords = 1;
  operand.index = static_cast<uint16_t>(index);
  return operand;
}

uint64_t LanesOf(const Wave& wave, Access::Lanes lanes, uint64_t active) {
  switch (lanes) {
    case Access::kActive:
      return active;
    case Access::kAll:
      return wave.full_exec;
    case Access::kUnknown:
      return 0;
  }
  return 0;
}

// Calls fn(LDS dword, lane, what comes there) for all that a load to LDS writes.
template <class Fn>
void ForEachLdsDword(const InFlight& result, size_t limit, Fn fn) {
  for (uint64_t lanes = result.lanes; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    for (uint32_t d = 0; d < result.dwords; ++d) {
      const uint32_t dword = result.lds_address / 4 + lane * result.dwords + d;
      if (dword < limit) fn(dword, lane, &result.data[d * kLaneStride + lane]);
    }
  }
}

}  // namespace

Checker::Checker(const Chip& chip)
    : hazards_((*chip.make_hazard_rules)()), loads_write_in_order_(chip.loads_write_in_order) {}

void Checker::Begin(const Workgroup& group) {
  waves_.assign(group.waves.size(), WaveState{});
  const size_t dwords = (group.lds.size() + 3) / 4;
  lds_.assign(dwords, LdsDword{});
  lds_bytes_ = group.lds;
  suspects_.clear();
  visible_ = {};
  hazards_->Begin(group);
}

void CheckIssuedSlow(Wave& wave, const Instruction& instruction, const InFlight& result) {
  wave.checker->IssueResult(wave, instruction, result);
}
void CheckArrivedSlow(Wave& wave, const InFlight& result) { wave.checker->Arrive(wave, result); }
void CheckBarrierSignal(const Wave& wave) {
  if (wave.checker) wave.checker->SignalBarrier(wave);
}
void CheckBarrierComplete(const Workgroup& group) {
  if (group.checker) group.checker->CompleteBarrier(group);
}
void CheckBarrierPass(const Wave& wave) {
  if (wave.checker) wave.checker->PassBarrier(wave);
}
void DeclareVgpr(const Wave& wave, uint32_t index) {
  if (wave.checker) wave.checker->DeclareVgpr(wave, index);
}
void DeclareSgpr(const Wave& wave, uint32_t index) {
  if (wave.checker) wave.checker->DeclareSgpr(wave, index);
}

void Checker::DeclareVgpr(const Wave& wave, uint32_t index) {
  State(wave).written[index] = wave.exec;
}
void Checker::DeclareSgpr(const Wave& wave, uint32_t index) { State(wave).sgpr_written[index] = 1; }

void Checker::CheckRead(Wave& wave, const Instruction& instruction, const Access& access) {
  WaveState& state = State(wave);
  const uint64_t lanes = LanesOf(wave, access.lanes, wave.exec);
  for (uint32_t index = access.first; index < access.first + uint32_t{access.count}; ++index) {
    const bool vector = access.kind == Access::kVector;
    uint8_t& busy = vector ? state.busy[index] : state.sgpr_busy[index];
    const uint64_t missing = vector ? lanes & ~state.written[index]
                                    : static_cast<uint64_t>(state.sgpr_written[index] == 0);
    if (busy == 0 && missing == 0) [[likely]]
      continue;
    // It is said where the upper half of the result is used.
    if (busy == 0 && access.high_to_high && index == access.first + 1u) continue;
    const std::string name = RegisterName(Register(access.kind, index));
    if (busy != 0) {
      Report(wave, instruction,
             "reads " + name + " while its load is still under way: a wait is missing before");
    } else {
      Report(wave, instruction, "reads " + name + ", which was never written",
             vector ? std::countr_zero(missing) : -1);
      // Say it once.
      if (vector) {
        state.written[index] |= missing;
      } else {
        state.sgpr_written[index] = 1;
      }
    }
  }
}

void Checker::CheckOverwrite(Wave& wave, const Instruction& instruction, const Access& access) {
  WaveState& state = State(wave);
  for (uint32_t index = access.first; index < access.first + uint32_t{access.count}; ++index) {
    const bool vector = access.kind == Access::kVector;
    if ((vector ? state.busy[index] : state.sgpr_busy[index]) == 0) [[likely]]
      continue;
    Report(wave, instruction,
           "overwrites " + RegisterName(Register(access.kind, index)) +
               " while a load into it is still under way: a wait is missing before");
  }
}

void Checker::Before(Wave& wave, const Instruction& instruction, const AccessPlan& plan) {
  for (uint32_t i = 0; i < plan.reads; ++i) CheckRead(wave, instruction, plan.read[i]);
  if (plan.reads_scc && !State(wave).scc_written) {
    Report(wave, instruction, "reads SCC, which was never written");
    State(wave).scc_written = true;
  }
  if (!plan.hazard.idle) hazards_->Step(wave, instruction, plan);
  // What a memory instruction loads is checked when it is issued.
  if (plan.arrives_later) return;
  for (uint32_t i = 0; i < plan.writes; ++i) CheckOverwrite(wave, instruction, plan.write[i]);
}

void Checker::After(Wave& wave, const AccessPlan& plan, uint64_t exec) {
  if (!suspects_.empty()) [[unlikely]]
    JudgeSuspects(wave);
  WaveState& state = State(wave);
  if (plan.writes_scc) state.scc_written = true;
  if (plan.arrives_later) return;
  const uint64_t undefined = plan.high_to_high ? UndefinedHigh(wave, plan, exec) : 0;
  for (uint32_t i = 0; i < plan.writes; ++i) {
    const Access& access = plan.write[i];
    if (access.kind == Access::kScalar) {
      for (uint32_t r = 0; r < access.count; ++r) state.sgpr_written[access.first + r] = 1;
      continue;
    }
    const uint64_t lanes = plan.writes_one_lane ? ~uint64_t{0} : LanesOf(wave, access.lanes, exec);
    for (uint32_t r = 0; r < access.count; ++r) state.written[access.first + r] |= lanes;
  }
  if (undefined == 0) [[likely]]
    return;
  for (uint32_t i = 0; i < plan.writes; ++i) {
    const Access& access = plan.write[i];
    const bool carry = i != 0;
    for (uint32_t r = carry ? 0 : 1; r < access.count; ++r) {
      if (access.kind == Access::kScalar) {
        state.sgpr_written[access.first + r] = 0;
      } else {
        state.written[access.first + r] &= ~undefined;
      }
    }
  }
}

uint64_t Checker::UndefinedHigh(const Wave& wave, const AccessPlan& plan, uint64_t exec) const {
  const WaveState& state = waves_[wave.index_in_group];
  uint64_t undefined = 0;
  for (uint32_t i = 0; i < plan.reads; ++i) {
    const Access& access = plan.read[i];
    if (!access.high_to_high) continue;
    const uint32_t high = access.first + 1u;
    if (access.kind == Access::kVector) {
      undefined |= LanesOf(wave, access.lanes, exec) & ~state.written[high];
    } else if (state.sgpr_written[high] == 0) {
      undefined |= exec;
    }
  }
  return undefined;
}

void Checker::IssueResult(Wave& wave, const Instruction& instruction, const InFlight& result) {
  WaveState& state = State(wave);
  const auto overtakes = [&](const InFlight& other) {
    // Halves do not meet, nor do lanes.
    const bool apart =
        (other.merge_16 && result.merge_16 && other.high_half != result.high_half) ||
        (result.destination == InFlight::kVector && (other.lanes & result.lanes) == 0);
    // Results of one counter come in order, so the later one stays, where they are written as they
    // come.
    const bool in_order = other.in_order && result.in_order && other.counter == result.counter &&
                          (loads_write_in_order_ || result.counter != Counter::kLoad);
    return other.destination == result.destination && !apart && !in_order &&
           other.first_register < result.first_register + result.dwords &&
           result.first_register < other.first_register + other.dwords;
  };
  switch (result.destination) {
    case InFlight::kNone:
      break;
    case InFlight::kVector:
    case InFlight::kScalar: {
      const bool vector = result.destination == InFlight::kVector;
      for (uint32_t r = 0; r < result.dwords; ++r) {
        const uint32_t index = result.first_register + r;
        if (!vector && index >= kSgprCount) break;
        uint8_t& busy = vector ? state.busy[index] : state.sgpr_busy[index];
        if (busy != 0 && std::any_of(wave.in_flight.begin(), wave.in_flight.end(),
                                     [&](const auto& other) { return overtakes(*other); })) {
          Report(wave, instruction,
                 "loads into " +
                     RegisterName(Register(vector ? Access::kVector : Access::kScalar, index)) +
                     " while another load into it is still under way: either may come last");
        }
        ++busy;
      }
      break;
    }
    case InFlight::kLds: {
      const Sequences seen = SeenBy(wave);
      ForEachLdsDword(
          result, lds_.size(), [&](uint32_t dword, uint32_t lane, const uint32_t* loaded) {
            WriteDword(wave, instruction, dword, 15, static_cast<uint32_t>(result.sequence),
                       Writer(wave, /*by_dma=*/true), seen, static_cast<int>(lane), loaded);
            uint8_t& under_way = lds_[dword].dma_under_way;
            under_way = static_cast<uint8_t>(std::min(under_way + 1, 255));
          });
      break;
    }
  }
}

void Checker::Arrive(Wave& wave, const InFlight& result) {
  WaveState& state = State(wave);
  switch (result.destination) {
    case InFlight::kNone:
      break;
    case InFlight::kVector:
      FinishLdsReads(result.sequence, &state.lds_reads);
      for (uint32_t r = 0; r < result.dwords; ++r) {
        const uint32_t index = result.first_register + r;
        --state.busy[index];
        state.written[index] |= result.lanes;
      }
      break;
    case InFlight::kScalar:
      for (uint32_t r = 0; r < result.dwords; ++r) {
        const uint32_t index = result.first_register + r;
        if (index >= kSgprCount) break;
        --state.sgpr_busy[index];
        state.sgpr_written[index] = 1;
      }
      break;
    case InFlight::kLds:
      ForEachLdsDword(result, lds_.size(), [&](uint32_t dword, uint32_t, const uint32_t*) {
        if (lds_[dword].dma_under_way != 0) --lds_[dword].dma_under_way;
      });
      break;
  }
}

void Checker::SignalBarrier(const Wave& wave) {
  WaveState& state = State(wave);
  ++state.signals;
  // LDS writes in order of issue: all before the oldest that no wait has proved.
  const auto all = static_cast<uint32_t>(wave.issued);
  std::fill(std::begin(state.complete_at_signal), std::end(state.complete_at_signal), all);
  for (const auto& result : wave.in_flight) {
    const bool by_dma = result->destination == InFlight::kLds;
    if (!by_dma && (result->destination != InFlight::kNone || result->counter != Counter::kDs)) {
      continue;
    }
    uint32_t& complete = state.complete_at_signal[by_dma ? 1 : 0];
    complete = std::min(complete, static_cast<uint32_t>(result->sequence - 1));
  }
  NoteReadsUnderWay(state, &state.unproven_at_signal[state.signals % kSignals]);
}

void Checker::CompleteBarrier(const Workgroup& group) {
  for (const Wave& wave : group.waves) {
    for (const bool by_dma : {false, true}) {
      visible_[Writer(wave, by_dma)] = wave.done ? static_cast<uint32_t>(wave.issued)
                                                 : State(wave).complete_at_signal[by_dma ? 1 : 0];
    }
  }
}

void Checker::PassBarrier(const Wave& wave) { State(wave).passed = State(wave).signals; }

}  // namespace jax_fa::emulator
