"""Defects in which an instruction takes another source, or two of them the other way round."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from mutants.sites import Patches, Site

_ARITHMETIC = frozenset(
    {"valu", "valu_packed", "valu_dual", "trans", "matrix", "sparse_matrix", "salu"}
)
# Their first two sources may be swapped.
_COMMUTES = re.compile(
    r"(v_(dual_)?(pk_)?(add|mul|max|min|fma|fmac|mad|and|or|xor|xnor|dot2|maximum|minimum|med)(3|imum3)?_(?!lshl)"
    r"|v_(add3|or3|max3|min3|maximum3|minimum3|xor3|xad|mul_lo|mul_hi|and_or|cmpx?_(eq|ne|lg|neq|u|o|nlg))_?"
    r"|s_(add|addc|mul|mul_hi|and|or|xor|nand|nor|xnor|min|max)_|s_add_nc|s_cmp_(eq|lg|neq)_|s_mul)"
)


@dataclasses.dataclass(frozen=True)
class _Field:
    """Where an encoding holds a source: 9 bits, 8 of a scalar or 8 of a vector register."""

    word: int
    low: int
    kind: Literal["any", "scalar", "vector"] = "any"

    @property
    def mask(self) -> int:
        return 0x1FF if self.kind == "any" else 0xFF

    def read(self, words: Sequence[int]) -> int:
        """The source as 9 bits have it: vector registers from 256 on."""
        value = words[self.word] >> self.low & self.mask
        return value + 256 if self.kind == "vector" else value

    def holds(self, source: int) -> bool:
        return {"any": True, "scalar": source < 256, "vector": source >= 256}[self.kind]

    def put(self, words: Sequence[int], source: int) -> list[int]:
        changed = list(words)
        changed[self.word] &= ~(self.mask << self.low)
        changed[self.word] |= (source & self.mask) << self.low
        return changed


_FIRST, _VECTOR = _Field(0, 0), _Field(0, 9, "vector")


def _source_fields(target: str, site: Site) -> list[_Field]:
    word = site.words[0]
    if word >> 30 == 0b10:
        if word >> 23 == 0b101111101:  # SOP1
            return [_Field(0, 0, "scalar")]
        if word >> 28 == 0b1011 and word >> 23 != 0b101111110:  # SOPK, SOPP
            return []
        return [_Field(0, 0, "scalar"), _Field(0, 8, "scalar")]  # SOP2, SOPC
    if word >> 25 == 0b0111111:  # VOP1
        return [_FIRST]
    if word >> 31 == 0:  # VOP2, VOPC
        return [_FIRST, _VECTOR]
    if site.op_class == "valu_dual":  # VOPD
        return [_FIRST, _VECTOR, _Field(1, 0), _Field(1, 9, "vector")]
    vop3 = {"gfx950": 0b110100, "gfx1201": 0b110101}[target]
    if word >> 26 == vop3 or (target == "gfx1201" and word >> 24 == 0xCC):  # VOP3, VOP3P
        fields = [_Field(1, 0), _Field(1, 9), _Field(1, 18)]
        return fields[: max(1, site.text.count(", "))]
    return []


_LAST_SCALAR = 101
_LITERAL, _SDWA, _DPP = 255, 249, 250


def changed(target: str, site: Site) -> Iterator[tuple[str, Patches]]:
    """(in words, patches) of each."""
    if site.op_class not in _ARITHMETIC:
        return
    fields = _source_fields(target, site)
    step = 2 if "[" in site.text else 1  # registers come in pairs
    for number, field in enumerate(fields):
        source = field.read(site.words)
        if _LAST_SCALAR < source < 256:
            continue  # a constant, or no common register
        last = 511 if source >= 256 else _LAST_SCALAR
        next_to = source + step if source + step + 15 <= last else source - step
        words = field.put(site.words, next_to)
        yield f"source {number} one on", ((site.pc, tuple(words)),)
    if len(fields) < 2 or site.op_class == "valu_dual" or _COMMUTES.match(site.mnemonic):
        return
    a, b = (field.read(site.words) for field in fields[:2])
    special = {_LITERAL, _SDWA, _DPP} & {a, b}
    if a != b and not special and fields[0].holds(b) and fields[1].holds(a):
        swapped = fields[1].put(fields[0].put(site.words, b), a)
        yield "swapped", ((site.pc, tuple(swapped)),)
