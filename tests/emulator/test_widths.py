"""Loads and stores of every width, from memory and LDS, on both targets against NumPy."""

from __future__ import annotations

import gfx950_asm
import gfx1201_asm
import numpy as np
import pytest
from compared import compared
from lane_values import assert_same, u32

FORMS = ("global", "saddr", "flat", "buffer", "buffer_soffset", "lds")
LANES = {"gfx950": 64, "gfx1201": 32}
# Wide ones first: gfx950's tuples begin at even registers.
LOADS = {"b64": 8, "b128": 16, "b96": 12, "b32": 4, "u8": 1, "i8": 1, "u16": 2, "i16": 2}
STORES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}
_GFX950 = {"u8": "ubyte", "i8": "sbyte", "u16": "ushort", "i16": "sshort", "b8": "byte"}
_GFX950 |= {"b16": "short", "b32": "dword", "b64": "dwordx2", "b96": "dwordx3", "b128": "dwordx4"}
WAIT = {
    "gfx950": "s_waitcnt vmcnt(0) lgkmcnt(0)\n",
    "gfx1201": "s_wait_loadcnt_dscnt 0x0\ns_wait_storecnt 0x0\n",
}
# v[2:3] = the kernel's input + v16; s[24:27] the input as a buffer, s28 an offset in it.
HEAD = {
    "gfx950": """
    v_mov_b32 v2, s4
    v_mov_b32 v3, s5
    v_add_co_u32 v2, vcc, v2, v16
    v_addc_co_u32 v3, vcc, 0, v3, vcc
    """,
    "gfx1201": """
    v_mov_b32 v2, s4
    v_mov_b32 v3, s5
    v_add_co_u32 v2, vcc_lo, v2, v16
    v_add_co_ci_u32 v3, vcc_lo, 0, v3, vcc_lo
    """,
}
RESOURCE = """
s_mov_b32 s24, s4
s_and_b32 s25, s5, 0xffff
s_movk_i32 s26, 0x7fff
s_mov_b32 s27, {format:#x}
s_movk_i32 s28, 20
"""
FORMAT = {"gfx950": 0x27000, "gfx1201": 0x31027000}


def _mnemonic(target: str, form: str, loads: bool, width: str) -> str:
    if form == "lds":
        words = {"gfx950": ("write", "read"), "gfx1201": ("store", "load")}[target]
        return f"ds_{words[loads]}_{width}"
    family = "global" if form == "saddr" else form.split("_")[0]
    suffix = {"gfx950": _GFX950[width], "gfx1201": width}[target]
    return f"{family}_{'load' if loads else 'store'}_{suffix}"


def _access(target: str, form: str, loads: bool, width: str, data: str, offset: int) -> str:
    none = {"gfx950": "0", "gfx1201": "null"}[target]
    address, place = {
        "global": ("v[2:3]", f", off offset:{offset}"),
        "saddr": ("v16", f", s[4:5] offset:{offset}"),
        "flat": ("v[2:3]", f" offset:{offset}"),
        "buffer": ("v16", f", s[24:27], {none} offen offset:{offset}"),
        "buffer_soffset": ("v16", f", s[24:27], s28 offen offset:{offset - 20}"),
        "lds": ("v16", f" offset:{offset}"),
    }[form]
    if loads or form.startswith("buffer"):
        operands = f"{data}, {address}{place}"
    else:
        operands = f"{address}, {data}{place}"
    return f"{_mnemonic(target, form, loads, width)} {operands}\n"


def _registers(first: int, size: int) -> str:
    return f"v{first}" if size <= 4 else f"v[{first}:{first + size // 4 - 1}]"


def _head(target: str, form: str, rows: int) -> str:
    """What the forms need; LDS gets the input rows from the second on, `rows` of them."""
    text = HEAD[target] + RESOURCE.format(format=FORMAT[target])
    if form == "lds":
        for row in range(rows):
            store = _mnemonic(target, form, False, "b32")
            text += f"{store} v1, v{17 + row} offset:{4 * LANES[target] * row}\n"
    return text + WAIT[target]


def _run(target: str, body: str, rows: np.ndarray, outputs: int) -> np.ndarray:
    return {"gfx950": _run_gfx950, "gfx1201": _run_gfx1201}[target](body, rows, outputs)


def _run_gfx950(body: str, rows: np.ndarray, outputs: int) -> np.ndarray:
    kernel = gfx950_asm.Kernel(body, len(rows), outputs, lds_bytes=4096)
    return gfx950_asm.run(gfx950_asm.assemble({"k": kernel}), "k", kernel, rows[None])[0]


def _run_gfx1201(body: str, rows: np.ndarray, outputs: int) -> np.ndarray:
    case = gfx1201_asm.Case(body, outputs)
    return gfx1201_asm.run({"k": case}, rows[None], lds_bytes=4096)["k"][0]


def _cases(loads: bool, widths: dict[str, int]) -> list:
    return [
        pytest.param(
            *(target, form),
            id=f"{target}-{form}",
            marks=compared(target, *(_mnemonic(target, form, loads, width) for width in widths)),
        )
        for target in LANES
        for form in FORMS
    ]


@pytest.mark.parametrize(("target", "form"), _cases(True, LOADS))
def test_loads(target: str, form: str):
    """Each lane from a place of its own."""
    lanes = LANES[target]
    rng = np.random.default_rng(15)
    step, offset = (16, 32) if form == "lds" else (28, 4 * lanes)
    address = (rng.permutation(lanes) * step).astype(np.uint32)
    rows = np.concatenate([address[None], u32(rng, (8, lanes))])
    body, register = _head(target, form, 8), 64
    for width, size in LOADS.items():
        data = _registers(register, size)
        body += _access(target, form, True, width, data, offset)
        register += max(size // 4, 1)
    actual = _run(target, body + WAIT[target], rows, register - 64)
    memory = rows[1 if form == "lds" else 0 :].reshape(-1).view(np.uint8)
    expected = []
    for width, size in LOADS.items():
        place = (address + offset)[:, None] + np.arange(size)
        found = np.ascontiguousarray(memory[place])
        if size < 4:
            number = found.view(f"{width[0]}{size}")[:, 0]
            expected.append((number.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32))
        else:
            expected += list(found.view(np.uint32).T)
    assert_same(actual, np.stack(expected), form)


@pytest.mark.parametrize(("target", "form"), _cases(False, STORES))
def test_stores(target: str, form: str):
    """Each lane to 32 bytes of its own, one width after the other, all read back after each."""
    lanes = LANES[target]
    rng = np.random.default_rng(16)
    address = (rng.permutation(lanes) * 32).astype(np.uint32)
    # The 8 rows that are written, one to make the next even, and what is written.
    rows = np.concatenate([address[None], u32(rng, (8 + 1 + 4, lanes))])
    begin = 0 if form == "lds" else 4 * lanes
    body, memory, expected = _head(target, form, 8), rows[1:9].copy(), []
    for place, (width, size) in enumerate(STORES.items()):
        offset = 16 * (place % 2)
        data = _registers(16 + 10, size)
        body += _access(target, form, False, width, data, begin + offset) + WAIT[target]
        for row in range(8):
            wide = 4 * lanes * row + begin
            load = _mnemonic(target, "lds" if form == "lds" else "saddr", True, "b32")
            source = "v1" if form == "lds" else "v1, s[4:5]"
            body += f"{load} v{64 + len(expected) + row}, {source} offset:{wide}\n"
        body += WAIT[target]
        written = np.ascontiguousarray(rows[10:14].T).view(np.uint8)[:, :size]
        memory.reshape(-1).view(np.uint8)[(address + offset)[:, None] + np.arange(size)] = written
        expected += list(memory.copy())
    assert_same(_run(target, body, rows, len(expected)), np.stack(expected), form)
