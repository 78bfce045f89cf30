"""Scalar instructions on rows of operands, for tests: many of them in one code object.

Each instruction is a kernel of its own. A workgroup takes its row of operands, a in s[16:17] and b
in s[18:19], and SCC; the result comes from s[20:21].
"""

import functools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from assemble import assemble_kernels

from jax_fa import emulator

M32, M64 = (1 << 32) - 1, (1 << 64) - 1

# s24 holds SCC before the instruction, s22 SCC after it.
_GFX950 = """
s_load_dwordx4 s[8:11], s[0:1], 0x0
s_lshl_b32 s12, s2, 5
s_waitcnt lgkmcnt(0)
s_load_dwordx4 s[16:19], s[8:9], s12
s_add_u32 s14, s12, 16
s_load_dword s24, s[8:9], s14
s_waitcnt lgkmcnt(0)
s_mov_b64 s[20:21], 0
s_cmp_eq_u32 s24, 1
{instruction}
s_cselect_b32 s22, 1, 0
v_mov_b32 v1, 0
v_mov_b32 v2, s20
v_mov_b32 v3, s21
v_mov_b32 v4, s22
s_lshl_b32 s12, s2, 4
s_add_u32 s10, s10, s12
s_addc_u32 s11, s11, 0
global_store_dwordx3 v1, v[2:4], s[10:11]
s_endpgm
"""
_GFX1201 = """
s_load_b128 s[8:11], s[0:1], 0x0
s_mov_b32 s2, ttmp9
s_lshl_b32 s12, s2, 5
s_wait_kmcnt 0x0
s_load_b128 s[16:19], s[8:9], s12 offset:0x0
s_load_b32 s24, s[8:9], s12 offset:0x10
s_wait_kmcnt 0x0
s_mov_b64 s[20:21], 0
s_cmp_eq_u32 s24, 1
{instruction}
s_cselect_b32 s22, 1, 0
v_mov_b32 v1, 0
v_mov_b32 v2, s20
v_mov_b32 v3, s21
v_mov_b32 v4, s22
s_lshl_b32 s12, s2, 4
s_add_co_u32 s10, s10, s12
s_add_co_ci_u32 s11, s11, 0
global_store_b96 v1, v[2:4], s[10:11]
s_endpgm
"""


class Outcome(NamedTuple):
    """Operands [row, (a, b, scc, -)], results (64 bits) and SCC afterwards of every row."""

    rows: np.ndarray
    results: np.ndarray
    scc: np.ndarray


def operands() -> np.ndarray:
    """Rows of a, b (64 bits each), SCC and padding."""
    special = [0, 1, 2, 31, 32, 63, 0x7FFFFFFF, 0x80000000, M32, 1 << 32, 1 << 63, M64, 0x00080004]
    rng = np.random.default_rng(0)
    rows = [(a, b, (a ^ b ^ i) & 1) for i, a in enumerate(special) for b in special]
    rows += [
        (int(a), int(b), int(c))
        for a, b, c in zip(
            rng.integers(0, 1 << 64, 60, np.uint64),
            rng.integers(0, 1 << 64, 60, np.uint64),
            rng.integers(0, 2, 60),
            strict=True,
        )
    ]
    return np.array([(*row, 0) for row in rows], np.uint64)


def registers(first: int, bits: int) -> str:
    return f"s[{first}:{first + 1}]" if bits == 64 else f"s{first}"


class Instructions:
    """Instructions of one target by name, assembled together on first use.

    ``denormals`` of single precision: 3 keeps them, 0 flushes.
    """

    def __init__(self, target: str, lines: Mapping[str, str], denormals: int = 3):
        self._target, self._lines, self._denormals = target, dict(lines), denormals

    @functools.cached_property
    def _code(self) -> emulator.CodeObject:
        template = {"gfx950": _GFX950, "gfx1201": _GFX1201}[self._target]
        bodies = {
            f"k_{name}": template.format(instruction=line) for name, line in self._lines.items()
        }
        mode = f".amdhsa_float_denorm_mode_32 {self._denormals}"
        image = assemble_kernels(self._target, bodies, ("pointer", "pointer"), extra=mode)
        return emulator.CodeObject(image)

    def run(self, name: str) -> Outcome:
        """Runs an instruction on every row."""
        rows = operands()
        out = np.zeros((len(rows), 4), np.uint32)
        self._code.launch(f"k_{name}", len(rows), 1, args=[rows, out], threads=1)
        return Outcome(rows, out[:, 0] | out[:, 1].astype(np.uint64) << np.uint64(32), out[:, 2])
