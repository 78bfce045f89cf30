"""Why a defect that survives changes nothing: reasons from the ISA, found by rules."""

from __future__ import annotations

from collections.abc import Collection

from mutants import barriers, nops
from mutants.flow import Flow
from mutants.sites import Mutant, Site
from mutants.waits import Waits


class Rules:
    """The rules for one kernel, over all of its paths or those through `executed` alone."""

    def __init__(self, target: str, text: list[Site], executed: Collection[int] | None = None):
        self._target = target
        self._flow = Flow(text, executed)
        self._waits = Waits(target, self._flow)

    def reason(self, mutant: Mutant) -> str | None:
        """The reason in words; None where no rule has one."""
        place = self._flow.place(mutant.pc)
        if mutant.kind.startswith("wait"):
            return self._waits.harmless(mutant)
        if mutant.kind == "barrier":
            return barriers.harmless(self._flow, place)
        if mutant.kind == "nop":
            return nops.harmless(self._target, self._flow, place)
        return None
