"""The emulator's loops are compiled once per level of the host's vector instructions, and run so.

What a compiler made of them is read from the machine code in memory: in 64-bit mode the bytes that
begin VEX and EVEX encodings begin nothing else, and say how wide the registers are. They occur
within other instructions too, so that what is found is a count per KiB, not a list.
"""

import ctypes
import itertools
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jax_fa import _native

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="there is one level on other machines"
)

# Each level, narrowest first, and the flags of /proc/cpuinfo that it needs besides those before.
LEVELS = {
    "sse2": set(),
    "avx2": {"avx2", "f16c", "fma"},
    "avx512": {"avx512f", "avx512bw", "avx512vl", "avx512dq"},
}

_LOAD = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("jax_fa._native", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.simd_level())
"""


def _host_levels() -> list[str]:
    text = Path("/proc/cpuinfo").read_text()
    flags = set(next(line for line in text.splitlines() if line.startswith("flags")).split())
    return list(itertools.takewhile(lambda level: flags >= LEVELS[level], LEVELS))


@pytest.mark.parametrize("wanted", [None, *LEVELS])
def test_the_best_level_of_the_host_runs_unless_a_lower_one_is_asked_for(wanted):
    environment = {k: v for k, v in os.environ.items() if k != "JAX_FA_EMULATOR_SIMD"}
    if wanted:
        environment["JAX_FA_EMULATOR_SIMD"] = wanted
    printed = subprocess.run(
        [sys.executable, "-c", _LOAD, _native.__file__],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    host = _host_levels()
    assert printed == (wanted if wanted in host else host[-1])


@pytest.fixture(scope="module")
def ranges() -> dict[str, tuple[int, int]]:
    """From the first function of each level to the last."""
    code = _native.simd_code()
    return {level: (min(at.values()), max(at.values())) for level, at in code.items()}


def _code(bounds: tuple[int, int]) -> np.ndarray:
    start, end = bounds
    return np.frombuffer(ctypes.string_at(start, end - start), np.uint8)


def _ymm_vex(code: np.ndarray) -> int:
    """Places that look like a VEX encoding with 256-bit registers."""
    first, second, third = code[:-2], code[1:-1], code[2:]
    two = (first == 0xC5) & (second & 4 != 0)
    three = (first == 0xC4) & np.isin(second & 31, (1, 2, 3)) & (third & 4 != 0)
    return int(np.count_nonzero(two | three))


def _evex(code: np.ndarray) -> tuple[np.ndarray, ...]:
    """The four bytes after the first of places that look like an EVEX encoding."""
    (at,) = np.nonzero(code[:-4] == 0x62)
    p0, p1, p2, opcode = (code[at + i] for i in range(1, 5))
    fits = (p0 & 8 == 0) & np.isin(p0 & 7, (1, 2, 3)) & (p1 & 4 != 0)
    return p0[fits], p1[fits], p2[fits], opcode[fits]


def _zmm_evex(code: np.ndarray) -> int:
    return int(np.count_nonzero(_evex(code)[2] >> 5 & 3 == 2))


def test_every_level_has_functions_of_its_own(ranges):
    assert list(ranges) == list(LEVELS)
    for (_, end), (start, _) in itertools.pairwise(sorted(ranges.values())):
        assert end < start


def test_the_loops_of_a_level_use_its_registers(ranges):
    for level, bounds in ranges.items():
        code = _code(bounds)
        kib = len(code) / 1024
        assert kib > 50
        ymm, zmm = _ymm_vex(code) / kib, _zmm_evex(code) / kib
        expected = {"sse2": (False, False), "avx2": (True, False), "avx512": (None, True)}[level]
        # Some 2 per KiB are other instructions' bytes; those of the level are 50 and more.
        for count, wide in zip((ymm, zmm), expected, strict=True):
            assert wide is None or (count > 20 if wide else count < 8), (level, ymm, zmm)


def _scatters(code: np.ndarray) -> int:
    """Places that look like vpscatter or vscatter."""
    p0, p1, _, opcode = _evex(code)
    return int(np.count_nonzero((p0 & 7 == 2) & (p1 & 3 == 1) & (opcode >> 2 == 0xA0 >> 2)))


def test_lanes_are_not_scattered_one_by_one(ranges):
    # What a compiler makes of a loop around the lanes' own that it has unrolled: ten times as many.
    # Some two dozen store the results of small matrices, which lie in several registers.
    for level, bounds in ranges.items():
        assert _scatters(_code(bounds)) < 60, level
