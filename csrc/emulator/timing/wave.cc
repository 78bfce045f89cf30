#include "emulator/timing/wave.h"

#include <algorithm>

namespace jax_fa::emulator {
namespace {

using C = Constant;

}  // namespace

void TimedWave::Advance(std::span<const TimedInstruction> timed, const TimingConstants& constants,
                        const Chip& chip) {
  instruction = nullptr;
  if (next >= trace->events.size()) return;
  instruction = &timed[trace->events[next].slot];
  ready = operands = turn;
  double read = turn;
  for (size_t i = 0; i < instruction->reads; ++i) {
    const TimedInstruction::Use& use = instruction->read[i];
    const Result* before = nullptr;  // of one instruction are most
    for (uint32_t r = use.first; r < uint32_t{use.first} + use.count; ++r) {
      const Result& result = results_[r];
      if (before && result.issued == before->issued && result.by == before->by) continue;
      before = &result;
      read = std::max(read, ReadyFor(result, *instruction, use, constants));
    }
  }
  // What a queued matrix instruction reads it waits for in the queue.
  const bool queued = instruction->kind == TimedKind::kMatrix && constants[C::kVectorQueue] != 0;
  (queued ? operands : ready) = read;
  WaitForAll(chip, constants);
  for (size_t i = 0; i < instruction->waits; ++i) {
    ready = std::max(ready, Arrived(instruction->wait[i]));
  }
  const bool is_lds = instruction->kind == TimedKind::kLds;
  if (is_lds || instruction->kind == TimedKind::kMemory) {
    // The counter must not overflow.
    const size_t limit = is_lds ? chip.timing.lds_counter_limit : chip.timing.memory_counter_limit;
    const std::deque<double>& under_way = under_way_[instruction->counter];
    if (under_way.size() >= limit) ready = std::max(ready, under_way[under_way.size() - limit]);
  }
}

void TimedWave::WaitForAll(const Chip& chip, const TimingConstants& constants) {
  const double issue_clk = chip.timing.issue_clk;
  // The instruction behind an s_wait_alu issues a turn after it.
  if (instruction->awaits_vectors) {
    ready = std::max(ready, last_vector_ + constants[C::kVectorToScalar] - issue_clk);
  }
  if (instruction->awaits_scalars) {
    ready = std::max(ready, last_scalar_ + constants[C::kScalarLatency] - issue_clk);
  }
  if (instruction->reads_exec) ready = std::max(ready, last_vector_ + constants[C::kVectorToExec]);
  if (instruction->kind == TimedKind::kEnd) ready = std::max({ready, drained_, stored_});
  if (!chip.timing.memory_follows_alu) return;
  const bool is_memory = instruction->kind == TimedKind::kMemory;
  if (is_memory || instruction->kind == TimedKind::kLds) {
    ready = std::max(ready, last_vector_ + constants[C::kVectorToMemory]);
  }
  if (is_memory || instruction->kind == TimedKind::kScalarLoad) {
    ready = std::max(ready, last_scalar_ + constants[C::kScalarToMemory]);
  }
}

double TimedWave::ReadyFor(const Result& result, const TimedInstruction& reader,
                           const TimedInstruction::Use& use, const TimingConstants& constants) {
  if (!result.by) return result.issued;
  const TimedInstruction& by = *result.by;
  switch (by.kind) {
    case TimedKind::kMatrix:
      if (use.accumulator) {
        // An accumulator is forwarded to the same kind of instruction on the same registers.
        const bool same = result.first == use.first && by.long_matrix == reader.long_matrix;
        if (same) return result.issued + by.hold_clk;
        return result.issued + by.hold_clk - constants[C::kMatrixShort] +
               constants[C::kMatrixChainOther];
      }
      // What passes beyond the constant's take, they take here, too.
      return result.issued + by.hold_clk -
             constants[by.long_matrix ? C::kMatrixLong : C::kMatrixShort] +
             constants[by.long_matrix ? C::kMatrixResultLong : C::kMatrixResultShort];
    case TimedKind::kTrans:
      return result.issued +
             (reader.kind == TimedKind::kMatrix
                  ? std::max(constants[C::kTransLatency], constants[C::kVectorToMatrix])
                  : constants[C::kTransLatency]);
    case TimedKind::kVector:
      switch (reader.kind) {
        case TimedKind::kMatrix:
          return result.issued + constants[C::kVectorToMatrix];
        case TimedKind::kLds:
        case TimedKind::kMemory:
          return result.issued + constants[C::kVectorToMemory];
        case TimedKind::kScalar:
        case TimedKind::kScalarLoad:
        case TimedKind::kBranch:
          return result.issued + constants[C::kVectorToScalar];
        default:
          return result.issued + constants[C::kVectorLatency];
      }
    case TimedKind::kScalar:
      switch (reader.kind) {
        case TimedKind::kBranch:
          return result.issued + constants[C::kBranchAfterCompare];
        case TimedKind::kScalar:
          return result.issued + constants[C::kScalarChain];
        case TimedKind::kScalarLoad:
        case TimedKind::kMemory:
          return result.issued + constants[C::kScalarToMemory];
        default:
          return result.issued + constants[C::kScalarLatency];
      }
    default:
      return result.issued;
  }
}

// When no more than the count are under way, the oldest having come first; those are forgotten.
double TimedWave::Arrived(const TimedInstruction::Wait& wait) {
  double arrived = kLongAgo;
  for (size_t counter = 0; counter < under_way_.size(); ++counter) {
    if (((wait.counters >> counter) & 1) == 0) continue;
    std::deque<double>& under_way = under_way_[counter];
    while (under_way.size() > wait.count) {
      arrived = std::max(arrived, under_way.front());
      under_way.pop_front();
    }
  }
  return arrived;
}

void TimedWave::Follow(const TimedInstruction& before, double begin, double end) {
  switch (before.kind) {
    case TimedKind::kMatrix:
      drained_ = std::max(drained_, end);
      break;
    case TimedKind::kVector:
    case TimedKind::kTrans:
      last_vector_ = begin;
      drained_ = std::max(drained_, end);
      break;
    case TimedKind::kScalar:
      last_scalar_ = begin;
      break;
    case TimedKind::kMemory:
      if (before.is_store) stored_ = std::max(stored_, end);
      break;
    default:
      break;
  }
}

void TimedWave::Write(const TimedInstruction& written, double begin) {
  for (size_t i = 0; i < written.writes; ++i) {
    const TimedInstruction::Use& use = written.write[i];
    for (uint32_t r = use.first; r < uint32_t{use.first} + use.count; ++r) {
      results_[r] = {begin, use.first, &written};
    }
  }
}

void TimedWave::Load(const TimedInstruction& load, double arrives) {
  std::deque<double>& under_way = under_way_[load.counter];
  // All but scalar loads return in order.
  const bool in_order = load.kind != TimedKind::kScalarLoad;
  if (in_order && !under_way.empty()) arrives = std::max(arrives, under_way.back());
  under_way.push_back(arrives);
}

}  // namespace jax_fa::emulator
