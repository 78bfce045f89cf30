#include "emulator/timing/timing.h"

#include <algorithm>

namespace jax_fa::emulator {
namespace {

uint32_t Lanes(const LaunchContext& launch) {
  return launch.block[0] * launch.block[1] * launch.block[2];
}

GroupTime TimeGroup(const Chip& chip, std::span<const TimedInstruction> timed,
                    const GroupTrace& trace, uint32_t simds, uint32_t resident,
                    const TimingConstants& constants, bool time_alone = true) {
  const std::vector<const GroupTrace*> copies(resident, &trace);
  const UnitTime unit = TimeUnit(chip, timed, copies, simds, constants);
  const double alone =
      resident == 1 || !time_alone
          ? unit.clk
          : TimeUnit(chip, timed, std::span(copies).first(1), simds, constants).clk;
  return {trace.group,
          unit.clk,
          unit.matrix_clk / resident,
          unit.long_matrix_clk / resident,
          unit.missed_bytes / resident,
          alone};
}

}  // namespace

void TraceSet::Sort() {
  std::sort(groups_.begin(), groups_.end(),
            [](const GroupTrace& a, const GroupTrace& b) { return a.group < b.group; });
}

GroupTime TraceSet::Time(size_t place, uint32_t resident, const TimingConstants& constants) const {
  return TimeGroup(chip(), Instructions(constants), groups_.at(place), occupancy_.simds, resident,
                   constants);
}

std::vector<Slice> TraceSet::Slices(size_t place, const TimingConstants& constants) const {
  const GroupTrace* group = &groups_.at(place);
  return TimeUnit(chip(), Instructions(constants), {&group, 1}, occupancy_.simds, constants,
                  {.record = Record::kSlices})
      .slices;
}

std::vector<IssueRecord> TraceSet::Issues(size_t place, uint32_t resident, bool cold,
                                          const TimingConstants& constants) const {
  const std::vector<const GroupTrace*> copies(resident, &groups_.at(place));
  return TimeUnit(chip(), Instructions(constants), copies, occupancy_.simds, constants,
                  {.record = Record::kIssues, .cold = cold, .share_lines = true})
      .issues;
}

std::vector<TimedInstruction> TraceSet::Instructions(const TimingConstants& constants) const {
  return TimeInstructions(chip(), code_.program().Code(*kernel_), constants);
}

uint32_t TraceSet::PcOf(uint32_t slot) const {
  return code_.program().Code(*kernel_).begin + 4 * slot;
}

LaunchTiming::LaunchTiming(const CodeObject& code, const LaunchContext& launch, uint64_t groups)
    : launch_(launch),
      constants_(*launch.program->chip),
      timed_(TimeInstructions(*launch.program->chip, *launch.code, constants_)),
      touched_(*launch.memory, launch.program->chip->dies) {
  const Occupancy occupancy =
      GetOccupancy(*launch.program, *launch.kernel, Lanes(launch), launch.lds_bytes);
  // A grid that does not fill the chip is spread over it.
  const uint64_t units = launch.program->chip->simds() / occupancy.simds;
  const auto needed = (groups + units - 1) / units;
  const auto resident =
      static_cast<uint32_t>(std::min<uint64_t>(occupancy.workgroups_per_unit, needed));
  in_full_rounds_ = groups - groups % (units * resident);
  traces_ = std::make_shared<TraceSet>(code, launch.kernel, occupancy, resident);
}

void LaunchTiming::Add(GroupTrace trace, bool keep) {
  touched_.Add(trace);
  const GroupTime time = TimeGroup(*launch_.program->chip, timed_, trace,
                                   traces_->occupancy().simds, traces_->resident(), constants_,
                                   /*time_alone=*/trace.group >= in_full_rounds_);
  const std::lock_guard lock(mutex_);
  times_.push_back(time);
  if (keep) traces_->Add(std::move(trace));
}

GridTime LaunchTiming::Grid() {
  std::sort(times_.begin(), times_.end(),
            [](const GroupTime& a, const GroupTime& b) { return a.group < b.group; });
  traces_->Sort();
  return TimeGrid(*launch_.program->chip, traces_->occupancy().simds, traces_->resident(), times_,
                  touched_.Traffic(), constants_);
}

}  // namespace jax_fa::emulator
