#include "runtime/emulator_runtime.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "emulator/emulator.h"
#include "runtime/code_objects.h"
#include "runtime/emulator_settings.h"

namespace jax_fa {
namespace {

// The code object as the emulator runs it, decoded on first use and kept.
Status GetDecoded(const Target& target, const emulator::CodeObject** code) {
  static std::mutex mutex;
  static auto* cache = new std::map<const Target*, emulator::CodeObject>;

  const std::lock_guard lock(mutex);
  auto entry = cache->find(&target);
  if (entry == cache->end()) {
    std::span<const std::byte> image;
    if (Status status = GetCodeObject(target, &image); !status.ok) return status;
    try {
      entry = cache->emplace(&target, emulator::CodeObject::Parse(image)).first;
    } catch (const std::exception& error) {
      return Status::Error(error.what());
    }
  }
  *code = &entry->second;
  return Status::Ok();
}

// Whether a launch of so many workgroups, or of some of them, runs the wave.
bool Runs(const emulator::WavePlace& place, uint64_t groups, const std::vector<uint64_t>& some,
          const emulator::CodeObject& code, const struct Launch& launch) {
  const auto kernel = code.kernels().find(std::string(launch.kernel));
  if (kernel == code.kernels().end()) return false;
  const uint32_t lanes = launch.block.x * launch.block.y * launch.block.z;
  return place.group < groups && place.wave * kernel->second.wave_size < lanes &&
         (some.empty() || std::find(some.begin(), some.end(), place.group) != some.end());
}

}  // namespace

Status EmulatorRuntime::GetTarget(const Target** target) {
  *target = &target_;
  return Status::Ok();
}

Status EmulatorRuntime::Load(const Target& target) {
  const emulator::CodeObject* code = nullptr;
  return GetDecoded(target, &code);
}

Status EmulatorRuntime::Launch(const Target& target, const struct Launch& launch) {
  const emulator::CodeObject* code = nullptr;
  if (Status status = GetDecoded(target, &code); !status.ok) return status;

  std::vector<emulator::Allocation> allocations;
  for (const Buffer& buffer : launch.buffers) {
    if (buffer.bytes == 0) continue;
    emulator::Allocation& allocation = allocations.emplace_back();
    allocation.name = buffer.name;
    allocation.host = buffer.data;
    allocation.bytes = buffer.bytes;
    allocation.writable = buffer.writable;
  }
  const EmulatorSettings settings = GetEmulatorSettings();
  emulator::LaunchOptions options;
  options.schedule = settings.schedule;
  options.arrival = settings.arrival;
  options.seed = settings.seed;
  options.checks = settings.checks;
  options.collect = settings.collect;
  options.threads = settings.threads;
  options.timing = settings.timing;
  InterruptPoll poll = MakeInterruptPoll();
  bool interrupted = false;
  if (poll.ended) options.interrupted = [&] { return interrupted = interrupted || poll.ended(); };
  // The settings hold for launches of any size, so a small grid has only some of these workgroups.
  const uint64_t groups = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  for (const uint64_t group : settings.workgroups) {
    if (group < groups) options.workgroups.push_back(group);
  }
  options.dynamic_lds_bytes = launch.dynamic_lds_bytes;
  if (settings.follow && Runs(*settings.follow, groups, options.workgroups, *code, launch)) {
    options.follow = settings.follow;
  }

  RecordedLaunch record;
  record.code = *code;
  record.target = target.name;
  record.kernel = launch.kernel;
  record.grid = {launch.grid.x, launch.grid.y, launch.grid.z};
  record.block = {launch.block.x, launch.block.y, launch.block.z};
  if (KeepsOperands()) {
    record.arguments.assign(launch.arguments.begin(), launch.arguments.end());
    for (const emulator::Allocation& allocation : allocations) {
      const auto* bytes = static_cast<const std::byte*>(allocation.host);
      record.operands.push_back({allocation.name,
                                 reinterpret_cast<uint64_t>(allocation.host),
                                 {bytes, bytes + allocation.bytes}});
    }
  }
  const auto start = std::chrono::steady_clock::now();
  try {
    record.result = emulator::Launch(*code, record.kernel, record.grid, record.block,
                                     launch.arguments, allocations, options);
  } catch (const std::exception& error) {
    if (interrupted && poll.raises_here) {
      for (const Buffer& buffer : launch.buffers) {  // no number, should anybody look
        if (buffer.writable && buffer.bytes != 0) std::memset(buffer.data, 0xff, buffer.bytes);
      }
      return Status::Ok();
    }
    return Status::Error(error.what());
  }
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordLaunch(std::move(record));
  return Status::Ok();
}

Status EmulatorRuntime::MemsetD8(const Buffer& buffer, uint8_t value) {
  if (buffer.bytes != 0) std::memset(buffer.data, value, buffer.bytes);
  return Status::Ok();
}

Status EmulatorRuntime::MemsetD32(const Buffer& buffer, uint32_t value) {
  std::fill_n(static_cast<uint32_t*>(buffer.data), buffer.bytes / sizeof(uint32_t), value);
  return Status::Ok();
}

}  // namespace jax_fa
