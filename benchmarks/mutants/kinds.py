"""Defects made of a kernel's own instructions: where they can be, and the bytes that make them.

Each keeps the place and size of every instruction, so that nothing else changes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mutants import ranges, sources
from mutants.sites import NOP, Mutant, Patches, Site, replaced

KINDS = ("wait removed", "wait raised", "barrier", "offset", "source", "nop", "range")


def mutants(
    target: str, kernel: str, text: Sequence[Site], executed: Collection[int]
) -> Iterator[Mutant]:
    """Every defect of each kind at the instructions that are executed."""
    targets = {site.target for site in text if site.target is not None}
    caves = ranges.Caves(text, executed)
    for place, site in enumerate(text):
        if site.pc not in executed:
            continue
        following = text[place + 1] if place + 1 < len(text) else None
        for kind, change, patches in (
            *_waits(site),
            *_barriers(text, place),
            *_offsets(target, site),
            *(("source", *change) for change in sources.changed(target, site)),
            *_nops(site, None if following is None or following.pc in targets else following),
            *(("range", *change) for change in ranges.shorter(target, text, place, caves)),
        ):
            yield Mutant(kind, kernel, site.pc, site.text, change, patches)


_Change = tuple[str, str, Patches]  # kind, in words


# --- Waits and barriers ---------------------------------------------------------------------------


def counts(site: Site) -> dict[str, int]:
    """The most of each counter that a wait leaves; without those that it does not ask about."""
    bits = site.words[0] & 0xFFFF
    if site.mnemonic == "s_waitcnt":
        found = {"vm": bits & 15 | bits >> 10 & 0x30, "lgkm": bits >> 8 & 15}
        return {name: most for name, most in found.items() if most != _NO_WAIT[name]}
    match = re.fullmatch(r"s_wait_(\w+)cnt(?:_(\w+)cnt)?", site.mnemonic)
    if match is None or match[1] == "x":
        return {}
    if match[2]:  # loadcnt or storecnt, with dscnt
        return {match[1]: bits >> 8 & 63, match[2]: bits & 63}
    return {match[1]: bits & 63}


_NO_WAIT = {"vm": 63, "lgkm": 15}


def _with_count(site: Site, counter: str, most: int) -> int:
    word = site.words[0]
    if counter == "vm":
        return word & ~0xC00F | most & 15 | (most & 0x30) << 10
    if counter == "lgkm":
        return word & ~0x0F00 | most << 8
    in_upper = site.mnemonic.count("cnt") == 2 and counter != "ds"
    return word & ~0x3F00 | most << 8 if in_upper else word & ~0x3F | most


def _waits(site: Site) -> Iterator[_Change]:
    asked = counts(site)
    if not asked:
        return
    yield "wait removed", "removed", replaced(site, NOP)
    for counter, most in asked.items():
        if most < _NO_WAIT.get(counter, 63):
            word = _with_count(site, counter, most + 1)
            yield "wait raised", f"{counter} {most} to {most + 1}", replaced(site, word)


def _barriers(text: Sequence[Site], place: int) -> Iterator[_Change]:
    site = text[place]
    if site.mnemonic == "s_barrier":
        yield "barrier", "removed", replaced(site, NOP)
    elif site.mnemonic == "s_barrier_signal":
        # The wait that belongs to it is the next.
        wait = next((s for s in text[place:] if s.mnemonic == "s_barrier_wait"), None)
        if wait is not None:
            yield "barrier", "removed", replaced(site, NOP) + replaced(wait, NOP)


# --- Offsets --------------------------------------------------------------------------------------

_MEMORY = frozenset({"lds_read", "lds_write", "lds_dma", "vmem_load", "vmem_store"})


def _offset_field(target: str, site: Site) -> tuple[int, int, int, int] | None:
    """(word, lowest bit, least, most) of a memory instruction's constant offset."""
    word = site.words[0]
    if word >> 26 == 0b110110:  # DS
        return 0, 0, 0, 0xFFFF
    if target == "gfx950":
        if word >> 26 == 0b110111:  # FLAT, GLOBAL
            return 0, 0, -(1 << 12), (1 << 12) - 1
        return (0, 0, 0, (1 << 12) - 1) if word >> 26 == 0b111000 else None  # MUBUF
    if word >> 24 == 0xEE:  # VGLOBAL
        return 2, 8, -(1 << 23), (1 << 23) - 1
    return (2, 8, 0, (1 << 23) - 1) if word >> 26 == 0b110001 else None  # VBUFFER


def _offsets(target: str, site: Site) -> Iterator[_Change]:
    field = _offset_field(target, site) if site.op_class in _MEMORY else None
    if field is None:
        return
    place, low, least, most = field
    mask = most - least
    value = site.words[place] >> low & mask
    if value > most:
        value -= mask + 1
    # A lane is asked for by the number of its dword.
    steps = (4, -4) if "permute" in site.mnemonic else (4, -4, 2)
    for step in steps:
        if least <= value + step <= most:
            word = site.words[place] & ~(mask << low) | (value + step & mask) << low
            yield "offset", f"{value} to {value + step}", replaced(site, word, place)


# --- What has to stand between --------------------------------------------------------------------


def _nops(site: Site, following: Site | None) -> Iterator[_Change]:
    if site.mnemonic in ("s_wait_alu", "v_nop"):
        yield "nop", "removed", replaced(site, NOP)
    if site.mnemonic != "s_nop":
        return
    if site.words[0] & 15:
        yield "nop", "one less", replaced(site, site.words[0] - 1)
    if following is None or not following.falls_through or following.target is not None:
        return
    if following.mnemonic not in ("s_nop", "s_getpc_b64", "s_barrier"):
        patch = ((site.pc, (*following.words, *site.words)),)
        yield "nop", f"behind {following.text}", patch


def by_kind(found: Iterable[Mutant]) -> Mapping[str, list[Mutant]]:
    """Mutants by kind; of those with the same bytes one."""
    kinds: dict[str, dict[Any, Mutant]] = {kind: {} for kind in KINDS}
    for mutant in found:
        kinds[mutant.kind].setdefault((mutant.kernel, mutant.patches), mutant)
    return {kind: list(mutants.values()) for kind, mutants in kinds.items()}
