"""Which waits cannot bite, whatever a case does: by what is under way on every path to them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from mutants.flow import Flow, Registers, operands, registers
from mutants.kinds import counts
from mutants.sites import Mutant, Site

NOTHING = (
    "a wait for a counter does nothing while the counter is no higher; on no path to it can more "
    "be under way than it leaves"
)
LATER = (
    "a wait is only for who touches the results; on every path a later one proves the same before "
    "an instruction names their registers, and before a barrier where they are in LDS"
)


@dataclasses.dataclass(frozen=True)
class _Operation:
    """What memory instructions are to counters."""

    counter: str
    in_order: bool
    result: Registers  # registers that are written when it lands
    uses_lds: bool  # barriers hand it over


# By place of the memory instruction: the fewest that came after it and count in order.
_Pending = Mapping[int, int]

_COUNTERS = {
    "gfx950": {"smem": "lgkm", "lds_read": "lgkm", "lds_write": "lgkm"}
    | {"vmem_load": "vm", "vmem_store": "vm", "lds_dma": "vm"},
    "gfx1201": {"smem": "km", "lds_read": "ds", "lds_write": "ds"}
    | {"vmem_load": "load", "vmem_store": "store"},
}


class Waits:
    """What can be under way at each instruction of a kernel."""

    def __init__(self, target: str, flow: Flow):
        self._flow = flow
        self._loads_in_order = target == "gfx950"
        self._operations = {
            place: _operation(site, _COUNTERS[target][site.op_class])
            for place, site in enumerate(flow.text)
            if site.op_class in _COUNTERS[target]
        }
        self._before = self._solve()

    def harmless(self, mutant: Mutant) -> str | None:
        """Why a weaker wait changes nothing, or None."""
        place = self._flow.place(mutant.pc)
        site = self._flow.text[place]
        weaker = dataclasses.replace(site, words=mutant.patches[0][1])
        if mutant.kind == "wait removed":
            weaker = dataclasses.replace(weaker, mnemonic="s_nop")
        before = self._before.get(place)
        if before is None:  # no path to it is known
            return None
        proved = self._after_wait(before, counts(site))
        extra = {
            at: age
            for at, age in self._after_wait(before, counts(weaker)).items()
            if at not in proved
        }
        if not extra:
            return NOTHING
        return None if self._touched(place, extra, weaker) else LATER

    def _after_wait(self, pending: _Pending, asked: Mapping[str, int]) -> dict[int, int]:
        """What may still be under way behind a wait."""
        left = {}
        for at, age in pending.items():
            operation = self._operations[at]
            most = asked.get(operation.counter)
            if most is None or (age < most if operation.in_order else most > 0):
                left[at] = age
        return left

    def _step(self, place: int, pending: _Pending, site: Site, new: bool = True) -> dict[int, int]:
        after = dict(pending)
        asked = counts(site)
        if asked:
            after = self._after_wait(after, asked)
        operation = self._operations.get(place)
        if operation is not None and operation.in_order:
            for at in after:
                if self._operations[at].counter == operation.counter:
                    after[at] = min(after[at] + 1, 64)
        if operation is not None and new:
            after[place] = 0
        return after

    def _solve(self) -> dict[int, dict[int, int]]:
        before: dict[int, dict[int, int]] = {0: {}}
        work = [0]
        while work:
            place = work.pop()
            after = self._step(place, before[place], self._flow.text[place])
            work += [to for to in self._flow.next[place] if _merge(before, to, after)]
        return before

    def _touched(self, wait: int, extra: dict[int, int], weaker: Site) -> bool:
        before: dict[int, dict[int, int]] = {}
        work = [to for to in self._flow.next[wait] if _merge(before, to, extra)]
        while work:
            place = work.pop()
            site = weaker if place == wait else self._flow.text[place]
            pending = before[place]
            if any(self._touches(place, site, self._operations[at]) for at in pending):
                return True
            after = self._step(place, pending, site, new=False)
            work += [to for to in self._flow.next[place] if _merge(before, to, after)]
        return False

    def _touches(self, place: int, site: Site, under_way: _Operation) -> bool:
        if under_way.uses_lds and site.op_class == "barrier":
            return True
        if under_way.uses_lds and not under_way.result and site.op_class == "lds_read":
            # The wave's own reads follow its own writes in order, but not its loads to LDS.
            return under_way.counter == "vm"
        named = site.text
        follower = self._operations.get(place)
        if (
            follower is not None
            and follower.result
            and follower.in_order
            and under_way.in_order
            and follower.counter == under_way.counter
            and (self._loads_in_order or follower.counter == "ds")
        ):
            # Two of one counter land in order: that it loads into the same register is no matter.
            named = ", ".join(operands(site.text)[0][1:])
        return bool(under_way.result & registers(named))


def _operation(site: Site, counter: str) -> _Operation:
    loads = site.op_class in ("smem", "lds_read", "vmem_load")
    result = (
        registers(operands(site.text)[0][0]) if loads and operands(site.text)[0] else frozenset()
    )
    uses_lds = site.op_class in ("lds_read", "lds_write", "lds_dma")
    return _Operation(counter, site.op_class != "smem", result, uses_lds)


def _merge(before: dict[int, dict[int, int]], to: int, after: Mapping[int, int]) -> bool:
    """Adds what may be under way there; whether that is more than was known."""
    if to not in before:
        before[to] = dict(after)
        return True
    known, more = before[to], False
    for at, age in after.items():
        if known.get(at, 65) > age:
            known[at] = age
            more = True
    return more
