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

// Calls fn(LDS dword, lane) for all that a load to LDS writes.
template <class Fn>
void ForEachLdsDword(const InFlight& result, size_t limit, Fn fn) {
  for (uint64_t lanes = result.lanes; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    for (uint32_t d = 0; d < result.dwords; ++d) {
      const uint32_t dword = result.lds_address / 4 + lane * result.dwords + d;
      if (dword < limit) fn(dword, lane);
    }
  }
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
  visible_ = {};
  hazards_.Begin(group);
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
  hazards_.Step(wave, instruction, plan);
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
      const Sequences seen = SeenBy(wave);
      ForEachLdsDword(result, lds_.size(), [&](uint32_t dword, uint32_t lane) {
        WriteDword(wave, instruction, dword, 15, static_cast<uint32_t>(result.sequence),
                   Writer(wave, /*by_dma=*/true), seen, static_cast<int>(lane));
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
      ForEachLdsDword(result, lds_.size(), [&](uint32_t dword, uint32_t) {
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

Checker::Sequences Checker::SeenBy(const Wave& wave) const {
  Sequences seen = visible_;
  // Its own writes in order; that a load to LDS has arrived is checked by itself.
  seen[Writer(wave, false)] = seen[Writer(wave, true)] = ~uint32_t{0};
  return seen;
}

void Checker::ReadDword(Wave& wave, const Instruction& instruction, uint32_t index, uint8_t bytes,
                        const Sequences& seen, int lane) {
  LdsDword& dword = lds_[index];
  const auto at = [&] { return "reads LDS byte " + std::to_string(index * 4); };
  const auto writer = [&] { return WaveName(dword.writer % kMaxWaves); };
  if (dword.dma_under_way != 0) {
    Report(wave, instruction,
           at() + " while a load to LDS of " + writer() + " into it is still under way", lane);
  } else if ((bytes & ~dword.written) != 0) {
    const uint32_t missing = bytes & ~static_cast<uint32_t>(dword.written);
    const uint32_t byte = index * 4 + static_cast<uint32_t>(std::countr_zero(missing));
    Report(wave, instruction,
           "reads LDS byte " + std::to_string(byte) + ", which was never written", lane);
    dword.written |= bytes & 15;
  } else if (dword.write_sequence > seen[dword.writer] && (bytes & dword.last_bytes) != 0) {
    Report(wave, instruction,
           at() + ", which " + writer() + " wrote with no barrier (and wait before it) in between",
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
                         uint32_t sequence, uint8_t writer, const Sequences& seen, int lane) {
  LdsDword& dword = lds_[index];
  const auto at = [&] { return "writes LDS byte " + std::to_string(index * 4); };
  const auto last_writer = [&] { return WaveName(dword.writer % kMaxWaves); };
  const uint32_t others = dword.readers & ~(1u << wave.index_in_group);
  if (dword.dma_under_way != 0) [[unlikely]] {
    Report(wave, instruction,
           at() + " while a load to LDS of " + last_writer() + " into it is still under way", lane);
  } else if (others != 0 && State(wave).passed <= dword.read_phase &&
             (bytes & dword.read_bytes) != 0) [[unlikely]] {
    const auto reader = static_cast<uint32_t>(std::countr_zero(others));
    Report(wave, instruction,
           at() + ", which " + WaveName(reader) + " reads with no barrier in between", lane);
    dword.readers = 0;
  } else if (dword.write_sequence > seen[dword.writer] && (bytes & dword.last_bytes) != 0)
      [[unlikely]] {
    Report(wave, instruction,
           at() + ", which " + last_writer() +
               " wrote with no barrier (and wait before it) in between",
           lane);
  }
  dword.writer = writer;
  dword.write_sequence = sequence;
  dword.last_bytes = bytes & 15;
  dword.written |= bytes & 15;
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
  const Sequences seen = SeenBy(wave);
  const uint32_t phase = State(wave).signals, reader = 1u << wave.index_in_group;
  const size_t limit = lds_.size();
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const uint32_t address = addresses[lane];
    const auto slowly = [&](uint32_t dword, uint8_t mask) {
      ReadDword(wave, instruction, dword, mask, seen, lane);
    };
    if (((address | bytes) & 3) != 0 || (size_t{address} + bytes) / 4 > limit) [[unlikely]] {
      ForEachDword(address, bytes, limit, slowly);
      continue;
    }
    // Whole dwords, and nearly always nothing is wrong with them.
    LdsDword* dword = &lds_[address / 4];
    for (uint32_t i = 0; i < bytes / 4; ++i, ++dword) {
      if ((dword->dma_under_way | (dword->written ^ 15)) != 0 ||
          dword->write_sequence > seen[dword->writer]) [[unlikely]] {
        slowly(address / 4 + i, 15);
        continue;
      }
      dword->readers = (dword->read_phase == phase ? dword->readers : 0) | reader;
      dword->read_phase = phase;
      dword->read_bytes = 15;
    }
  }
}

void Checker::LdsWrite(Wave& wave, const Instruction& instruction, uint64_t lanes,
                       const uint32_t* addresses, uint32_t bytes) {
  // The record of this instruction is pushed next.
  const auto sequence = static_cast<uint32_t>(wave.issued + 1);
  const Sequences seen = SeenBy(wave);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    ForEachDword(addresses[lane], bytes, lds_.size(), [&](uint32_t dword, uint8_t mask) {
      WriteDword(wave, instruction, dword, mask, sequence, Writer(wave, false), seen, lane);
    });
  }
}

}  // namespace jax_fa::emulator
