// The one table of numbers that the timing model takes from outside, each with its source.
#ifndef JAX_FA_EMULATOR_TIMING_CONSTANTS_H_
#define JAX_FA_EMULATOR_TIMING_CONSTANTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "emulator/decode/decode.h"

namespace jax_fa::emulator {

enum class Constant : uint8_t {
  // Matrix core.
  kMatrixShort,    // 16x16 results: WMMA, and of gfx950 also smfmac
  kMatrixLong,     // 32x32 results
  kVectorBlocked,  // no VALU issue from the start of a dense one on
  kVectorBlockedSparse,
  kPackedBlockedShort,  // no packed float32 either
  kPackedBlockedLong,
  kMemoryBlocked,      // no LDS or memory instruction after its first slot until here
  kMatrixResultShort,  // until anything but the same accumulator may read the result
  kMatrixResultLong,
  kMatrixChainOther,  // until another matrix instruction may accumulate onto the result
  // Vector and scalar units.
  kVector,          // VALU hold
  kVectorQuarter,   // 32-bit integer multiplication
  kTransHold,       // VALU hold of an exponential
  kTransUnit,       // until the next transcendental
  kVectorLatency,   // VALU result to VALU
  kTransLatency,    // transcendental result to VALU
  kVectorToMatrix,  // VALU result to matrix core
  kVectorToMemory,  // VALU result as an address
  kScalarLatency,
  kBranchAfterCompare,
  kBranchTaken,
  kBarrier,  // last arrival to release
  // LDS.
  kLdsPass,
  kLdsReturn,  // bytes per clk to one SIMD
  kLdsLatency,
  // Memory.
  kDmaIssue,  // between LDS-DMA instructions of a SIMD
  kL1Bytes,
  kL1Rate,     // bytes per clk
  kL1Tags,     // lines per clk
  kL1Latency,  // hit
  kL2Rate,     // bytes per clk to one CU
  kL2Latency,
  kScalarLoadLatency,
  // Grid.
  kGroupStart,  // dispatch to first instruction
  kDieRate,     // bytes per clk of one die's L2
  kFabricRate,  // bytes per second to all L2s, from the last-level cache
  kMemoryRate,  // bytes per second
  // Clock and what a matrix stream reaches of it, by result size.
  kClockShort,
  kClockLong,
  kStreamShort,
  kStreamLong,
  kCount
};
inline constexpr size_t kConstantCount = static_cast<size_t>(Constant::kCount);

struct ConstantRow {
  Constant constant;
  const char* name;
  const char* unit;
  double value;
  char confidence;  // A vendor, B measured by the named party, L LLVM's model, C inferred
  const char* source;
};

// The rows of a target, in the order of Constant.
std::span<const ConstantRow> ConstantRows(Isa isa);

class TimingConstants {
 public:
  // `overrides` by name; throws EmulatorError for an unknown name or a negative value.
  explicit TimingConstants(Isa isa, const std::map<std::string, double>& overrides = {});
  double operator[](Constant constant) const { return values_[static_cast<size_t>(constant)]; }

 private:
  std::array<double, kConstantCount> values_;
};

// What is the chip's structure, no measured number.
struct Chip {
  double issue_clk;  // a wave issues at most one instruction in this time
  double grid_clk;   // issue times are multiples of this
  uint32_t simds;
  uint32_t dies;              // workgroup ids go round them
  uint32_t counter_limit[2];  // results under way: memory, LDS
  double flops_per_clk;       // dense 16-bit, of one SIMD
};
const Chip& ChipOf(Isa isa);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TIMING_CONSTANTS_H_
