// What the waves of a workgroup executed, in order: the input of the timing model.
#ifndef JAX_FA_EMULATOR_TIMING_TRACE_H_
#define JAX_FA_EMULATOR_TIMING_TRACE_H_

#include <cstdint>
#include <vector>

#include "emulator/object/program.h"
#include "emulator/state/memory.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

inline constexpr uint32_t kLineBytes = 128;  // cache line of both targets

// Bytes that one lane of a memory instruction moves; what is narrower than a dword counts as one.
uint32_t LaneBytes(const Instruction& instruction);

struct TraceEvent {
  uint32_t slot;  // of the instruction, KernelCode::slots
  // LDS: passes beyond the least, and from bit 24 on how many lanes. Memory: where in
  // WaveTrace::lines its record begins.
  uint32_t detail;
};

inline constexpr uint32_t kLanesShift = 24;

struct WaveTrace {
  std::vector<TraceEvent> events;
  // A record for each memory instruction: how many cache lines it touches, then their numbers.
  std::vector<uint32_t> lines;
};

// Numbers the cache lines of a launch: those of the registered memory, allocation by allocation,
// then those of each wave's private memory. Where an allocation lies on the host does not matter:
// on the chip each begins with a line.
class LineNumbers {
 public:
  LineNumbers() = default;
  LineNumbers(const Memory& memory, const Workgroup& group);
  // Calls fn(line) for each line of [address, address + bytes), which one allocation holds.
  template <class Fn>
  void ForRange(uint64_t address, uint64_t bytes, Fn fn) {
    if (address < region_->begin || address >= region_->end) Find(address);
    const uint64_t offset = address - region_->begin;
    for (uint64_t line = offset / kLineBytes; line <= (offset + bytes - 1) / kLineBytes; ++line) {
      fn(first_ + static_cast<uint32_t>(line));
    }
  }
  // The line of a lane's private byte: lanes are interleaved dword by dword.
  uint32_t Private(const Wave& wave, uint64_t offset, int lane) const;
  uint32_t count() const { return count_; }

 private:
  void Find(uint64_t address);

  const Memory* memory_ = nullptr;
  const Region* region_ = nullptr;  // the last one, and its first line
  uint32_t first_ = 0;
  std::vector<uint32_t> firsts_;  // by region
  uint32_t private_first_ = 0, private_lines_ = 0, count_ = 0;
};

struct GroupTrace {
  uint64_t group = 0;       // linear index in the grid
  uint32_t line_count = 0;  // line numbers are below
  std::vector<WaveTrace> waves;
};

struct LaunchContext;

// Records one workgroup while the engine runs it.
class Tracer {
 public:
  void Begin(const LaunchContext& launch, const Workgroup& group, uint64_t index);
  // Before and after one instruction of a wave executes.
  void Before(const Wave& wave, const Instruction& instruction);
  void After(const Wave& wave, uint32_t slot);
  GroupTrace Take() { return std::move(trace_); }

 private:
  GroupTrace trace_;
  LineNumbers numbers_;
  std::vector<uint32_t> touched_;
  uint32_t detail_ = 0;
  bool is_lds_ = false;
  uint64_t conflicts_before_ = 0;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TIMING_TRACE_H_
