"""Kernels with a planted defect, each with the line that mends it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from assemble import WAVE_SIZE, assemble_kernels

from jax_fa import emulator

# s[8:9] the array, v0 the lane of the workgroup, v1 its byte offset, v2 the wave (128 lanes: 0, 1).
GFX950_START = """
s_load_dwordx2 s[8:9], s[0:1], 0x0
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 2, v0
v_lshrrev_b32 v2, 6, v0
s_waitcnt lgkmcnt(0)
"""
GFX950_END = """
s_waitcnt vmcnt(0) lgkmcnt(0)
global_store_dword v1, v3, s[8:9]
s_endpgm
"""
GFX1201_START = """
s_load_b64 s[8:9], s[0:1], 0x0
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 2, v0
v_lshrrev_b32 v2, 5, v0
s_wait_kmcnt 0x0
"""
GFX1201_END = """
s_wait_loadcnt_dscnt 0x0
global_store_b32 v1, v3, s[8:9]
s_endpgm
"""
_AROUND = {"gfx950": (GFX950_START, GFX950_END), "gfx1201": (GFX1201_START, GFX1201_END)}


class Defect(NamedTuple):
    """A kernel body, the line that mends it, and what the emulator must say without it.

    ``{mend}`` in the body is where ``mend`` goes; ``{defect}`` where ``wrong`` goes without it.
    """

    name: str
    body: str
    mend: str
    says: str
    wrong: str = ""
    target: str = "gfx950"


class Planted:
    """Kernels with their defects and mended, in one code object for each target."""

    def __init__(self, defects: Sequence[Defect]):
        self._codes: dict[str, emulator.CodeObject] = {}
        self._defects = defects

    def launch(self, defect: Defect, mended: bool, **options) -> emulator.Launch:
        """Runs a kernel with its defect, or mended, over an array with one spare element."""
        code = self._code(defect.target)
        lanes = 2 * WAVE_SIZE[defect.target]
        array = np.arange(lanes + 1, dtype=np.int32)
        name = defect.name + ("_mended" if mended else "")
        return code.launch(name, 1, lanes, args=[array], **options)

    def _code(self, target: str) -> emulator.CodeObject:
        if target not in self._codes:
            start, end = _AROUND[target]
            bodies = {}
            for defect in self._defects:
                if defect.target != target:
                    continue
                for suffix, line in (("", defect.wrong), ("_mended", defect.mend)):
                    bodies[defect.name + suffix] = start + defect.body.format(mend=line) + end
            code = assemble_kernels(target, bodies, lds_bytes=1024)
            self._codes[target] = emulator.CodeObject(code)
        return self._codes[target]
