"""Every instruction of the shipped kernels has a test that compares it with NumPy."""

import runpy
from pathlib import Path

import pytest
from cases import KERNEL_TARGETS
from compared import instructions, named_by_test

from jax_fa import _native, emulator

# They compute nothing: waits, barriers and wait states, which the tests of the checks are about
# (test_checks*.py, */test_hazards.py), and hints.
NO_RESULT = {
    "gfx950": {"s_barrier", "s_endpgm", "s_nop", "s_setprio", "s_waitcnt"},
    "gfx1201": {"s_barrier_signal", "s_barrier_wait", "s_clause", "s_delay_alu", "s_endpgm"}
    | {"s_nop", "s_sendmsg", "s_wait_alu", "s_wait_dscnt", "s_wait_kmcnt", "s_wait_loadcnt"}
    | {"s_wait_loadcnt_dscnt", "s_wait_storecnt", "global_inv"},
}


def _named() -> set[tuple[str, str]]:
    found = set()
    for path in Path(__file__).parent.rglob("test_*.py"):
        for name, test in runpy.run_path(str(path)).items():
            if name.startswith("test_"):
                found |= named_by_test(test)
    return found


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_every_shipped_instruction_is_compared(target):
    code = emulator.CodeObject(_native.code_object(target))
    shipped = {name for kernel in code.kernels for _, name in instructions(code, kernel)}
    compared = {name for of, name in _named() if of == target}
    lacking = sorted(shipped - compared - NO_RESULT[target])
    assert not lacking, f"no test compares {' '.join(lacking)}"
