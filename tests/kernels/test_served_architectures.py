"""Architectures that another's code object serves: compiled for them, kernels are the same bytes.

Of a code object only what names the architecture differs: the header's machine number, which the
runtime sets when it loads the object, and a text in the metadata, by which nothing is loaded.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from jax_fa import _native

KERNELS = Path(__file__).parents[2] / "csrc" / "kernels"
SERVED = [(name, target) for name, target in _native.architectures().items() if name != target]
MACHINE_AT = 48


def compiled(source, architecture, target, folder):
    """The code object, as csrc/cmake/device_code.cmake makes it."""
    pytest.importorskip("ziglang", reason="no device compiler")
    zig = [sys.executable, "-m", "ziglang"]
    compiled, linked = folder / f"{architecture}.o", folder / f"{architecture}.co"
    options = (
        *("-x", "hip", "--offload-device-only", "-nogpulib", "-nogpuinc", "-std=c++20", "-O3"),
        *("-fno-slp-vectorize", "-mcode-object-version=5", "-fuse-cuid=none", "-mno-cumode"),
        *("-emit-llvm", "-c", "-Xclang", "-emit-obj", f"-DJAX_FA_TARGET={target}"),
        *("-I", str(KERNELS.parent), f"--offload-arch={architecture}"),
    )
    subprocess.run([*zig, "clang", *options, str(source), "-o", str(compiled)], check=True)
    link = ["ld.lld", "-m", "elf64_amdgpu", "--no-undefined", "-shared"]
    subprocess.run([*zig, *link, str(compiled), "-o", str(linked)], check=True)
    return linked.read_bytes()


@pytest.mark.parametrize(
    "source",
    [
        "merge.hip",
        pytest.param("decode.hip", marks=pytest.mark.slow),
        pytest.param("flash.hip", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(("architecture", "target"), SERVED)
def test_the_same_bytes(source, architecture, target, tmp_path):
    own, served = (
        bytearray(compiled(KERNELS / source, name, target, tmp_path))
        for name in (architecture, target)
    )
    assert own[MACHINE_AT] != served[MACHINE_AT]
    served[MACHINE_AT] = own[MACHINE_AT]
    assert own.replace(architecture.encode(), target.encode()) == served
