"""Wait states that gfx950 leaves to the program: too few are found, enough pass."""

import functools

import numpy as np
import pytest
from assemble import assemble_kernels
from planted import GFX950_END, GFX950_START, Defect, Planted

from jax_fa import emulator


def _slots(name: str, before: str, slots: int, use: str, target: str = "gfx950") -> Defect:
    """Between ``before`` and ``use`` it takes ``slots`` wait states; the defect leaves one less."""
    nops = {0: "", 1: "s_nop 0"}
    return Defect(
        name,
        before + "\n{mend}\n" + use,
        mend=f"s_nop {slots - 1}",
        wrong=nops.get(slots - 1, f"s_nop {slots - 2}"),
        says=f"{slots - 1} wait states after .*; it takes {slots}: s_nop 0 is missing before",
        target=target,
    )


ROWS = """
v_mov_b32 v3, 0
v_mov_b32 v4, 0
v_mov_b32 v5, 0
v_mov_b32 v6, 0
v_mov_b32 v7, 0
v_mov_b32 v8, 0
v_mov_b32 v9, 0
v_mov_b32 v10, 0
v_mov_b32 v11, 0
v_mov_b32 v12, 0
v_mov_b32 v13, 0
v_mov_b32 v14, 0
s_nop 1
"""
MFMA = ROWS + "v_mfma_f32_16x16x32_bf16 v[4:7], v[8:11], v[8:11], 0"
SINGLE = ROWS + "v_mfma_f32_16x16x4_f32 v[4:7], v8, v9, 0"
MANY = ROWS + "v_mov_b32 v15, 0\ns_nop 1\nv_mfma_f32_4x4x4_16b_f16 v[4:7], v[8:9], v[10:11], 0"

HAZARDS = [
    _slots(
        "m0_written_by_a_scalar_instruction",
        "v_readfirstlane_b32 s12, v2\ns_lshl_b32 s12, s12, 8\ns_mov_b32 m0, s12",
        1,
        "global_load_lds_dword v1, s[8:9]\nv_mov_b32 v3, 0",
    ),
    _slots(
        "scalar_written_by_a_vector_instruction_read_by_memory",
        "s_mov_b32 s15, s9\nv_mov_b32 v3, s8\ns_nop 0\nv_readfirstlane_b32 s14, v3",
        5,
        "global_load_dword v3, v1, s[14:15]",
    ),
    _slots(
        "scalar_written_by_a_vector_instruction_read_as_a_constant",
        "v_readfirstlane_b32 s12, v2",
        2,
        "v_mov_b32 v3, s12",
    ),
    _slots(
        "vcc_written_by_a_carry_read_as_a_constant",
        "v_add_co_u32 v3, vcc, v0, v0",
        2,
        "v_mov_b32 v3, vcc_lo",
    ),
    _slots(
        "register_picked_by_m0",
        "s_mov_b32 s12, 0\ns_mov_b32 m0, s12",
        1,
        "s_movrels_b32 s13, s12\nv_mov_b32 v3, s13",
    ),
    _slots(
        "dpp_with_equal_source_and_destination",
        "v_mov_b32 v3, v0",
        2,
        "v_mov_b32_dpp v3, v3 row_ror:1 row_mask:0xf bank_mask:0xf",
    ),
    _slots(
        "dpp_after_exec",
        "v_mov_b32 v3, v0\nv_cmpx_le_u32 vcc, 0, v0",
        5,
        "v_mov_b32_dpp v3, v3 row_ror:1 row_mask:0xf bank_mask:0xf",
    ),
    _slots("swap_of_lanes", "v_mov_b32 v4, 1\nv_mov_b32 v3, v0", 2, "v_permlane32_swap_b32 v3, v4"),
    _slots(
        "lane_picked_by_a_vector_result",
        "v_mov_b32 v3, 7\nv_readfirstlane_b32 s12, v2",
        4,
        "v_readlane_b32 s13, v3, s12\ns_nop 1\nv_mov_b32 v3, s13",
    ),
    _slots(
        "lane_read", "v_mov_b32 v3, 7", 1, "v_readfirstlane_b32 s13, v3\ns_nop 1\nv_mov_b32 v3, s13"
    ),
    _slots("transcendental", "v_exp_f32 v4, v0", 1, "v_add_f32 v3, 1.0, v4"),
    _slots(
        "half_of_a_register",
        "v_mov_b32 v4, 0\nv_add_u32_sdwa v4, v0, v0 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE "
        "src0_sel:DWORD src1_sel:DWORD",
        1,
        "v_mov_b32 v3, v4",
    ),
    _slots(
        "half_of_a_register_overwritten",
        "v_mov_b32 v4, 0\nv_mov_b32 v5, 0\ns_nop 0\nv_fma_f16 v4, v5, v5, v5 op_sel:[0,0,0,1]",
        1,
        "v_mov_b32 v4, 0\nv_mov_b32 v3, v4",
    ),
    _slots(
        "division_step_after_vcc",
        "v_mov_b32 v4, 1.0\nv_cmp_eq_u32 vcc, 0, v0",
        4,
        "v_div_fmas_f32 v3, v4, v4, v4",
    ),
    _slots(
        "matrix_operand",
        ROWS + "v_mov_b32 v8, 1.0",
        2,
        "v_mfma_f32_16x16x32_bf16 v[4:7], v[8:11], v[8:11], 0",
    ),
    _slots(
        "matrix_operand_from_the_other_register_of_a_swap",
        ROWS + "v_permlane32_swap_b32 v3, v8",
        2,
        "v_mfma_f32_16x16x32_bf16 v[4:7], v[8:11], v[8:11], 0",
    ),
    _slots("matrix_result_read", MFMA, 8, "v_mov_b32 v3, v4"),
    _slots("matrix_result_stored", MFMA, 8, "global_store_dword v1, v4, s[8:9]"),
    _slots("matrix_result_overwritten", MFMA, 8, "v_mov_b32 v7, 0"),
    _slots(
        "matrix_result_as_operand",
        MFMA,
        8,
        "v_mfma_f32_16x16x32_bf16 v[12:15], v[4:7], v[8:11], 0",
    ),
    _slots(
        "matrix_result_as_part_of_a_sum",
        MFMA,
        6,
        "v_mfma_f32_16x16x32_bf16 v[6:9], v[10:13], v[10:13], v[6:9]",
    ),
    _slots(
        "matrix_sum_overwritten",
        ROWS + "v_mfma_f32_16x16x32_bf16 v[12:15], v[8:11], v[8:11], v[4:7]",
        3,
        "v_mov_b32 v4, 0",
    ),
    _slots(
        "dot_product_read_by_another_instruction",
        ROWS + "v_dot2_f32_f16 v4, v8, v9, v10",
        3,
        "v_add_f32 v3, 1.0, v4",
    ),
    _slots(
        "dot_product_as_a_source_of_the_next",
        ROWS + "v_dot2_f32_f16 v4, v8, v9, v10",
        3,
        "v_dot2_f32_f16 v5, v4, v9, v10",
    ),
    _slots(
        "sum_of_a_dot_product_as_a_source_of_the_next",
        ROWS + "v_dot2c_f32_f16 v4, v8, v9",
        3,
        "v_dot2c_f32_f16 v5, v4, v9",
    ),
    _slots(
        "sum_of_a_dot_product_of_another_kind",
        ROWS + "v_dot2_f32_f16 v4, v8, v9, v10",
        3,
        "v_dot2c_f32_f16 v4, v8, v9",
    ),
    _slots("matrix_result_of_float32", SINGLE, 10, "v_mov_b32 v3, v4"),
    _slots(
        "small_matrix_result_as_part_of_a_sum",
        MANY,
        4,
        "v_mfma_f32_4x4x4_16b_f16 v[6:9], v[10:11], v[12:13], v[6:9]",
    ),
    _slots(
        "small_matrix_result_as_part_of_a_sum_of_float32",
        MANY,
        3,
        "v_mfma_f32_4x4x1_16b_f32 v[6:9], v10, v11, v[6:9]",
    ),
    _slots(
        "small_matrix_sum",
        MANY,
        2,
        "v_mfma_f32_4x4x4_16b_f16 v[4:7], v[8:9], v[10:11], v[4:7]",
    ),
    _slots(
        "wide_store_with_a_scalar_offset_overwritten",
        ROWS + "v_lshlrev_b32 v16, 2, v2\ns_mov_b32 s12, s8\ns_and_b32 s13, s9, 0xffff\n"
        "s_mov_b32 s14, 512\ns_mov_b32 s15, 0x27000\ns_mov_b32 s16, 0\n"
        "buffer_store_dwordx4 v[4:7], v16, s[12:15], s16 offen",
        1,
        "v_mov_b32 v4, 1",
    ),
    _slots(
        "wide_store_overwritten",
        ROWS + "v_lshlrev_b32 v16, 2, v2\ns_cmp_eq_u32 s8, s8\n"
        "global_store_dwordx4 v16, v[4:7], s[8:9]",
        2,
        "v_mov_b32 v4, 1",
    ),
]


PACKED = "v_pk_mul_f32 v[12:13], v[8:9], v[10:11]"
# Between a matrix instruction and a use that takes 8 wait states: what costs more than the one that
# it is, with the one line that completes them.
STALLS = [
    # No packed instruction issues before slot 7: the first one has waited there.
    ("packed", PACKED, PACKED, "v_pk_fma_f32 v[14:15], v[4:5], v[8:9], v[10:11]"),
    # Any other vector instruction issues in slot 2 or later.
    ("vector", "v_mov_b32 v12, 0\n" * 6, "v_mov_b32 v12, 0", "v_mov_b32 v3, v4"),
    ("sparse", "v_mov_b32 v18, 0\n" * 5, "v_mov_b32 v18, 0", "v_mov_b32 v3, v4"),
    ("taken_branch", "s_branch .Ltaken\ns_nop 0\n.Ltaken:\ns_nop 2", "s_nop 0", "v_mov_b32 v3, v4"),
    (
        "branch_not_taken",
        "s_cmp_lg_u32 s8, s8\ns_cbranch_scc1 .Lskip\n.Lskip:\ns_nop 4",
        "s_nop 0",
        "v_mov_b32 v3, v4",
    ),
    ("barrier", "s_barrier\ns_nop 2", "s_nop 0", "v_mov_b32 v3, v4"),
]
SPARSE = ROWS + (
    "v_mov_b32 v15, 0\nv_mov_b32 v16, 0\nv_mov_b32 v17, 0\ns_nop 1\n"
    "v_smfmac_f32_16x16x64_bf16 v[4:7], v[8:11], v[8:15], v16"
)
BEHIND = [
    Defect(
        name,
        f"{SPARSE if name == 'sparse' else MFMA}\n{between}\n{{mend}}\n{use}",
        mend=line,
        says="reads v4 7 wait states after .* it takes 8: s_nop 0 is missing before",
    )
    for name, between, line, use in STALLS
]

planted = Planted(HAZARDS)
behind = Planted(BEHIND)


@pytest.mark.parametrize("defect", HAZARDS, ids=[defect.name for defect in HAZARDS])
def test_missing_slot_is_found(defect):
    with pytest.raises(emulator.EmulatorError, match=defect.says):
        planted.launch(defect, mended=False)
    assert planted.launch(defect, mended=True).findings == []


@pytest.mark.parametrize("defect", BEHIND, ids=[defect.name for defect in BEHIND])
def test_stalls_count_as_wait_states(defect):
    with pytest.raises(emulator.EmulatorError, match=defect.says):
        behind.launch(defect, mended=False)
    assert behind.launch(defect, mended=True).findings == []


def test_barrier_of_one_wave_is_no_stall():
    body = "\n".join([GFX950_START, MFMA, "s_barrier", "s_nop 3", "v_mov_b32 v3, v4", GFX950_END])
    code = emulator.CodeObject(assemble_kernels("gfx950", {"alone": body}))
    array = np.zeros(128, np.int32)
    code.launch("alone", 1, 128, args=[array])
    with pytest.raises(emulator.EmulatorError, match="reads v4 5 wait states after"):
        code.launch("alone", 1, 64, args=[array])


def test_accumulator_is_forwarded():
    """A matrix instruction may add to the very sum that the one before it made."""
    body = MFMA.replace("0", "v[4:7]", 0) + "\n"
    body += "v_mfma_f32_16x16x32_bf16 v[4:7], v[8:11], v[8:11], v[4:7]\n" * 3
    body += "s_nop 7\nv_mov_b32 v3, v4"
    defect = Defect("forwarded", body + "{mend}", mend="", says="")
    assert Planted([defect]).launch(defect, mended=True).findings == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("v_dot2_f32_f16 v3, v8, v9, v10", "v_dot2_f32_f16 v3, v8, v9, v3"),
        ("v_dot2c_f32_f16 v3, v8, v9", "v_dot2c_f32_f16 v3, v8, v9"),
    ],
)
def test_sum_of_a_dot_product_is_forwarded(first, second):
    body = ROWS + f"{first}\n{second}\ns_nop 3\n{{mend}}"
    defect = Defect("summed", body, mend="", says="")
    assert Planted([defect]).launch(defect, mended=True).findings == []


def test_mask_may_be_read_at_once():
    body = "v_cmp_lt_u32 vcc, 3, v0\nv_cndmask_b32 v3, v0, v1, vcc\n"
    body += (
        "v_add_co_u32 v3, s[12:13], v0, v0\nv_addc_co_u32 v3, s[14:15], v0, v0, s[12:13]\n{mend}"
    )
    defect = Defect("mask", body, mend="", says="")
    assert Planted([defect]).launch(defect, mended=True).findings == []


# (instruction, the lane that lane l receives)
MOVES = {
    "v_mov_b32_dpp v3, v3 row_ror:1 row_mask:0xf bank_mask:0xf": (
        lambda lane: (lane & ~15) | ((lane - 1) & 15)
    ),
    "v_mov_b32_dpp v3, v3 quad_perm:[1,2,3,0] row_mask:0xf bank_mask:0xf": (
        lambda lane: (lane & ~3) | ((lane + 1) & 3)
    ),
    "v_mov_b32_dpp v3, v3 row_mirror row_mask:0xf bank_mask:0xf": lambda lane: lane ^ 15,
    "ds_bpermute_b32 v3, v3, v3": lambda lane: lane,
    "ds_swizzle_b32 v3, v3 offset:swizzle(SWAP,16)": lambda lane: lane ^ 16,
}


@pytest.mark.parametrize("move", MOVES)
def test_lanes_move_with_equal_source_and_destination(move):
    """Every source lane is read before any destination lane is written."""
    array = np.zeros(64, np.int32)
    _moves().launch(f"move{list(MOVES).index(move)}", 1, 64, args=[array])
    np.testing.assert_array_equal(array, 4 * MOVES[move](np.arange(64)))


@functools.cache
def _moves() -> emulator.CodeObject:
    body = """
    s_load_dwordx2 s[8:9], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    v_lshlrev_b32 v3, 2, v0
    s_nop 1
    {move}
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v3, s[8:9]
    s_endpgm
    """
    bodies = {f"move{place}": body.format(move=move) for place, move in enumerate(MOVES)}
    return emulator.CodeObject(assemble_kernels("gfx950", bodies))
