// What the waves of a workgroup executed, in order: the input of the timing model.
#ifndef JAX_FA_EMULATOR_TRACE_H_
#define JAX_FA_EMULATOR_TRACE_H_

#include <cstdint>
#include <vector>

#include "emulator/program.h"
#include "emulator/wave.h"

namespace jax_fa::emulator {

inline constexpr uint32_t kLineBytes = 128;  // cache line of both targets

// Bytes that one lane of a memory instruction moves; what is narrower than a dword counts as one.
uint32_t LaneBytes(const Instruction& instruction);

struct TraceEvent {
  uint32_t slot;  // of the instruction, KernelCode::slots
  // LDS: passes beyond the least. Memory: where in WaveTrace::lines its record begins.
  uint32_t detail;
};

struct WaveTrace {
  std::vector<TraceEvent> events;
  // Of each memory instruction: how many cache lines it touches, then their numbers (modulo 2^32).
  std::vector<uint32_t> lines;
};

struct GroupTrace {
  uint64_t group = 0;  // linear index in the grid
  std::vector<WaveTrace> waves;
};

// Records one workgroup while the engine runs it.
class Tracer {
 public:
  void Begin(uint64_t group, size_t waves);
  // Before and after one instruction of a wave executes.
  void Before(const Wave& wave, const Instruction& instruction);
  void After(const Wave& wave, uint32_t slot);
  GroupTrace Take() { return std::move(trace_); }

 private:
  GroupTrace trace_;
  std::vector<uint64_t> touched_;
  uint32_t detail_ = 0;
  bool is_lds_ = false;
  uint64_t conflicts_before_ = 0;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TRACE_H_
