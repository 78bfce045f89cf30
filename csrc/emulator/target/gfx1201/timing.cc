// The timing model's numbers of gfx1201, each with its source (csrc/README.md, Sources).
#include "emulator/target/gfx1201/chip.h"

namespace jax_fa::emulator {

using C = Constant;

// clang-format off
constexpr ConstantRow kGfx1201Constants[] = {
    {C::kOldestFirst, "oldest_first", "", 1, 'B', "SQTT traces: the younger of two waves issues where the older one cannot"},
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
    {C::kVectorQueue, "vector_queue", "", 7, 'B', "SQTT traces: eight WMMAs in eight clk, the last of them holds its wave until the first has ended"},
    {C::kMatrixDrain, "matrix_drain", "clk", 11, 'B', "SQTT traces: the ninth WMMA 27 clk after the first, 16 of them its own"},
    {C::kVector, "vector", "clk", 1, 'B', "SQTT traces"},
    {C::kVectorHalf, "vector_half", "clk", 2, 'B', "SQTT traces: v_lshlrev_b64"},
    {C::kVectorQuarter, "vector_quarter", "clk", 4, 'B', "SQTT traces: v_mad_co_u64_u32"},
    {C::kTransHold, "trans_hold", "clk", 3.5, 'B', "gcnasm: 164 instead of 200 TFLOP/s with one exp per WMMA; the issue-slots article has 0"},
    {C::kTransUnit, "trans_unit", "clk", 4, 'B', "SQTT traces"},
    {C::kTransScalar, "trans_scalar", "clk", 1, 'B', "SQTT traces: v_s_rcp_f32, v_s_exp_f32"},
    {C::kVectorLatency, "vector_latency", "clk", 5, 'B', "SQTT traces; ACO"},
    {C::kTransLatency, "trans_latency", "clk", 10, 'B', "SQTT traces"},
    {C::kVectorToMatrix, "vector_to_matrix", "clk", 5, 'C', "as to VALU"},
    {C::kVectorToMemory, "vector_to_memory", "clk", 17, 'B', "SQTT traces: 17-19, to any LDS or memory instruction behind"},
    {C::kVectorToScalar, "vector_to_scalar", "clk", 17, 'B', "SQTT traces: v_cmpx to s_cbranch_execz, s_wait_alu va_vcc"},
    {C::kVectorToExec, "vector_to_exec", "clk", 7, 'B', "SQTT traces: v_add_co_ci to s_mov of EXEC"},
    {C::kScalarLatency, "scalar_latency", "clk", 9, 'B', "SQTT traces: s_wait_alu sa_sdst"},
    {C::kScalarChain, "scalar_chain", "clk", 1, 'B', "SQTT traces: s_add to s_cmp"},
    {C::kScalarToMemory, "scalar_to_memory", "clk", 9, 'B', "SQTT traces: 9 to a scalar load, 10 to a global one"},
    {C::kBranchAfterCompare, "branch_after_compare", "clk", 10, 'B', "SQTT traces"},
    {C::kBranchTaken, "branch_taken", "clk", 9, 'B', "SQTT traces"},
    {C::kBarrier, "barrier", "clk", 13, 'B', "SQTT traces: 13 after the last signal"},
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
    {C::kStoreIssue, "store_issue", "clk", 8, 'B', "SQTT traces: global_store to s_nop"},
    {C::kStoreDone, "store_done", "clk", 320, 'B', "SQTT traces: 234-386"},
    {C::kScalarLoadLatency, "scalar_load_latency", "clk", 100, 'C', "as L1"},
    {C::kGroupStart, "group_start", "clk", 292, 'B', "SQTT traces: least of eight waves that start together"},
    {C::kColdFetch, "cold_fetch", "clk", 460, 'B', "SQTT traces: the first of them takes 754"},
    {C::kColdScalar, "cold_scalar", "clk", 1680, 'B', "SQTT traces: 1659-1708"},
    {C::kColdLoad, "cold_load", "clk", 2000, 'B', "SQTT traces: 1081-2039"},
    {C::kDieRate, "die_rate", "B/clk", 2048, 'C', "32 B/clk for each of 64 CUs"},
    {C::kFabricRate, "fabric_rate", "B/s", 640e9, 'C', "as memory: nothing known"},
    {C::kMemoryRate, "memory_rate", "B/s", 640e9, 'A', "vendor: GDDR6"},
    {C::kClockByEnergy, "clock_by_energy", "", 0, 'C', "no limit of power is known"},
    {C::kEnergyLong, "energy_long", "", 1, 'A', "no such instruction"},
    {C::kEnergyExponent, "energy_exponent", "", 0, 'C', "no limit of power is known"},
    {C::kClockTop, "clock_top", "Hz", 2970e6, 'A', "vendor: boost"},
    {C::kClockShort, "clock_short", "Hz", 2970e6, 'A', "vendor: boost; microbenchmarks imply 2.73-3.20 GHz"},
    {C::kClockLong, "clock_long", "Hz", 2970e6, 'A', "vendor: boost"},
    {C::kStreamShort, "stream_short", "", 1, 'C', "nothing known"},
    {C::kStreamLong, "stream_long", "", 1, 'C', "nothing known"},
};
// clang-format on
static_assert(InOrder(kGfx1201Constants), "rows in the order of chip/timing_constants.h");

}  // namespace jax_fa::emulator
