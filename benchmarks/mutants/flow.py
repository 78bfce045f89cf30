"""Where control goes in a kernel's text, and which registers its instructions name."""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Collection, Iterator, Sequence

from mutants.sites import Site

_REGISTERS = re.compile(r"\b([vsa])(?:(\d+)\b|\[(\d+):(\d+)\])|\b(vcc|exec|m0)(_lo|_hi)?\b")
_NAMED = {"vcc": ("vcc_lo", "vcc_hi"), "exec": ("exec_lo", "exec_hi"), "m0": ("m0",)}

Registers = frozenset[str]


@functools.lru_cache(maxsize=1 << 16)
def registers(text: str) -> Registers:
    """The registers that a text names: "v3", "s7", "vcc_lo"."""
    found = set()
    for kind, one, first, last, name, half in _REGISTERS.findall(text):
        if name:
            found.update((name + half,) if half else _NAMED[name])
        elif one:
            found.add(kind + one)
        else:
            found.update(f"{kind}{i}" for i in range(int(first), int(last) + 1))
    return frozenset(found)


@functools.lru_cache(maxsize=1 << 16)
def operands(text: str) -> tuple[tuple[str, ...], ...]:
    """The operands of an instruction, of both halves of a dual one."""
    halves = text.split(" :: ")
    return tuple(tuple(half.split(" ", 1)[1].split(", ")) if " " in half else () for half in halves)


_TWO_RESULTS = re.compile(r"v_(add_co|sub_co|subrev_co|mad_co|mad_u64|mad_i64|div_scale)")
_NO_RESULT = re.compile(r"s_(cmp|cbranch|branch|bitcmp|wait|nop|barrier|sendmsg|setprio|endpgm)")


@functools.lru_cache(maxsize=1 << 16)
def written(mnemonic: str, text: str) -> Registers:
    """The registers that an arithmetic instruction writes, as far as it names them."""
    if _NO_RESULT.match(mnemonic) or "store" in mnemonic:
        return frozenset()
    count = 2 if _TWO_RESULTS.match(mnemonic) else 1
    results = ", ".join(name for half in operands(text) for name in half[:count])
    implied = ", exec" if "saveexec" in mnemonic else ""
    return registers(results + implied)


class Flow:
    """The successors of each instruction, by its place in the text.

    With `executed` only through instructions at these places in the image.
    """

    def __init__(self, text: Sequence[Site], executed: Collection[int] | None = None):
        self.text = text
        self._pcs = [site.pc for site in text]
        self.next = [
            tuple(
                to
                for to in self._successors(place, site)
                if executed is None or self._pcs[to] in executed
            )
            for place, site in enumerate(text)
        ]

    def place(self, pc: int) -> int:
        return bisect.bisect_left(self._pcs, pc)

    def _successors(self, place: int, site: Site) -> Iterator[int]:
        if site.falls_through and place + 1 < len(self.text):
            yield place + 1
        if site.target is not None:
            at = self.place(site.target)
            if at < len(self.text) and self._pcs[at] == site.target:
                yield at
