"""When results of loads land: a missing wait is right as long as they come early, and only then."""

import functools
from typing import get_args

import numpy as np
import pytest
from assemble import assemble_kernels
from planted import GFX950_START, GFX1201_START

from jax_fa import _native, emulator

ARRIVALS = get_args(emulator.Arrival)
OLD = 5
STORE = {
    "gfx950": "s_waitcnt vmcnt(0) lgkmcnt(0)\nglobal_store_dword v1, v4, s[8:9]\ns_endpgm",
    "gfx1201": "s_wait_loadcnt_dscnt 0x0\ns_wait_kmcnt 0x0\nglobal_store_b32 v1, v4, s[8:9]\n"
    "s_endpgm",
}
# What loads 100 where 5 was, and the wait before it is used.
LOADS = {
    "gfx950": {
        "memory": (
            "v_mov_b32 v3, 5\nglobal_load_dword v3, v1, s[8:9]\n{wait}\nv_mov_b32 v4, v3",
            "s_waitcnt vmcnt(0)",
        ),
        "lds": (
            "v_mov_b32 v3, 5\nv_mov_b32 v2, 0x64\nds_write_b32 v1, v2\nds_read_b32 v3, v1\n{wait}\n"
            "v_mov_b32 v4, v3",
            "s_waitcnt lgkmcnt(0)",
        ),
        "scalar": (
            "s_mov_b32 s12, 5\ns_load_dword s12, s[8:9], 0x0\n{wait}\nv_mov_b32 v4, s12",
            "s_waitcnt lgkmcnt(0)",
        ),
        "to_lds": (
            "v_mov_b32 v2, 5\nds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\ns_mov_b32 m0, 0\ns_nop 0\n"
            "global_load_lds_dword v1, s[8:9]\n{wait}\nds_read_b32 v4, v1",
            "s_waitcnt vmcnt(0)",
        ),
        "half": (
            "v_mov_b32 v3, 5\nglobal_load_short_d16 v3, v1, s[8:9]\n{wait}\nv_mov_b32 v4, v3",
            "s_waitcnt vmcnt(0)",
        ),
    },
    "gfx1201": {
        "memory": (
            "v_mov_b32 v3, 5\nglobal_load_b32 v3, v1, s[8:9]\n{wait}\nv_mov_b32 v4, v3",
            "s_wait_loadcnt 0x0",
        ),
    },
}
CASES = [(target, name) for target, loads in LOADS.items() for name in loads]


@functools.cache
def _code(target: str) -> emulator.CodeObject:
    start = {"gfx950": GFX950_START, "gfx1201": GFX1201_START}[target]
    bodies = {}
    for name, (body, wait) in LOADS[target].items():
        bodies[name] = start + body.format(wait="") + "\n" + STORE[target]
        bodies[f"{name}_mended"] = start + body.format(wait=wait) + "\n" + STORE[target]
    load = {"gfx950": "global_load_dword", "gfx1201": "global_load_b32"}[target]
    bodies["overwritten"] = start + (f"{load} v4, v1, s[8:9]\nv_mov_b32 v4, 7\n" + STORE[target])
    bodies["twice"] = start + (
        f"{load} v4, v1, s[8:9]\n{load} v4, v1, s[8:9] offset:256\n" + STORE[target]
    )
    return emulator.CodeObject(assemble_kernels(target, bodies, lds_bytes=1024))


def _run(target: str, name: str, checks: bool = False, **options) -> set[int]:
    lanes = {"gfx950": 64, "gfx1201": 32}[target]
    array = np.full(128, 100, np.int32)
    array[64:] = 200
    _code(target).launch(name, 1, lanes, args=[array], checks=checks, **options)
    return set(array[:lanes].tolist())


@pytest.mark.parametrize(("target", "name"), CASES)
def test_missing_wait(target, name):
    assert _run(target, name, arrival="early") == {100}
    assert _run(target, name, arrival="late") == {OLD}
    assert _run(target, name) == {OLD}
    seen = [_run(target, name, arrival="random", seed=seed) for seed in range(24)]
    assert {100} in seen
    assert {OLD} in seen
    assert seen == [_run(target, name, arrival="random", seed=seed) for seed in range(24)]


@pytest.mark.parametrize(("target", "name"), CASES)
@pytest.mark.parametrize("arrival", ARRIVALS)
def test_missing_wait_is_found_under_each(target, name, arrival):
    with pytest.raises(emulator.EmulatorError, match="still under way"):
        _run(target, name, checks=True, arrival=arrival)


@pytest.mark.parametrize(("target", "name"), CASES)
@pytest.mark.parametrize("arrival", ARRIVALS)
def test_mended_kernel_is_right_under_each(target, name, arrival):
    for seed in range(8):
        assert _run(target, f"{name}_mended", checks=True, arrival=arrival, seed=seed) == {100}


@pytest.mark.parametrize("target", sorted(LOADS))
def test_what_was_written_over_a_result_stays(target):
    assert _run(target, "overwritten", arrival="early") == {7}
    assert _run(target, "overwritten", arrival="late") == {100}


def test_loads_overtake_each_other_on_gfx1201_alone():
    for target, may in (("gfx950", [{200}]), ("gfx1201", [{100}, {200}])):
        assert _run(target, "twice", arrival="late") == {200}
        assert _run(target, "twice", arrival="early") == {200}
        seen = [_run(target, "twice", arrival="random", seed=seed) for seed in range(32)]
        assert [values for values in may if values in seen] == may
        assert all(values in may for values in seen)


@pytest.mark.parametrize("name", ["loads", "Late", None])
def test_unknown_arrival_is_refused(name):
    with pytest.raises(ValueError, match="arrival must be one of 'late', 'early', 'random'"):
        _run("gfx950", "memory", arrival=name)
    if name is not None:  # the setting stays as it is
        with pytest.raises(ValueError, match="arrival must be"), emulator.configure(arrival=name):
            pass


def test_configure():
    with emulator.configure(arrival="early"), emulator.configure(seed=1):
        assert _native.emulator_settings()["arrival"] == "early"
    assert _native.emulator_settings()["arrival"] == "late"
