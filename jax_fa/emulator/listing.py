"""The decoded text of a kernel, and its instructions by class."""

from __future__ import annotations

import collections
from collections.abc import Sequence

from jax_fa.emulator.launch import CodeObject
from jax_fa.emulator.loops import Instruction, read_listing


def listing(code: CodeObject, kernel: str) -> list[Instruction]:
    """The decoded text of a kernel."""
    return read_listing(code._code, kernel)


def count(target: str, instructions: Sequence[Instruction]) -> dict[str, int]:
    """Instructions by class, as the reports have them.

    ``salu`` includes scalar loads, ``nops`` hints such as s_setprio; ``valu_slots`` is the issue
    slots that the vector instructions take: an exponential takes two on gfx950 and has a unit of
    its own on gfx1201.
    """
    of = collections.Counter(instruction.op_class for instruction in instructions)
    slots = {
        "gfx950": of["valu"] + of["valu_packed"] + 2 * of["trans"],
        "gfx1201": of["valu"] + of["valu_dual"],
    }
    return {
        "matrix": of["matrix"],
        "sparse_matrix": of["sparse_matrix"],
        "valu": of["valu"],
        "valu_packed": of["valu_packed"],
        "valu_dual": of["valu_dual"],
        "trans": of["trans"],
        "valu_slots": slots[target],
        "salu": of["salu"] + of["smem"],
        "lds_read": of["lds_read"],
        "lds_write": of["lds_write"],
        "vmem": of["vmem_load"] + of["vmem_store"],
        "lds_dma": of["lds_dma"],
        "waits": of["wait"],
        "barriers": of["barrier"],
        "branches": of["branch"],
        "nops": of["nop"],
    }
