"""Every instruction of every object that ROCm/aiter has for gfx950 is known."""

import aiter
import pytest

from jax_fa import emulator

pytestmark = aiter.needs_folder
# Folders, and the objects that lie in none.
ENTRIES = [path.name for path in aiter.FOLDER.glob("*") if path.is_dir() or path.suffix == ".co"]


@pytest.mark.parametrize("entry", sorted(ENTRIES) or ["none"])
def test_all_objects(entry: str):
    unknown, kernels = [], 0
    place = aiter.FOLDER / entry
    for path in sorted(place.rglob("*.co")) if place.is_dir() else [place]:
        code = emulator.CodeObject(path)
        for kernel in code.kernels:
            kernels += 1
            listing = code._code.disassembly(kernel)
            unknown += [(path.name, hex(pc)) for pc, text in listing if "(undecoded)" in text]
    assert kernels > 0
    assert not unknown
