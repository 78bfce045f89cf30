// The scalar opcodes of gfx1201.
#include "emulator/target/gfx1201/decode.h"

namespace jax_fa::emulator {
namespace {

// clang-format off
constexpr Gfx1201Name kSop1Names[] = {
    {0, "s_mov_b32"}, {1, "s_mov_b64"}, {2, "s_cmov_b32"}, {3, "s_cmov_b64"}, {4, "s_brev_b32"},
    {5, "s_brev_b64"}, {8, "s_ctz_i32_b32", "s_ff1_i32_b32"}, {9, "s_ctz_i32_b64", "s_ff1_i32_b64"},
    {10, "s_clz_i32_u32", "s_flbit_i32_b32"}, {11, "s_clz_i32_u64", "s_flbit_i32_b64"},
    {12, "s_cls_i32", "s_flbit_i32"}, {13, "s_cls_i32_i64", "s_flbit_i32_i64"},
    {14, "s_sext_i32_i8"}, {15, "s_sext_i32_i16"}, {16, "s_bitset0_b32"}, {17, "s_bitset0_b64"},
    {18, "s_bitset1_b32"}, {19, "s_bitset1_b64"}, {20, "s_bitreplicate_b64_b32"}, {21, "s_abs_i32"},
    {22, "s_bcnt0_i32_b32"}, {23, "s_bcnt0_i32_b64"}, {24, "s_bcnt1_i32_b32"},
    {25, "s_bcnt1_i32_b64"}, {26, "s_quadmask_b32"}, {27, "s_quadmask_b64"}, {28, "s_wqm_b32"},
    {29, "s_wqm_b64"}, {30, "s_not_b32"}, {31, "s_not_b64"}, {32, "s_and_saveexec_b32"},
    {33, "s_and_saveexec_b64"}, {34, "s_or_saveexec_b32"}, {35, "s_or_saveexec_b64"},
    {36, "s_xor_saveexec_b32"}, {37, "s_xor_saveexec_b64"}, {38, "s_nand_saveexec_b32"},
    {39, "s_nand_saveexec_b64"}, {40, "s_nor_saveexec_b32"}, {41, "s_nor_saveexec_b64"},
    {42, "s_xnor_saveexec_b32"}, {43, "s_xnor_saveexec_b64"}, {44, "s_and_not0_saveexec_b32", "s_andn1_saveexec_b32"},
    {45, "s_and_not0_saveexec_b64", "s_andn1_saveexec_b64"}, {46, "s_or_not0_saveexec_b32", "s_orn1_saveexec_b32"},
    {47, "s_or_not0_saveexec_b64", "s_orn1_saveexec_b64"}, {48, "s_and_not1_saveexec_b32", "s_andn2_saveexec_b32"},
    {49, "s_and_not1_saveexec_b64", "s_andn2_saveexec_b64"}, {50, "s_or_not1_saveexec_b32", "s_orn2_saveexec_b32"},
    {51, "s_or_not1_saveexec_b64", "s_orn2_saveexec_b64"}, {52, "s_and_not0_wrexec_b32", "s_andn1_wrexec_b32"},
    {53, "s_and_not0_wrexec_b64", "s_andn1_wrexec_b64"}, {54, "s_and_not1_wrexec_b32", "s_andn2_wrexec_b32"},
    {55, "s_and_not1_wrexec_b64", "s_andn2_wrexec_b64"}, {64, "s_movrels_b32"},
    {65, "s_movrels_b64"}, {66, "s_movreld_b32"}, {67, "s_movreld_b64"}, {71, "s_getpc_b64"},
    {72, "s_setpc_b64"}, {73, "s_swappc_b64"}, {77, "s_sendmsg_rtn_b64"}, {78, "s_barrier_signal"},
    {79, "s_barrier_signal_isfirst"}, {88, "s_sleep_var"}, {96, "s_ceil_f32"}, {97, "s_floor_f32"},
    {98, "s_trunc_f32"}, {99, "s_rndne_f32"}, {100, "s_cvt_f32_i32"}, {101, "s_cvt_f32_u32"},
    {102, "s_cvt_i32_f32"}, {103, "s_cvt_u32_f32"}, {104, "s_cvt_f16_f32"}, {105, "s_cvt_f32_f16"},
    {106, "s_cvt_hi_f32_f16"}, {107, "s_ceil_f16"}, {108, "s_floor_f16"}, {109, "s_trunc_f16"},
    {110, "s_rndne_f16"},
};

constexpr Gfx1201Name kSop2Names[] = {
    {0, "s_add_co_u32", "s_add_u32"}, {1, "s_sub_co_u32", "s_sub_u32"},
    {2, "s_add_co_i32", "s_add_i32"}, {3, "s_sub_co_i32", "s_sub_i32"},
    {4, "s_add_co_ci_u32", "s_addc_u32"}, {5, "s_sub_co_ci_u32", "s_subb_u32"},
    {6, "s_absdiff_i32"}, {8, "s_lshl_b32"}, {9, "s_lshl_b64"}, {10, "s_lshr_b32"},
    {11, "s_lshr_b64"}, {12, "s_ashr_i32"}, {13, "s_ashr_i64"}, {14, "s_lshl1_add_u32"},
    {15, "s_lshl2_add_u32"}, {16, "s_lshl3_add_u32"}, {17, "s_lshl4_add_u32"}, {18, "s_min_i32"},
    {19, "s_min_u32"}, {20, "s_max_i32"}, {21, "s_max_u32"}, {22, "s_and_b32"}, {23, "s_and_b64"},
    {24, "s_or_b32"}, {25, "s_or_b64"}, {26, "s_xor_b32"}, {27, "s_xor_b64"}, {28, "s_nand_b32"},
    {29, "s_nand_b64"}, {30, "s_nor_b32"}, {31, "s_nor_b64"}, {32, "s_xnor_b32"},
    {33, "s_xnor_b64"}, {34, "s_and_not1_b32", "s_andn2_b32"},
    {35, "s_and_not1_b64", "s_andn2_b64"}, {36, "s_or_not1_b32", "s_orn2_b32"},
    {37, "s_or_not1_b64", "s_orn2_b64"}, {38, "s_bfe_u32"}, {39, "s_bfe_i32"}, {40, "s_bfe_u64"},
    {41, "s_bfe_i64"}, {42, "s_bfm_b32"}, {43, "s_bfm_b64"}, {44, "s_mul_i32"},
    {45, "s_mul_hi_u32"}, {46, "s_mul_hi_i32"}, {48, "s_cselect_b32"}, {49, "s_cselect_b64"},
    {50, "s_pack_ll_b32_b16"}, {51, "s_pack_lh_b32_b16"}, {52, "s_pack_hh_b32_b16"},
    {53, "s_pack_hl_b32_b16"}, {64, "s_add_f32"}, {65, "s_sub_f32"}, {66, "s_min_num_f32"},
    {67, "s_max_num_f32"}, {68, "s_mul_f32"}, {69, "s_fmaak_f32"}, {70, "s_fmamk_f32"},
    {71, "s_fmac_f32"}, {72, "s_cvt_pk_rtz_f16_f32"}, {73, "s_add_f16"}, {74, "s_sub_f16"},
    {75, "s_min_num_f16"}, {76, "s_max_num_f16"}, {77, "s_mul_f16"}, {78, "s_fmac_f16"},
    {79, "s_minimum_f32"}, {80, "s_maximum_f32"}, {81, "s_minimum_f16"}, {82, "s_maximum_f16"},
    {83, "s_add_nc_u64"}, {84, "s_sub_nc_u64"}, {85, "s_mul_u64"},
};

constexpr Gfx1201Name kSopcNames[] = {
    {0, "s_cmp_eq_i32"}, {1, "s_cmp_lg_i32"}, {2, "s_cmp_gt_i32"}, {3, "s_cmp_ge_i32"},
    {4, "s_cmp_lt_i32"}, {5, "s_cmp_le_i32"}, {6, "s_cmp_eq_u32"}, {7, "s_cmp_lg_u32"},
    {8, "s_cmp_gt_u32"}, {9, "s_cmp_ge_u32"}, {10, "s_cmp_lt_u32"}, {11, "s_cmp_le_u32"},
    {12, "s_bitcmp0_b32"}, {13, "s_bitcmp1_b32"}, {14, "s_bitcmp0_b64"}, {15, "s_bitcmp1_b64"},
    {16, "s_cmp_eq_u64"}, {17, "s_cmp_lg_u64"}, {65, "s_cmp_lt_f32"}, {66, "s_cmp_eq_f32"},
    {67, "s_cmp_le_f32"}, {68, "s_cmp_gt_f32"}, {69, "s_cmp_lg_f32"}, {70, "s_cmp_ge_f32"},
    {71, "s_cmp_o_f32"}, {72, "s_cmp_u_f32"}, {73, "s_cmp_nge_f32"}, {74, "s_cmp_nlg_f32"},
    {75, "s_cmp_ngt_f32"}, {76, "s_cmp_nle_f32"}, {77, "s_cmp_neq_f32"}, {78, "s_cmp_nlt_f32"},
    {81, "s_cmp_lt_f16"}, {82, "s_cmp_eq_f16"}, {83, "s_cmp_le_f16"}, {84, "s_cmp_gt_f16"},
    {85, "s_cmp_lg_f16"}, {86, "s_cmp_ge_f16"}, {87, "s_cmp_o_f16"}, {88, "s_cmp_u_f16"},
    {89, "s_cmp_nge_f16"}, {90, "s_cmp_nlg_f16"}, {91, "s_cmp_ngt_f16"}, {92, "s_cmp_nle_f16"},
    {93, "s_cmp_neq_f16"}, {94, "s_cmp_nlt_f16"},
};

constexpr Gfx1201Name kSopkNames[] = {
    {0, "s_movk_i32"}, {1, "s_version"}, {2, "s_cmovk_i32"}, {15, "s_addk_co_i32", "s_addk_i32"},
    {16, "s_mulk_i32"}, {17, "s_getreg_b32"}, {18, "s_setreg_b32"}, {19, "s_setreg_imm32_b32"},
    {20, "s_call_b64"},
};

constexpr Gfx1201Name kSoppNames[] = {
    {0, "s_nop"}, {3, "s_sleep"}, {5, "s_clause"}, {7, "s_delay_alu"}, {8, "s_wait_alu"},
    {10, "s_wait_idle"}, {11, "s_wait_event"}, {16, "s_trap"}, {17, "s_round_mode"},
    {18, "s_denorm_mode"}, {20, "s_barrier_wait"}, {32, "s_branch"}, {33, "s_cbranch_scc0"},
    {34, "s_cbranch_scc1"}, {35, "s_cbranch_vccz"}, {36, "s_cbranch_vccnz"},
    {37, "s_cbranch_execz"}, {38, "s_cbranch_execnz"}, {48, "s_endpgm"}, {49, "s_endpgm_saved"},
    {53, "s_setprio"}, {54, "s_sendmsg"}, {56, "s_incperflevel"}, {57, "s_decperflevel"},
    {58, "s_ttracedata"}, {59, "s_ttracedata_imm"}, {60, "s_icache_inv"}, {64, "s_wait_loadcnt"},
    {65, "s_wait_storecnt"}, {66, "s_wait_samplecnt"}, {67, "s_wait_bvhcnt"}, {68, "s_wait_expcnt"},
    {70, "s_wait_dscnt"}, {71, "s_wait_kmcnt"}, {72, "s_wait_loadcnt_dscnt"},
    {73, "s_wait_storecnt_dscnt"},
};

constexpr Gfx1201Name kSmemNames[] = {
    {0, "s_load_b32", "s_load_dword"}, {1, "s_load_b64", "s_load_dwordx2"},
    {2, "s_load_b128", "s_load_dwordx4"}, {3, "s_load_b256", "s_load_dwordx8"},
    {4, "s_load_b512", "s_load_dwordx16"}, {5, "s_load_b96"}, {8, "s_load_i8"}, {9, "s_load_u8"},
    {10, "s_load_i16"}, {11, "s_load_u16"}, {16, "s_buffer_load_b32", "s_buffer_load_dword"},
    {17, "s_buffer_load_b64", "s_buffer_load_dwordx2"},
    {18, "s_buffer_load_b128", "s_buffer_load_dwordx4"},
    {19, "s_buffer_load_b256", "s_buffer_load_dwordx8"},
    {20, "s_buffer_load_b512", "s_buffer_load_dwordx16"}, {21, "s_buffer_load_b96"},
    {24, "s_buffer_load_i8"}, {25, "s_buffer_load_u8"}, {26, "s_buffer_load_i16"},
    {27, "s_buffer_load_u16"}, {33, "s_dcache_inv"}, {36, "s_prefetch_inst"},
    {37, "s_prefetch_inst_pc_rel"}, {38, "s_prefetch_data"}, {39, "s_buffer_prefetch_data"},
    {40, "s_prefetch_data_pc_rel"},
};
// clang-format on

}  // namespace

std::span<const Gfx1201Name> Gfx1201Sop1Names() { return kSop1Names; }
std::span<const Gfx1201Name> Gfx1201Sop2Names() { return kSop2Names; }
std::span<const Gfx1201Name> Gfx1201SopcNames() { return kSopcNames; }
std::span<const Gfx1201Name> Gfx1201SopkNames() { return kSopkNames; }
std::span<const Gfx1201Name> Gfx1201SoppNames() { return kSoppNames; }
std::span<const Gfx1201Name> Gfx1201SmemNames() { return kSmemNames; }

}  // namespace jax_fa::emulator
