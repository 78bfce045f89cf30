"""What gfx1201 leaves to the program between instructions: left out it is found, else it passes."""

import pytest
from planted import Defect, Planted

from jax_fa import emulator


def _wait(name: str, body: str, counter: str, reads: str, wrote: str) -> Defect:
    """A read that takes a wait for ``counter``, and gets one for the others."""
    counters = ["sa_sdst", "va_sdst", "va_vcc"]
    counters.remove(counter)
    return Defect(
        name,
        body,
        mend=f"s_wait_alu depctr_{counter}(0)",
        wrong=f"s_wait_alu depctr_{counters[0]}(0) depctr_{counters[1]}(0)",
        says=rf"reads {reads}, which {wrote} wrote after .*depctr_{counter}\(0\) is missing before",
        target="gfx1201",
    )


# A vector instruction has read s12, and VCC.
COPIED = "s_mov_b32 s12, 1\ns_mov_b32 s13, 1\nv_mov_b32 v3, s12\n"
COPIED_VCC = "s_mov_b32 vcc_lo, 1\nv_mov_b32 v3, 1\nv_cndmask_b32 v3, v3, v0, vcc_lo\n"
ROWS = "".join(f"v_mov_b32 v{i}, 0\n" for i in range(3, 15))

DEFECTS = [
    _wait(
        "scalar_result_read_by_a_vector_instruction",
        COPIED + "s_mov_b32 s12, 2\n{mend}\nv_mov_b32 v3, s12",
        *("sa_sdst", "s12", "s_mov_b32"),
    ),
    _wait(
        "scalar_result_read_by_a_scalar_instruction",
        COPIED + "s_mov_b32 s12, 2\n{mend}\ns_add_co_u32 s14, s12, s12",
        *("sa_sdst", "s12", "s_mov_b32"),
    ),
    _wait(
        "other_register_of_the_pair",
        COPIED + "s_mov_b32 s13, 2\n{mend}\nv_mov_b32 v3, s13",
        *("sa_sdst", "s13", "s_mov_b32"),
    ),
    _wait(
        "second_register_of_a_pair_read_as_one",
        COPIED + "s_mov_b32 s13, 2\n{mend}\ns_add_nc_u64 s[14:15], s[12:13], s[12:13]",
        *("sa_sdst", "s13", "s_mov_b32"),
    ),
    _wait(
        "vector_result_read_by_a_vector_instruction",
        COPIED + "v_readfirstlane_b32 s12, v0\n{mend}\nv_mov_b32 v3, s12",
        *("va_sdst", "s12", "v_readfirstlane_b32"),
    ),
    _wait(
        "carry_in_a_scalar_register",
        COPIED + "v_add_co_u32 v3, s12, v0, v0\n{mend}\nv_cndmask_b32 v3, v0, v0, s12",
        *("va_sdst", "s12", "v_add_co_u32"),
    ),
    _wait(
        "half_of_a_pair_that_issues_together",
        COPIED + "s_mov_b32 s12, 2\n{mend}\nv_dual_mov_b32 v4, v0 :: v_dual_add_f32 v3, s12, v1",
        *("sa_sdst", "s12", "s_mov_b32"),
    ),
    _wait(
        "vcc_written_by_a_compare",
        COPIED_VCC + "v_cmp_lt_u32 vcc_lo, 3, v0\n{mend}\nv_cndmask_b32 v3, v3, v0, vcc_lo",
        *("va_vcc", "vcc_lo", "v_cmp_lt_u32"),
    ),
    _wait(
        "vcc_written_by_a_scalar_instruction",
        COPIED_VCC + "s_mov_b32 vcc_lo, 2\n{mend}\nv_cndmask_b32 v3, v3, v0, vcc_lo",
        *("sa_sdst", "vcc_lo", "s_mov_b32"),
    ),
    _wait(
        "branch_on_vcc_written_by_a_scalar_instruction",
        COPIED_VCC + "s_mov_b32 vcc_lo, 2\n{mend}\ns_cbranch_vccz .Lafter\n.Lafter:",
        *("sa_sdst", "vcc_lo", "s_mov_b32"),
    ),
    Defect(
        "lane_move_after_a_compare_that_sets_exec",
        "v_mov_b32 v3, v0\nv_mov_b32 v4, v0\nv_cmpx_le_u32 0, v0\n{mend}\n"
        "v_permlanex16_b32 v3, v4, s8, s8",
        mend="v_mov_b32 v5, v0",
        wrong="v_nop",
        says="follows a v_cmpx: a vector instruction other than v_nop is missing between",
        target="gfx1201",
    ),
    Defect(
        "matrix_result_as_operand_of_the_next",
        ROWS + "v_wmma_f32_16x16x16_f16 v[16:23], v[4:7], v[8:11], 0\n{mend}\n"
        "v_wmma_f32_16x16x16_f16 v[24:31], v[20:23], v[8:11], 0",
        mend="v_nop",
        wrong="s_nop 0",
        says=r"reads v\[20:23\] right after the matrix instruction before wrote it",
        target="gfx1201",
    ),
]


planted = Planted(DEFECTS)


@pytest.mark.parametrize("defect", DEFECTS, ids=[defect.name for defect in DEFECTS])
def test_missing_wait_is_found(defect):
    with pytest.raises(emulator.EmulatorError, match=defect.says):
        planted.launch(defect, mended=False)
    assert planted.launch(defect, mended=True).findings == []


def test_a_wait_is_said_to_be_missing_once():
    reads = "v_mov_b32 v3, s12\n" * 3
    defect = Defect("twice", COPIED + "s_mov_b32 s12, 2\n" + reads, "", "", target="gfx1201")
    launch = Planted([defect]).launch(defect, mended=True, checks="collect", threads=1)
    assert len(launch.findings) == 1


DROPS = "ds_nop\n" * 4
# What takes no wait.
RIGHT = {
    "read_for_the_first_time": "s_mov_b32 s12, 1\ns_mov_b32 s12, 2\nv_mov_b32 v3, s12",
    "read_by_scalar_instructions_alone": "s_mov_b32 s12, 1\ns_add_co_u32 s14, s12, s12\n"
    "s_mov_b32 s12, 2\nv_mov_b32 v3, s12",
    "another_pair": COPIED + "s_mov_b32 s14, 2\nv_mov_b32 v3, s14",
    "scalar_read_of_a_vector_result": COPIED + "v_readfirstlane_b32 s12, v0\n"
    "s_add_co_u32 s14, s12, s12\nv_mov_b32 v3, s12",
    "scalar_read_of_another_register": COPIED + "s_mov_b32 s16, 1\nv_readfirstlane_b32 s12, v0\n"
    "s_add_co_u32 s14, s16, s16\nv_mov_b32 v3, s12",
    "scalar_read_of_vcc": COPIED_VCC + "v_cmp_lt_u32 vcc_lo, 3, v0\ns_mov_b32 s14, vcc_lo\n"
    "v_cndmask_b32 v3, v3, v0, vcc_lo",
    "load_in_between": COPIED + "s_mov_b32 s12, 2\ns_load_b32 s14, s[8:9], 0x0\n"
    "v_mov_b32 v3, s12\ns_wait_kmcnt 0x0",
    "address_of_a_load": "s_mov_b64 s[12:13], s[8:9]\nv_mov_b32 v3, s12\n"
    "s_mov_b64 s[12:13], s[8:9]\nglobal_load_b32 v3, v1, s[12:13]",
    "copies_dropped": COPIED + DROPS + "s_mov_b32 s12, 2\nv_mov_b32 v3, s12",
    "matrix_result_as_c": ROWS + "v_wmma_f32_16x16x16_f16 v[16:23], v[4:7], v[8:11], 0\n"
    "v_wmma_f32_16x16x16_f16 v[24:31], v[4:7], v[8:11], v[16:23]",
    "compare_that_sets_exec_long_ago": "v_mov_b32 v3, v0\nv_mov_b32 v4, v0\n"
    "v_cmpx_le_u32 0, v0\nv_mov_b32 v5, v0\nv_nop\nv_permlanex16_b32 v3, v4, s8, s8",
}
NO_DEFECTS = {
    name: Defect(name, body + "\n{mend}", "", "", target="gfx1201") for name, body in RIGHT.items()
}
right = Planted(list(NO_DEFECTS.values()))


@pytest.mark.parametrize("name", RIGHT)
def test_what_takes_no_wait(name):
    assert right.launch(NO_DEFECTS[name], mended=True).findings == []


def test_three_ds_nops_drop_no_copies():
    body = COPIED + DROPS.replace("ds_nop", "s_nop 0", 1) + "s_mov_b32 s12, 2\nv_mov_b32 v3, s12"
    defect = Defect("three", body, "", "", target="gfx1201")
    with pytest.raises(emulator.EmulatorError, match="sa_sdst"):
        Planted([defect]).launch(defect, mended=True)
