#include "emulator/timing/constants.h"

#include "emulator/emulator.h"

namespace jax_fa::emulator {
namespace {

using C = Constant;

// clang-format off
constexpr ConstantRow kGfx950[] = {
    {C::kMatrixShort, "matrix_short", "clk", 16, 'A', "rocprof-compute: 4096 FLOP/clk/CU; llvm-mca-22"},
    {C::kMatrixLong, "matrix_long", "clk", 32, 'A', "rocprof-compute: 4096 FLOP/clk/CU; llvm-mca-22"},
    {C::kVectorBlocked, "vector_blocked", "clk", 8, 'B', "LLVM PR 233721, traces on MI350X"},
    {C::kVectorBlockedSparse, "vector_blocked_sparse", "clk", 12, 'B', "LLVM PR 233721"},
    {C::kPackedBlockedShort, "packed_blocked_short", "clk", 28, 'B', "LLVM PR 233721: slot 7"},
    {C::kPackedBlockedLong, "packed_blocked_long", "clk", 44, 'B', "LLVM PR 233721: slot 11"},
    {C::kMemoryBlocked, "memory_blocked", "clk", 8, 'B', "rocRoller; LLVM PR 239095: first slot after an MFMA"},
    {C::kMatrixResultShort, "matrix_result_short", "clk", 36, 'A', "LLVM PR 126132: 8 wait slots"},
    {C::kMatrixResultLong, "matrix_result_long", "clk", 52, 'A', "LLVM PR 126132: 12 wait slots"},
    {C::kMatrixChainOther, "matrix_chain_other", "clk", 24, 'A', "ISA table 38; LLVM PR 218363: 5 slots"},
    {C::kVector, "vector", "clk", 4, 'B', "SQTT traces"},
    {C::kVectorQuarter, "vector_quarter", "clk", 16, 'C', "quarter rate"},
    {C::kTransHold, "trans_hold", "clk", 8, 'B', "SQTT traces; LLVM PR 156411"},
    {C::kTransUnit, "trans_unit", "clk", 8, 'B', "SQTT traces; LLVM PR 156411"},
    {C::kVectorLatency, "vector_latency", "clk", 4, 'B', "SQTT traces: back to back"},
    {C::kTransLatency, "trans_latency", "clk", 8, 'L', "llc-22: one slot between"},
    {C::kVectorToMatrix, "vector_to_matrix", "clk", 12, 'L', "llc-22: two slots between"},
    {C::kVectorToMemory, "vector_to_memory", "clk", 4, 'C', "as to VALU"},
    {C::kScalarLatency, "scalar_latency", "clk", 4, 'B', "SQTT traces"},
    {C::kBranchAfterCompare, "branch_after_compare", "clk", 4, 'C', "as any scalar result"},
    {C::kBranchTaken, "branch_taken", "clk", 16, 'C', "four slots to fetch"},
    {C::kBarrier, "barrier", "clk", 46, 'B', "aiter trace: dead time of a SIMD in one kernel"},
    {C::kLdsPass, "lds_pass", "clk", 1, 'B', "amd-shark-ai: 256 B/clk/CU (rocprof-compute: 128, twice this)"},
    {C::kLdsReturn, "lds_return", "B/clk", 64, 'C', "amd-shark-ai: b64 of one wave in 9.1 clk"},
    {C::kLdsLatency, "lds_latency", "clk", 64, 'B', "Meta: 64-69 (first b128 36-44 in SQTT traces)"},
    {C::kDmaIssue, "dma_issue", "clk", 45, 'B', "aiter source: three with M0 writes in 136 clk"},
    {C::kL1Bytes, "l1_bytes", "B", 32768, 'A', "ROCm gpu-specs"},
    {C::kL1Rate, "l1_rate", "B/clk", 128, 'A', "ROCm gpu-specs"},
    {C::kL1Tags, "l1_tags", "line/clk", 1, 'C', "one line fills the rate"},
    {C::kL1Latency, "l1_latency", "clk", 150, 'B', "Meta: 100-200"},
    {C::kL2Rate, "l2_rate", "B/clk", 64, 'A', "rocprof-compute, per CU"},
    {C::kL2Latency, "l2_latency", "clk", 291, 'B', "gcnasm, on gfx942"},
    {C::kScalarLoadLatency, "scalar_load_latency", "clk", 200, 'C', "between L1 and L2"},
    {C::kGroupStart, "group_start", "clk", 500, 'C', "not measured"},
    {C::kDieRate, "die_rate", "B/clk", 2048, 'A', "rocprof-compute: 64 B/clk for each of 32 CUs"},
    {C::kFabricRate, "fabric_rate", "B/s", 17.2e12, 'A', "CDNA 3 white paper: Infinity Cache of gfx942"},
    {C::kMemoryRate, "memory_rate", "B/s", 8e12, 'A', "vendor: HBM"},
    {C::kClockShort, "clock_short", "Hz", 1893e6, 'B', "source text: 16x16x32 stream at the power cap"},
    {C::kClockLong, "clock_long", "Hz", 1699e6, 'B', "source text: 32x32x16 stream at the power cap"},
    {C::kStreamShort, "stream_short", "", 0.951, 'B', "source text: 1888 TFLOP/s of that stream"},
    {C::kStreamLong, "stream_long", "", 0.944, 'B', "source text: 1681 TFLOP/s of that stream"},
};

constexpr ConstantRow kGfx1201[] = {
    {C::kMatrixShort, "matrix_short", "clk", 16, 'A', "AMD matrix calculator; SQTT traces"},
    {C::kMatrixLong, "matrix_long", "clk", 16, 'A', "no such instruction"},
    {C::kVectorBlocked, "vector_blocked", "clk", 16, 'B', "SQTT traces: no VALU beside a WMMA"},
    {C::kVectorBlockedSparse, "vector_blocked_sparse", "clk", 16, 'B', "as dense"},
    {C::kPackedBlockedShort, "packed_blocked_short", "clk", 16, 'B', "as dense"},
    {C::kPackedBlockedLong, "packed_blocked_long", "clk", 16, 'B', "as dense"},
    {C::kMemoryBlocked, "memory_blocked", "clk", 0, 'C', "nothing known"},
    {C::kMatrixResultShort, "matrix_result_short", "clk", 31, 'C', "SQTT traces: at most"},
    {C::kMatrixResultLong, "matrix_result_long", "clk", 31, 'C', "as short"},
    {C::kMatrixChainOther, "matrix_chain_other", "clk", 16, 'C', "SQTT traces: eight accepted back to back"},
    {C::kVector, "vector", "clk", 1, 'B', "SQTT traces"},
    {C::kVectorQuarter, "vector_quarter", "clk", 4, 'C', "quarter rate"},
    {C::kTransHold, "trans_hold", "clk", 3.5, 'B', "gcnasm: 164 instead of 200 TFLOP/s with one exp per WMMA; the source text has 0"},
    {C::kTransUnit, "trans_unit", "clk", 4, 'B', "SQTT traces"},
    {C::kVectorLatency, "vector_latency", "clk", 5, 'B', "SQTT traces; ACO"},
    {C::kTransLatency, "trans_latency", "clk", 10, 'B', "SQTT traces"},
    {C::kVectorToMatrix, "vector_to_matrix", "clk", 5, 'C', "as to VALU"},
    {C::kVectorToMemory, "vector_to_memory", "clk", 18, 'B', "SQTT traces: 17-19"},
    {C::kScalarLatency, "scalar_latency", "clk", 9, 'B', "SQTT traces"},
    {C::kBranchAfterCompare, "branch_after_compare", "clk", 10, 'B', "SQTT traces"},
    {C::kBranchTaken, "branch_taken", "clk", 9, 'B', "SQTT traces"},
    {C::kBarrier, "barrier", "clk", 16, 'B', "SQTT traces: 13-20 after the last signal"},
    {C::kLdsPass, "lds_pass", "clk", 1, 'A', "128 B/clk"},
    {C::kLdsReturn, "lds_return", "B/clk", 32, 'B', "Triton PR 11365: 64 queued b128 in 1021 clk"},
    {C::kLdsLatency, "lds_latency", "clk", 33, 'B', "SQTT traces: 32-33 (b32)"},
    {C::kDmaIssue, "dma_issue", "clk", 1, 'A', "no such instruction"},
    {C::kL1Bytes, "l1_bytes", "B", 32768, 'A', "vendor, per CU"},
    {C::kL1Rate, "l1_rate", "B/clk", 64, 'C', "four lanes of 16 bytes a clk"},
    {C::kL1Tags, "l1_tags", "line/clk", 4, 'C', "four lanes a clk"},
    {C::kL1Latency, "l1_latency", "clk", 100, 'C', "below gcnasm's 150-300 warm"},
    {C::kL2Rate, "l2_rate", "B/clk", 64, 'C', "as gfx950, per CU"},
    {C::kL2Latency, "l2_latency", "clk", 225, 'C', "gcnasm: 150-300 warm"},
    {C::kScalarLoadLatency, "scalar_load_latency", "clk", 100, 'C', "as L1"},
    {C::kGroupStart, "group_start", "clk", 500, 'C', "not measured"},
    {C::kDieRate, "die_rate", "B/clk", 2048, 'C', "32 B/clk for each of 64 CUs"},
    {C::kFabricRate, "fabric_rate", "B/s", 640e9, 'C', "as memory: nothing known"},
    {C::kMemoryRate, "memory_rate", "B/s", 640e9, 'A', "vendor: GDDR6"},
    {C::kClockShort, "clock_short", "Hz", 2970e6, 'A', "vendor: boost; microbenchmarks imply 2.73-3.20 GHz"},
    {C::kClockLong, "clock_long", "Hz", 2970e6, 'A', "vendor: boost"},
    {C::kStreamShort, "stream_short", "", 1, 'C', "nothing known"},
    {C::kStreamLong, "stream_long", "", 1, 'C', "nothing known"},
};
// clang-format on
static_assert(std::size(kGfx950) == kConstantCount && std::size(kGfx1201) == kConstantCount);

// ROCm gpu-specs and the ISA documents: gfx950 chooses a SIMD every fourth clock. Half clocks on
// gfx1201, since an exponential is modelled to hold the VALU for 3.5.
constexpr Chip kGfx950Chip = {4, 4, 1024, 8, {63, 15}, 1024};
constexpr Chip kGfx1201Chip = {1, 0.5, 128, 1, {63, 63}, 512};

}  // namespace

std::span<const ConstantRow> ConstantRows(Isa isa) {
  return isa == Isa::kGfx950 ? std::span<const ConstantRow>(kGfx950) : kGfx1201;
}

const Chip& ChipOf(Isa isa) { return isa == Isa::kGfx950 ? kGfx950Chip : kGfx1201Chip; }

TimingConstants::TimingConstants(Isa isa, const std::map<std::string, double>& overrides) {
  size_t used = 0;
  for (const ConstantRow& row : ConstantRows(isa)) {
    double& value = values_[static_cast<size_t>(row.constant)];
    value = row.value;
    const auto found = overrides.find(row.name);
    if (found == overrides.end()) continue;
    value = found->second;
    ++used;
    if (!(value >= 0)) throw EmulatorError(std::string(row.name) + " must not be negative");
  }
  if (used == overrides.size()) return;
  for (const auto& [name, value] : overrides) {
    bool known = false;
    for (const ConstantRow& row : ConstantRows(isa)) known = known || name == row.name;
    if (!known) throw EmulatorError("the timing model has no constant named '" + name + "'");
  }
}

}  // namespace jax_fa::emulator
