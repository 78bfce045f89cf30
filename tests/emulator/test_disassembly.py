"""The decoder against LLVM's disassembler, over shipped kernels and those of a folder.

Needs ``llvm-objdump-22``. ``JAX_FA_AITER`` may name a folder with more (tests/support/aiter.py).
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from assemble import assemble

from jax_fa import _native, emulator

OBJDUMP = shutil.which("llvm-objdump-22")
FOREIGN = sorted(Path(os.environ.get("JAX_FA_AITER", "/nonexistent")).glob("fmha_v3_fwd/*bf16*.co"))
pytestmark = pytest.mark.skipif(not OBJDUMP, reason="there is no llvm-objdump-22")

REGISTERS = re.compile(r"\b(?:[vas](?:\[\d+:\d+\]|\d+)|ttmp(?:\[\d+:\d+\]|\d+)|m0|null)\b")
ENCODING_SUFFIX = re.compile(r"_(e32|e64|dpp|dpp8|sdwa)\b")


def _shape(text: str) -> tuple[list[str], list[str]]:
    """Mnemonics, both of a pair, and registers in order."""
    halves = text.split("::")
    mnemonics = []
    for half in halves:
        mnemonic = half.split()[0]
        while mnemonic != (shorter := ENCODING_SUFFIX.sub("", mnemonic)):
            mnemonic = shorter
        mnemonics.append(mnemonic)
    return mnemonics, REGISTERS.findall(text.partition(" ")[2])


def _objdump(image: Path) -> dict[int, str]:
    """Instructions by address."""
    done = subprocess.run(
        [OBJDUMP or "", "-d", str(image)], capture_output=True, text=True, check=True
    )
    line = re.compile(r"^\t(.*?)\s*// ([0-9A-F]{12}):", re.MULTILINE)
    return {int(address, 16): text for text, address in line.findall(done.stdout)}


def _compare(image: Path) -> None:
    expected = _objdump(image)
    code = emulator.CodeObject(image)
    wrong = []
    for kernel in code.kernels:
        lines = code._code.disassembly(kernel)
        assert lines
        for pc, text in lines:
            if _shape(text) != _shape(expected[pc]):
                wrong.append(f"{pc:#x}: {text!r}, LLVM has {expected[pc]!r}")
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
def test_shipped_kernels(target, tmp_path):
    path = tmp_path / "shipped.co"
    path.write_bytes(_native.code_object(target))
    _compare(path)


def test_matrix_instructions_on_narrow_floats(tmp_path):
    """In every pair of formats, with scales and without."""
    lines = []
    for shape, c in {"16x16x128": "v[0:3]", "32x32x64": "v[0:15]"}.items():
        for form, scales in (("", ""), ("_scale", ", v60, v61 op_sel:[1,0,0]")):
            for cbsz, a in enumerate((8, 8, 6, 6, 4)):
                for blgp, b in enumerate((8, 8, 6, 6, 4)):
                    operands = f"{c}, v[16:{15 + a}], a[16:{15 + b}], {c}{scales}"
                    formats = f"cbsz:{cbsz} blgp:{blgp}"
                    lines.append(f"v_mfma{form}_f32_{shape}_f8f6f4 {operands} {formats}\n")
    path = tmp_path / "narrow.co"
    path.write_bytes(assemble("gfx950", "".join(lines) + "s_endpgm", vgprs=128))
    _compare(path)


@pytest.mark.skipif(not FOREIGN, reason="JAX_FA_AITER names no folder")
@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: path.stem)
def test_foreign_kernels(path):
    _compare(path)
