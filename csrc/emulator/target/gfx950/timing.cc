// The timing model's numbers of gfx950, each with its source (csrc/README.md, Sources).
#include "emulator/target/gfx950/chip.h"

namespace jax_fa::emulator {

using C = Constant;

// clang-format off
constexpr ConstantRow kGfx950Constants[] = {
    {C::kOldestFirst, "oldest_first", "", 0, 'C', "nothing known"},
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
    {C::kVectorQueue, "vector_queue", "", 0, 'B', "LLVM PR 233721: the next instruction waits at its issue"},
    {C::kMatrixDrain, "matrix_drain", "clk", 0, 'A', "no such queue"},
    {C::kVector, "vector", "clk", 4, 'B', "SQTT traces"},
    {C::kVectorHalf, "vector_half", "clk", 4, 'C', "as any; v_lshl_add_u64 in SQTT traces"},
    {C::kVectorQuarter, "vector_quarter", "clk", 16, 'C', "quarter rate"},
    {C::kTransHold, "trans_hold", "clk", 8, 'B', "SQTT traces; LLVM PR 156411"},
    {C::kTransUnit, "trans_unit", "clk", 8, 'B', "SQTT traces; LLVM PR 156411"},
    {C::kTransScalar, "trans_scalar", "clk", 8, 'A', "no such instruction"},
    {C::kVectorLatency, "vector_latency", "clk", 4, 'B', "SQTT traces: back to back"},
    {C::kTransLatency, "trans_latency", "clk", 8, 'L', "llc-22: one slot between"},
    {C::kVectorToMatrix, "vector_to_matrix", "clk", 12, 'L', "llc-22: two slots between"},
    {C::kVectorToMemory, "vector_to_memory", "clk", 12, 'B', "SQTT traces: 8-20, to LDS and to memory"},
    {C::kVectorToScalar, "vector_to_scalar", "clk", 4, 'C', "as to VALU"},
    {C::kVectorToExec, "vector_to_exec", "clk", 4, 'C', "as to VALU"},
    {C::kScalarLatency, "scalar_latency", "clk", 4, 'B', "SQTT traces"},
    {C::kScalarChain, "scalar_chain", "clk", 4, 'B', "SQTT traces"},
    {C::kScalarToMemory, "scalar_to_memory", "clk", 8, 'B', "SQTT traces: 4-16"},
    {C::kBranchAfterCompare, "branch_after_compare", "clk", 4, 'C', "as any scalar result"},
    {C::kBranchTaken, "branch_taken", "clk", 16, 'C', "four slots to fetch"},
    {C::kBarrier, "barrier", "clk", 46, 'B', "aiter trace: dead time of a SIMD in one kernel"},
    {C::kLdsPass, "lds_pass", "clk", 1, 'B', "amd-shark-ai: 256 B/clk/CU (rocprof-compute: 128, twice this)"},
    {C::kLdsReturn, "lds_return", "B/clk", 64, 'C', "amd-shark-ai: b64 of one wave in 9.1 clk"},
    {C::kLdsLatency, "lds_latency", "clk", 40, 'B', "SQTT traces: 36-48 (Meta: 64-69 with the address's 12)"},
    {C::kDmaIssue, "dma_issue", "clk", 45, 'B', "aiter source: three with M0 writes in 136 clk"},
    {C::kL1Bytes, "l1_bytes", "B", 32768, 'A', "ROCm gpu-specs"},
    {C::kL1Rate, "l1_rate", "B/clk", 128, 'A', "ROCm gpu-specs"},
    {C::kL1Tags, "l1_tags", "line/clk", 1, 'C', "one line fills the rate"},
    {C::kL1Latency, "l1_latency", "clk", 150, 'B', "Meta: 100-200"},
    {C::kL2Rate, "l2_rate", "B/clk", 64, 'A', "rocprof-compute, per CU"},
    {C::kL2Latency, "l2_latency", "clk", 291, 'B', "gcnasm, on gfx942"},
    {C::kStoreIssue, "store_issue", "clk", 4, 'C', "as any"},
    {C::kStoreDone, "store_done", "clk", 238, 'B', "SQTT traces: 184-280"},
    {C::kScalarLoadLatency, "scalar_load_latency", "clk", 200, 'C', "between L1 and L2"},
    {C::kGroupStart, "group_start", "clk", 372, 'B', "SQTT traces: least of four waves that start together"},
    {C::kColdFetch, "cold_fetch", "clk", 344, 'B', "SQTT traces: the first of them takes 716"},
    {C::kColdScalar, "cold_scalar", "clk", 736, 'B', "SQTT traces: 732-776"},
    {C::kColdLoad, "cold_load", "clk", 1850, 'B', "SQTT traces: 1064-1900"},
    {C::kDieRate, "die_rate", "B/clk", 2048, 'A', "rocprof-compute: 64 B/clk for each of 32 CUs"},
    {C::kFabricRate, "fabric_rate", "B/s", 17.2e12, 'A', "CDNA 3 white paper: Infinity Cache of gfx942"},
    {C::kMemoryRate, "memory_rate", "B/s", 8e12, 'A', "vendor: HBM"},
    {C::kClockByEnergy, "clock_by_energy", "", 0, 'C', "energy beside that of matrix instructions is not measured"},
    {C::kEnergyLong, "energy_long", "", 1.217, 'B', "power-cap article: power of the two streams"},
    {C::kEnergyExponent, "energy_exponent", "", 0.55, 'B', "power-cap article: 1% of idle matrix core costs 0.45%"},
    {C::kClockTop, "clock_top", "Hz", 2400e6, 'A', "vendor: peak"},
    {C::kClockShort, "clock_short", "Hz", 1893e6, 'B', "power-cap article: 16x16x32 stream at the power cap"},
    {C::kClockLong, "clock_long", "Hz", 1699e6, 'B', "power-cap article: 32x32x16 stream at the power cap"},
    {C::kStreamShort, "stream_short", "", 0.951, 'B', "power-cap article: 1888 TFLOP/s of that stream"},
    {C::kStreamLong, "stream_long", "", 0.944, 'B', "power-cap article: 1681 TFLOP/s of that stream"},
};
// clang-format on
static_assert(InOrder(kGfx950Constants), "rows in the order of chip/timing_constants.h");

}  // namespace jax_fa::emulator
