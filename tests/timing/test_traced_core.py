"""What thread traces of real chips showed, on kernels of a few instructions: all of it modelled.

tests/timing/test_real_traces.py has the traces themselves.
"""

import itertools

import pytest
from timing_runs import CONSTANTS, WMMA, clk, issues, launch, launch_clk, marginal_clk

IU8 = "".join(
    f"v_wmma_i32_16x16x16_iu8 v[{64 + 8 * i}:{71 + 8 * i}], v[0:1], v[4:5], "
    f"v[{64 + 8 * i}:{71 + 8 * i}]\n"
    for i in range(4)
)
DRAIN = CONSTANTS["gfx1201"]["matrix_drain"]


def gaps(issued):
    return [after - before for (_, before), (_, after) in itertools.pairwise(issued)]


def of_two_waves(older, younger):
    """A body in which waves 0 and 4, of one SIMD of gfx1201, go different ways; others end."""
    return f"""
    v_readfirstlane_b32 s20, v0
    s_cmp_lt_u32 s20, 32
    s_cbranch_scc1 older
    s_cmp_eq_u32 s20, 128
    s_cbranch_scc1 younger
    s_endpgm
older:
{older}
    s_endpgm
younger:
{younger}
"""


# --- gfx1201: the queue of the vector unit -------------------------------------------------------
def test_eight_products_are_taken_at_once_then_one_for_each_that_ends():
    (wave,) = issues("gfx1201", WMMA * 3 + "s_nop 0\n")
    assert gaps(wave)[:7] == [1] * 7
    # The ninth when the first has ended, each later one when one more has; so do scalars behind.
    assert gaps(wave)[7:12] == [16 + DRAIN - 7, 16, 16, 16, 16]


def test_scalars_run_under_the_last_seven_products():
    scalars = "".join(f"s_add_co_i32 s{20 + i % 8}, s40, s41\n" for i in range(90))
    assert marginal_clk("gfx1201", WMMA * 2 + scalars) == pytest.approx(8 * 16, abs=1)
    # They begin when the last one has its place; more of them than fit are seen whole.
    over = marginal_clk("gfx1201", WMMA * 2 + scalars * 2)
    assert over == pytest.approx(180 + 16 + DRAIN, abs=1)


def test_no_vector_instruction_of_any_wave_beside_products():
    moves = "".join(f"v_mov_b32 v{20 + i % 8}, v30\n" for i in range(64))
    both = clk("gfx1201", of_two_waves(WMMA * 4, moves), waves=8)
    alone = clk("gfx1201", of_two_waves(WMMA * 4, ""), waves=8)
    assert both - alone == pytest.approx(64, abs=DRAIN + 2)


def test_the_older_wave_is_preferred():
    old, young = (issues("gfx1201", "v_mov_b32 v1, v2\n" * 40, waves=8)[wave] for wave in (0, 4))
    assert max(clk for _, clk in old[:-1]) < max(clk for _, clk in young[:-1]) - 30
    turns = issues("gfx1201", "v_mov_b32 v1, v2\n" * 40, waves=8, constants={"oldest_first": 0})
    ends = [max(clk for _, clk in turns[wave][:-1]) for wave in (0, 4)]
    assert abs(ends[0] - ends[1]) <= 8


@pytest.mark.parametrize(
    ("body", "count", "each"),
    [
        (WMMA, 4, 16),
        (IU8, 4, 8),
        (IU8.replace("iu8", "iu4").replace("v[0:1], v[4:5]", "v0, v4"), 4, 4),
        ("v_lshlrev_b64 v[2:3], 2, v[4:5]\n", 1, 2),
        ("v_mad_co_u64_u32 v[2:3], null, v4, v5, v[6:7]\n", 1, 4),
        ("v_s_exp_f32 s20, s21\nv_s_rcp_f32 s22, s23\n", 2, 1),
        ("v_exp_f32 v2, v3\n", 1, 4),
    ],
    ids=["f16", "iu8", "iu4", "64-bit shift", "64-bit multiply", "scalar", "transcendental"],
)
def test_rates(body, count, each):
    assert marginal_clk("gfx1201", body) == count * each


# --- gfx1201: what waits for the wave's own instructions before it -------------------------------
def step(target, first, second, **options):
    """Clocks from the issue of one instruction to that of the next; v1 holds addresses of LDS."""
    idle = "s_nop 15\n" * 2
    (wave,) = issues(
        target, f"v_lshlrev_b32 v1, 2, v0\n{idle}{first}\n{second}\n", lds_bytes=1024, **options
    )
    return gaps(wave)[-2]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("v_mov_b32 v9, 0", "ds_load_b32 v2, v1", 17),
        ("v_mov_b32 v9, 0", "ds_store_b32 v1, v2", 17),
        ("v_mov_b32 v9, 0", "s_load_b64 s[6:7], s[0:1], 0x0", 1),
        ("s_mov_b32 s20, 0", "s_load_b64 s[6:7], s[0:1], 0x0", 9),
        ("s_add_co_i32 s20, s20, 1", "s_cmp_eq_u32 s20, 0", 1),
        ("s_add_co_i32 s20, s20, 1", "v_mov_b32 v9, s20", 9),
        ("v_mov_b32 v9, 0", "s_mov_b32 s20, exec_lo", 7),
        ("v_mov_b32 v9, 0", "s_mov_b32 s20, s21", 1),
        ("v_cmpx_eq_u32 0, v0", "s_cbranch_execz 0", 17),
    ],
)
def test_steps_of_gfx1201(first, second, expected):
    assert step("gfx1201", first, second) == expected


@pytest.mark.parametrize(
    ("before", "field", "expected"),
    [
        ("s_mov_b32 s20, 0", "depctr_sa_sdst(0)", 9),
        ("v_cmp_eq_u32 vcc_lo, v0, v1", "depctr_va_vcc(0)", 17),
        ("v_cmp_eq_u32 vcc_lo, v0, v1", "depctr_sa_sdst(0)", 2),
    ],
)
def test_a_wait_for_the_units_is_counted_from_what_it_waits_for(before, field, expected):
    (wave,) = issues("gfx1201", f"{before}\ns_wait_alu {field}\ns_mov_b32 s30, s31\n")
    assert wave[2][1] - wave[0][1] == expected


# --- gfx950 --------------------------------------------------------------------------------------
def test_an_address_from_the_vector_unit_takes_three_slots():
    assert step("gfx950", "v_mov_b32 v1, 0", "ds_read_b32 v2, v1") == 12
    assert step("gfx950", "v_mov_b32 v9, 0", "ds_read_b32 v2, v1") == 4


# --- both ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", CONSTANTS)
def test_a_wave_ends_when_its_stores_have(target):
    load = {"gfx950": "s_load_dwordx2", "gfx1201": "s_load_b64"}[target]
    store = {"gfx950": "global_store_dword", "gfx1201": "global_store_b32"}[target]
    wait = {"gfx950": "s_waitcnt lgkmcnt(0)", "gfx1201": "s_wait_kmcnt 0x0"}[target]
    (wave,) = issues(target, f"{load} s[6:7], s[0:1], 0x0\n{wait}\n{store} v0, v1, s[6:7]\n")
    assert gaps(wave)[-1] == pytest.approx(CONSTANTS[target]["store_done"], abs=4)


def test_a_busy_way_back_from_lds_delays_its_own_simd_alone():
    # Wave 0 of gfx1201 has 64 reads on their way back when wave 1, of another SIMD, reads once.
    read = "ds_load_b128 v[8:11], v1\n"
    body = """
    v_lshlrev_b32 v1, 4, v0
    v_readfirstlane_b32 s20, v0
    s_cmp_lt_u32 s20, 32
    s_cbranch_scc0 other
{many}
    s_endpgm
other:
    s_nop 15
    s_nop 15
{one}
    s_wait_dscnt 0x0
"""
    both = issues("gfx1201", body.format(many=read * 30, one=read), waves=2, lds_bytes=4096)[1]
    alone = issues("gfx1201", body.format(many="", one=read), waves=2, lds_bytes=4096)[1]
    # 30 reads of four passes are 120 clk of the banks and 480 of the way back.
    late = both[-1][1] - alone[-1][1]
    assert 0 <= late <= 120


def test_lanes_that_are_off_take_nothing_on_the_way_back():
    read = "ds_load_b128 v[8:11], v1\n" * 32 + "s_wait_dscnt 0x0\n"
    whole, one = (
        clk("gfx1201", f"v_lshlrev_b32 v1, 4, v0\n{mask}\n{read}", lds_bytes=4096)
        for mask in ("s_nop 0", "s_mov_b32 exec_lo, 1")
    )
    assert whole == pytest.approx(32 * 16, abs=100)  # 32 bytes a clk
    assert one == pytest.approx(32 * 4, abs=100)  # passes of the banks


def test_a_hit_on_a_line_under_way_waits_for_it():
    body = "s_load_dwordx2 s[6:7], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n"
    body += "v_mov_b32 v1, 0\nglobal_load_dword v1, v1, s[6:7]\ns_waitcnt vmcnt(0)\n"
    first, second = issues("gfx950", body, waves=2)  # of two SIMDs, both on the one line
    assert abs(second[-1][1] - first[-1][1]) <= 16


def test_workgroups_that_share_a_unit_read_lines_of_their_own():
    body = "s_load_dwordx2 s[6:7], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n"
    trace = launch("gfx950", body + "global_load_dword v1, v0, s[6:7]\n").trace
    alone, shared = (trace.time(0, resident, {})[4] for resident in (1, 4))
    assert alone == shared == 128


@pytest.mark.parametrize("target", CONSTANTS)
def test_a_launch_begins_with_cold_caches(target):
    done = launch(target, "s_nop 0\n", workgroups=None)
    warm = clk(target, "s_nop 0\n") + CONSTANTS[target]["group_start"]
    assert done.cycles == warm + launch_clk(target)
