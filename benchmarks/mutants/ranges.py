"""Defects in which a buffer access has a range that is two bytes shorter.

num_records is worked out, so the access moves to where the cases execute nothing, and gets a range
of its own there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from mutants.sites import NOP, Patches, Site

_BRANCH = {"gfx950": 0xBF820000, "gfx1201": 0xBFA00000}


class Caves:
    """Where the kernel has instructions in a row that are not executed."""

    def __init__(self, text: Sequence[Site], executed: Collection[int]):
        self._largest: list[Site] = []
        row: list[Site] = []
        for site in text:
            row = [] if site.pc in executed or site.op_class == "end" else [*row, site]
            if len(row) > len(self._largest) and len(row) <= _CAVE:
                self._largest = row
        named = {int(n) for site in text for n in re.findall(r"\bs(\d+)\b", site.text)}
        for site in text:
            for first, last in re.findall(r"\bs\[(\d+):(\d+)\]", site.text):
                named.update(range(int(first), int(last) + 1))
        # A scalar register of no instruction.
        self.spare = next((n for n in range(_SCALARS - 1, 0, -1) if n not in named), None)

    def filled(self, words: Collection[int]) -> tuple[int, ...]:
        """The words, then nops up to the next instruction."""
        bytes_taken = 4 * len(words)
        for site in self._largest:
            end = site.pc + site.size - self.begin
            if end >= bytes_taken:
                return (*words, *(NOP,) * ((end - bytes_taken) // 4))
        return ()

    @property
    def begin(self) -> int:
        return self._largest[0].pc


_CAVE = 24  # instructions
_SCALARS = 102


_SCC_WRITERS = re.compile(
    r"s_(cmp|add_[ui]|sub_[ui]|add_co|sub_co|and|or|xor|lshl|lshr|ashr|min|max|bcnt|bfe)"
)
_SCC_READERS = re.compile(r"s_(cselect|cbranch_scc|addc|subb|add_co_ci|sub_co_ci|cmov)")


def _scc_is_dead(text: Sequence[Site], place: int) -> bool:
    """Whether nothing reads SCC behind the instruction, as far as its block tells."""
    for site in text[place + 1 :]:
        if _SCC_READERS.match(site.mnemonic) or not site.falls_through or site.target is not None:
            return False
        if _SCC_WRITERS.match(site.mnemonic):
            return True
    return False


def shorter(
    target: str, text: Sequence[Site], place: int, caves: Caves
) -> Iterator[tuple[str, Patches]]:
    """(in words, patches) of the defect, if there can be one."""
    site = text[place]
    match = re.search(r" s\[(\d+):\d+\], ", site.text) if "buffer_" in site.mnemonic else None
    if match is None or caves.spare is None or not _scc_is_dead(text, place):
        return
    register = int(match[1]) + 2  # num_records
    both = register << 16 | _TWO << 8 | register
    moved = (
        *_WAIT_ALU[target],
        0xBE800000 | caves.spare << 16 | _MOVE[target] << 8 | register,
        0x80000000 | _MAXIMUM[target] << 23 | both,  # of an empty range nothing is taken
        0x80000000 | 1 << 23 | both,  # s_sub_u32
        *site.words,
        0xBE800000 | register << 16 | _MOVE[target] << 8 | caves.spare,
        *_WAIT_ALU[target],
    )

    def jump(begin: int, to: int) -> int:
        return _BRANCH[target] | (to - begin - 4) // 4 & 0xFFFF

    at = caves.begin
    there = caves.filled((*moved, jump(at + 4 * len(moved), site.pc + site.size)))
    here = (jump(site.pc, at), *(NOP,) * (len(site.words) - 1))
    if there:
        yield "two bytes shorter", ((site.pc, here), (at, there))


_TWO = 130  # as a source
_MOVE, _MAXIMUM = {"gfx950": 0, "gfx1201": 0}, {"gfx950": 9, "gfx1201": 21}  # s_mov_b32, s_max_u32
_WAIT_ALU = {"gfx950": (), "gfx1201": (0xBF88F19E,)}  # for all scalar results
