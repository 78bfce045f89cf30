"""LDS, barriers, loads to LDS: a planted defect is caught by each check, a mended one passes."""

import pytest
from planted import Defect, Planted

from jax_fa import emulator

DEFECTS = [
    Defect(
        "barrier_missing",
        """
        ds_write_b32 v1, v0
        s_waitcnt lgkmcnt(0)
        {mend}
        v_xor_b32 v5, 0x100, v1
        ds_read_b32 v3, v5
        """,
        mend="s_barrier",
        says="(wrote with no barrier|was never written)",
    ),
    Defect(
        "wait_before_barrier_missing",
        """
        ds_write_b32 v1, v0
        {mend}
        s_barrier
        v_xor_b32 v5, 0x100, v1
        ds_read_b32 v3, v5
        """,
        mend="s_waitcnt lgkmcnt(0)",
        says="wrote with no barrier",
    ),
    Defect(
        "write_after_read_without_barrier",
        """
        ds_write_b32 v1, v0
        s_waitcnt lgkmcnt(0)
        s_barrier
        v_xor_b32 v5, 0x100, v1
        ds_read_b32 v3, v5
        s_waitcnt lgkmcnt(0)
        {mend}
        ds_write_b32 v1, v2
        """,
        mend="s_barrier",
        says="(reads|wrote) with no barrier",
    ),
    Defect(
        "read_not_waited_for_before_the_barrier",
        """
        ds_write_b32 v1, v0
        s_waitcnt lgkmcnt(0)
        s_barrier
        v_xor_b32 v5, 0x100, v1
        ds_read_b32 v3, v5
        {mend}
        s_barrier
        ds_write_b32 v1, v2
        """,
        mend="s_waitcnt lgkmcnt(0)",
        says="which wave . reads with no wait before the barrier in between",
    ),
    Defect(
        "write_over_a_read_under_way_at_the_barrier",
        # Each wave has two reads, of which one had come when it reached the barrier.
        """
        ds_write_b32 v1, v0
        ds_write_b32 v1, v0 offset:512
        s_waitcnt lgkmcnt(0)
        s_barrier
        v_xor_b32 v5, 0x100, v1
        ds_read_b32 v4, v5
        ds_read_b32 v3, v5 offset:512
        s_waitcnt lgkmcnt(1)
        s_barrier
        ds_write_b32 v1, v2 offset:{mend}
        """,
        mend="0",
        wrong="512",
        says="which wave . reads with no wait before the barrier in between",
    ),
    Defect(
        "write_over_a_pair_of_reads_under_way_two_barriers_ago",
        """
        ds_write_b32 v1, v0
        ds_write_b32 v1, v0 offset:512
        s_waitcnt lgkmcnt(0)
        s_barrier
        v_xor_b32 v5, 0x100, v1
        ds_read_b32 v3, v5
        ds_read2st64_b32 v[4:5], v5 offset0:0 offset1:2
        s_barrier
        {mend}
        s_barrier
        ds_write_b32 v1, v2 offset:512
        """,
        mend="s_waitcnt lgkmcnt(0)",
        wrong="s_waitcnt lgkmcnt(1)",
        says="which wave . reads with no wait before the barrier in between",
    ),
    Defect(
        "barrier_in_one_wave_only",
        """
        v_mov_b32 v3, v0
        v_readfirstlane_b32 s12, v2
        s_cmp_eq_u32 s12, {mend}
        s_cbranch_scc1 .Lskip
        s_barrier
        .Lskip:
        """,
        mend="2",
        wrong="1",
        says="(has ended without reaching this barrier|while others wait at a barrier)",
    ),
    Defect(
        "lds_never_written",
        """
        {mend}
        ds_read_b32 v3, v1
        """,
        mend="ds_write_b32 v1, v0",
        says="reads LDS byte 0, which was never written",
    ),
    Defect(
        "lds_dma_read_before_its_wait",
        """
        s_mov_b32 m0, 0
        v_readfirstlane_b32 s12, v2
        s_lshl_b32 s12, s12, 8
        s_mov_b32 m0, s12
        s_nop 0
        global_load_lds_dword v1, s[8:9]
        {mend}
        ds_read_b32 v3, v1
        """,
        mend="s_waitcnt vmcnt(0)",
        says="while a load to LDS of wave 0 into it is still under way",
    ),
    Defect(
        "lds_dma_without_barrier",
        """
        v_readfirstlane_b32 s12, v2
        s_lshl_b32 s12, s12, 8
        s_mov_b32 m0, s12
        s_nop 0
        global_load_lds_dword v1, s[8:9]
        s_waitcnt vmcnt(0)
        {mend}
        v_xor_b32 v5, 0x100, v1
        ds_read_b32 v3, v5
        """,
        mend="s_barrier",
        says="(wrote with no barrier|was never written)",
    ),
    Defect(
        "two_waves_load_one_place",
        # The same bytes are no race.
        """
        s_mov_b32 m0, 0
        {mend}
        s_nop 0
        global_load_lds_dword v5, s[8:9]
        s_waitcnt vmcnt(0)
        s_barrier
        v_and_b32 v5, 0xff, v1
        ds_read_b32 v3, v5
        """,
        mend="v_and_b32 v5, 0xff, v1",
        wrong="v_mov_b32 v5, v1",
        says="(wrote with no barrier|while a load to LDS of wave . into it is still under way)",
    ),
    Defect(
        "m0_of_the_load_before",
        """
        v_readfirstlane_b32 s12, v2
        s_lshl_b32 s12, s12, 9
        s_mov_b32 m0, s12
        s_nop 0
        global_load_lds_dword v1, s[8:9]
        {mend}
        s_nop 0
        global_load_lds_dword v1, s[8:9]
        s_waitcnt vmcnt(0)
        v_lshlrev_b32 v5, 2, v0
        v_and_b32 v5, 0xff, v5
        v_add_u32 v5, s12, v5
        ds_read_b32 v3, v5
        """,
        mend="s_add_u32 m0, s12, 0x100",
        says="while a load to LDS of wave 0 into it is still under way",
    ),
    Defect(
        "m0_never_written",
        """
        v_readfirstlane_b32 s12, v2
        s_cmp_eq_u32 s12, 0
        s_cbranch_scc0 .Lskip
        {mend}
        s_nop 0
        global_load_lds_dword v1, s[8:9]
        .Lskip:
        v_mov_b32 v3, 0
        """,
        mend="s_mov_b32 m0, 0",
        says="reads m0, which was never written",
    ),
    Defect(
        "lds_dma_before_the_read_of_another_wave",
        """
        ds_write_b32 v1, v0
        v_readfirstlane_b32 s12, v2
        s_lshl_b32 s12, s12, 8
        s_mov_b32 m0, s12
        s_waitcnt lgkmcnt(0)
        s_barrier
        v_xor_b32 v5, 0x100, v1
        ds_read_b32 v3, v5
        s_waitcnt lgkmcnt(0)
        {mend}
        global_load_lds_dword v1, s[8:9]
        """,
        mend="s_barrier",
        says="((reads|wrote) with no barrier|a load to LDS of wave . into it is still under way)",
    ),
    Defect(
        "two_waves_write_one_place",
        # The same value is no race: it does not matter who comes last.
        """
        v_mov_b32 v4, {mend}
        v_mov_b32 v5, 64
        ds_write_b32 v5, v4
        v_mov_b32 v3, 0
        """,
        mend="7",
        wrong="v2",
        says="writes LDS byte 64, which wave . wrote with no barrier",
    ),
    Defect(
        "atomic_sum_read_without_barrier",
        """
        v_mov_b32 v4, 0
        v_mov_b32 v5, 64
        ds_write_b32 v5, v4
        s_waitcnt lgkmcnt(0)
        s_barrier
        ds_add_u32 v5, v0
        s_waitcnt lgkmcnt(0)
        {mend}
        ds_read_b32 v3, v5
        """,
        mend="s_barrier",
        says="LDS byte 64, which wave . (reads|wrote) with no barrier",
    ),
    Defect(
        "split_barrier_wait_missing",
        """
        ds_store_b32 v1, v0
        s_wait_dscnt 0x0
        s_barrier_signal -1
        {mend}
        v_xor_b32 v5, 0x80, v1
        ds_load_b32 v3, v5
        """,
        mend="s_barrier_wait -1",
        says="(wrote with no barrier|was never written)",
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
