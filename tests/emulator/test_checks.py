"""Each check of the emulator catches its planted defect, and passes the mended kernel."""

import numpy as np
import pytest
from assemble import assemble
from planted import Defect, Planted

from jax_fa import emulator

DEFECTS = [
    Defect(
        "vmem_wait_missing",
        """
        global_load_dword v4, v1, s[8:9]
        {mend}
        v_add_u32 v3, 1, v4
        """,
        mend="s_waitcnt vmcnt(0)",
        says="reads v4 while its load is still under way",
    ),
    Defect(
        "wait_count_off_by_one",
        """
        global_load_dword v4, v1, s[8:9]
        global_load_dword v5, v1, s[8:9] offset:4
        {mend}
        v_add_u32 v3, v4, v5
        """,
        mend="s_waitcnt vmcnt(0)",
        wrong="s_waitcnt vmcnt(1)",
        says="reads v5 while its load is still under way",
    ),
    Defect(
        "smem_wait_missing",
        """
        s_load_dword s12, s[8:9], 0x0
        {mend}
        v_mov_b32 v3, s12
        """,
        mend="s_waitcnt lgkmcnt(0)",
        says="reads s12 while its load is still under way",
    ),
    Defect(
        "smem_returns_out_of_order",
        """
        s_load_dword s12, s[8:9], 0x0
        s_load_dword s13, s[8:9], 0x4
        {mend}
        v_mov_b32 v3, s12
        """,
        mend="s_waitcnt lgkmcnt(0)",
        wrong="s_waitcnt lgkmcnt(1)",
        says="reads s12 while its load is still under way",
    ),
    Defect(
        "lds_read_wait_missing",
        """
        ds_write_b32 v1, v0
        ds_read_b32 v4, v1
        {mend}
        v_mov_b32 v3, v4
        """,
        mend="s_waitcnt lgkmcnt(0)",
        says="reads v4 while its load is still under way",
    ),
    Defect(
        "overwritten_under_way",
        """
        global_load_dword v4, v1, s[8:9]
        {mend}
        v_mov_b32 v4, 7
        v_mov_b32 v3, v4
        """,
        mend="s_waitcnt vmcnt(0)",
        says="overwrites v4 while a load into it is still under way",
    ),
    Defect(
        "vgpr_never_written",
        """
        {mend}
        v_add_u32 v3, v0, v7
        """,
        mend="v_mov_b32 v7, 1",
        says="reads v7, which was never written",
    ),
    Defect(
        "vgpr_written_in_some_lanes_only",
        """
        s_mov_b64 exec, {mend}
        v_mov_b32 v7, 1
        s_mov_b64 exec, -1
        v_add_u32 v3, v0, v7
        """,
        mend="-1",
        wrong="15",
        says="lane 4, .*reads v7, which was never written",
    ),
    Defect(
        "sgpr_never_written",
        """
        {mend}
        v_mov_b32 v3, s20
        """,
        mend="s_mov_b32 s20, 1",
        says="reads s20, which was never written",
    ),
    Defect(
        "sgpr_of_a_pair_never_written",  # both halves may take the one that was
        """
        s_mov_b32 s20, 1.0
        v_mov_b32 v4, v0
        v_mov_b32 v5, v0
        v_pk_mul_f32 v[4:5], s[20:21], v[4:5]{mend}
        v_mov_b32 v3, v4
        """,
        mend=" op_sel_hi:[0,1]",
        says="reads s21, which was never written",
    ),
    Defect(
        "load_past_the_end_by_one_byte",
        """
        global_load_dword v3, v1, s[8:9] {mend}
        """,
        mend="offset:0",
        wrong="offset:5",  # the array has four spare bytes
        says=r"lane 63, .*runs 1 bytes past the end of 'a0' \(516 bytes",
    ),
    Defect(
        "store_past_the_end",
        """
        v_mov_b32 v3, 1
        global_store_dword v1, v3, s[8:9] {mend}
        """,
        mend="offset:4",
        wrong="offset:8",
        says="writes 4 bytes at address .* bytes past the end of 'a0'",
    ),
    Defect(
        "tail_of_a_page",
        # Three pages of 43 rows; the tile of 64 rows runs past the last page.
        """
        {mend}
        v_add_u32 v5, 86, v6
        v_lshlrev_b32 v5, 2, v5
        global_load_dword v3, v5, s[8:9]
        """,
        mend="v_min_u32 v6, 42, v0",
        wrong="v_mov_b32 v6, v0",
        says=r"lane 43, .*0 bytes past the end of 'a0'",
    ),
    Defect(
        "buffer_offset_never_written",
        """
        s_mov_b32 s12, s8
        s_mov_b32 s13, s9
        s_mov_b32 s14, 516
        s_mov_b32 s15, 0x27000
        {mend}
        buffer_load_dword v3, v1, s[12:15], s20 offen
        """,
        mend="s_mov_b32 s20, 4",
        says="reads s20, which was never written",
    ),
    Defect(
        "halves_loaded_into_one_register",
        # Two loads into the halves may be under way at once; a whole one and a half may not.
        """
        v_mov_b32 v3, 0
        ds_store_b32 v1, v0
        s_wait_dscnt 0x0
        global_load_d16_hi_b16 v3, v1, s[8:9]
        {mend}
        """,
        mend="ds_load_u16_d16 v3, v1",
        wrong="ds_load_b32 v3, v1",
        says="loads into v3 while another load into it is still under way",
        target="gfx1201",
    ),
    Defect(
        "two_loads_into_one_register",
        """
        global_load_b32 v3, v1, s[8:9]
        {mend}
        global_load_b32 v3, v1, s[8:9] offset:4
        """,
        mend="s_wait_loadcnt 0x0",
        says="loads into v3 while another load into it is still under way",
        target="gfx1201",
    ),
    Defect(
        "loads_of_other_lanes_into_one_register",
        """
        v_mov_b32 v3, 0
        s_mov_b32 exec_lo, 0xff
        global_load_b32 v3, v1, s[8:9]
        s_mov_b32 exec_lo, {mend}
        global_load_b32 v3, v1, s[8:9] offset:4
        s_mov_b32 exec_lo, -1
        """,
        mend="0xff00",
        wrong="0xff80",
        says="loads into v3 while another load into it is still under way",
        target="gfx1201",
    ),
    Defect(
        "wrong_counter",
        """
        global_load_b32 v4, v1, s[8:9]
        {mend}
        v_add_nc_u32 v3, 1, v4
        """,
        mend="s_wait_loadcnt 0x0",
        wrong="s_wait_storecnt 0x0",
        says="reads v4 while its load is still under way",
        target="gfx1201",
    ),
    Defect(
        "kmcnt_wait_missing",
        """
        s_load_b32 s12, s[8:9], 0x0
        {mend}
        v_mov_b32 v3, s12
        """,
        mend="s_wait_kmcnt 0x0",
        wrong="s_wait_dscnt 0x0",
        says="reads s12 while its load is still under way",
        target="gfx1201",
    ),
]


planted = Planted(DEFECTS)


@pytest.mark.parametrize("defect", DEFECTS, ids=[defect.name for defect in DEFECTS])
def test_planted_defect_is_found(defect):
    with pytest.raises(emulator.EmulatorError, match=defect.says):
        planted.launch(defect, mended=False)


@pytest.mark.parametrize("defect", DEFECTS, ids=[defect.name for defect in DEFECTS])
@pytest.mark.parametrize("schedule", ["round_robin", "run_to_barrier", "reverse", "random"])
def test_mended_kernel_passes(defect, schedule):
    assert planted.launch(defect, mended=True, schedule=schedule).findings == []


@pytest.mark.parametrize("defect", DEFECTS[:6], ids=[defect.name for defect in DEFECTS[:6]])
def test_collect_lists_the_finding_and_goes_on(defect):
    findings = planted.launch(defect, mended=False, checks="collect").findings
    assert any(defect.says in finding for finding in findings)


def test_gfx950_writes_the_results_of_loads_in_order():
    body = """
    global_load_dword v3, v1, s[8:9]
    global_load_dword v3, v1, s[8:9] offset:4
    {mend}
    """
    defect = Defect("in_order", body, mend="", says="")
    assert Planted([defect]).launch(defect, mended=True).findings == []


def test_finding_says_where():
    defect = DEFECTS[0]
    with pytest.raises(emulator.EmulatorError) as raised:
        planted.launch(defect, mended=False)
    text = str(raised.value)
    for part in (
        "kernel vmem_wait_missing",
        "workgroup (0, 0, 0)",
        "wave 0",
        "pc 0x",
        "v_add_u32 v3, 1, v4",
    ):
        assert part in text


def test_result_without_its_wait_is_not_there_without_checks_either():
    start = """
    s_load_dwordx2 s[8:9], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    v_mov_b32 v3, 5
    s_waitcnt lgkmcnt(0)
    global_load_dword v3, v1, s[8:9]
    v_add_u32 v4, 1, v3
    s_waitcnt vmcnt(0)
    global_store_dword v1, v4, s[8:9]
    s_endpgm
    """
    array = np.full(64, 100, np.int32)
    code = emulator.CodeObject(assemble("gfx950", start))
    code.launch("kernel", 1, 64, args=[array], checks=False)
    np.testing.assert_array_equal(array, 6)
