// The timing model's numbers of gfx1201, each with its source (csrc/README.md, Sources).
#include "emulator/target/gfx1201/chip.h"

namespace jax_fa::emulator {

using C = Constant;

// clang-format off
constexpr ConstantRow kGfx1201Constants[] = {
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
    {C::kTransHold, "trans_hold", "clk", 3.5, 'B', "gcnasm: 164 instead of 200 TFLOP/s with one exp per WMMA; the issue-slots article has 0"},
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
static_assert(InOrder(kGfx1201Constants), "rows in the order of chip/timing_constants.h");

}  // namespace jax_fa::emulator
