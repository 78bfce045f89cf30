// The numbers that the timing model takes from outside: their names, and a row of a target's table.
#ifndef JAX_FA_EMULATOR_CHIP_TIMING_CONSTANTS_H_
#define JAX_FA_EMULATOR_CHIP_TIMING_CONSTANTS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace jax_fa::emulator {

enum class Constant : uint8_t {
  kOldestFirst,  // 1: of waves that can issue, the oldest does; 0: the one that has waited longest
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
  kVectorQueue,  // vector and matrix instructions that a SIMD takes ahead of their turn; 0: none
  kMatrixDrain,  // from the end of a matrix instruction until its place in that queue is free
  // Vector and scalar units.
  kVector,          // VALU hold
  kVectorHalf,      // 64-bit shift
  kVectorQuarter,   // 32-bit integer multiplication
  kTransHold,       // VALU hold of an exponential
  kTransUnit,       // until the next transcendental
  kTransScalar,     // hold and unit of one on a scalar register
  kVectorLatency,   // VALU result to VALU
  kTransLatency,    // transcendental result to VALU
  kVectorToMatrix,  // VALU result to matrix core
  kVectorToMemory,  // VALU result as an address
  kVectorToScalar,  // VALU result to scalar unit and branches
  kVectorToExec,    // VALU to a scalar instruction that reads EXEC
  kScalarLatency,   // scalar result to the vector unit, and what s_wait_alu waits for
  kScalarChain,     // scalar result to scalar unit
  kScalarToMemory,  // scalar result as an address
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
  kStoreIssue,  // until the wave's next instruction
  kStoreDone,   // a store's issue to the end of its wave
  kScalarLoadLatency,
  // Grid.
  kGroupStart,  // dispatch to first instruction
  // Of the first workgroups of a launch, whose caches are cold.
  kColdFetch,   // more than kGroupStart
  kColdScalar,  // instead of kScalarLoadLatency
  kColdLoad,    // instead of kL2Latency
  kDieRate,     // bytes per clk of one die's L2
  kFabricRate,  // bytes per second to all L2s, from the last-level cache
  kMemoryRate,  // bytes per second
  // Clock and what a matrix stream reaches of it, by result size.
  kClockByEnergy,   // 1: by the energy of matrix instructions, which idle time saves; 0: by size
  kEnergyLong,      // of a clk of 32x32 results, where that of 16x16 is 1
  kEnergyExponent,  // clock = kClockShort / energy per clk to this, up to kClockTop
  kClockTop,
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

// All rows of a target (target/<name>/timing.cc), in the order of Constant.
using ConstantRows = std::span<const ConstantRow, kConstantCount>;
consteval bool InOrder(ConstantRows rows) {
  for (size_t i = 0; i < kConstantCount; ++i) {
    if (static_cast<size_t>(rows[i].constant) != i) return false;
  }
  return true;
}

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_CHIP_TIMING_CONSTANTS_H_
