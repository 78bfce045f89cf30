// The timing model in jax_fa._native: plain values, behind jax_fa/emulator/timing.py.
#include "emulator/timing/timing.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "python/bound.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace jax_fa::emulator {
namespace {

using Overrides = std::map<std::string, double>;
// A workgroup as (index in the grid, clk, matrix clk, long matrix clk, bytes missed in L1, clk
// alone on its unit).
using PyGroupTime = std::tuple<uint64_t, double, double, double, double, double>;

const Chip& ChipNamed(const std::string& target) {
  if (const Chip* chip = TargetNamed(target)) return *chip;
  throw nb::value_error(("target must be " + TargetNames(" or ") + "; got " + target).c_str());
}

nb::list Constants(const std::string& target) {
  nb::list rows;
  for (const ConstantRow& row : *ChipNamed(target).timing.constants) {
    rows.append(
        nb::make_tuple(row.name, row.value, row.unit, std::string(1, row.confidence), row.source));
  }
  return rows;
}

PyGroupTime TimeOne(const TraceSet& traces, size_t place, uint32_t resident,
                    const Overrides& overrides) {
  const TimingConstants constants(traces.chip(), overrides);
  GroupTime time;
  {
    const nb::gil_scoped_release release;
    time = traces.Time(place, resident, constants);
  }
  return {time.group,           time.clk,          time.matrix_clk,
          time.long_matrix_clk, time.missed_bytes, time.alone_clk};
}

// A slice of the trace as (wave, kind, begin clk, end clk, instructions).
nb::list SlicesOf(const TraceSet& traces, size_t place, const Overrides& overrides) {
  nb::list slices;
  for (const Slice& slice : traces.Slices(place, TimingConstants(traces.chip(), overrides))) {
    slices.append(nb::make_tuple(slice.wave, SliceName(slice.kind), slice.begin_clk, slice.end_clk,
                                 slice.instructions));
  }
  return slices;
}

// Instructions as (wave, pc, clk), in order of time; waves go round the SIMDs of the unit.
nb::list IssuesOf(const TraceSet& traces, size_t place, uint32_t resident, bool cold,
                  const Overrides& overrides) {
  nb::list issues;
  for (const IssueRecord& issue :
       traces.Issues(place, resident, cold, TimingConstants(traces.chip(), overrides))) {
    issues.append(nb::make_tuple(issue.wave, traces.PcOf(issue.slot), issue.clk));
  }
  return issues;
}

nb::dict Grid(const std::string& target, uint32_t simds, uint32_t resident,
              const std::vector<PyGroupTime>& groups, double die_bytes, double memory_bytes,
              const Overrides& overrides) {
  const Chip& chip = ChipNamed(target);
  std::vector<GroupTime> times;
  times.reserve(groups.size());
  for (const auto& [group, clk, matrix_clk, long_matrix_clk, missed_bytes, alone_clk] : groups) {
    times.push_back({group, clk, matrix_clk, long_matrix_clk, missed_bytes, alone_clk});
  }
  const GridTime time = TimeGrid(chip, simds, resident, times, {die_bytes, memory_bytes},
                                 TimingConstants(chip, overrides));
  nb::dict dict;
  dict["clk"] = time.clk;
  dict["launch_clk"] = time.launch_clk;
  dict["dispatch_clk"] = time.dispatch_clk;
  dict["l2_clk"] = time.l2_clk;
  dict["fabric_clk"] = time.fabric_clk;
  dict["memory_clk"] = time.memory_clk;
  dict["matrix_clk"] = time.matrix_clk;
  dict["clock_hz"] = time.clock_hz;
  dict["stream"] = time.stream;
  dict["simds"] = time.simds;
  dict["flops_per_clk"] = *chip.timing.flops_per_clk;
  return dict;
}

}  // namespace
}  // namespace jax_fa::emulator

static void BindTrace(nb::module_& module) {
  using namespace jax_fa::emulator;
  nb::class_<TraceSet>(module, "EmulatorTrace")
      .def_prop_ro("groups",
                   [](const TraceSet& traces) {
                     std::vector<uint64_t> groups;
                     for (const GroupTrace& trace : traces.groups()) groups.push_back(trace.group);
                     return groups;
                   })
      .def_prop_ro("simds", [](const TraceSet& traces) { return traces.occupancy().simds; })
      .def_prop_ro("fits",
                   [](const TraceSet& traces) { return traces.occupancy().workgroups_per_unit; })
      .def_prop_ro("target", [](const TraceSet& traces) { return traces.target(); })
      .def("time", &TimeOne, "place"_a, "resident"_a, "constants"_a)
      .def("slices", &SlicesOf, "place"_a, "constants"_a)
      .def("issues", &IssuesOf, "place"_a, "resident"_a, "cold"_a, "constants"_a);
}

void BindTiming(nb::module_& module) {
  using namespace jax_fa::emulator;
  if (!BoundBefore<TraceSet>(module, "EmulatorTrace")) BindTrace(module);
  module.def("timing_constants", &Constants, "target"_a);
  module.def(
      "chip_simds", [](const std::string& target) { return ChipNamed(target).simds(); },
      "target"_a);
  module.def("time_grid", &Grid, "target"_a, "simds"_a, "resident"_a, "groups"_a, "die_bytes"_a,
             "memory_bytes"_a, "constants"_a);
}
