"""Loading code objects: what they say, and that damaged ones are errors, never crashes."""

import numpy as np
import pytest
from assemble import assemble

from jax_fa import emulator

BODY = """
s_load_dwordx2 s[8:9], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
s_waitcnt lgkmcnt(0)
global_store_dword v1, v0, s[8:9]
s_endpgm
"""


@pytest.fixture(scope="module")
def elf():
    return assemble("gfx950", BODY)


def test_path_and_bytes(elf, tmp_path):
    path = tmp_path / "kernel.co"
    path.write_bytes(elf)
    for source in (elf, path, str(path)):
        code = emulator.CodeObject(source)
        assert code.target == "gfx950"
        assert list(code.kernels) == ["kernel"]


def test_missing_file():
    with pytest.raises(FileNotFoundError):
        emulator.CodeObject("no/such/file.co")


def _patched(elf: bytes, offset: int, value: bytes) -> bytes:
    return elf[:offset] + value + elf[offset + len(value) :]


def test_what_is_wrong_is_said(elf):
    cases = {
        "ELF signature": b"not an ELF" * 10,
        "offload bundle": b"__CLANG_OFFLOAD_BUNDLE__" + bytes(100),
        "truncated": elf[:100],
        "not AMDGPU": _patched(elf, 18, b"\x3e\x00"),
        "neither gfx950 nor gfx1201": _patched(elf, 48, b"\x2c"),  # gfx900
        "ABI version": _patched(elf, 8, b"\x01"),
    }
    for what, damaged in cases.items():
        with pytest.raises(emulator.EmulatorError, match=what):
            emulator.CodeObject(damaged)
    with pytest.raises(emulator.EmulatorError):
        emulator.CodeObject(b"")


def test_damaged_code_objects_are_errors_never_crashes(elf):
    """Truncations, flipped bytes and random tails; what still loads is also run."""
    rng = np.random.default_rng(0)
    ends = {"loaded": 0, "ran": 0}
    damaged = [elf[:size] for size in range(0, len(elf), 37)]
    for _ in range(1500):
        copy = bytearray(elf)
        for _ in range(rng.integers(1, 8)):
            copy[rng.integers(len(copy))] = rng.integers(256)
        damaged.append(bytes(copy))
    for _ in range(100):
        start = int(rng.integers(64, len(elf)))
        damaged.append(elf[:start] + rng.bytes(len(elf) - start))
    for image in damaged:
        try:
            code = emulator.CodeObject(image)
        except emulator.EmulatorError:
            continue
        ends["loaded"] += 1
        for name in code.kernels:
            out = np.zeros(64, np.int32)
            try:
                code.launch(name, 1, 64, args=[out], threads=1, max_instructions_per_wave=1000)
            except (emulator.EmulatorError, ValueError):
                continue
            ends["ran"] += 1
    assert ends["loaded"] > 100
    assert ends["ran"] > 50
