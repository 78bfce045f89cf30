#include "emulator/target/gfx1201/decode.h"

namespace jax_fa::emulator {
namespace {

// clang-format off
constexpr Gfx1201Name kVop1Names[] = {
    {0, "v_nop"}, {1, "v_mov_b32"}, {2, "v_readfirstlane_b32"}, {3, "v_cvt_i32_f64"},
    {4, "v_cvt_f64_i32"}, {5, "v_cvt_f32_i32"}, {6, "v_cvt_f32_u32"}, {7, "v_cvt_u32_f32"},
    {8, "v_cvt_i32_f32"}, {10, "v_cvt_f16_f32"}, {11, "v_cvt_f32_f16"},
    {12, "v_cvt_nearest_i32_f32", "v_cvt_rpi_i32_f32"},
    {13, "v_cvt_floor_i32_f32", "v_cvt_flr_i32_f32"}, {14, "v_cvt_off_f32_i4"},
    {15, "v_cvt_f32_f64"}, {16, "v_cvt_f64_f32"}, {17, "v_cvt_f32_ubyte0"},
    {18, "v_cvt_f32_ubyte1"}, {19, "v_cvt_f32_ubyte2"}, {20, "v_cvt_f32_ubyte3"},
    {21, "v_cvt_u32_f64"}, {22, "v_cvt_f64_u32"}, {23, "v_trunc_f64"}, {24, "v_ceil_f64"},
    {25, "v_rndne_f64"}, {26, "v_floor_f64"}, {28, "v_mov_b16"}, {32, "v_fract_f32"},
    {33, "v_trunc_f32"}, {34, "v_ceil_f32"}, {35, "v_rndne_f32"}, {36, "v_floor_f32"},
    {37, "v_exp_f32"}, {39, "v_log_f32"}, {42, "v_rcp_f32"}, {43, "v_rcp_iflag_f32"},
    {46, "v_rsq_f32"}, {47, "v_rcp_f64"}, {49, "v_rsq_f64"}, {51, "v_sqrt_f32"}, {52, "v_sqrt_f64"},
    {53, "v_sin_f32"}, {54, "v_cos_f32"}, {55, "v_not_b32"}, {56, "v_bfrev_b32"},
    {57, "v_clz_i32_u32", "v_ffbh_u32"}, {58, "v_ctz_i32_b32", "v_ffbl_b32"},
    {59, "v_cls_i32", "v_ffbh_i32"}, {60, "v_frexp_exp_i32_f64"}, {61, "v_frexp_mant_f64"},
    {62, "v_fract_f64"}, {63, "v_frexp_exp_i32_f32"}, {64, "v_frexp_mant_f32"},
    {80, "v_cvt_f16_u16"}, {81, "v_cvt_f16_i16"}, {82, "v_cvt_u16_f16"}, {83, "v_cvt_i16_f16"},
    {84, "v_rcp_f16"}, {85, "v_sqrt_f16"}, {86, "v_rsq_f16"}, {87, "v_log_f16"}, {88, "v_exp_f16"},
    {89, "v_frexp_mant_f16"}, {90, "v_frexp_exp_i16_f16"}, {91, "v_floor_f16"}, {92, "v_ceil_f16"},
    {93, "v_trunc_f16"}, {94, "v_rndne_f16"}, {95, "v_fract_f16"}, {96, "v_sin_f16"},
    {97, "v_cos_f16"}, {99, "v_cvt_norm_i16_f16"}, {100, "v_cvt_norm_u16_f16"}, {101, "v_swap_b32"},
    {103, "v_permlane64_b32"}, {105, "v_not_b16"}, {106, "v_cvt_i32_i16"}, {107, "v_cvt_u32_u16"},
};

constexpr Gfx1201Name kVop2Names[] = {
    {1, "v_cndmask_b32"}, {2, "v_add_f64"}, {3, "v_add_f32"}, {4, "v_sub_f32"}, {5, "v_subrev_f32"},
    {6, "v_mul_f64"}, {7, "v_mul_dx9_zero_f32", "v_mul_legacy_f32"}, {8, "v_mul_f32"},
    {9, "v_mul_i32_i24"}, {10, "v_mul_hi_i32_i24"}, {11, "v_mul_u32_u24"}, {12, "v_mul_hi_u32_u24"},
    {13, "v_min_num_f64", "v_min_f64"}, {14, "v_max_num_f64", "v_max_f64"}, {17, "v_min_i32"},
    {18, "v_max_i32"}, {19, "v_min_u32"}, {20, "v_max_u32"}, {21, "v_min_num_f32", "v_min_f32"},
    {22, "v_max_num_f32", "v_max_f32"}, {24, "v_lshlrev_b32"}, {25, "v_lshrrev_b32"},
    {26, "v_ashrrev_i32"}, {27, "v_and_b32"}, {28, "v_or_b32"}, {29, "v_xor_b32"},
    {30, "v_xnor_b32"}, {31, "v_lshlrev_b64"}, {32, "v_add_co_ci_u32", "v_addc_co_u32"},
    {33, "v_sub_co_ci_u32", "v_subb_co_u32"}, {34, "v_subrev_co_ci_u32", "v_subbrev_co_u32"},
    {37, "v_add_nc_u32", "v_add_u32"}, {38, "v_sub_nc_u32", "v_sub_u32"},
    {39, "v_subrev_nc_u32", "v_subrev_u32"}, {43, "v_fmac_f32"}, {44, "v_fmamk_f32"},
    {45, "v_fmaak_f32"}, {47, "v_cvt_pk_rtz_f16_f32", "v_cvt_pkrtz_f16_f32"},
    {48, "v_min_num_f16", "v_min_f16"}, {49, "v_max_num_f16", "v_max_f16"}, {50, "v_add_f16"},
    {51, "v_sub_f16"}, {52, "v_subrev_f16"}, {53, "v_mul_f16"}, {54, "v_fmac_f16"},
    {55, "v_fmamk_f16"}, {56, "v_fmaak_f16"}, {59, "v_ldexp_f16"}, {60, "v_pk_fmac_f16"},
};

constexpr Gfx1201Name kVop3Names[] = {
    {521, "v_fma_dx9_zero_f32"}, {522, "v_mad_i32_i24"}, {523, "v_mad_u32_u24"}, {528, "v_bfe_u32"},
    {529, "v_bfe_i32"}, {530, "v_bfi_b32"}, {531, "v_fma_f32"}, {532, "v_fma_f64"},
    {534, "v_alignbit_b32"}, {535, "v_alignbyte_b32"}, {538, "v_min3_i32"}, {539, "v_min3_u32"},
    {541, "v_max3_i32"}, {542, "v_max3_u32"}, {544, "v_med3_i32"}, {545, "v_med3_u32"},
    {546, "v_sad_u8"}, {549, "v_sad_u32"}, {550, "v_cvt_pk_u8_f32"}, {551, "v_div_fixup_f32"},
    {552, "v_div_fixup_f64"}, {553, "v_min3_num_f32", "v_min3_f32"},
    {554, "v_max3_num_f32", "v_max3_f32"}, {555, "v_min3_num_f16", "v_min3_f16"},
    {556, "v_max3_num_f16", "v_max3_f16"}, {557, "v_minimum3_f32"}, {558, "v_maximum3_f32"},
    {559, "v_minimum3_f16"}, {560, "v_maximum3_f16"}, {561, "v_med3_num_f32", "v_med3_f32"},
    {562, "v_med3_num_f16", "v_med3_f16"}, {567, "v_div_fmas_f32"}, {568, "v_div_fmas_f64"},
    {576, "v_xor3_b32"}, {577, "v_mad_u16"}, {580, "v_perm_b32"}, {581, "v_xad_u32"},
    {582, "v_lshl_add_u32"}, {583, "v_add_lshl_u32"}, {584, "v_fma_f16"}, {586, "v_min3_i16"},
    {587, "v_min3_u16"}, {589, "v_max3_i16"}, {590, "v_max3_u16"}, {592, "v_med3_i16"},
    {593, "v_med3_u16"}, {595, "v_mad_i16"}, {596, "v_div_fixup_f16"}, {597, "v_add3_u32"},
    {598, "v_lshl_or_b32"}, {599, "v_and_or_b32"}, {600, "v_or3_b32"}, {601, "v_mad_u32_u16"},
    {602, "v_mad_i32_i16"}, {603, "v_permlane16_b32"}, {604, "v_permlanex16_b32"},
    {605, "v_cndmask_b16"}, {610, "v_maxmin_u32"}, {611, "v_minmax_u32"}, {612, "v_maxmin_i32"},
    {613, "v_minmax_i32"}, {616, "v_minmax_num_f32", "v_minmax_f32"},
    {617, "v_maxmin_num_f32", "v_maxmin_f32"}, {618, "v_minmax_num_f16", "v_minmax_f16"},
    {619, "v_maxmin_num_f16", "v_maxmin_f16"}, {620, "v_minimummaximum_f32"},
    {621, "v_maximumminimum_f32"}, {622, "v_minimummaximum_f16"}, {623, "v_maximumminimum_f16"},
    {640, "v_s_exp_f32"}, {642, "v_s_log_f32"}, {644, "v_s_rcp_f32"}, {646, "v_s_rsq_f32"},
    {648, "v_s_sqrt_f32"}, {764, "v_div_scale_f32"}, {765, "v_div_scale_f64"},
    {766, "v_mad_co_u64_u32", "v_mad_u64_u32"}, {767, "v_mad_co_i64_i32", "v_mad_i64_i32"},
    {768, "v_add_co_u32"}, {769, "v_sub_co_u32"}, {770, "v_subrev_co_u32"},
    {771, "v_add_nc_u16", "v_add_u16"}, {772, "v_sub_nc_u16", "v_sub_u16"}, {773, "v_mul_lo_u16"},
    {774, "v_cvt_pk_i16_f32"}, {775, "v_cvt_pk_u16_f32"}, {777, "v_max_u16"}, {778, "v_max_i16"},
    {779, "v_min_u16"}, {780, "v_min_i16"}, {781, "v_add_nc_i16", "v_add_i16"},
    {782, "v_sub_nc_i16", "v_sub_i16"}, {783, "v_permlane16_var_b32"},
    {784, "v_permlanex16_var_b32"}, {785, "v_pack_b32_f16"},
    {786, "v_cvt_pk_norm_i16_f16", "v_cvt_pknorm_i16_f16"},
    {787, "v_cvt_pk_norm_u16_f16", "v_cvt_pknorm_u16_f16"}, {796, "v_ldexp_f32"},
    {797, "v_bfm_b32"}, {798, "v_bcnt_u32_b32"}, {799, "v_mbcnt_lo_u32_b32"},
    {800, "v_mbcnt_hi_u32_b32"}, {801, "v_cvt_pk_norm_i16_f32", "v_cvt_pknorm_i16_f32"},
    {802, "v_cvt_pk_norm_u16_f32", "v_cvt_pknorm_u16_f32"}, {803, "v_cvt_pk_u16_u32"},
    {804, "v_cvt_pk_i16_i32"}, {805, "v_sub_nc_i32", "v_sub_i32"},
    {806, "v_add_nc_i32", "v_add_i32"}, {811, "v_ldexp_f64"}, {812, "v_mul_lo_u32"},
    {813, "v_mul_hi_u32"}, {814, "v_mul_hi_i32"}, {824, "v_lshlrev_b16"}, {825, "v_lshrrev_b16"},
    {826, "v_ashrrev_i16"}, {829, "v_lshrrev_b64"}, {830, "v_ashrrev_i64"}, {833, "v_minimum_f64"},
    {834, "v_maximum_f64"}, {864, "v_readlane_b32"}, {865, "v_writelane_b32"}, {866, "v_and_b16"},
    {867, "v_or_b16"}, {868, "v_xor_b16"}, {869, "v_minimum_f32"}, {870, "v_maximum_f32"},
    {871, "v_minimum_f16"}, {872, "v_maximum_f16"},
};

constexpr Gfx1201Name kVop3pNames[] = {
    {0, "v_pk_mad_i16"}, {1, "v_pk_mul_lo_u16"}, {2, "v_pk_add_i16"}, {3, "v_pk_sub_i16"},
    {4, "v_pk_lshlrev_b16"}, {5, "v_pk_lshrrev_b16"}, {6, "v_pk_ashrrev_i16"}, {7, "v_pk_max_i16"},
    {8, "v_pk_min_i16"}, {9, "v_pk_mad_u16"}, {10, "v_pk_add_u16"}, {11, "v_pk_sub_u16"},
    {12, "v_pk_max_u16"}, {13, "v_pk_min_u16"}, {14, "v_pk_fma_f16"}, {15, "v_pk_add_f16"},
    {16, "v_pk_mul_f16"}, {19, "v_dot2_f32_f16"}, {23, "v_dot4_u32_u8"}, {25, "v_dot8_u32_u4"},
    {26, "v_dot2_f32_bf16"}, {27, "v_pk_min_num_f16", "v_pk_min_f16"},
    {28, "v_pk_max_num_f16", "v_pk_max_f16"}, {29, "v_pk_minimum_f16"}, {30, "v_pk_maximum_f16"},
    {32, "v_fma_mix_f32"}, {33, "v_fma_mixlo_f16"}, {34, "v_fma_mixhi_f16"},
    {64, "v_wmma_f32_16x16x16_f16"}, {65, "v_wmma_f32_16x16x16_bf16"},
    {66, "v_wmma_f16_16x16x16_f16"}, {67, "v_wmma_bf16_16x16x16_bf16"},
    {68, "v_wmma_i32_16x16x16_iu8"}, {69, "v_wmma_i32_16x16x16_iu4"},
    {70, "v_wmma_f32_16x16x16_fp8_fp8"}, {71, "v_wmma_f32_16x16x16_fp8_bf8"},
    {72, "v_wmma_f32_16x16x16_bf8_fp8"}, {73, "v_wmma_f32_16x16x16_bf8_bf8"},
    {74, "v_wmma_i32_16x16x32_iu4"},
};

// 16 and above are second halves only.
constexpr Gfx1201Name kVopdNames[] = {
    {0, "v_dual_fmac_f32", "v_fmac_f32"}, {1, "v_dual_fmaak_f32", "v_fmaak_f32"},
    {2, "v_dual_fmamk_f32", "v_fmamk_f32"}, {3, "v_dual_mul_f32", "v_mul_f32"},
    {4, "v_dual_add_f32", "v_add_f32"}, {5, "v_dual_sub_f32", "v_sub_f32"},
    {6, "v_dual_subrev_f32", "v_subrev_f32"}, {7, "v_dual_mul_dx9_zero_f32", "v_mul_legacy_f32"},
    {8, "v_dual_mov_b32", "v_mov_b32"}, {9, "v_dual_cndmask_b32", "v_cndmask_b32"},
    {10, "v_dual_max_num_f32", "v_max_f32"}, {11, "v_dual_min_num_f32", "v_min_f32"},
    {12, "v_dual_dot2acc_f32_f16", "v_dot2c_f32_f16"},
    {13, "v_dual_dot2acc_f32_bf16", "v_dot2c_f32_bf16"}, {16, "v_dual_add_nc_u32", "v_add_u32"},
    {17, "v_dual_lshlrev_b32", "v_lshlrev_b32"}, {18, "v_dual_and_b32", "v_and_b32"},
};

constexpr Gfx1201Name kFloatRelations[] = {
    {1, "lt"}, {2, "eq"}, {3, "le"}, {4, "gt"}, {5, "lg"}, {6, "ge"}, {7, "o"}, {8, "u"},
    {9, "nge"}, {10, "nlg"}, {11, "ngt"}, {12, "nle"}, {13, "neq"}, {14, "nlt"},
};

constexpr Gfx1201Name kIntRelations[] = {
    {1, "lt"}, {2, "eq"}, {3, "le"}, {4, "gt"}, {5, "ne"}, {6, "ge"},
};

constexpr Gfx1201Name kCompareTypes[] = {
    {0, "f16"}, {16, "f32"}, {32, "f64"}, {48, "i16"}, {56, "u16"}, {64, "i32"}, {72, "u32"},
    {80, "i64"}, {88, "u64"},
};

constexpr Gfx1201Name kClassCompares[] = {
    {125, "f16"}, {126, "f32"}, {127, "f64"},
};

constexpr Gfx1201Name kMemoryNames[] = {
    {16, "load_u8", "load_ubyte"}, {17, "load_i8", "load_sbyte"}, {18, "load_u16", "load_ushort"},
    {19, "load_i16", "load_sshort"}, {20, "load_b32", "load_dword"},
    {21, "load_b64", "load_dwordx2"}, {22, "load_b96", "load_dwordx3"},
    {23, "load_b128", "load_dwordx4"}, {24, "store_b8", "store_byte"},
    {25, "store_b16", "store_short"}, {26, "store_b32", "store_dword"},
    {27, "store_b64", "store_dwordx2"}, {28, "store_b96", "store_dwordx3"},
    {29, "store_b128", "store_dwordx4"}, {30, "load_d16_u8", "load_ubyte_d16"},
    {31, "load_d16_i8", "load_sbyte_d16"}, {32, "load_d16_b16", "load_short_d16"},
    {33, "load_d16_hi_u8", "load_ubyte_d16_hi"}, {34, "load_d16_hi_i8", "load_sbyte_d16_hi"},
    {35, "load_d16_hi_b16", "load_short_d16_hi"}, {36, "store_d16_hi_b8", "store_byte_d16_hi"},
    {37, "store_d16_hi_b16", "store_short_d16_hi"}, {51, "atomic_swap_b32", "atomic_swap"},
    {52, "atomic_cmpswap_b32", "atomic_cmpswap"}, {53, "atomic_add_u32", "atomic_add"},
    {54, "atomic_sub_u32", "atomic_sub"}, {56, "atomic_min_i32", "atomic_smin"},
    {57, "atomic_min_u32", "atomic_umin"}, {58, "atomic_max_i32", "atomic_smax"},
    {59, "atomic_max_u32", "atomic_umax"}, {60, "atomic_and_b32", "atomic_and"},
    {61, "atomic_or_b32", "atomic_or"}, {62, "atomic_xor_b32", "atomic_xor"},
    {63, "atomic_inc_u32", "atomic_inc"}, {64, "atomic_dec_u32", "atomic_dec"},
    {65, "atomic_swap_b64", "atomic_swap_x2"}, {66, "atomic_cmpswap_b64", "atomic_cmpswap_x2"},
    {67, "atomic_add_u64", "atomic_add_x2"}, {68, "atomic_sub_u64", "atomic_sub_x2"},
    {69, "atomic_min_i64", "atomic_smin_x2"}, {70, "atomic_min_u64", "atomic_umin_x2"},
    {71, "atomic_max_i64", "atomic_smax_x2"}, {72, "atomic_max_u64", "atomic_umax_x2"},
    {73, "atomic_and_b64", "atomic_and_x2"}, {74, "atomic_or_b64", "atomic_or_x2"},
    {75, "atomic_xor_b64", "atomic_xor_x2"}, {76, "atomic_inc_u64", "atomic_inc_x2"},
    {77, "atomic_dec_u64", "atomic_dec_x2"}, {86, "atomic_add_f32"},
};

constexpr Gfx1201Name kGlobalOnlyNames[] = {
    {43, "inv"}, {44, "wb"}, {79, "wbinv"}, {87, "load_tr_b128"},
};

constexpr Gfx1201Name kDsNames[] = {
    {0, "ds_add_u32"}, {1, "ds_sub_u32"}, {2, "ds_rsub_u32"}, {3, "ds_inc_u32"}, {4, "ds_dec_u32"},
    {5, "ds_min_i32"}, {6, "ds_max_i32"}, {7, "ds_min_u32"}, {8, "ds_max_u32"}, {9, "ds_and_b32"},
    {10, "ds_or_b32"}, {11, "ds_xor_b32"}, {13, "ds_store_b32", "ds_write_b32"},
    {14, "ds_store_2addr_b32", "ds_write2_b32"},
    {15, "ds_store_2addr_stride64_b32", "ds_write2st64_b32"},
    {16, "ds_cmpstore_b32", "ds_cmpst_b32"}, {18, "ds_min_num_f32", "ds_min_f32"},
    {19, "ds_max_num_f32", "ds_max_f32"}, {20, "ds_nop"}, {21, "ds_add_f32"}, {30, "ds_store_b8", "ds_write_b8"},
    {31, "ds_store_b16", "ds_write_b16"}, {32, "ds_add_rtn_u32"}, {33, "ds_sub_rtn_u32"},
    {34, "ds_rsub_rtn_u32"}, {35, "ds_inc_rtn_u32"}, {36, "ds_dec_rtn_u32"}, {37, "ds_min_rtn_i32"},
    {38, "ds_max_rtn_i32"}, {39, "ds_min_rtn_u32"}, {40, "ds_max_rtn_u32"}, {41, "ds_and_rtn_b32"},
    {42, "ds_or_rtn_b32"}, {43, "ds_xor_rtn_b32"},
    {45, "ds_storexchg_rtn_b32", "ds_wrxchg_rtn_b32"},
    {48, "ds_cmpstore_rtn_b32", "ds_cmpst_rtn_b32"}, {50, "ds_min_num_rtn_f32", "ds_min_rtn_f32"},
    {51, "ds_max_num_rtn_f32", "ds_max_rtn_f32"}, {53, "ds_swizzle_b32"},
    {54, "ds_load_b32", "ds_read_b32"}, {55, "ds_load_2addr_b32", "ds_read2_b32"},
    {56, "ds_load_2addr_stride64_b32", "ds_read2st64_b32"}, {57, "ds_load_i8", "ds_read_i8"},
    {58, "ds_load_u8", "ds_read_u8"}, {59, "ds_load_i16", "ds_read_i16"},
    {60, "ds_load_u16", "ds_read_u16"}, {77, "ds_store_b64", "ds_write_b64"},
    {78, "ds_store_2addr_b64", "ds_write2_b64"},
    {79, "ds_store_2addr_stride64_b64", "ds_write2st64_b64"}, {118, "ds_load_b64", "ds_read_b64"},
    {119, "ds_load_2addr_b64", "ds_read2_b64"},
    {120, "ds_load_2addr_stride64_b64", "ds_read2st64_b64"}, {121, "ds_add_rtn_f32"},
    {160, "ds_store_b8_d16_hi", "ds_write_b8_d16_hi"},
    {161, "ds_store_b16_d16_hi", "ds_write_b16_d16_hi"}, {162, "ds_load_u8_d16", "ds_read_u8_d16"},
    {163, "ds_load_u8_d16_hi", "ds_read_u8_d16_hi"}, {164, "ds_load_i8_d16", "ds_read_i8_d16"},
    {165, "ds_load_i8_d16_hi", "ds_read_i8_d16_hi"}, {166, "ds_load_u16_d16", "ds_read_u16_d16"},
    {167, "ds_load_u16_d16_hi", "ds_read_u16_d16_hi"}, {178, "ds_permute_b32"},
    {179, "ds_bpermute_b32"}, {222, "ds_store_b96", "ds_write_b96"},
    {223, "ds_store_b128", "ds_write_b128"}, {254, "ds_load_b96", "ds_read_b96"},
    {255, "ds_load_b128", "ds_read_b128"},
};

// clang-format on

}  // namespace

std::span<const Gfx1201Name> Gfx1201Vop1Names() { return kVop1Names; }
std::span<const Gfx1201Name> Gfx1201Vop2Names() { return kVop2Names; }
std::span<const Gfx1201Name> Gfx1201Vop3Names() { return kVop3Names; }
std::span<const Gfx1201Name> Gfx1201Vop3pNames() { return kVop3pNames; }
std::span<const Gfx1201Name> Gfx1201VopdNames() { return kVopdNames; }
std::span<const Gfx1201Name> Gfx1201FloatRelations() { return kFloatRelations; }
std::span<const Gfx1201Name> Gfx1201IntRelations() { return kIntRelations; }
std::span<const Gfx1201Name> Gfx1201CompareTypes() { return kCompareTypes; }
std::span<const Gfx1201Name> Gfx1201ClassCompares() { return kClassCompares; }
std::span<const Gfx1201Name> Gfx1201MemoryNames() { return kMemoryNames; }
std::span<const Gfx1201Name> Gfx1201GlobalOnlyNames() { return kGlobalOnlyNames; }
std::span<const Gfx1201Name> Gfx1201DsNames() { return kDsNames; }

}  // namespace jax_fa::emulator
