"""What one wave of an emulated launch did, instruction by instruction."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import overload

import numpy as np

_SHOWN_LANES = 4


@dataclasses.dataclass(frozen=True)
class Step:
    """An instruction that a wave executed.

    Attributes:
      pc: its byte offset in the code object.
      text: as findings print it.
      clock: modelled clocks from the workgroup's begin to its issue, the workgroup alone on its
        compute unit and its caches warm; None without ``timing``.
      written: registers by name ("v4", "a0", "s2", "vcc_lo", "scc") that it wrote, or in which the
        result of a load has arrived with it: uint32 [lanes], of scalar registers [1].
    """

    pc: int
    text: str
    clock: float | None
    written: Mapping[str, np.ndarray]

    def __str__(self) -> str:
        clock = "" if self.clock is None else f"{self.clock:.0f}"
        written = ", ".join(f"{name} = {_show(values)}" for name, values in self.written.items())
        return f"{self.pc:#8x} {clock:>8}  {self.text:<50} {written}".rstrip()


def _show(values: np.ndarray) -> str:
    if values.size == 1 or (values == values[0]).all():
        return f"{values[0]:#x}"
    shown = " ".join(f"{value:#x}" for value in values[:_SHOWN_LANES])
    return f"[{shown} ...]"


class Steps(Sequence[Step]):
    """The steps of a wave in their order. As text a table: pc, clock, instruction, registers."""

    def __init__(self, steps: Sequence[Step]):
        self._steps = list(steps)

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Steps: ...
    def __getitem__(self, index: int | slice) -> Step | Steps:
        if isinstance(index, slice):
            return Steps(self._steps[index])
        return self._steps[index]

    def __str__(self) -> str:
        return "\n".join(str(step) for step in self._steps)

    __repr__ = __str__
