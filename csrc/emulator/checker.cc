#include "emulator/checker.h"

#include <algorithm>
#include <bit>

#include "emulator/check.h"
#include "emulator/disassemble.h"
#include "emulator/scalar.h"

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

std::string WaveName(uint32_t index) { return "wave " + std::to_string(index); }

}  // namespace

void CheckLdsReadSlow(Wave& wave, const Instruction& instruction, uint64_t lanes,
                      const uint32_t* addresses, uint32_t bytes) {
  wave.checker->LdsRead(wave, instruction, lanes, addresses, bytes);
}
void CheckLdsWriteSlow(Wave& wave, const Instruction& instruction, uint64_t lanes,
                       const uint32_t* addresses, uint32_t bytes) {
  wave.checker->LdsWrite(wave, instruction, lanes, addresses, bytes);
}

void Checker::Begin(const Workgroup& group) {
  waves_.assign(group.waves.size(), WaveState{});
  const size_t dwords = (group.lds.size() + 3) / 4;
  lds_.assign(dwords, LdsDword{});
  dma_under_way_.assign(dwords, 0);
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
  // What a memory instruction loads is checked when it is issued.
  if (plan.arrives_later) return;
  for (uint32_t i = 0; i < plan.writes; ++i) CheckOverwrite(wave, instruction, plan.write[i]);
}

void Checker::After(Wave& wave, const AccessPlan& plan, uint64_t exec) {
  WaveState& state = State(wave);
  if (plan.writes_scc) state.scc_written = true;
  if (plan.arrives_later) return;
  for (uint32_t i = 0; i < plan.writes; ++i) {
    const Access& access = plan.write[i];
    if (access.kind == Access::kScalar) {
      for (uint32_t r = 0; r < access.count; ++r) state.sgpr_written[access.first + r] = 1;
      continue;
    }
    const uint64_t lanes = plan.writes_one_lane ? ~uint64_t{0} : LanesOf(wave, access.lanes, exec);
    for (uint32_t r = 0; r < access.count; ++r) state.written[access.first + r] |= lanes;
  }
}

void Checker::IssueResult(Wave& wave, const Instruction& instruction, const InFlight& result) {
  WaveState& state = State(wave);
  const auto overtakes = [&](const InFlight& other) {
    // Results of one counter come in order, so the later one stays.
    return other.destination == result.destination &&
           other.first_register < result.first_register + result.dwords &&
           result.first_register < other.first_register + other.dwords &&
           (!other.in_order || !result.in_order || other.counter != result.counter);
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
      for (uint64_t lanes = result.lanes; lanes != 0; lanes &= lanes - 1) {
        const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
        for (uint32_t d = 0; d < result.dwords; ++d) {
          const uint32_t dword = result.lds_address / 4 + lane * result.dwords + d;
          if (dword >= lds_.size()) continue;
          WriteDword(wave, instruction, dword, 15, static_cast<uint32_t>(result.sequence),
                     /*by_dma=*/true, static_cast<int>(lane));
          dma_under_way_[dword] = static_cast<uint8_t>(std::min(dma_under_way_[dword] + 1, 255));
        }
      }
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
      for (uint64_t lanes = result.lanes; lanes != 0; lanes &= lanes - 1) {
        const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
        for (uint32_t d = 0; d < result.dwords; ++d) {
          const uint32_t dword = result.lds_address / 4 + lane * result.dwords + d;
          if (dword < lds_.size() && dma_under_way_[dword] != 0) --dma_under_way_[dword];
        }
      }
      break;
  }
}

void Checker::SignalBarrier(const Wave& wave) {
  WaveState& state = State(wave);
  ++state.signals;
  // LDS writes in order of issue: all before the oldest that no wait has proved.
  state.complete_at_signal = {wave.issued, wave.issued};
  for (const auto& result : wave.in_flight) {
    const bool store = result->destination == InFlight::kNone && result->counter == Counter::kDs;
    if (!store && result->destination != InFlight::kLds) continue;
    uint64_t& complete =
        store ? state.complete_at_signal.instructions : state.complete_at_signal.dma;
    complete = std::min(complete, result->sequence - 1);
  }
}

void Checker::CompleteBarrier(const Workgroup& group) {
  for (const Wave& wave : group.waves) {
    WaveState& state = State(wave);
    state.visible = wave.done ? LdsProgress{wave.issued, wave.issued} : state.complete_at_signal;
  }
}

void Checker::PassBarrier(const Wave& wave) { State(wave).passed = State(wave).signals; }

void Checker::ReadDword(Wave& wave, const Instruction& instruction, uint32_t index, uint8_t bytes,
                        int lane) {
  LdsDword& dword = lds_[index];
  if (dma_under_way_[index] != 0) [[unlikely]] {
    Report(wave, instruction,
           "reads LDS byte " + std::to_string(index * 4) + " while a load to LDS of " +
               WaveName(dword.writer) + " into it is still under way",
           lane);
  } else if ((bytes & ~dword.written) != 0) [[unlikely]] {
    Report(wave, instruction,
           "reads LDS byte " +
               std::to_string(index * 4 + static_cast<uint32_t>(std::countr_zero(
                                              static_cast<unsigned>(bytes & ~dword.written)))) +
               ", which was never written",
           lane);
    dword.written |= bytes;
  } else if (Unordered(wave, dword) && (bytes & dword.last_bytes) != 0) [[unlikely]] {
    Report(wave, instruction,
           "reads LDS byte " + std::to_string(index * 4) + ", which " + WaveName(dword.writer) +
               " wrote with no barrier (and wait before it) in between",
           lane);
  }
  const uint32_t phase = State(wave).signals;
  if (dword.read_phase != phase) {
    dword.read_phase = phase;
    dword.readers = 0;
    dword.read_bytes = 0;
  }
  dword.readers |= 1u << wave.index_in_group;
  dword.read_bytes |= bytes;
}

void Checker::WriteDword(Wave& wave, const Instruction& instruction, uint32_t index, uint8_t bytes,
                         uint32_t sequence, bool by_dma, int lane) {
  LdsDword& dword = lds_[index];
  const uint32_t others = dword.readers & ~(1u << wave.index_in_group);
  if (dma_under_way_[index] != 0) [[unlikely]] {
    Report(wave, instruction,
           "writes LDS byte " + std::to_string(index * 4) + " while a load to LDS of " +
               WaveName(dword.writer) + " into it is still under way",
           lane);
  } else if (others != 0 && State(wave).passed <= dword.read_phase &&
             (bytes & dword.read_bytes) != 0) [[unlikely]] {
    Report(wave, instruction,
           "writes LDS byte " + std::to_string(index * 4) + ", which " +
               WaveName(static_cast<uint32_t>(std::countr_zero(others))) +
               " reads with no barrier in between",
           lane);
    dword.readers = 0;
  } else if (Unordered(wave, dword) && (bytes & dword.last_bytes) != 0) [[unlikely]] {
    Report(wave, instruction,
           "writes LDS byte " + std::to_string(index * 4) + ", which " + WaveName(dword.writer) +
               " wrote with no barrier (and wait before it) in between",
           lane);
  }
  dword.writer = wave.index_in_group & 127;
  dword.by_dma = by_dma;
  dword.write_sequence = sequence;
  dword.last_bytes = bytes;
  dword.written |= bytes;
}

namespace {

// Calls fn(dword, byte mask) for each dword of [address, address + bytes).
template <class Fn>
void ForEachDword(uint32_t address, uint32_t bytes, size_t limit, Fn fn) {
  const uint64_t end = uint64_t{address} + bytes;
  for (uint64_t dword = address / 4; dword * 4 < end && dword < limit; ++dword) {
    const uint64_t first = std::max<uint64_t>(dword * 4, address) - dword * 4;
    const uint64_t last = std::min<uint64_t>(dword * 4 + 4, end) - dword * 4;
    fn(static_cast<uint32_t>(dword),
       static_cast<uint8_t>(((1u << last) - 1) & ~((1u << first) - 1)));
  }
}

}  // namespace

void Checker::LdsRead(Wave& wave, const Instruction& instruction, uint64_t lanes,
                      const uint32_t* addresses, uint32_t bytes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    ForEachDword(addresses[lane], bytes, lds_.size(), [&](uint32_t dword, uint8_t mask) {
      ReadDword(wave, instruction, dword, mask, lane);
    });
  }
}

void Checker::LdsWrite(Wave& wave, const Instruction& instruction, uint64_t lanes,
                       const uint32_t* addresses, uint32_t bytes) {
  // The record of this instruction is pushed next.
  const auto sequence = static_cast<uint32_t>(wave.issued + 1);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    ForEachDword(addresses[lane], bytes, lds_.size(), [&](uint32_t dword, uint8_t mask) {
      WriteDword(wave, instruction, dword, mask, sequence, /*by_dma=*/false, lane);
    });
  }
}

}  // namespace jax_fa::emulator
