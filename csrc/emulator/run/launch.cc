// One launch: its memory, its threads, its totals.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "emulator/object/launch_context.h"
#include "emulator/run/float_environment.h"
#include "emulator/run/scheduler.h"
#include "emulator/run/stats.h"
#include "emulator/run/wave_setup.h"
#include "emulator/timing/timing.h"

namespace jax_fa::emulator {
namespace {

std::string Triple(const std::array<uint32_t, 3>& v) {
  std::string text = "(";
  for (size_t axis = 0; axis < 3; ++axis) {
    if (axis != 0) text += ", ";
    text += std::to_string(v[axis]);
  }
  return text + ")";
}

const Kernel& FindKernel(const Program& program, const std::string& name) {
  const auto found = program.kernels.find(name);
  if (found != program.kernels.end()) return found->second;
  std::string names;
  for (const auto& [known, kernel] : program.kernels) {
    if (!names.empty()) names += ", ";
    names += known;
  }
  throw EmulatorError("no kernel '" + name + "' in this code object; it has " + names);
}

constexpr uint32_t kMaxScratchBytes = 128 << 10;  // of a lane

void CheckShape(const LaunchContext& launch, const LaunchOptions& options) {
  const KernelInfo& info = launch.kernel->info;
  const Chip& chip = *launch.program->chip;
  const auto refuse = [&](const std::string& what) {
    throw EmulatorError("kernel " + info.name + ": " + what);
  };
  uint64_t lanes = 1, groups = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] == 0 || launch.block[axis] == 0) {
      refuse("grid and block must be positive, got " + Triple(launch.grid) + " and " +
             Triple(launch.block));
    }
    if (launch.block[axis] > 1024) refuse("a block has at most 1024 lanes a side");
    lanes *= launch.block[axis];
    groups *= launch.grid[axis];
    if (groups > (uint64_t{1} << 40)) refuse("the grid is too large");
  }
  if (chip.workgroup_id_in_ttmp && (launch.grid[1] > 65535 || launch.grid[2] > 65535)) {
    refuse("grid y and z must fit 16 bits, got " + Triple(launch.grid));
  }
  const uint64_t most =
      std::min<uint64_t>(info.max_workgroup_size, uint64_t{chip.max_waves} * info.wave_size);
  if (lanes > most) {
    refuse("a workgroup has at most " + std::to_string(most) + " lanes, got " +
           std::to_string(lanes));
  }
  const uint32_t scratch = launch.kernel->descriptor.private_segment_bytes;
  if (scratch > kMaxScratchBytes) {
    refuse("a lane has at most " + std::to_string(kMaxScratchBytes) + " bytes of scratch, got " +
           std::to_string(scratch));
  }
  const uint64_t lds =
      uint64_t{launch.kernel->descriptor.group_segment_bytes} + options.dynamic_lds_bytes;
  if (lds > chip.max_lds_bytes) {
    refuse("a workgroup has at most " + std::to_string(*chip.max_lds_bytes) +
           " bytes of LDS, got " + std::to_string(lds));
  }
}

void CheckFollowed(const LaunchContext& launch, uint64_t grid_groups) {
  if (!launch.options->follow) return;
  const auto [group, wave] = *launch.options->follow;
  const std::vector<uint64_t>& named = launch.options->workgroups;
  const bool runs = named.empty() ? group < grid_groups
                                  : std::find(named.begin(), named.end(), group) != named.end();
  const uint32_t wave_size = launch.kernel->info.wave_size;
  const uint32_t lanes = launch.block[0] * launch.block[1] * launch.block[2];
  if (runs && wave < (lanes + wave_size - 1) / wave_size) return;
  throw EmulatorError("kernel " + launch.kernel->info.name + ": no wave " + std::to_string(wave) +
                      " of workgroup " + std::to_string(group) + " runs, so follow= has none");
}

// Bytes of kernel arguments up to the last one that the caller gives.
size_t ExplicitBytes(const Kernel& kernel) {
  size_t bytes = 0;
  for (const KernelArgument& argument : kernel.arguments) {
    if (!argument.hidden()) bytes = std::max<size_t>(bytes, argument.offset + argument.bytes);
  }
  return bytes;
}

// hsa_kernel_dispatch_packet_t.
std::array<uint8_t, 64> DispatchPacket(const LaunchContext& launch) {
  std::array<uint8_t, 64> packet = {};
  const auto put = [&](size_t offset, auto value) {
    std::memcpy(&packet[offset], &value, sizeof(value));
  };
  put(2, uint16_t{3});
  for (size_t axis = 0; axis < 3; ++axis) {
    put(4 + 2 * axis, static_cast<uint16_t>(launch.block[axis]));
    put(12 + 4 * axis, launch.grid[axis] * launch.block[axis]);
  }
  put(24, launch.kernel->descriptor.private_segment_bytes);
  put(28, launch.lds_bytes);
  put(40, launch.kernarg_address);
  return packet;
}

// Hands out workgroups to the threads and keeps the first failure in workgroup order, so that what
// is reported does not depend on the threads.
class Dispatcher {
 public:
  // `groups` to run: all of the grid, or those that the options name.
  Dispatcher(LaunchContext* launch, uint64_t groups, uint64_t threads)
      : launch_(*launch), groups_(groups), working_(threads) {}

  void Work(bool poll) {
    try {
      RunGroups(poll);
    } catch (const std::bad_alloc&) {
      Keep(0, "there is not enough memory for a workgroup");
    }
    Leave(1);
  }
  // Threads that do not come to work.
  void Leave(uint64_t threads) {
    const std::lock_guard lock(mutex_);
    working_ -= threads;
    ended_.notify_one();
  }

  // Until no thread works any more; an interrupt reaches them meanwhile.
  void Wait() {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, kPollInterval, [&] { return working_ == 0; })) {
      lock.unlock();
      if (launch_.options->interrupted && launch_.options->interrupted()) launch_.cancelled = true;
      lock.lock();
    }
  }

  LaunchResult Finish() {
    if (first_failure_ != kNoFailure) throw EmulatorError(failure_);
    LaunchResult result = totals_.Result(launch_, findings_);
    result.followed = launch_.options->follow;
    result.steps = std::move(steps_);
    if (launch_.timing) {
      const GridTime grid = launch_.timing->Grid();
      if (launch_.options->workgroups.empty()) {
        const Chip& chip = *launch_.program->chip;
        result.time = {grid.clk, grid.matrix_clk, grid.simds, chip.timing.flops_per_clk};
      }
      if (!launch_.timing->traces()->groups().empty()) result.traces = launch_.timing->traces();
    }
    return result;
  }

 private:
  static constexpr uint64_t kNoFailure = ~uint64_t{0};
  static constexpr std::chrono::milliseconds kPollInterval{20};

  void RunGroups(bool poll) {
    Worker worker(&launch_);
    for (;;) {
      const uint64_t place = next_++;
      if (place >= groups_) break;
      const std::vector<uint64_t>& named = launch_.options->workgroups;
      const uint64_t group = named.empty() ? place : named[place];
      // Groups before a failed one still run: theirs would be the failure to report.
      if (group >= first_failure_) continue;
      try {
        worker.Run(group, poll);
        const bool followed = IsFollowed(group);
        if (launch_.timing) {
          launch_.timing->Add(worker.TakeTrace(), /*keep=*/!named.empty() || followed);
        }
        if (followed) steps_ = worker.TakeSteps();  // no other thread has it
      } catch (const EmulatorError& error) {
        Keep(group, error.what());
        if (launch_.cancelled) break;
      }
      std::vector<std::string> findings = worker.TakeFindings();
      if (!findings.empty()) {
        const std::lock_guard lock(mutex_);
        findings_[group] = std::move(findings);
      }
    }
    const std::lock_guard lock(mutex_);
    totals_.Add(worker);
  }

  bool IsFollowed(uint64_t group) const {
    const std::optional<WavePlace>& follow = launch_.options->follow;
    return follow && follow->group == group;
  }

  void Keep(uint64_t group, const char* what) {
    const std::lock_guard lock(mutex_);
    if (group < first_failure_) {
      first_failure_ = group;
      failure_ = what;
    }
  }

  LaunchContext& launch_;
  const uint64_t groups_;
  std::atomic<uint64_t> next_ = 0;
  std::atomic<uint64_t> first_failure_ = kNoFailure;
  std::mutex mutex_;
  std::condition_variable ended_;
  uint64_t working_;  // threads that have not ended
  std::string failure_;
  std::map<uint64_t, std::vector<std::string>> findings_;
  std::vector<WaveStep> steps_;
  Totals totals_;
};

}  // namespace

LaunchResult Launch(const CodeObject& code, const std::string& kernel_name,
                    std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                    std::span<const std::byte> arguments, std::span<const Allocation> allocations,
                    const LaunchOptions& options) {
  const FloatEnvironment floats;
  LaunchContext launch;
  launch.program = &code.program();
  launch.kernel = &FindKernel(*launch.program, kernel_name);
  launch.options = &options;
  launch.grid = grid;
  launch.block = block;
  CheckShape(launch, options);
  launch.code = &launch.program->Code(*launch.kernel);
  launch.vgprs = launch.program->AllocatedVgprs(*launch.kernel);
  launch.lds_bytes = launch.kernel->descriptor.group_segment_bytes + options.dynamic_lds_bytes;

  const uint32_t kernarg_bytes = launch.kernel->info.kernarg_bytes;
  const size_t explicit_bytes = ExplicitBytes(*launch.kernel);
  if (arguments.size() < explicit_bytes || arguments.size() > kernarg_bytes) {
    throw EmulatorError("kernel " + kernel_name + " takes " + std::to_string(explicit_bytes) +
                        " bytes of arguments (" + std::to_string(kernarg_bytes) +
                        " with the hidden ones), got " + std::to_string(arguments.size()));
  }
  std::vector<uint8_t> kernarg(kernarg_bytes);
  if (!arguments.empty()) std::memcpy(kernarg.data(), arguments.data(), arguments.size());
  FillHiddenArguments(launch, arguments.size(), kernarg);
  launch.kernarg = kernarg;
  // Its address is never null: a kernel without arguments may still be given the pointer.
  launch.kernarg_address = reinterpret_cast<uint64_t>(kernarg.data());
  launch.code_address = reinterpret_cast<uint64_t>(launch.program->image.data());
  std::array<uint8_t, 64> packet = DispatchPacket(launch);
  launch.dispatch_address = reinterpret_cast<uint64_t>(packet.data());

  std::vector<Allocation> all(allocations.begin(), allocations.end());
  all.push_back({"kernel arguments", kernarg.data(), kernarg.size(), false, 0});
  all.push_back({"dispatch packet", packet.data(), packet.size(), false, 0});
  for (const Segment& segment : launch.program->segments) {
    all.push_back({"code object", launch.program->image.data() + segment.begin, segment.bytes,
                   segment.writable, 0});
  }
  const Memory memory(all);
  launch.memory = &memory;

  const uint64_t grid_groups = uint64_t{grid[0]} * grid[1] * grid[2];
  for (const uint64_t group : options.workgroups) {
    if (group >= grid_groups) {
      throw EmulatorError("kernel " + kernel_name + ": the grid has no workgroup " +
                          std::to_string(group) + ", only " + std::to_string(grid_groups));
    }
  }
  CheckFollowed(launch, grid_groups);
  const uint64_t groups = options.workgroups.empty() ? grid_groups : options.workgroups.size();
  std::optional<LaunchTiming> timing;
  if (options.timing) launch.timing = &timing.emplace(code, launch, grid_groups);
  const uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t threads =
      std::min(groups, options.threads > 0 ? static_cast<uint64_t>(options.threads) : cores);
  Dispatcher dispatcher(&launch, groups, threads);
  std::vector<std::thread> others;
  for (uint64_t i = 1; i < threads; ++i) {
    try {
      others.emplace_back([&] {
        const FloatEnvironment floats;
        dispatcher.Work(/*poll=*/false);
      });
    } catch (const std::system_error&) {  // no more threads to be had: fewer do the work
      dispatcher.Leave(threads - i);
      break;
    }
  }
  dispatcher.Work(/*poll=*/true);
  dispatcher.Wait();
  for (std::thread& thread : others) thread.join();
  return dispatcher.Finish();
}

}  // namespace jax_fa::emulator
