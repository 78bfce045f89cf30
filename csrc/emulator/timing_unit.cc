#include "emulator/timing_unit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "emulator/emulator.h"
#include "emulator/timing_memory.h"

namespace jax_fa::emulator {
namespace {

using C = Constant;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLongAgo = -1e9;

// When a register was last written, and how: what reads it waits accordingly.
struct Result {
  double issued = kLongAgo;
  TimedKind producer = TimedKind::kIdle;
  uint16_t first = 0;  // of the register run written
  const TimedInstruction* by = nullptr;
};

struct SimGroup {
  uint32_t alive = 0, signals = 0;
  uint64_t phase = 0;    // barriers completed
  double completed = 0;  // when the last one released
};

struct SimWave {
  const WaveTrace* trace = nullptr;
  SimGroup* group = nullptr;
  uint32_t group_index = 0, index = 0, simd = 0;
  size_t next = 0;
  const TimedInstruction* instruction = nullptr;  // the next one
  double ready = 0;                               // its operands are there, and the wave may issue
  double turn = 0;                                // the wave may issue
  double last_issue = kLongAgo;
  int priority = 0;
  bool blocked = false;                                      // at a barrier
  uint64_t signalled = 0;                                    // phase that its last signal was for
  std::array<std::deque<double>, kTimedCounters> under_way;  // arrival times, oldest first
  std::vector<Result> results = std::vector<Result>(kTimedRegisters);
};

enum Port { kVectorPort, kScalarPort, kLdsPort, kMemoryPort, kBranchPort, kPorts };

struct Simd {
  std::vector<SimWave*> waves;
  std::array<double, kPorts> free = {};
  double matrix_free = 0, trans_free = 0;
  double vector_blocked = kLongAgo, packed_blocked = kLongAgo;  // until
  double memory_blocked_from = kLongAgo, memory_blocked = kLongAgo;
  double next = 0;  // when something can issue
};

class UnitModel {
 public:
  UnitModel(const Program& program, const KernelCode& code, uint32_t simds,
            const TimingConstants& constants, bool keep_slices)
      : isa_(program.isa->isa),
        chip_(ChipOf(isa_)),
        constants_(constants),
        timed_(TimeInstructions(isa_, code, constants)),
        memory_(isa_, simds, constants),
        simds_(simds),
        keep_slices_(keep_slices) {}

  UnitTime Run(std::span<const GroupTrace* const> groups) {
    Place(groups);
    for (;;) {
      Simd* first = &simds_[0];
      for (Simd& simd : simds_) {
        if (simd.next < first->next) first = &simd;
      }
      if (first->next == kNever) break;
      IssueOne(*first);
    }
    for (const SimWave& wave : waves_) {
      if (wave.instruction) throw EmulatorError("the timing model is stuck at a barrier");
    }
    time_.missed_bytes = memory_.missed_bytes();
    return std::move(time_);
  }

 private:
  void Place(std::span<const GroupTrace* const> groups) {
    groups_.resize(groups.size());
    size_t count = 0;
    for (const GroupTrace* group : groups) count += group->waves.size();
    waves_.resize(count);
    size_t place = 0;
    for (uint32_t g = 0; g < groups.size(); ++g) {
      groups_[g].alive = static_cast<uint32_t>(groups[g]->waves.size());
      for (uint32_t w = 0; w < groups[g]->waves.size(); ++w) {
        SimWave& wave = waves_[place];
        wave.trace = &groups[g]->waves[w];
        wave.group = &groups_[g];
        wave.group_index = g;
        wave.index = w;
        wave.simd = static_cast<uint32_t>(place++ % simds_.size());
        simds_[wave.simd].waves.push_back(&wave);
        wave.turn = constants_[C::kGroupStart];
        Advance(wave);
      }
    }
    for (Simd& simd : simds_) simd.next = Next(simd).first;
  }

  double OnGrid(double clk) const { return std::ceil(clk / chip_.grid_clk) * chip_.grid_clk; }

  // --- one wave ----------------------------------------------------------------------------------
  // Takes up the wave's next instruction and works out when its operands are there.
  void Advance(SimWave& wave) {
    wave.instruction = nullptr;
    if (wave.next >= wave.trace->events.size()) return;
    const TimedInstruction& timed = timed_[wave.trace->events[wave.next].slot];
    wave.instruction = &timed;
    double ready = wave.turn;
    for (int i = 0; i < timed.reads; ++i) {
      const TimedInstruction::Use& use = timed.read[static_cast<size_t>(i)];
      for (uint32_t r = use.first; r < uint32_t{use.first} + use.count; ++r) {
        ready = std::max(ready, ReadyFor(wave.results[r], timed, use));
      }
    }
    for (int i = 0; i < timed.waits; ++i) {
      ready = std::max(ready, Arrived(wave, timed.wait[static_cast<size_t>(i)]));
    }
    if (timed.kind == TimedKind::kMemory || timed.kind == TimedKind::kLds) {
      const size_t limit = chip_.counter_limit[timed.kind == TimedKind::kLds ? 1 : 0];
      const std::deque<double>& under_way = wave.under_way[timed.counter];
      if (under_way.size() >= limit) {
        ready = std::max(ready, under_way[under_way.size() - limit]);
      }
    }
    wave.ready = ready;
  }

  double ReadyFor(const Result& result, const TimedInstruction& reader,
                  const TimedInstruction::Use& use) const {
    const double from = result.issued;
    switch (result.producer) {
      case TimedKind::kMatrix:
        if (use.accumulator) {
          // The matrix core forwards an accumulator to the same kind of instruction on the same
          // registers.
          const bool same = result.by == &reader || (result.first == use.first &&
                                                     result.by->long_matrix == reader.long_matrix);
          return from + (same ? result.by->hold_clk
                              : result.by->hold_clk - constants_[C::kMatrixShort] +
                                    constants_[C::kMatrixChainOther]);
        }
        return from +
               constants_[result.by->long_matrix ? C::kMatrixResultLong : C::kMatrixResultShort];
      case TimedKind::kTrans:
        if (reader.kind == TimedKind::kMatrix) {
          return from + std::max(constants_[C::kTransLatency], constants_[C::kVectorToMatrix]);
        }
        return from + constants_[C::kTransLatency];
      case TimedKind::kVector:
        switch (reader.kind) {
          case TimedKind::kMatrix:
            return from + constants_[C::kVectorToMatrix];
          case TimedKind::kLds:
          case TimedKind::kMemory:
            return from + constants_[C::kVectorToMemory];
          default:
            return from + constants_[C::kVectorLatency];
        }
      case TimedKind::kScalar:
        return from + constants_[reader.kind == TimedKind::kBranch ? C::kBranchAfterCompare
                                                                   : C::kScalarLatency];
      default:
        return from;
    }
  }

  // When no more than the count may be under way, oldest first; those are no longer kept.
  static double Arrived(SimWave& wave, const TimedInstruction::Wait& wait) {
    double arrived = kLongAgo;
    for (int c = 0; c < kTimedCounters; ++c) {
      if (((wait.counters >> c) & 1) == 0) continue;
      std::deque<double>& under_way = wave.under_way[static_cast<size_t>(c)];
      while (under_way.size() > wait.count) {
        arrived = std::max(arrived, under_way.front());
        under_way.pop_front();
      }
    }
    return arrived;
  }

  // --- one SIMD ----------------------------------------------------------------------------------
  // When the wave's next instruction could issue, its unit being as it is now.
  double Earliest(const Simd& simd, const SimWave& wave) const {
    if (!wave.instruction || wave.blocked) return kNever;
    const TimedInstruction& timed = *wave.instruction;
    double at = wave.ready;
    switch (timed.kind) {
      case TimedKind::kMatrix:
        at = std::max({at, simd.free[kVectorPort], simd.matrix_free});
        break;
      case TimedKind::kTrans:
        at = std::max({at, simd.free[kVectorPort], simd.vector_blocked, simd.trans_free});
        break;
      case TimedKind::kVector:
        at = std::max(
            {at, simd.free[kVectorPort], timed.packed ? simd.packed_blocked : simd.vector_blocked});
        break;
      case TimedKind::kScalar:
      case TimedKind::kScalarLoad:
        at = std::max(at, simd.free[kScalarPort]);
        break;
      case TimedKind::kBranch:
        at = std::max(at, simd.free[kBranchPort]);
        break;
      case TimedKind::kLds:
      case TimedKind::kMemory:
        at =
            OnGrid(std::max(at, simd.free[timed.kind == TimedKind::kLds ? kLdsPort : kMemoryPort]));
        if (at >= simd.memory_blocked_from && at < simd.memory_blocked) at = simd.memory_blocked;
        break;
      default:
        break;
    }
    return OnGrid(at);
  }

  // The time of the next issue and the wave that issues: of those that can, the one of highest
  // priority; among equals the one that has waited longest.
  std::pair<double, SimWave*> Next(const Simd& simd) const {
    double first = kNever;
    SimWave* chosen = nullptr;
    for (SimWave* wave : simd.waves) {
      const double at = Earliest(simd, *wave);
      if (at > first || at == kNever) continue;
      if (at == first &&
          (wave->priority < chosen->priority ||
           (wave->priority == chosen->priority && wave->last_issue >= chosen->last_issue))) {
        continue;
      }
      first = at;
      chosen = wave;
    }
    return {first, chosen};
  }

  void IssueOne(Simd& simd) {
    const auto [now, wave] = Next(simd);
    Issue(simd, *wave, now);
    simd.next = Next(simd).first;
  }

  void Issue(Simd& simd, SimWave& wave, double now) {
    const TimedInstruction& timed = *wave.instruction;
    const TraceEvent& event = wave.trace->events[wave.next++];
    const double before = wave.turn;
    wave.turn = now + timed.wave_clk;
    wave.last_issue = now;
    if (timed.priority >= 0) wave.priority = timed.priority;
    switch (timed.kind) {
      case TimedKind::kMatrix:
        simd.matrix_free = now + timed.hold_clk;
        simd.free[kVectorPort] = now + chip_.issue_clk;
        simd.vector_blocked = now + timed.blocked_clk;
        simd.packed_blocked =
            now + constants_[timed.long_matrix ? C::kPackedBlockedLong : C::kPackedBlockedShort];
        simd.memory_blocked_from = now + chip_.issue_clk;
        simd.memory_blocked = now + constants_[C::kMemoryBlocked];
        time_.matrix_clk += timed.hold_clk;
        if (timed.long_matrix) time_.long_matrix_clk += timed.hold_clk;
        break;
      case TimedKind::kTrans:
        simd.trans_free = now + constants_[C::kTransUnit];
        simd.free[kVectorPort] = now + timed.hold_clk;
        break;
      case TimedKind::kVector:
        simd.free[kVectorPort] = now + timed.hold_clk;
        break;
      case TimedKind::kScalar:
        simd.free[kScalarPort] = now + chip_.issue_clk;
        break;
      case TimedKind::kScalarLoad:
        simd.free[kScalarPort] = now + chip_.issue_clk;
        UnderWay(wave, timed, now + constants_[C::kScalarLoadLatency]);
        break;
      case TimedKind::kLds:
        simd.free[kLdsPort] = now + chip_.issue_clk;
        UnderWay(wave, timed, memory_.Lds(timed, event.detail, wave.simd, now));
        break;
      case TimedKind::kMemory: {
        simd.free[kMemoryPort] = now + (timed.is_dma ? constants_[C::kDmaIssue] : chip_.issue_clk);
        const uint32_t* record = &wave.trace->lines[event.detail];
        UnderWay(wave, timed, memory_.Access(timed, {record + 1, record[0]}, wave.simd, now));
        break;
      }
      case TimedKind::kBranch: {
        simd.free[kBranchPort] = now + chip_.issue_clk;
        const bool taken = wave.next < wave.trace->events.size() &&
                           wave.trace->events[wave.next].slot != event.slot + 1;
        if (taken) wave.turn = now + std::max(constants_[C::kBranchTaken], timed.wave_clk);
        break;
      }
      case TimedKind::kBarrier:
        Signal(wave, now);
        WaitForBarrier(wave, now);
        break;
      case TimedKind::kBarrierSignal:
        Signal(wave, now);
        break;
      case TimedKind::kBarrierWait:
        WaitForBarrier(wave, now);
        break;
      case TimedKind::kEnd:
        End(wave, now);
        break;
      default:
        break;
    }
    for (int i = 0; i < timed.writes; ++i) {
      const TimedInstruction::Use& use = timed.write[static_cast<size_t>(i)];
      for (uint32_t r = use.first; r < uint32_t{use.first} + use.count; ++r) {
        wave.results[r] = {now, timed.kind, use.first, &timed};
      }
    }
    if (keep_slices_) KeepSlice(wave, timed, before, now);
    Advance(wave);
  }

  static void UnderWay(SimWave& wave, const TimedInstruction& timed, double arrives) {
    std::deque<double>& under_way = wave.under_way[timed.counter];
    const bool in_order = timed.kind != TimedKind::kScalarLoad;
    if (in_order && !under_way.empty()) arrives = std::max(arrives, under_way.back());
    under_way.push_back(arrives);
  }

  // --- barriers ----------------------------------------------------------------------------------
  void Signal(SimWave& wave, double now) {
    wave.signalled = wave.group->phase;
    ++wave.group->signals;
    Complete(*wave.group, now);
  }
  void WaitForBarrier(SimWave& wave, double now) {
    if (wave.signalled == wave.group->phase) {
      wave.blocked = true;
    } else {
      wave.turn = std::max(now + chip_.issue_clk, wave.group->completed);
    }
  }
  void End(SimWave& wave, double now) {
    --wave.group->alive;
    Complete(*wave.group, now);
    time_.clk = std::max(time_.clk, now + chip_.issue_clk);
  }
  void Complete(SimGroup& group, double now) {
    if (group.signals == 0 || group.signals < group.alive) return;
    group.signals = 0;
    ++group.phase;
    group.completed = now + constants_[C::kBarrier];
    for (SimWave& wave : waves_) {
      if (wave.group != &group || !wave.blocked) continue;
      wave.blocked = false;
      wave.turn = group.completed;
      if (keep_slices_) Extend(wave, SliceKind::kBarrier, wave.last_issue, group.completed, 0);
      Advance(wave);
      Simd& simd = simds_[wave.simd];
      simd.next = std::min(simd.next, Earliest(simd, wave));
    }
  }

  // --- slices ------------------------------------------------------------------------------------
  static SliceKind KindOf(const TimedInstruction& timed) {
    switch (timed.kind) {
      case TimedKind::kMatrix:
        return SliceKind::kMatrix;
      case TimedKind::kVector:
        return SliceKind::kVector;
      case TimedKind::kTrans:
        return SliceKind::kTrans;
      case TimedKind::kLds:
        return SliceKind::kLds;
      case TimedKind::kMemory:
        return SliceKind::kMemory;
      case TimedKind::kWait:
        return SliceKind::kWait;
      case TimedKind::kBarrier:
      case TimedKind::kBarrierSignal:
      case TimedKind::kBarrierWait:
        return SliceKind::kBarrier;
      default:
        return SliceKind::kScalar;
    }
  }
  // From when the wave could have issued until it may issue again.
  void KeepSlice(const SimWave& wave, const TimedInstruction& timed, double before, double now) {
    Extend(wave, KindOf(timed), before, now + chip_.issue_clk, 1);
  }
  void Extend(const SimWave& wave, SliceKind kind, double begin, double end,
              uint32_t instructions) {
    last_slice_.resize(waves_.size(), -1);
    int64_t& last = last_slice_[static_cast<size_t>(&wave - waves_.data())];
    if (last >= 0) {
      Slice& slice = time_.slices[static_cast<size_t>(last)];
      begin = std::max(begin, slice.end_clk);
      if (slice.kind == kind && begin <= slice.end_clk) {
        slice.end_clk = std::max(end, slice.end_clk);
        slice.instructions += instructions;
        return;
      }
    }
    if (end <= begin) return;
    last = static_cast<int64_t>(time_.slices.size());
    time_.slices.push_back({wave.group_index, wave.index, kind, begin, end, instructions});
  }

  const Isa isa_;
  const Chip& chip_;
  const TimingConstants& constants_;
  const std::vector<TimedInstruction> timed_;
  UnitMemory memory_;
  std::vector<Simd> simds_;
  std::vector<SimGroup> groups_;
  std::vector<SimWave> waves_;
  const bool keep_slices_;
  std::vector<int64_t> last_slice_;
  UnitTime time_;
};

}  // namespace

const char* SliceName(SliceKind kind) {
  static constexpr const char* kNames[] = {"matrix", "vector", "transcendental", "scalar",
                                           "LDS",    "memory", "wait",           "barrier"};
  return kNames[static_cast<size_t>(kind)];
}

UnitTime TimeUnit(const Program& program, const KernelCode& code,
                  std::span<const GroupTrace* const> groups, uint32_t simds,
                  const TimingConstants& constants, bool keep_slices) {
  return UnitModel(program, code, simds, constants, keep_slices).Run(groups);
}

}  // namespace jax_fa::emulator
