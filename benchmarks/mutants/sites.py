"""The instructions of a kernel with their bytes, and code objects with some of them changed."""

from __future__ import annotations

import dataclasses
import struct

from jax_fa import emulator

NOP = 0xBF800000  # s_nop 0

# (place in the image, words to write there).
Patches = tuple[tuple[int, tuple[int, ...]], ...]


@dataclasses.dataclass(frozen=True)
class Site:
    """An instruction: its place in the image, its size, text and words."""

    pc: int
    size: int
    mnemonic: str
    op_class: str
    falls_through: bool
    target: int | None
    text: str
    words: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A defect: `change` in words, the instruction that it is about, and (pc, words) to write."""

    kind: str
    kernel: str
    pc: int
    text: str
    change: str
    patches: Patches


class Image:
    """The bytes of a code object by place in the loaded image."""

    def __init__(self, elf: bytes):
        self._elf = elf
        (first,) = struct.unpack_from("<Q", elf, 32)
        size, count = struct.unpack_from("<HH", elf, 54)
        headers = [struct.unpack_from("<IIQQQQ", elf, first + i * size) for i in range(count)]
        self._loaded = [
            (at, at + length, offset) for kind, _, offset, at, _, length in headers if kind == 1
        ]

    def _offset(self, pc: int) -> int:
        return next(pc - begin + offset for begin, end, offset in self._loaded if begin <= pc < end)

    def words(self, pc: int, size: int) -> tuple[int, ...]:
        return struct.unpack_from(f"<{size // 4}I", self._elf, self._offset(pc))

    def patched(self, mutant: Mutant) -> bytes:
        """The code object with the defect."""
        elf = bytearray(self._elf)
        for pc, words in mutant.patches:
            struct.pack_into(f"<{len(words)}I", elf, self._offset(pc), *words)
        return bytes(elf)


def sites(code: emulator.CodeObject, image: Image, kernel: str) -> list[Site]:
    """The instructions of a kernel."""
    listed = code._code.instructions(kernel)
    texts = dict(code._code.disassembly(kernel))
    ends = [fields[0] for fields in listed[1:]]
    found = []
    for (pc, mnemonic, op_class, falls_through, target), end in zip(listed[:-1], ends, strict=True):
        words = image.words(pc, end - pc)
        site = Site(pc, end - pc, mnemonic, op_class, falls_through, target, texts[pc], words)
        found.append(site)
    return found


def replaced(site: Site, word: int, place: int = 0) -> Patches:
    """The patch of one word of an instruction."""
    words = list(site.words)
    words[place] = word
    return ((site.pc, tuple(words)),)
