"""What a timed launch reports: memory, barriers, conflicts, shares, traces; all of it modelled."""

import dataclasses
import itertools

import pytest
from assemble import assemble
from cases import KERNEL_TARGETS
from timing_runs import SHORT, START, WMMA, clk, launch, launch_clk, marginal_clk

from jax_fa import _native, emulator
from jax_fa.emulator import timing as _timing
from jax_fa.emulator.listing import listing

PRODUCT = {"gfx950": SHORT, "gfx1201": WMMA}


def test_lds_reads_of_all_waves_share_the_banks():
    # Four passes each; one wave is held by what comes back to its SIMD, eight by the banks.
    body = "v_lshlrev_b32 v1, 4, v0\n" + "ds_read_b128 v[8:11], v1\n" * 64
    body += "s_waitcnt lgkmcnt(0)\n"
    one, eight = (
        clk("gfx950", body, waves=waves, lds_bytes=16384, constants={"lds_return": 128})
        for waves in (1, 8)
    )
    assert one == pytest.approx(64 * 8, abs=100)
    assert eight == pytest.approx(64 * 8 * 4, abs=100)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_bank_conflicts(target):
    banks, lanes = {"gfx950": (64, 64), "gfx1201": (32, 32)}[target]
    name = {"gfx950": "ds_read_b32", "gfx1201": "ds_load_b32"}[target]

    def conflicts(stride_dwords):
        body = f"v_mul_u32_u24 v1, {4 * stride_dwords}, v0\n{name} v2, v1\n" * 3
        return launch(target, body, lds_bytes=65536).bank_conflicts

    assert conflicts(1) == 0
    assert conflicts(0) == 0  # one dword for all
    assert conflicts(2) == 3
    assert conflicts(banks) == 3 * (lanes - 1)

    wait = {"gfx950": "s_waitcnt lgkmcnt(0)\n", "gfx1201": "s_wait_dscnt 0x0\n"}[target]
    one, many = (
        f"v_mul_u32_u24 v1, {4 * stride}, v0\n" + f"{name} v2, v1\n" * 64 + wait
        for stride in (1, banks)
    )
    patterns = launch(target, one + many + one, lds_bytes=65536)
    assert patterns.bank_conflicts == 64 * (lanes - 1)
    # A pass takes a clk.
    spent, free = (
        clk(target, body, lds_bytes=65536, constants={"lds_return": 1e9}) for body in (many, one)
    )
    lost = spent - free
    assert lost == pytest.approx(64 * (lanes - 1), rel=0.1)


def test_bank_conflicts_of_wide_reads_by_the_measured_lane_groups():
    # 16 lanes of one pass: 16-byte pieces at a pitch of 1024 B hit the same four banks.
    def conflicts(pitch):
        body = f"v_mul_u32_u24 v1, {pitch}, v0\nds_read_b128 v[4:7], v1\n"
        return launch("gfx950", body, lds_bytes=65536 + 32768).bank_conflicts

    assert conflicts(16) == 0
    assert conflicts(1024) == 4 * 15
    assert conflicts(1040) == 0
    # Lanes 4 and 16 are of one pass, lanes 16 and 20 are not.
    pair = """
    v_lshlrev_b32 v1, 4, v0
    v_mov_b32 v2, 0
    v_mov_b32 v3, 64
    v_cmp_eq_u32 vcc, 16, v0
    v_cndmask_b32 v2, v2, v3, vcc
    v_add_u32 v1, v1, v2
    ds_read_b128 v[4:7], v1
"""
    assert launch("gfx950", pair, lds_bytes=2048).bank_conflicts == 1


def test_a_barrier_waits_for_the_last_wave():
    late = (
        """
    v_readfirstlane_b32 s20, v0
    s_cmp_lt_u32 s20, 64
    s_cbranch_scc0 join
"""
        + "s_nop 15\n" * 100
        + "join:\ns_barrier\n"
    )
    spent, free = (
        clk("gfx950", late, waves=8, constants=constants) for constants in ({}, {"barrier": 0})
    )
    assert free == pytest.approx(100 * 64, abs=80)
    assert spent - free == pytest.approx(46, abs=4)


def test_a_wait_takes_the_latency():
    load = "global_load_dword v1, v0, s[6:7]\ns_waitcnt vmcnt(0)\n"
    body = "s_load_dwordx2 s[6:7], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n"
    first = clk("gfx950", body + load) - clk("gfx950", body)
    again = clk("gfx950", body + load * 2) - clk("gfx950", body + load)
    assert 291 <= first <= 320  # L2
    assert 150 <= again <= 165  # L1


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_cycles_and_busy_of_a_launch(target):
    body = PRODUCT[target] * 50
    per_clk = {"gfx950": 1024, "gfx1201": 512}[target]
    flops = 0.25 * 200 * 16 * per_clk * 4 * 3
    done = launch(target, body, waves=4, grid=3, workgroups=None, useful_flops=flops)
    assert done.cycles is not None
    assert done.matrix_busy is not None
    first = START[target] + launch_clk(target)
    assert first + 3200 <= done.cycles <= first + 3300
    simds = {"gfx950": 1024, "gfx1201": 128}[target]
    assert done.matrix_busy == pytest.approx(3 * 4 * 3200 / simds / done.cycles)
    assert done.useful_busy == pytest.approx(0.25 * done.matrix_busy)
    assert done.trace is None
    # A grid that fills the chip twice takes twice as long, but for the caches.
    units = {"gfx950": 256, "gfx1201": 32}[target]
    limit = {"gfx950": 2, "gfx1201": 5}[target]  # workgroups that fit on a unit
    once, twice = (
        launch(target, body, waves=4, grid=units * limit * rounds, workgroups=None).cycles
        for rounds in (1, 2)
    )
    assert once is not None
    assert twice is not None
    assert twice - launch_clk(target) == pytest.approx(2 * (once - launch_clk(target)))


def test_the_clock_by_energy():
    # A stream of either size on every SIMD runs at the clock that it was measured at; where the
    # matrix core stands still for half of the time, 0.55 of that comes back as clock.
    def clock_hz(busy, long):
        group = (0, 1e6, 4 * busy * 1e6, 4 * long * busy * 1e6, 0.0, 1e6)
        groups = [(place, *group[1:]) for place in range(256)]
        constants = {"clock_by_energy": 1.0}
        return _native.time_grid("gfx950", 4, 1, groups, 0.0, 0.0, constants)["clock_hz"]

    assert clock_hz(1, 0) == pytest.approx(1893e6)
    assert clock_hz(1, 1) == pytest.approx(1699e6, rel=0.01)
    assert clock_hz(0.8, 0) == pytest.approx(1893e6 * 0.8**-0.55)
    assert clock_hz(0.1, 0) == 2400e6


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_a_last_round_that_is_not_full_is_spread_over_the_units(target):
    body = PRODUCT[target] * 50
    units = {"gfx950": 256, "gfx1201": 32}[target]
    limit = {"gfx950": 2, "gfx1201": 5}[target]  # workgroups that fit on a unit
    alone = launch(target, body, waves=4, grid=units, workgroups=None).cycles
    full, more = (
        launch(target, body, waves=4, grid=units * limit + rest, workgroups=None).cycles
        for rest in (0, units)
    )
    assert alone is not None
    assert full is not None
    assert more is not None
    assert more - full == pytest.approx(alone - launch_clk(target))


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_without_timing_nothing_is_modelled(target):
    done = launch(target, "s_nop 0", timing=False, workgroups=None)
    assert done.cycles is done.matrix_busy is done.useful_busy is done.trace is None


def test_only_the_named_workgroups_run():
    body = "v_mov_b32 v1, 1\nglobal_store_dword v0, v1, s[6:7]\n"
    counts = launch("gfx950", body.replace("global", "s_nop 0 ;"), grid=9, workgroups=[7, 2])
    assert counts.trace.groups == [2, 7]
    assert counts.counts["mnemonic"]["v_mov_b32"] == 2
    assert counts.cycles is None


def test_constants_have_a_source_and_can_be_changed():
    for target in KERNEL_TARGETS:
        table = _timing.constants(target)
        assert len({row.name for row in table}) == len(table)
        for row in table:
            assert row.source
            assert row.confidence in "ABLC"
    assert marginal_clk("gfx950", SHORT, constants={"matrix_short": 32}) == 4 * 32


def test_sensitivity():
    trace = launch("gfx950", SHORT * 100).trace
    changes = {row.name: change for row, *change in _timing.sensitivity(trace, 1)}
    halved, doubled = changes["matrix_short"]
    assert doubled == pytest.approx(400 * 16 / (400 * 16 + START["gfx950"]), rel=0.01)
    assert halved < -0.4
    assert "barrier" not in changes


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_chrome_trace(target):
    body = PRODUCT[target] + "v_exp_f32 v1, v2\nv_mul_f32 v3, v4, v5\n"
    done = launch(target, body * 3, waves=8)
    events = emulator.chrome_trace(done)["traceEvents"]
    assert "kernel, workgroup 0" in str(events[0])
    slices = [event for event in events if event["ph"] == "X"]
    assert {event["tid"] for event in slices} == set(range(8))
    assert {"matrix", "vector", "transcendental"} <= {event["name"] for event in slices}
    for wave in range(8):
        own = [event for event in slices if event["tid"] == wave]
        for before, after in itertools.pairwise(own):  # a track: no two at a time
            assert before["ts"] + before["dur"] <= after["ts"] + 1e-9
        assert sum(event["args"]["instructions"] for event in own) == 3 * 6 + 1


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"timing": False, "workgroups": None, "useful_flops": 1.0}, ValueError, "useful_flops"),
        ({"workgroups": []}, ValueError, "workgroups"),
        ({"workgroups": [0, 0]}, ValueError, "workgroups"),
        ({"workgroups": [-1]}, ValueError, "workgroups"),
        ({"workgroups": [3]}, emulator.EmulatorError, "no workgroup 3"),
    ],
)
def test_bad_options(options, error, text):
    with pytest.raises(error, match=text):
        launch("gfx950", "s_nop 0", grid=3, **options)


def test_chrome_trace_of_what_was_not_kept():
    with pytest.raises(ValueError, match="keeps no trace"):
        emulator.chrome_trace(launch("gfx950", "s_nop 0", workgroups=None))
    with pytest.raises(ValueError, match=r"one of \[0\]; got 1"):
        emulator.chrome_trace(launch("gfx950", "s_nop 0", grid=2), 1)


def test_bad_constants():
    trace = launch("gfx950", "s_nop 0").trace
    with pytest.raises(emulator.EmulatorError, match="'speed'"):
        trace.time(0, 1, {"speed": 2.0})
    with pytest.raises(emulator.EmulatorError, match="barrier must not be negative"):
        trace.time(0, 1, {"barrier": -1.0})


def test_listing_is_of_the_kernel():
    code = emulator.CodeObject(assemble("gfx950", SHORT + "s_endpgm", vgprs=256))
    assert [dataclasses.astuple(i)[1] for i in listing(code, "kernel")][:4] == [
        "v_mfma_f32_16x16x32_bf16"
    ] * 4


@pytest.mark.parametrize(
    "options", [{"schedule": "reverse"}, {"schedule": "random"}, {"threads": 1}]
)
def test_time_depends_on_neither_schedule_nor_threads(options):
    body = "v_lshlrev_b32 v1, 4, v0\n" + (SHORT + "ds_read_b128 v[8:11], v1\ns_barrier\n") * 20
    usual, other = (
        launch("gfx950", body, waves=8, grid=40, workgroups=None, lds_bytes=16384, **chosen).cycles
        for chosen in ({}, options)
    )
    assert other == usual
