"""Packed atomics, float atomics' order, scalar stores and atomics of gfx950, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import gfx950_asm as asm
import ml_dtypes
import numpy as np
import pytest
from compared import compared
from lane_values import assert_same

LANE = np.arange(64)
WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)\n"
# s[24:27]: the kernel's own input.
RESOURCE = """s_mov_b32 s24, s4
s_and_b32 s25, s5, 0xffff
s_mov_b32 s26, 0x100000
s_mov_b32 s27, 0x27000
"""


def _run(body: str, rows: np.ndarray, outputs: int) -> np.ndarray:
    kernel = asm.Kernel(body, len(rows), outputs, lds_bytes=1024)
    return asm.run(asm.assemble({"k": kernel}), "k", kernel, rows[None])[0]


# ---- packed atomics ----
SPECIAL = {
    np.float16: [0, 0x8000, 0x7C00, 0xFC00, 0x7BFF, 0x0001, 0x83FF, 0x3C00],
    ml_dtypes.bfloat16: [0, 0x8000, 0x7F80, 0xFF80, 0x7F7F, 0x0001, 0x807F, 0x3F80],
}
AT = " offset:512\n"  # row 2 of the input
KINDS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def _packed(seed: int, dtype: type) -> np.ndarray:
    """64 pairs: numbers of all sizes, and special ones."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(128) * 2.0 ** rng.integers(-12, 12, 128)).astype(dtype)
    bits = x.view(np.uint16)
    bits[rng.permutation(128)[:48]] = rng.choice(SPECIAL[dtype], 48)
    return bits.view(np.uint32)


def _sum(a: np.ndarray, b: np.ndarray, dtype: type) -> np.ndarray:
    pairs = [x.copy().view(dtype).astype(np.float32) for x in (a, b)]
    with np.errstate(all="ignore"):
        return (pairs[0] + pairs[1]).astype(dtype).view(np.uint32)


def _same_numbers(actual: np.ndarray, expected: np.ndarray, dtype: type) -> None:
    """The same bits, but for those of a NaN."""
    one, other = actual.view(np.uint16), expected.view(np.uint16)
    nan = np.isnan(one.view(dtype)) & np.isnan(other.view(dtype))
    np.testing.assert_array_equal(np.where(nan, 0, one), np.where(nan, 0, other))


def _forms() -> list:
    forms = {
        "global_atomic_pk_add_{}": "global_atomic_pk_add_{} v16, v17, s[4:5]" + AT,
        "flat_atomic_pk_add_{}": "flat_atomic_pk_add_{} v[2:3], v17" + AT,
        "buffer_atomic_pk_add_{}": "buffer_atomic_pk_add_{} v17, v16, s[24:27], 0 offen" + AT,
        "ds_pk_add_{}": "ds_pk_add_{} v16, v17\n",
    }
    return [
        pytest.param(
            text.format(kind),
            kind,
            marks=compared("gfx950", name.format(kind)),
            id=name.format(kind),
        )
        for name, text in forms.items()
        for kind in KINDS
    ]


@pytest.mark.parametrize(("line", "kind"), _forms())
def test_packed_atomics(line: str, kind: str):
    """Row 2 of the input, a word for each lane in another order, and LDS likewise."""
    dtype = KINDS[kind]
    order = np.random.default_rng(7).permutation(64)
    rows = np.stack([order.astype(np.uint32) * 4, _packed(8, dtype), _packed(9, dtype)])
    body = RESOURCE + "ds_write_b32 v1, v18\n"
    body += "v_mov_b32 v2, s4\nv_mov_b32 v3, s5\nv_add_co_u32 v2, vcc, v2, v16\n"
    body += "v_addc_co_u32 v3, vcc, 0, v3, vcc\n" + WAIT + line + WAIT
    lds = line.startswith("ds")
    body += "ds_read_b32 v64, v1\n" if lds else "global_load_dword v64, v1, s[4:5] offset:512\n"
    actual = _run(body + WAIT, rows, 1)[0]
    expected = np.empty(64, np.uint32)
    expected[order] = _sum(rows[2][order], rows[1], dtype)
    _same_numbers(actual, expected, dtype)


@compared("gfx950", "ds_pk_add_rtn_f16", "ds_pk_add_rtn_bf16")
def test_packed_atomics_return_what_was():
    rows = np.stack([LANE.astype(np.uint32) * 4, _packed(10, np.float16), _packed(11, np.float16)])
    body = RESOURCE + "ds_write_b32 v1, v18\n" + WAIT
    for i, kind in enumerate(KINDS):
        body += (
            f"ds_pk_add_rtn_{kind} v{64 + 2 * i}, v16, v17\n{WAIT}ds_read_b32 v{65 + 2 * i}, v1\n"
        )
    body += "global_atomic_pk_add_f16 v68, v16, v17, s[4:5] offset:512 sc0\n"
    body += "buffer_atomic_pk_add_bf16 v17, v16, s[24:27], 0 offen offset:512 sc0\n"
    actual = _run(body + WAIT + "v_mov_b32 v69, v17\n", rows, 6)
    once = _sum(rows[2], rows[1], np.float16)
    twice = _sum(actual[1], rows[1], ml_dtypes.bfloat16)
    for row, expected in zip((0, 4), (rows[2], rows[2]), strict=True):
        assert_same(actual[row : row + 1], expected[None], f"old value {row}")
    _same_numbers(actual[1], once, np.float16)
    assert_same(actual[2:3], actual[1:2], "old value 2")
    _same_numbers(actual[3], twice, ml_dtypes.bfloat16)
    _same_numbers(actual[5], once, np.float16)


@pytest.mark.parametrize("name", ["global_atomic_add_f32", "ds_add_f32"])
def test_float_atomics_go_lane_by_lane(name: str):
    """All lanes into one word: the sum rounds in the order of the lanes."""
    rng = np.random.default_rng(12)
    x = (rng.standard_normal(64) * 10.0 ** rng.integers(-4, 4, 64)).astype(np.float32)
    rows = np.stack([np.zeros(64, np.float32), x]).view(np.uint32)
    body = "v_mov_b32 v2, 0\nds_write_b32 v1, v16\n" + WAIT
    body += "ds_add_f32 v2, v17\n" if name.startswith("ds") else f"{name} v2, v17, s[4:5]\n"
    body += WAIT
    body += (
        "ds_read_b32 v64, v2\n" if name.startswith("ds") else "global_load_dword v64, v2, s[4:5]\n"
    )
    actual = _run(body + WAIT, rows, 1)[0].view(np.float32)
    total = np.float32(0)
    for each in x:
        total = total + each
    assert total != x[::-1].cumsum(dtype=np.float32)[-1]
    np.testing.assert_array_equal(actual, total)


# ---- scalar stores and atomics ----
ATOMICS: dict[str, Callable[[int, int, int], int]] = {
    "swap": lambda old, x, bits: x,
    "add": lambda old, x, bits: old + x,
    "sub": lambda old, x, bits: old - x,
    "smin": lambda old, x, bits: min(_signed(old, bits), _signed(x, bits)),
    "umin": lambda old, x, bits: min(old, x),
    "smax": lambda old, x, bits: max(_signed(old, bits), _signed(x, bits)),
    "umax": lambda old, x, bits: max(old, x),
    "and": lambda old, x, bits: old & x,
    "or": lambda old, x, bits: old | x,
    "xor": lambda old, x, bits: old ^ x,
    "inc": lambda old, x, bits: 0 if old >= x else old + 1,
    "dec": lambda old, x, bits: x if old == 0 or old > x else old - 1,
}


def _signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> (bits - 1) else x


def _scalar_forms() -> list:
    return [
        pytest.param(op, bits, marks=compared("gfx950", f"s_atomic_{op}{suffix}"))
        for op in ATOMICS
        for bits, suffix in ((32, ""), (64, "_x2"))
    ]


@pytest.mark.parametrize(("op", "bits"), _scalar_forms())
def test_scalar_atomics(op: str, bits: int):
    """One with the old value returned, one without, on the words of lanes 8 and 16 of the input."""
    data, suffix = ("s40", "") if bits == 32 else ("s[40:41]", "_x2")
    rng = np.random.default_rng(len(op) + bits)
    for _ in range(3):
        rows = rng.integers(0, 2**32, (1, 64), dtype=np.uint32)
        body = "s_mov_b64 s[42:43], 0\ns_load_dwordx2 s[40:41], s[4:5], 0x0\ns_movk_i32 s44, 64\n"
        body += WAIT + "s_mov_b64 s[42:43], s[40:41]\n"
        body += f"s_atomic_{op}{suffix} {data}, s[4:5], s44\n"
        body += f"s_atomic_{op}{suffix} {data}, s[4:5], 0x20 glc\n" + WAIT
        body += "v_mov_b32 v64, s40\nv_mov_b32 v65, s41\nglobal_load_dword v66, v1, s[4:5]\n" + WAIT
        actual = _run(body, rows, 3)
        words = rows[0].view(np.uint32 if bits == 32 else np.uint64)
        expected, step = words.copy(), 256 // bits
        for at in (step, 2 * step):
            result = ATOMICS[op](int(words[at]), int(words[0]), bits)
            expected[at] = result & ((1 << bits) - 1)
        assert_same(actual[2:3], expected.view(np.uint32)[None], "memory")
        returned = actual[: bits // 32, 0]
        np.testing.assert_array_equal(returned, words[step : step + 1].view(np.uint32))


@compared("gfx950", "s_atomic_cmpswap", "s_atomic_cmpswap_x2")
def test_scalar_compare_and_swap():
    """The new value, then what it is compared with: once equal, once not."""
    rows = np.arange(100, 164, dtype=np.uint32)[None]
    body = "s_mov_b32 s40, 7\ns_movk_i32 s41, 108\ns_mov_b64 s[44:45], 5\n"
    body += "s_movk_i32 s46, 116\ns_movk_i32 s47, 117\ns_mov_b64 s[48:49], s[40:41]\n"
    body += "s_atomic_cmpswap s[40:41], s[4:5], 0x20\ns_atomic_cmpswap s[48:49], s[4:5], 0x30 glc\n"
    body += "s_atomic_cmpswap_x2 s[44:47], s[4:5], 0x40\n" + WAIT
    body += "v_mov_b32 v64, s48\nglobal_load_dword v65, v1, s[4:5]\n" + WAIT
    actual = _run(body, rows, 2)
    expected = rows[0].copy()
    expected[8], expected[16], expected[17] = 7, 5, 0
    assert_same(actual[1:2], expected[None], "memory")
    assert (actual[0] == 112).all()


@compared("gfx950", "s_store_dword", "s_store_dwordx2", "s_store_dwordx4")
def test_scalar_stores():
    rows = np.random.default_rng(14).integers(0, 2**32, (1, 64), dtype=np.uint32)
    body = "s_load_dwordx4 s[40:43], s[4:5], 0x0\ns_movk_i32 s44, 96\n" + WAIT
    body += "s_store_dword s41, s[4:5], 0x20\ns_store_dwordx2 s[42:43], s[4:5], s44\n"
    body += "s_store_dwordx4 s[40:43], s[4:5], 0x80\n" + WAIT
    actual = _run(body + "global_load_dword v64, v1, s[4:5]\n" + WAIT, rows, 1)
    expected = rows[0].copy()
    expected[8], expected[24:26], expected[32:36] = rows[0, 1], rows[0, 2:4], rows[0, 0:4]
    assert_same(actual, expected[None], "scalar stores")
