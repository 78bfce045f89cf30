"""A wave followed instruction by instruction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assemble import WAVE_SIZE, assemble
from kernel_runs import KERNEL_TARGETS

from jax_fa import emulator, flash_attention

# out[lane] = 2 in[lane]; the load's result is in v2.
DOUBLE = {
    "gfx950": """
s_load_dwordx4 s[8:11], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
s_waitcnt lgkmcnt(0)
global_load_dword v2, v1, s[8:9]
v_mov_b32 v3, 0
s_waitcnt vmcnt(0)
v_add_u32 v2, v2, v2
v_cmp_eq_u32 vcc, 0, v2
global_store_dword v1, v2, s[10:11]
s_endpgm
""",
    "gfx1201": """
s_load_b128 s[8:11], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
s_wait_kmcnt 0x0
global_load_b32 v2, v1, s[8:9]
v_mov_b32 v3, 0
s_wait_loadcnt 0x0
v_add_nc_u32 v2, v2, v2
v_cmp_eq_u32 vcc_lo, 0, v2
global_store_b32 v1, v2, s[10:11]
s_endpgm
""",
}


@pytest.fixture(scope="module", params=KERNEL_TARGETS)
def double(request):
    return emulator.CodeObject(assemble(request.param, DOUBLE[request.param], ("pointer",) * 2))


def run(code, groups=1, waves=1, **options):
    lanes = WAVE_SIZE[code.target]
    source = np.arange(lanes, dtype=np.uint32)
    out = np.zeros(lanes, np.uint32)
    launch = code.launch("kernel", groups, lanes * waves, [source, out], **options)
    return launch, source


def written(launch, mnemonic):
    return next(dict(s.written) for s in launch.steps if s.text.startswith(mnemonic))


def test_each_instruction_and_what_it_wrote(double):
    launch, source = run(double, follow=(0, 0))
    assert len(launch.steps) == launch.wave_instructions == 10
    assert [step.pc for step in launch.steps] == sorted(step.pc for step in launch.steps)
    np.testing.assert_array_equal(written(launch, "v_lshlrev_b32")["v1"], 4 * source)
    np.testing.assert_array_equal(written(launch, "v_add")["v2"], 2 * source)
    assert written(launch, "v_cmp_eq_u32")["vcc_lo"] == [1]
    assert written(launch, "global_store") == {}
    assert all(step.clock is None for step in launch.steps)


@pytest.mark.parametrize("checks", [True, False])
def test_a_load_is_seen_where_it_arrives(double, checks):
    late, source = run(double, follow=(0, 0), checks=checks)
    assert written(late, "global_load") == {}
    assert late.steps is not None
    waits = [s.written for s in late.steps if s.text.startswith(("s_waitcnt", "s_wait_loadcnt"))]
    np.testing.assert_array_equal(waits[-1]["v2"], source)
    early, _ = run(double, follow=(0, 0), checks=checks, arrival="early")
    np.testing.assert_array_equal(written(early, "global_load")["v2"], source)


def test_a_register_written_with_what_it_holds_is_listed(double):
    code = emulator.CodeObject(
        assemble(double.target, "v_mov_b32 v3, 0\nv_mov_b32 v3, 0\ns_endpgm", ())
    )
    steps = code.launch("kernel", 1, WAVE_SIZE[double.target], [], follow=(0, 0)).steps
    assert steps is not None
    assert [list(step.written) for step in steps] == [["v3"], ["v3"], []]


@pytest.mark.parametrize("workgroups", [None, [1, 3]])
def test_clocks_are_those_of_the_timing_model(double, workgroups):
    launch, _ = run(double, groups=4, follow=(3, 0), timing=True, workgroups=workgroups)
    clocks = [step.clock for step in launch.steps]
    assert clocks == sorted(clocks)
    assert clocks[0] < clocks[-1]
    place = launch.trace.groups.index(3)
    assert clocks == [clk for _, _, clk in launch.trace.issues(place, 1, False, {})]
    assert (launch.cycles is None) == (workgroups is not None)


def test_the_table(double):
    launch, _ = run(double, follow=(0, 0), timing=True)
    lines = str(launch.steps).splitlines()
    assert len(lines) == len(launch.steps)
    assert lines[1].split()[:3] == [
        hex(launch.steps[1].pc),
        f"{launch.steps[1].clock:.0f}",
        "v_lshlrev_b32",
    ]
    assert "v1 = [0x0 0x4 0x8 0xc ...]" in lines[1]
    assert str(launch.steps[1:3]) == "\n".join(lines[1:3])


def test_nothing_is_kept_of_waves_that_are_not_followed(double):
    launch, _ = run(double)
    assert launch.steps is None
    assert launch.trace is None


def test_waves_that_do_not_run(double):
    for follow in ((1, 0), (0, 1)):
        with pytest.raises(
            emulator.EmulatorError, match=f"no wave {follow[1]} of workgroup {follow[0]}"
        ):
            run(double, follow=follow)
    with pytest.raises(emulator.EmulatorError, match="no wave 0 of workgroup 2"):
        run(double, groups=4, follow=(2, 0), workgroups=[1])
    for follow in (3, (1,), (0, "a"), (0.5, 0)):
        with pytest.raises(ValueError, match=r"follow must be \(workgroup, wave\)"):
            run(double, follow=follow)
    with pytest.raises(ValueError, match=r"follow\[0\] must be an integer from 0"):
        run(double, follow=(-1, 0))


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_a_wave_of_emulated_calls(target):
    x = jnp.ones((1, 64, 1, 64), jnp.bfloat16)
    with emulator.configure(follow=(0, 1)), emulator.record() as launches:
        jax.block_until_ready(flash_attention(x, x, x, implementation=target))
    with emulator.configure(follow=(10**6, 0)), emulator.record() as others:
        jax.block_until_ready(flash_attention(x, x, x, implementation=target))
    assert launches[0].steps is not None
    assert launches[0].steps[-1].text == "s_endpgm"
    assert others[0].steps is None
