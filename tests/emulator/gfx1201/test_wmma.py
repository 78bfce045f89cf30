"""The matrix instructions of gfx1201 against NumPy: layouts, formats, modifiers, order of sums."""

from __future__ import annotations

import gfx1201_asm as asm
import ml_dtypes
import numpy as np
import pytest
from compared import compared
from gfx1201_asm import Case
from lane_values import assert_same

SIDE = 16
LANE = np.arange(32)


def _elements(matrix: np.ndarray, bits: int) -> np.ndarray:
    """A [16, K] (or the transpose of B) in lanes: dwords [registers, 32]."""
    depth = matrix.shape[1]
    e = np.arange(depth // 2)
    k = 8 * (e // 4) + 4 * (LANE[:, None] // 16) + e % 4  # [lane, element]
    per_lane = np.ascontiguousarray(matrix[LANE[:, None] % 16, k])
    if bits == 4:
        nibbles = per_lane.astype(np.uint32) & 15
        groups = nibbles.reshape(32, -1, 8) << (4 * np.arange(8, dtype=np.uint32))
        return np.bitwise_or.reduce(groups, axis=-1).astype(np.uint32).T
    return per_lane.view(np.uint32).T


def _accumulator(matrix: np.ndarray) -> np.ndarray:
    """C or D [16, 16] of 32-bit elements in lanes: [8, 32]."""
    r = np.arange(8)[:, None]
    return np.ascontiguousarray(matrix[8 * (LANE // 16) + r, LANE % 16])


def _packed_accumulator(matrix: np.ndarray) -> np.ndarray:
    """C or D of 16-bit elements, two a register: [4, 32] dwords."""
    halves = _accumulator(matrix.view(np.uint16)).astype(np.uint32)
    return halves[0::2] | halves[1::2] << 16


def _sum_in_order(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """c + a @ b in single precision, one k after the other; products are exact in double."""
    total = c.astype(np.float32)
    for k in range(a.shape[1]):
        product = a[:, k : k + 1].astype(np.float64) * b[k].astype(np.float64)
        total = (product + total).astype(np.float32)
    return total


def _run(rows: list[np.ndarray], line: str, registers: int) -> np.ndarray:
    data = np.concatenate([np.ascontiguousarray(row).view(np.uint32) for row in rows])[None]
    return asm.run({"case": Case(line, registers)}, data)["case"][0]


FORMATS = {
    "f16": (np.float16, np.float16),
    "bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    "fp8_fp8": (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
    "fp8_bf8": (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
    "bf8_fp8": (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn),
    "bf8_bf8": (ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2),
}


def _matrices(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a_type, b_type = FORMATS[name]
    a = rng.normal(size=(SIDE, SIDE)).astype(a_type)
    b = rng.normal(size=(SIDE, SIDE)).astype(b_type)
    # Sums of very different sizes, so that another order would give other bits.
    a[:, 3] = np.float32(200)
    return a, b, rng.normal(size=(SIDE, SIDE)).astype(np.float32)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=compared("gfx1201", f"v_wmma_f32_16x16x16_{name}"))
        for name in FORMATS
    ],
)
def test_single_precision_sums(name: str):
    a, b, c = _matrices(name, 1)
    bits = 8 * a.dtype.itemsize
    n = bits // 4  # registers of A and of B
    rows = [_elements(a, bits), _elements(b.T, bits), _accumulator(c)]
    operands = f"v[16:{15 + n}], v[{16 + n}:{15 + 2 * n}], v[{16 + 2 * n}:{23 + 2 * n}]"
    out = _run(rows, f"v_wmma_f32_16x16x16_{name} v[64:71], {operands}", 8)
    expected = _sum_in_order(a.astype(np.float32), b.astype(np.float32), c)
    assert_same(out.view(np.float32), _accumulator(expected), name)


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_narrow_sums(name: str):
    a, b, c = _matrices(name, 2)
    c = c.astype(a.dtype)
    rows = [_elements(a, 16), _elements(b.T, 16), _packed_accumulator(c)]
    line = f"v_wmma_{name}_16x16x16_{name} v[64:67], v[16:19], v[20:23], v[24:27]"
    expected = _sum_in_order(a.astype(np.float32), b.astype(np.float32), c.astype(np.float32))
    with np.errstate(over="ignore"):
        expected = expected.astype(a.dtype)
    assert_same(_run(rows, line, 4), _packed_accumulator(expected), name)


@pytest.mark.parametrize(("bits", "depth"), [(8, 16), (4, 16), (4, 32)])
@pytest.mark.parametrize("signed", [(False, False), (True, False), (True, True)])
def test_integers(bits: int, depth: int, signed: tuple[bool, bool]):
    rng = np.random.default_rng(3)
    raw = [rng.integers(0, 2**bits, (SIDE, depth)).astype(np.uint8) for _ in range(2)]
    c = rng.integers(-(2**31), 2**31, (SIDE, SIDE), dtype=np.int64).astype(np.int32)
    c[0] = 2**31 - 1
    n = depth * bits // 64
    rows = [_elements(raw[0], bits), _elements(raw[1], bits), _accumulator(c)]
    operands = ", ".join(
        f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"
        for first, count in ((16, n), (16 + n, n), (16 + 2 * n, 8))
    )
    values = [
        np.where(is_signed & (x >= 2 ** (bits - 1)), x.astype(np.int64) - 2**bits, x)
        for x, is_signed in zip(raw, signed, strict=True)
    ]
    total = values[0] @ values[1].T + c.astype(np.int64)
    line = f"v_wmma_i32_16x16x{depth}_iu{bits} v[64:71], {operands}"
    line += f" neg_lo:[{int(signed[0])},{int(signed[1])},0]"
    for clamp in ("", " clamp"):
        wanted = np.clip(total, -(2**31), 2**31 - 1) if clamp else total
        out = _run(rows, line + clamp, 8)
        assert_same(out.view(np.int32), _accumulator(wanted.astype(np.int32)), line + clamp)


def test_modifiers_constants_and_overlap():
    a, b, c = _matrices("f16", 4)
    rows = [_elements(a, 16), _elements(b.T, 16), _accumulator(c)]
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    one = np.ones((SIDE, SIDE), np.float32)
    flipped = wide_a.copy()
    flipped[:, 0::2] *= -1
    odd = wide_b.copy()
    odd[1::2] *= -1
    wmma = "v_wmma_f32_16x16x16_f16"
    cases = {
        # C is a constant, or in part the destination itself.
        f"{wmma} v[64:71], v[16:19], v[20:23], 1.0": (wide_a, wide_b, one),
        f"{wmma} v[64:71], v[16:19], v[20:23], 0": (wide_a, wide_b, 0 * one),
        "\n".join(f"v_mov_b32 v{68 + i}, v{24 + i}" for i in range(8))
        + f"\n{wmma} v[64:71], v[16:19], v[20:23], v[68:75]": (wide_a, wide_b, c),
        # neg_lo flips even elements, neg_hi odd ones; of C they are sign and absolute value.
        f"{wmma} v[64:71], v[16:19], v[20:23], v[24:31] neg_lo:[1,0,0]": (flipped, wide_b, c),
        f"{wmma} v[64:71], v[16:19], v[20:23], v[24:31] neg_hi:[0,1,0]": (wide_a, odd, c),
        f"{wmma} v[64:71], v[16:19], v[20:23], v[24:31] neg_lo:[0,0,1]": (wide_a, wide_b, -c),
        f"{wmma} v[64:71], v[16:19], v[20:23], v[24:31] neg_hi:[0,0,1]": (
            wide_a,
            wide_b,
            np.abs(c),
        ),
        # EXEC does not matter.
        f"s_mov_b32 exec_lo, 1\n{wmma} v[64:71], v[16:19], v[20:23], v[24:31]": (wide_a, wide_b, c),
    }
    for line, (x, y, z) in cases.items():
        out = _run(rows, line, 8).view(np.float32)
        assert_same(out, _accumulator(_sum_in_order(x, y, z)), line)
