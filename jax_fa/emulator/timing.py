"""The timing model from Python: its constants, rules of thumb, and large grids by samples.

All of it is modelled. The model itself is csrc/emulator/timing/; a trace is what a launch with
``timing=True`` and ``workgroups=`` keeps.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jax_fa import _native
from jax_fa.emulator.listing import count
from jax_fa.emulator.loops import Instruction


class Constant(NamedTuple):
    """A number that the model takes from outside.

    Confidence: A vendor, B measured by the named party, L LLVM's model, C inferred.
    """

    name: str
    value: float
    unit: str
    confidence: str
    source: str


def constants(target: str) -> list[Constant]:
    """The table of a target."""
    return [Constant(*row) for row in _native.timing_constants(target)]


def constants_hash(target: str) -> str:
    """Twelve digits that say which table of constants a figure was modelled with."""
    table = "\n".join(f"{row.name} {row.value!r}" for row in constants(target))
    return hashlib.sha256(table.encode()).hexdigest()[:12]


def slot_rule_clk(target: str, loop: Sequence[Instruction]) -> float:
    """Clocks of one trip round a hot loop by matrix time and VALU issue slots alone.

    On gfx950 vector instructions of the partner wave issue in the slots that a matrix instruction
    leaves free, and what does not fit there stalls the matrix core; on gfx1201 the two exclude each
    other and exponentials are free.
    """
    value = {constant.name: constant.value for constant in constants(target)}
    slots = count(target, loop)["valu_slots"]
    matrix_clk = free_clk = 0.0
    for instruction in loop:
        if not instruction.is_matrix:
            continue
        size = "matrix_long" if "_32x32x" in instruction.mnemonic else "matrix_short"
        sparse = instruction.op_class == "sparse_matrix"
        matrix_clk += value[size]
        free_clk += value[size] - value["vector_blocked_sparse" if sparse else "vector_blocked"]
    return matrix_clk + max(0.0, slots * value["vector"] - free_clk)


@dataclasses.dataclass(frozen=True)
class Samples:
    """Some workgroups of a launch and how the others follow from them.

    Attributes:
      trace: of the workgroups that ran, out of a run of ``count`` that do different work.
      count: workgroups of that run.
      order: by workgroup of the whole grid, which one of the run does the same work.
      die_bytes, memory_bytes: distinct bytes fetched by the L2s together, and from memory.
    """

    trace: Any
    count: int
    order: np.ndarray
    die_bytes: float
    memory_bytes: float

    @property
    def resident(self) -> int:
        """Workgroups that share a unit: fewer than fit where the grid does not fill the chip."""
        units = _native.chip_simds(self.target) // self.trace.simds
        return min(self.trace.fits, -(-len(self.order) // units))

    @property
    def target(self) -> str:
        """The processor."""
        return self.trace.target

    def grid(self, overrides: Mapping[str, float] | None = None) -> dict[str, float]:
        """Modelled time of the whole grid; workgroups between samples by linear interpolation."""
        changed = dict(overrides or {})
        places = self.trace.groups
        times = [self.trace.time(i, self.resident, changed) for i in range(len(places))]
        fields = [
            np.interp(np.arange(self.count), places, [time[field] for time in times])[self.order]
            for field in range(1, 6)
        ]
        groups = list(zip(range(len(self.order)), *(f.tolist() for f in fields), strict=True))
        return _native.time_grid(
            self.target,
            self.trace.simds,
            self.resident,
            groups,
            self.die_bytes,
            self.memory_bytes,
            changed,
        )


# The constants of the grid's model do not enter the time of a workgroup.
_OF_THE_GRID = {"die_rate", "fabric_rate", "memory_rate", "cold_fetch"}
_OF_THE_GRID |= {"clock_by_energy", "energy_long", "energy_exponent", "clock_top"}
_OF_THE_GRID |= {"clock_short", "clock_long", "stream_short", "stream_long"}


def sensitivity(
    trace: Any, resident: int, least: float = 0.002
) -> list[tuple[Constant, float, float]]:
    """By how much the time of the trace's last workgroup changes, each constant halved and doubled.

    Largest effects first; those below `least` are left out.
    """
    place = len(trace.groups) - 1
    table = [row for row in constants(trace.target) if row.name not in _OF_THE_GRID]

    def clk(change: tuple[str, float]) -> float:
        return trace.time(place, resident, dict([change]))[1]

    changes = [(row.name, row.value * factor) for row in table for factor in (0.5, 2)]
    with concurrent.futures.ThreadPoolExecutor() as threads:  # the model holds no GIL
        clks = list(threads.map(clk, changes))
    found = []
    now = trace.time(place, resident, {})[1]
    for row, halved, doubled in zip(table, clks[::2], clks[1::2], strict=True):
        effects = halved / now - 1, doubled / now - 1
        if max(map(abs, effects)) >= least:
            found.append((row, *effects))
    return sorted(found, key=lambda row: -max(abs(row[1]), abs(row[2])))
