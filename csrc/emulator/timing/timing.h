// The timing of one launch: traces of its workgroups, and what the model makes of them.
#ifndef JAX_FA_EMULATOR_TIMING_TIMING_H_
#define JAX_FA_EMULATOR_TIMING_TIMING_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/object/launch_context.h"
#include "emulator/object/occupancy.h"
#include "emulator/timing/grid.h"
#include "emulator/timing/unit.h"

namespace jax_fa::emulator {

// Traces of some workgroups of a launch, to be timed under any constants.
class TraceSet {
 public:
  TraceSet(CodeObject code, const Kernel* kernel, Occupancy occupancy, uint32_t resident)
      : code_(std::move(code)), kernel_(kernel), occupancy_(occupancy), resident_(resident) {}

  void Add(GroupTrace trace) { groups_.push_back(std::move(trace)); }
  void Sort();
  const std::vector<GroupTrace>& groups() const { return groups_; }
  const Occupancy& occupancy() const { return occupancy_; }
  // Workgroups that share a unit.
  uint32_t resident() const { return resident_; }
  const Chip& chip() const { return *code_.program().chip; }
  const std::string& target() const { return code_.target(); }

  // Workgroup `place` of groups(), `resident` like it at a time on one unit.
  GroupTime Time(size_t place, uint32_t resident, const TimingConstants& constants) const;
  // Workgroup `place` alone on its unit, as slices of its waves' time.
  std::vector<Slice> Slices(size_t place, const TimingConstants& constants) const;
  // Workgroup `place`, `resident` like it on one unit, instruction by instruction; all read
  // the same; `cold`: the first of a launch.
  std::vector<IssueRecord> Issues(size_t place, uint32_t resident, bool cold,
                                  const TimingConstants& constants) const;
  uint32_t PcOf(uint32_t slot) const;  // byte offset in the code object

 private:
  std::vector<TimedInstruction> Instructions(const TimingConstants& constants) const;

  CodeObject code_;  // keeps the program alive
  const Kernel* kernel_;
  Occupancy occupancy_;
  uint32_t resident_;
  std::vector<GroupTrace> groups_;
};

// What the workers of a timed launch hand in, in any order.
class LaunchTiming {
 public:
  LaunchTiming(const CodeObject& code, const LaunchContext& launch, uint64_t groups);

  // Times the workgroup; keeps its trace when `keep`.
  void Add(GroupTrace trace, bool keep);
  // All workgroups of the grid must have been added.
  GridTime Grid();
  std::shared_ptr<TraceSet> traces() { return traces_; }

 private:
  const LaunchContext& launch_;
  const TimingConstants constants_;
  const std::vector<TimedInstruction> timed_;
  uint64_t in_full_rounds_ = 0;  // workgroups that never run beside fewer than fit
  std::mutex mutex_;
  std::shared_ptr<TraceSet> traces_;
  TouchedLines touched_;
  std::vector<GroupTime> times_;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TIMING_TIMING_H_
