"""Which barriers cannot bite: they order what the waves of a workgroup do with LDS."""

from __future__ import annotations

from collections.abc import Sequence

from mutants.flow import Flow

NO_LDS = (
    "a barrier orders what waves read and write in LDS; the kernel has no instruction that does "
    "either, and what it stores to memory it does not load"
)
NEXT = (
    "a barrier orders what waves do with LDS before and behind it; on every path the next one "
    "comes before an access to LDS"
)
LAST = (
    "a barrier orders what waves do with LDS before and behind it; on every path since the one "
    "before, or since the start, LDS was not accessed"
)

_LDS = frozenset({"lds_read", "lds_write", "lds_dma"})


def harmless(flow: Flow, place: int) -> str | None:
    """Why the barrier orders nothing, or None."""
    if not any(site.op_class in _LDS for site in flow.text):
        return NO_LDS
    before: list[list[int]] = [[] for _ in flow.text]
    for at, successors in enumerate(flow.next):
        for to in successors:
            before[to].append(at)
    if not _meets_lds(flow, flow.next, _end_of(flow, place)):
        return NEXT
    return None if _meets_lds(flow, before, place) else LAST


def _end_of(flow: Flow, place: int) -> int:
    """The instruction that waits, of a barrier in two parts."""
    while flow.text[place].mnemonic == "s_barrier_signal":
        place = next(at for at in range(place, len(flow.text)) if _waits(flow, at))
    return place


def _waits(flow: Flow, place: int) -> bool:
    return flow.text[place].mnemonic in ("s_barrier", "s_barrier_wait")


def _meets_lds(flow: Flow, edges: Sequence[Sequence[int]], start: int) -> bool:
    """Whether a path along the edges accesses LDS before it meets another barrier."""
    work, seen = list(edges[start]), set()
    while work:
        place = work.pop()
        if place in seen:
            continue
        seen.add(place)
        if flow.text[place].op_class in _LDS:
            return True
        if place != start and flow.text[place].op_class != "barrier":
            work += edges[place]
    return False
