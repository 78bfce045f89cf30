"""Every instruction of every object that ROCm/aiter has for gfx950 is known."""

import aiter
import pytest

from jax_fa import emulator

pytestmark = aiter.needs_folder
FAMILIES = sorted(path.name for path in aiter.FOLDER.glob("*/")) if aiter.FOLDER.is_dir() else [""]


@pytest.mark.parametrize("family", FAMILIES)
def test_all_objects(family: str):
    unknown, kernels = [], 0
    for path in sorted(aiter.FOLDER.glob(f"{family}/**/*.co")):
        code = emulator.CodeObject(path)
        for kernel in code.kernels:
            kernels += 1
            listing = code._code.disassembly(kernel)
            unknown += [(path.name, hex(pc)) for pc, text in listing if "(undecoded)" in text]
    assert kernels > 0
    assert not unknown
