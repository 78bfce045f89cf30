// What the timing model has to know of an instruction, worked out once per kernel.
#ifndef JAX_FA_EMULATOR_TIMING_INSTRUCTION_H_
#define JAX_FA_EMULATOR_TIMING_INSTRUCTION_H_

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/object/program.h"
#include "emulator/state/wave.h"
#include "emulator/timing/constants.h"

namespace jax_fa::emulator {

enum class TimedKind : uint8_t {
  kMatrix,
  kVector,
  kTrans,
  kScalar,
  kScalarLoad,
  kLds,
  kMemory,  // loads, stores, LDS-DMA
  kBranch,
  kWait,
  kBarrierSignal,
  kBarrierWait,
  kBarrier,  // both
  kIdle,     // s_nop, hints
  kEnd,
};

// Registers in one number space: vector and accumulation rows, then scalars, then SCC.
inline constexpr uint32_t kScalarBase = kVgprRows;
inline constexpr uint32_t kSccIndex = kScalarBase + kSgprCount;
inline constexpr uint32_t kTimedRegisters = kSccIndex + 1;

// Counters that a wave waits on, as the hardware has them.
enum TimedCounter : uint8_t { kMemoryCounter, kStoreCounter, kLdsCounter, kScalarCounter };
inline constexpr int kTimedCounters = 4;

struct TimedInstruction {
  TimedKind kind = TimedKind::kIdle;
  bool packed = false;       // on two float32
  bool long_matrix = false;  // 32x32 result
  bool is_dma = false, is_store = false;
  bool reads_exec = false;                              // scalar
  bool awaits_scalars = false, awaits_vectors = false;  // s_wait_alu
  TimedCounter counter = kMemoryCounter;
  uint32_t transfer_bytes = 0;  // LDS: of all lanes
  uint32_t lds_passes = 0;
  double hold_clk = 0;     // of its unit
  double unit_clk = 0;     // transcendentals: until the next one
  double blocked_clk = 0;  // matrix: no VALU from its start on
  double wave_clk = 0;     // until the wave's next instruction
  int priority = -1;       // s_setprio

  struct Use {
    uint16_t first = 0;
    uint8_t count = 0;
    bool accumulator = false;  // the C operand of a matrix instruction
  };
  uint8_t reads = 0, writes = 0;
  std::array<Use, 10> read = {};
  std::array<Use, 4> write = {};
  struct Wait {
    uint8_t counters = 0;  // bits of TimedCounter
    uint32_t count = 0;
  };
  uint8_t waits = 0;
  std::array<Wait, kTimedCounters> wait = {};
};

// By slot of `code`.
std::vector<TimedInstruction> TimeInstructions(const Chip& chip, const KernelCode& code,
                                               const TimingConstants& constants);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TIMING_INSTRUCTION_H_
