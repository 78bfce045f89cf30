#include "emulator/timing/unit.h"

#include <algorithm>
#include <array>
#include <limits>

#include "emulator/emulator.h"
#include "emulator/timing/memory.h"
#include "emulator/timing/vector_queue.h"
#include "emulator/timing/wave.h"

namespace jax_fa::emulator {
namespace {

using C = Constant;
constexpr double kNever = std::numeric_limits<double>::infinity();

enum Port { kVectorPort, kScalarPort, kLdsPort, kMemoryPort, kBranchPort, kPorts };

struct Simd {
  explicit Simd(const TimingConstants& constants) : queue(constants[C::kVectorQueue]) {}
  std::vector<TimedWave*> waves;
  std::array<double, kPorts> free = {};
  VectorQueue queue;
  double matrix_free = 0, trans_free = 0;
  double vector_blocked = kLongAgo, packed_blocked = kLongAgo;  // until
  double memory_blocked_from = kLongAgo, memory_blocked = kLongAgo;
  // The next issue, as things stand: when, and which wave.
  double next = 0;
  TimedWave* chosen = nullptr;
};

class UnitModel {
 public:
  UnitModel(const Chip& chip, std::span<const TimedInstruction> timed, uint32_t simds,
            uint32_t line_count, const TimingConstants& constants, const UnitOptions& options)
      : chip_(chip),
        constants_(constants),
        timed_(timed),
        memory_(chip_, simds, line_count, constants, options.cold),
        scalar_load_latency_(constants[options.cold ? C::kColdScalar : C::kScalarLoadLatency]),
        simds_(simds, Simd(constants)),
        grid_clk_(chip.timing.grid_clk),
        steps_per_clk_(1 / grid_clk_),
        oldest_first_(constants[C::kOldestFirst] != 0),
        record_(options.record),
        share_lines_(options.share_lines) {}

  UnitTime Run(std::span<const GroupTrace* const> groups) {
    Place(groups);
    for (;;) {
      Simd* first = &simds_[0];
      for (Simd& simd : simds_) {
        if (simd.next < first->next) first = &simd;
      }
      if (first->next == kNever) break;
      Issue(*first, *first->chosen, first->next);
      Choose(*first);
    }
    for (const TimedWave& wave : waves_) {
      if (wave.instruction) throw EmulatorError("the timing model is stuck at a barrier");
    }
    time_.missed_bytes = memory_.missed_bytes();
    time_.slices = slices_.Take();
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
      if (g > 0 && !share_lines_)
        groups_[g].first_line = groups_[g - 1].first_line + groups[g - 1]->line_count;
      for (uint32_t w = 0; w < groups[g]->waves.size(); ++w) {
        TimedWave& wave = waves_[place];
        wave.trace = &groups[g]->waves[w];
        wave.group = &groups_[g];
        wave.group_index = g;
        wave.index_in_group = w;
        wave.place = static_cast<uint32_t>(place++);
        wave.simd = static_cast<uint32_t>(wave.place % simds_.size());
        simds_[wave.simd].waves.push_back(&wave);
        wave.turn = constants_[C::kGroupStart];
        wave.Advance(timed_, constants_, chip_);
      }
    }
    for (Simd& simd : simds_) Choose(simd);
  }

  // The first multiple of the grid from `clk` on.
  double OnGrid(double clk) const {
    const double below = static_cast<double>(static_cast<int64_t>(clk * steps_per_clk_));
    const double on_grid = below * grid_clk_;
    return on_grid < clk ? on_grid + grid_clk_ : on_grid;
  }

  // --- one SIMD ----------------------------------------------------------------------------------
  // When the wave's next instruction could issue, its unit being as it is now.
  double Earliest(const Simd& simd, const TimedWave& wave) const {
    if (!wave.instruction || wave.blocked) return kNever;
    const TimedInstruction& timed = *wave.instruction;
    double at = wave.ready;
    if (simd.queue.exists() && IsVector(timed)) return OnGrid(std::max(at, simd.queue.open()));
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

  static bool IsVector(const TimedInstruction& timed) {
    return timed.kind == TimedKind::kMatrix || timed.kind == TimedKind::kVector ||
           timed.kind == TimedKind::kTrans;
  }

  // Picks the wave of highest priority that can issue first; among equals the oldest or the one
  // that has waited longest.
  void Choose(Simd& simd) const {
    simd.next = kNever;
    simd.chosen = nullptr;
    for (TimedWave* wave : simd.waves) {
      const double at = Earliest(simd, *wave);
      if (at > simd.next || at == kNever) continue;
      if (at == simd.next && (wave->priority < simd.chosen->priority ||
                              (wave->priority == simd.chosen->priority &&
                               (oldest_first_ || wave->last_issue >= simd.chosen->last_issue)))) {
        continue;
      }
      simd.next = at;
      simd.chosen = wave;
    }
  }

  // A vector instruction where there is no queue.
  void Hold(Simd& simd, const TimedInstruction& timed, double now) const {
    switch (timed.kind) {
      case TimedKind::kMatrix:
        simd.matrix_free = now + timed.hold_clk;
        simd.free[kVectorPort] = now + chip_.timing.issue_clk;
        simd.vector_blocked = now + timed.blocked_clk;
        simd.packed_blocked =
            now + constants_[timed.long_matrix ? C::kPackedBlockedLong : C::kPackedBlockedShort];
        simd.memory_blocked_from = now + chip_.timing.issue_clk;
        simd.memory_blocked = now + constants_[C::kMemoryBlocked];
        break;
      case TimedKind::kTrans:
        simd.trans_free = now + timed.unit_clk;
        simd.free[kVectorPort] = now + timed.hold_clk;
        break;
      default:
        simd.free[kVectorPort] = now + timed.hold_clk;
        break;
    }
  }

  // A vector instruction where there is one; when it begins.
  double Enqueue(Simd& simd, TimedWave& wave, double now) const {
    const TimedInstruction& timed = *wave.instruction;
    const bool is_matrix = timed.kind == TimedKind::kMatrix;
    double begin = simd.queue.Begin(now);
    if (is_matrix) begin = std::max(begin, wave.operands);
    if (timed.kind == TimedKind::kTrans) {
      begin = std::max(begin, simd.trans_free);
      simd.trans_free = begin + timed.unit_clk;
    }
    const double place =
        simd.queue.Add(now, begin, timed.hold_clk, is_matrix ? constants_[C::kMatrixDrain] : 0);
    wave.turn = std::max(wave.turn, place);
    return begin;
  }

  void Issue(Simd& simd, TimedWave& wave, double now) {
    const TimedInstruction& timed = *wave.instruction;
    const TraceEvent& event = wave.trace->events[wave.next++];
    const double could_issue = wave.turn;
    wave.turn = now + timed.wave_clk;
    wave.last_issue = now;
    if (timed.priority >= 0) wave.priority = timed.priority;
    double begin = now, end = now;
    if (simd.queue.exists() && IsVector(timed)) {
      begin = Enqueue(simd, wave, now);
      end = begin + timed.hold_clk + constants_[C::kMatrixDrain];
    } else if (IsVector(timed)) {
      Hold(simd, timed, now);
    }
    switch (timed.kind) {
      case TimedKind::kMatrix:
        time_.matrix_clk += timed.hold_clk;
        time_.clk = std::max(time_.clk, begin + timed.hold_clk);
        if (timed.long_matrix) time_.long_matrix_clk += timed.hold_clk;
        break;
      case TimedKind::kScalar:
        simd.free[kScalarPort] = now + chip_.timing.issue_clk;
        break;
      case TimedKind::kScalarLoad:
        simd.free[kScalarPort] = now + chip_.timing.issue_clk;
        wave.Load(timed, now + scalar_load_latency_);
        break;
      case TimedKind::kLds:
        simd.free[kLdsPort] = now + chip_.timing.issue_clk;
        wave.Load(timed, memory_.Lds(timed, event.detail, wave.simd, wave.group_index, now));
        break;
      case TimedKind::kMemory: {
        simd.free[kMemoryPort] =
            now + (timed.is_dma ? constants_[C::kDmaIssue] : *chip_.timing.issue_clk);
        const uint32_t* record = &wave.trace->lines[event.detail];
        wave.Load(timed, memory_.Access(timed, {record + 1, record[0]}, wave.group->first_line,
                                        wave.simd, now));
        end = now + constants_[C::kStoreDone];
        break;
      }
      case TimedKind::kBranch: {
        simd.free[kBranchPort] = now + chip_.timing.issue_clk;
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
    wave.Write(timed, begin);
    wave.Follow(timed, begin, end);
    if (record_ == Record::kIssues) time_.issues.push_back({wave.place, event.slot, now});
    if (record_ == Record::kSlices) {
      slices_.Add(wave, SliceRecorder::KindOf(timed), could_issue, now + chip_.timing.issue_clk, 1);
    }
    wave.Advance(timed_, constants_, chip_);
  }

  // --- barriers ----------------------------------------------------------------------------------
  void Signal(TimedWave& wave, double now) {
    wave.signalled = wave.group->phase;
    ++wave.group->signals;
    Complete(*wave.group, now);
  }
  void WaitForBarrier(TimedWave& wave, double now) {
    if (wave.signalled == wave.group->phase) {
      wave.blocked = true;
    } else {
      wave.turn = std::max(now + chip_.timing.issue_clk, wave.group->completed);
    }
  }
  void End(TimedWave& wave, double now) {
    --wave.group->alive;
    Complete(*wave.group, now);
    time_.clk = std::max(time_.clk, now + chip_.timing.issue_clk);
  }
  void Complete(TimedGroup& group, double now) {
    if (group.signals == 0 || group.signals < group.alive) return;
    group.signals = 0;
    ++group.phase;
    group.completed = now + constants_[C::kBarrier];
    for (TimedWave& wave : waves_) {
      if (wave.group != &group || !wave.blocked) continue;
      wave.blocked = false;
      wave.turn = group.completed;
      if (record_ == Record::kSlices) {
        slices_.Add(wave, SliceKind::kBarrier, wave.last_issue, group.completed, 0);
      }
      wave.Advance(timed_, constants_, chip_);
      Choose(simds_[wave.simd]);
    }
  }

  const Chip& chip_;
  const TimingConstants& constants_;
  const std::span<const TimedInstruction> timed_;
  UnitMemory memory_;
  const double scalar_load_latency_;
  std::vector<Simd> simds_;
  std::vector<TimedGroup> groups_;
  std::vector<TimedWave> waves_;
  const double grid_clk_, steps_per_clk_;
  const bool oldest_first_;
  const Record record_;
  const bool share_lines_;
  SliceRecorder slices_;
  UnitTime time_;
};

}  // namespace

UnitTime TimeUnit(const Chip& chip, std::span<const TimedInstruction> timed,
                  std::span<const GroupTrace* const> groups, uint32_t simds,
                  const TimingConstants& constants, const UnitOptions& options) {
  uint32_t line_count = 0;
  for (const GroupTrace* group : groups) line_count += group->line_count;
  return UnitModel(chip, timed, simds, line_count, constants, options).Run(groups);
}

}  // namespace jax_fa::emulator
