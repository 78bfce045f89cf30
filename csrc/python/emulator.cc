// The emulator in jax_fa._native: addresses and plain values only; jax_fa/emulator/launch.py makes
// them pleasant.
#include "emulator/emulator.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/object/listing.h"
#include "emulator/object/occupancy.h"
#include "emulator/object/program.h"
#include "emulator/run/stats.h"
#include "emulator/timing/timing.h"
#include "python/bound.h"
#include "runtime/emulator_settings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace jax_fa::emulator {
namespace {

constexpr std::array<std::pair<const char*, Schedule>, 4> kSchedules = {{
    {"round_robin", Schedule::kRoundRobin},
    {"run_to_barrier", Schedule::kRunToBarrier},
    {"reverse", Schedule::kReverse},
    {"random", Schedule::kRandom},
}};

constexpr std::array<std::pair<const char*, Arrival>, 3> kArrivals = {{
    {"late", Arrival::kLate},
    {"early", Arrival::kEarly},
    {"random", Arrival::kRandom},
}};

// The value of an option by its name. Python has refused other names.
template <class T, size_t kCount>
T Named(const std::array<std::pair<const char*, T>, kCount>& names, const std::string& name) {
  for (const auto& [known, value] : names) {
    if (name == known) return value;
  }
  throw nb::value_error(("no option is named '" + name + "'").c_str());
}
template <class T, size_t kCount>
const char* NameOf(const std::array<std::pair<const char*, T>, kCount>& names, T value) {
  return names[static_cast<size_t>(value)].first;
}

nb::dict KernelDict(const Kernel& kernel) {
  const KernelInfo& info = kernel.info;
  nb::list arguments;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.hidden()) continue;
    arguments.append(nb::make_tuple(argument.name, argument.kind, argument.offset, argument.bytes));
  }
  nb::dict dict;
  dict["vgprs"] = info.vgprs;
  dict["agprs"] = info.agprs;
  dict["sgprs"] = info.sgprs;
  dict["vgpr_spills"] = info.vgpr_spills;
  dict["sgpr_spills"] = info.sgpr_spills;
  dict["scratch_bytes"] = info.scratch_bytes;
  dict["lds_bytes"] = info.lds_bytes;
  dict["kernarg_bytes"] = info.kernarg_bytes;
  dict["wave_size"] = info.wave_size;
  dict["max_workgroup_size"] = info.max_workgroup_size;
  dict["arguments"] = arguments;
  return dict;
}

nb::dict Kernels(const CodeObject& code) {
  nb::dict kernels;
  for (const auto& [name, kernel] : code.program().kernels) {
    kernels[name.c_str()] = KernelDict(kernel);
  }
  return kernels;
}

const Kernel& KernelNamed(const CodeObject& code, const std::string& name) {
  const auto found = code.program().kernels.find(name);
  if (found == code.program().kernels.end()) throw nb::key_error(name.c_str());
  return found->second;
}

// (pc, mnemonic, class, falls through, branch target or None) of each instruction.
nb::list Instructions(const CodeObject& code, const std::string& kernel) {
  nb::list listing;
  for (const ListedInstruction& listed :
       ListInstructions(code.program(), KernelNamed(code, kernel))) {
    listing.append(nb::make_tuple(listed.pc, listed.mnemonic, ClassName(listed.op_class),
                                  listed.falls_through, listed.target));
  }
  return listing;
}

// (pc, text) of each instruction.
nb::list Disassembly(const CodeObject& code, const std::string& kernel) {
  nb::list lines;
  for (const ListedInstruction& listed :
       ListInstructions(code.program(), KernelNamed(code, kernel))) {
    lines.append(nb::make_tuple(listed.pc, listed.text));
  }
  return lines;
}

nb::dict OccupancyDict(const CodeObject& code, const std::string& kernel, uint32_t lanes,
                       uint32_t lds_bytes) {
  const Occupancy occupancy =
      GetOccupancy(code.program(), KernelNamed(code, kernel), lanes, lds_bytes);
  nb::dict dict;
  dict["simds"] = occupancy.simds;
  dict["waves_per_simd"] = occupancy.waves_per_simd;
  dict["workgroups_per_unit"] = occupancy.workgroups_per_unit;
  return dict;
}

nb::dict CountDict(const std::map<std::string, uint64_t>& counts) {
  nb::dict dict;
  for (const auto& [name, count] : counts) dict[name.c_str()] = count;
  return dict;
}
nb::dict ReadWritten(uint64_t read, uint64_t written) {
  nb::dict dict;
  dict["read"] = read;
  dict["written"] = written;
  return dict;
}

// A wave as Python has it: (workgroup, wave).
using PyWave = std::optional<std::tuple<uint64_t, uint32_t>>;
std::optional<WavePlace> PlaceOf(const PyWave& wave) {
  if (!wave) return std::nullopt;
  return WavePlace{std::get<0>(*wave), std::get<1>(*wave)};
}
PyWave PyWaveOf(const std::optional<WavePlace>& place) {
  if (!place) return std::nullopt;
  return {{place->group, place->wave}};
}

// (pc, [(register, its dwords as bytes)]) of each.
nb::list StepList(const std::vector<WaveStep>& steps) {
  nb::list list;
  for (const WaveStep& step : steps) {
    nb::list written;
    for (const auto& [name, values] : step.written) {
      written.append(
          nb::make_tuple(name, nb::bytes(values.data(), values.size() * sizeof(uint32_t))));
    }
    list.append(nb::make_tuple(step.pc, written));
  }
  return list;
}

nb::dict ResultDict(const LaunchResult& result) {
  nb::dict counts, bytes, operands, dict;
  counts["class"] = CountDict(result.class_counts);
  counts["mnemonic"] = CountDict(result.mnemonic_counts);
  uint64_t read = 0, written = 0;
  for (const LaunchResult::Bytes& buffer : result.buffer_bytes) {
    operands[buffer.name.c_str()] = ReadWritten(buffer.read, buffer.written);
    read += buffer.read;
    written += buffer.written;
  }
  bytes["global"] = ReadWritten(read, written);
  bytes["lds"] = ReadWritten(result.lds_read_bytes, result.lds_written_bytes);
  bytes["operands"] = operands;
  dict["counts"] = counts;
  dict["bytes"] = bytes;
  dict["bank_conflicts"] = result.bank_conflicts;
  dict["findings"] = result.findings;
  dict["executed"] =
      nb::bytes(result.executed.data(), result.executed.size() * sizeof(LaunchResult::Executed));
  dict["wave_instructions"] = result.wave_instructions;
  dict["time"] = nb::none();
  if (result.time) {
    nb::dict time;
    time["clk"] = result.time->clk;
    time["matrix_clk"] = result.time->matrix_clk;
    time["simds"] = result.time->simds;
    time["flops_per_clk"] = result.time->flops_per_clk;
    dict["time"] = time;
  }
  dict["trace"] = result.traces ? nb::cast(result.traces) : nb::none();
  dict["followed"] = PyWaveOf(result.followed);
  dict["steps"] = StepList(result.steps);
  return dict;
}

// Whether Python has been interrupted. The calling thread asks, which holds no GIL while a kernel
// runs.
bool Interrupted() {
  const nb::gil_scoped_acquire acquire;
  return PyErr_CheckSignals() != 0;
}

// A buffer as Python gives it: (name, address, bytes).
using PyBuffer = std::tuple<std::string, uintptr_t, size_t>;

nb::dict RunKernel(const CodeObject& code, const std::string& kernel,
                   const std::array<uint32_t, 3>& grid, const std::array<uint32_t, 3>& block,
                   const nb::bytes& kernarg, const std::vector<PyBuffer>& buffers,
                   uint32_t lds_bytes, const std::string& schedule, const std::string& arrival,
                   uint64_t seed, bool checks, bool collect, int threads,
                   uint64_t max_instructions_per_wave, bool timing,
                   const std::vector<uint64_t>& workgroups, const PyWave& follow) {
  std::vector<Allocation> allocations;
  for (const auto& [name, address, bytes] : buffers) {
    allocations.push_back({name, reinterpret_cast<void*>(address), bytes, true, 0});
  }
  LaunchOptions options;
  options.schedule = Named(kSchedules, schedule);
  options.arrival = Named(kArrivals, arrival);
  options.seed = seed;
  options.checks = checks;
  options.collect = collect;
  options.threads = threads;
  options.dynamic_lds_bytes = lds_bytes;
  options.max_instructions_per_wave = max_instructions_per_wave;
  options.timing = timing;
  options.workgroups = workgroups;
  options.follow = PlaceOf(follow);
  options.interrupted = Interrupted;
  const auto* arguments = static_cast<const std::byte*>(kernarg.data());
  const std::span<const std::byte> argument_span(arguments, kernarg.size());

  LaunchResult result;
  try {
    const nb::gil_scoped_release release;
    result = Launch(code, kernel, grid, block, argument_span, allocations, options);
  } catch (const EmulatorError&) {
    if (PyErr_Occurred()) throw nb::python_error();  // KeyboardInterrupt
    throw;
  }
  // The interrupt may have come as the last workgroup ended.
  if (PyErr_Occurred()) throw nb::python_error();
  return ResultDict(result);
}

nb::dict SettingsDict() {
  const EmulatorSettings settings = GetEmulatorSettings();
  nb::dict dict;
  dict["schedule"] = NameOf(kSchedules, settings.schedule);
  dict["arrival"] = NameOf(kArrivals, settings.arrival);
  dict["seed"] = settings.seed;
  dict["checks"] = settings.checks;
  dict["collect"] = settings.collect;
  dict["threads"] = settings.threads;
  dict["timing"] = settings.timing;
  dict["workgroups"] = settings.workgroups;
  dict["follow"] = PyWaveOf(settings.follow);
  return dict;
}

void SetSettings(const std::string& schedule, const std::string& arrival, uint64_t seed,
                 bool checks, bool collect, int threads, bool timing,
                 const std::vector<uint64_t>& workgroups, const PyWave& follow) {
  SetEmulatorSettings({Named(kSchedules, schedule), Named(kArrivals, arrival), seed, checks,
                       collect, threads, timing, workgroups, PlaceOf(follow)});
}

nb::bytes ToBytes(std::span<const std::byte> bytes) {
  return nb::bytes(bytes.data(), bytes.size());
}

nb::list RecordedLaunches(const EmulatorRecorder& recorder) {
  nb::list launches;
  for (const auto& launch : recorder.launches()) {
    nb::dict dict = ResultDict(launch->result);
    dict["code"] = launch->code;
    dict["target"] = launch->target;
    dict["kernel"] = launch->kernel;
    dict["grid"] = nb::make_tuple(launch->grid[0], launch->grid[1], launch->grid[2]);
    dict["block"] = nb::make_tuple(launch->block[0], launch->block[1], launch->block[2]);
    dict["seconds"] = launch->seconds;
    if (recorder.keeps_operands()) {
      nb::list operands;
      for (const jax_fa::RecordedOperand& operand : launch->operands) {
        operands.append(nb::make_tuple(operand.name, operand.address, ToBytes(operand.contents)));
      }
      dict["arguments"] = ToBytes(launch->arguments);
      dict["operands"] = operands;
    }
    launches.append(dict);
  }
  return launches;
}

}  // namespace
}  // namespace jax_fa::emulator

// csrc/python/timing.cc
void BindTiming(nb::module_& module);

static void BindCode(nb::module_& module) {
  using namespace jax_fa::emulator;
  nb::class_<CodeObject>(module, "EmulatorCode")
      .def_static(
          "parse",
          [](const nb::bytes& elf) {
            return CodeObject::Parse({static_cast<const std::byte*>(elf.data()), elf.size()});
          },
          "elf"_a)
      .def_prop_ro("target", [](const CodeObject& code) { return code.target(); })
      .def_prop_ro("kernels", &Kernels)
      .def("disassembly", &Disassembly, "kernel"_a)
      .def("instructions", &Instructions, "kernel"_a)
      .def("occupancy", &OccupancyDict, "kernel"_a, "lanes"_a, "lds_bytes"_a)
      .def("launch", &RunKernel, "kernel"_a, "grid"_a, "block"_a, "kernarg"_a, "buffers"_a,
           "lds_bytes"_a, "schedule"_a, "arrival"_a, "seed"_a, "checks"_a, "collect"_a, "threads"_a,
           "max_instructions_per_wave"_a, "timing"_a, "workgroups"_a, "follow"_a.none());
}

static void BindRecorder(nb::module_& module) {
  using namespace jax_fa::emulator;
  nb::class_<jax_fa::EmulatorRecorder>(module, "EmulatorRecorder")
      .def(nb::init<bool>(), "keeps_operands"_a = false)
      .def("stop", &jax_fa::EmulatorRecorder::Stop)
      .def_prop_ro("launches", &RecordedLaunches);
}

void BindEmulator(nb::module_& module) {
  using namespace jax_fa::emulator;
  // Like the types below, one for all imports: what is thrown becomes one of them.
  static const nb::handle error =
      nb::exception<EmulatorError>(module, "EmulatorError", PyExc_RuntimeError).release();
  module.attr("EmulatorError") = error;
  if (!BoundBefore<CodeObject>(module, "EmulatorCode")) BindCode(module);
  if (!BoundBefore<jax_fa::EmulatorRecorder>(module, "EmulatorRecorder")) BindRecorder(module);
  module.def("emulator_settings", &SettingsDict);
  module.def("set_emulator_settings", &SetSettings, "schedule"_a, "arrival"_a, "seed"_a, "checks"_a,
             "collect"_a, "threads"_a, "timing"_a, "workgroups"_a, "follow"_a.none());
  BindTiming(module);
}
