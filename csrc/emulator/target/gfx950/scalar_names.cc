// The scalar opcodes of gfx950.
#include "emulator/target/gfx950/decode.h"

namespace jax_fa::emulator {
namespace {

// clang-format off
constexpr OpcodeName kSop1Names[] = {
    {0, "s_mov_b32"}, {1, "s_mov_b64"}, {2, "s_cmov_b32"}, {3, "s_cmov_b64"}, {4, "s_not_b32"},
    {5, "s_not_b64"}, {6, "s_wqm_b32"}, {7, "s_wqm_b64"}, {8, "s_brev_b32"}, {9, "s_brev_b64"},
    {10, "s_bcnt0_i32_b32"}, {11, "s_bcnt0_i32_b64"}, {12, "s_bcnt1_i32_b32"},
    {13, "s_bcnt1_i32_b64"}, {14, "s_ff0_i32_b32"}, {15, "s_ff0_i32_b64"}, {16, "s_ff1_i32_b32"},
    {17, "s_ff1_i32_b64"}, {18, "s_flbit_i32_b32"}, {19, "s_flbit_i32_b64"}, {20, "s_flbit_i32"},
    {21, "s_flbit_i32_i64"}, {22, "s_sext_i32_i8"}, {23, "s_sext_i32_i16"}, {24, "s_bitset0_b32"},
    {25, "s_bitset0_b64"}, {26, "s_bitset1_b32"}, {27, "s_bitset1_b64"}, {28, "s_getpc_b64"},
    {29, "s_setpc_b64"}, {30, "s_swappc_b64"}, {32, "s_and_saveexec_b64"},
    {33, "s_or_saveexec_b64"}, {34, "s_xor_saveexec_b64"}, {35, "s_andn2_saveexec_b64"},
    {36, "s_orn2_saveexec_b64"}, {37, "s_nand_saveexec_b64"}, {38, "s_nor_saveexec_b64"},
    {39, "s_xnor_saveexec_b64"}, {40, "s_quadmask_b32"}, {41, "s_quadmask_b64"},
    {42, "s_movrels_b32"}, {43, "s_movrels_b64"}, {44, "s_movreld_b32"}, {45, "s_movreld_b64"},
    {48, "s_abs_i32"}, {50, "s_set_gpr_idx_idx"}, {51, "s_andn1_saveexec_b64"}, {52, "s_orn1_saveexec_b64"},
    {53, "s_andn1_wrexec_b64"}, {54, "s_andn2_wrexec_b64"}, {55, "s_bitreplicate_b64_b32"},
};

constexpr OpcodeName kSop2Names[] = {
    {0, "s_add_u32"}, {1, "s_sub_u32"}, {2, "s_add_i32"}, {3, "s_sub_i32"}, {4, "s_addc_u32"},
    {5, "s_subb_u32"}, {6, "s_min_i32"}, {7, "s_min_u32"}, {8, "s_max_i32"}, {9, "s_max_u32"},
    {10, "s_cselect_b32"}, {11, "s_cselect_b64"}, {12, "s_and_b32"}, {13, "s_and_b64"},
    {14, "s_or_b32"}, {15, "s_or_b64"}, {16, "s_xor_b32"}, {17, "s_xor_b64"}, {18, "s_andn2_b32"},
    {19, "s_andn2_b64"}, {20, "s_orn2_b32"}, {21, "s_orn2_b64"}, {22, "s_nand_b32"},
    {23, "s_nand_b64"}, {24, "s_nor_b32"}, {25, "s_nor_b64"}, {26, "s_xnor_b32"},
    {27, "s_xnor_b64"}, {28, "s_lshl_b32"}, {29, "s_lshl_b64"}, {30, "s_lshr_b32"},
    {31, "s_lshr_b64"}, {32, "s_ashr_i32"}, {33, "s_ashr_i64"}, {34, "s_bfm_b32"},
    {35, "s_bfm_b64"}, {36, "s_mul_i32"}, {37, "s_bfe_u32"}, {38, "s_bfe_i32"}, {39, "s_bfe_u64"},
    {40, "s_bfe_i64"}, {42, "s_absdiff_i32"}, {44, "s_mul_hi_u32"}, {45, "s_mul_hi_i32"},
    {46, "s_lshl1_add_u32"}, {47, "s_lshl2_add_u32"}, {48, "s_lshl3_add_u32"},
    {49, "s_lshl4_add_u32"}, {50, "s_pack_ll_b32_b16"}, {51, "s_pack_lh_b32_b16"},
    {52, "s_pack_hh_b32_b16"},
};

constexpr OpcodeName kSopcNames[] = {
    {0, "s_cmp_eq_i32"}, {1, "s_cmp_lg_i32"}, {2, "s_cmp_gt_i32"}, {3, "s_cmp_ge_i32"},
    {4, "s_cmp_lt_i32"}, {5, "s_cmp_le_i32"}, {6, "s_cmp_eq_u32"}, {7, "s_cmp_lg_u32"},
    {8, "s_cmp_gt_u32"}, {9, "s_cmp_ge_u32"}, {10, "s_cmp_lt_u32"}, {11, "s_cmp_le_u32"},
    {12, "s_bitcmp0_b32"}, {13, "s_bitcmp1_b32"}, {14, "s_bitcmp0_b64"}, {15, "s_bitcmp1_b64"},
    {16, "s_setvskip"}, {17, "s_set_gpr_idx_on"}, {18, "s_cmp_eq_u64"}, {19, "s_cmp_lg_u64"},
};

constexpr OpcodeName kSopkNames[] = {
    {0, "s_movk_i32"}, {1, "s_cmovk_i32"}, {2, "s_cmpk_eq_i32"}, {3, "s_cmpk_lg_i32"},
    {4, "s_cmpk_gt_i32"}, {5, "s_cmpk_ge_i32"}, {6, "s_cmpk_lt_i32"}, {7, "s_cmpk_le_i32"},
    {8, "s_cmpk_eq_u32"}, {9, "s_cmpk_lg_u32"}, {10, "s_cmpk_gt_u32"}, {11, "s_cmpk_ge_u32"},
    {12, "s_cmpk_lt_u32"}, {13, "s_cmpk_le_u32"}, {14, "s_addk_i32"}, {15, "s_mulk_i32"},
    {17, "s_getreg_b32"}, {18, "s_setreg_b32"}, {20, "s_setreg_imm32_b32"}, {21, "s_call_b64"},
};

constexpr OpcodeName kSoppNames[] = {
    {0, "s_nop"}, {1, "s_endpgm"}, {2, "s_branch"}, {3, "s_wakeup"}, {4, "s_cbranch_scc0"},
    {5, "s_cbranch_scc1"}, {6, "s_cbranch_vccz"}, {7, "s_cbranch_vccnz"}, {8, "s_cbranch_execz"},
    {9, "s_cbranch_execnz"}, {10, "s_barrier"}, {12, "s_waitcnt"}, {14, "s_sleep"},
    {15, "s_setprio"}, {16, "s_sendmsg"}, {18, "s_trap"}, {19, "s_icache_inv"},
    {20, "s_incperflevel"}, {21, "s_decperflevel"}, {22, "s_ttracedata"}, {27, "s_endpgm_saved"},
    {28, "s_set_gpr_idx_off"}, {29, "s_set_gpr_idx_mode"},
};

constexpr OpcodeName kSmemNames[] = {
    {0, "s_load_dword"}, {1, "s_load_dwordx2"}, {2, "s_load_dwordx4"}, {3, "s_load_dwordx8"},
    {4, "s_load_dwordx16"}, {8, "s_buffer_load_dword"}, {9, "s_buffer_load_dwordx2"},
    {10, "s_buffer_load_dwordx4"}, {11, "s_buffer_load_dwordx8"}, {12, "s_buffer_load_dwordx16"},
    {16, "s_store_dword"}, {17, "s_store_dwordx2"}, {18, "s_store_dwordx4"}, {32, "s_dcache_inv"}, {33, "s_dcache_wb"}, {34, "s_dcache_inv_vol"}, {35, "s_dcache_wb_vol"},
    {36, "s_memtime"}, {37, "s_memrealtime"},
    {128, "s_atomic_swap"}, {129, "s_atomic_cmpswap"}, {130, "s_atomic_add"}, {131, "s_atomic_sub"},
    {132, "s_atomic_smin"}, {133, "s_atomic_umin"}, {134, "s_atomic_smax"}, {135, "s_atomic_umax"},
    {136, "s_atomic_and"}, {137, "s_atomic_or"}, {138, "s_atomic_xor"}, {139, "s_atomic_inc"},
    {140, "s_atomic_dec"}, {160, "s_atomic_swap_x2"}, {161, "s_atomic_cmpswap_x2"},
    {162, "s_atomic_add_x2"}, {163, "s_atomic_sub_x2"}, {164, "s_atomic_smin_x2"},
    {165, "s_atomic_umin_x2"}, {166, "s_atomic_smax_x2"}, {167, "s_atomic_umax_x2"},
    {168, "s_atomic_and_x2"}, {169, "s_atomic_or_x2"}, {170, "s_atomic_xor_x2"},
    {171, "s_atomic_inc_x2"}, {172, "s_atomic_dec_x2"},
};
// clang-format on

}  // namespace

std::span<const OpcodeName> Gfx950Sop1Names() { return kSop1Names; }
std::span<const OpcodeName> Gfx950Sop2Names() { return kSop2Names; }
std::span<const OpcodeName> Gfx950SopcNames() { return kSopcNames; }
std::span<const OpcodeName> Gfx950SopkNames() { return kSopkNames; }
std::span<const OpcodeName> Gfx950SoppNames() { return kSoppNames; }
std::span<const OpcodeName> Gfx950SmemNames() { return kSmemNames; }

}  // namespace jax_fa::emulator
