"""Matrix instructions of gfx950 on floats of 4, 6 and 8 bits: formats, layouts, scales."""

from __future__ import annotations

import gfx950_asm as asm
import ml_dtypes
import numpy as np
import pytest
from compared import compared
from lane_math import fma
from lane_values import assert_same

from jax_fa import emulator

LANE = np.arange(64)
F32 = np.float32
# In the order of cbsz and blgp: bits of an element.
FORMATS = {
    ml_dtypes.float8_e4m3fn: 8,
    ml_dtypes.float8_e5m2: 8,
    ml_dtypes.float6_e2m3fn: 6,
    ml_dtypes.float6_e3m2fn: 6,
    ml_dtypes.float4_e2m1fn: 4,
}
PAIRS = [(a, b) for a in range(5) for b in range(5)]
DEPTHS = {16: 128, 32: 64}


def _bits(x: np.ndarray, kind: int) -> np.ndarray:
    """[64 lanes, 32 elements] of codes to register rows, the first in the lowest bits."""
    width = list(FORMATS.values())[kind]
    spread = (x[..., None] >> np.arange(width)) & 1
    return np.packbits(spread.reshape(64, -1), axis=-1, bitorder="little").view(np.uint32).T


def _k_of(size: int, kind: int) -> np.ndarray:
    """k of each element of each lane, [64, 32]."""
    group, e = LANE[:, None] // size, np.arange(32)
    if kind < 2:
        return 16 * group + e % 16 + 1024 // size * (e // 16)
    return 32 * group + e


def _codes(rng: np.random.Generator, size: int, kind: int) -> np.ndarray:
    """A row of [size, K] of any codes that are numbers, but for one NaN and one infinity."""
    width = list(FORMATS.values())[kind]
    codes = rng.integers(0, 1 << width, (size, DEPTHS[size])).astype(np.uint8)
    if kind < 2:  # all exponents, no NaN
        codes = np.where((codes & 0x7F) > 0x7B, codes & 0x3F, codes)
        codes[3, 5] = (0x7F, 0x7E)[kind]
        codes[7, 9] = (0xFF, 0xFC)[kind]
    return codes


def _values(codes: np.ndarray, kind: int) -> np.ndarray:
    return codes.view(list(FORMATS)[kind]).astype(F32)


def _place(size: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.arange(size * size // 64)[:, None]
    if size == 16:
        return 4 * (LANE // 16) + r, np.broadcast_to(LANE % 16, (len(r), 64))
    return 8 * (r // 4) + 4 * (LANE // 32) + r % 4, np.broadcast_to(LANE % 32, (len(r), 64))


def _sum(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a [I, K] and b [J, K] added to c [I, J], one fused multiply-add per k."""
    for k in range(a.shape[1]):
        x, y = np.broadcast_arrays(a[:, k : k + 1], b[:, k])
        c = fma(x, y, c)
    return c


def _range(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]"


class Problem:
    """Operands of one product and where they stand: A from v16, B from v24, C from v32, scales."""

    def __init__(self, size: int, kinds: tuple[int, int], seed: int):
        rng = np.random.default_rng(seed)
        self.size, self.kinds = size, kinds
        codes = [_codes(rng, size, kind) for kind in kinds]
        self.a, self.b = (_values(x, kind) for x, kind in zip(codes, kinds, strict=True))
        self.c = rng.normal(size=(size, size)).astype(F32)
        self.scales = rng.integers(100, 140, (2, 64, 4)).astype(np.uint8)  # of A, B; lane, byte
        self.scales[0, 1, 2] = 255
        rows = np.zeros((8 + 8, 64), np.uint32)
        for x, kind, first in zip(codes, kinds, (0, 8), strict=True):
            packed = _bits(x[(LANE % size)[:, None], _k_of(size, kind)], kind)
            rows[first : first + len(packed)] = packed
        scales = self.scales.view(np.uint32)[..., 0]
        self.rows = np.concatenate([rows, self.c[_place(size)].view(np.uint32), scales])
        self.outputs = size * size // 64

    def line(self, mnemonic: str, c: str = "", suffix: str = "") -> str:
        a, b = (list(FORMATS.values())[kind] for kind in self.kinds)  # 32 elements: so many dwords
        operands = f"{_range(16, a)}, {_range(24, b)}"
        c = c or _range(32, self.outputs)
        formats = f" cbsz:{self.kinds[0]} blgp:{self.kinds[1]}"
        return f"{mnemonic} {_range(64, self.outputs)}, {operands}, {c}{suffix}{formats}"

    def scale_registers(self) -> str:
        return f", v{32 + self.outputs}, v{33 + self.outputs}"


def _run_all(size: int, bodies: dict[tuple[int, int], str], problems: dict) -> dict:
    kernels = {
        f"k{a}{b}": asm.Kernel(body, len(problems[a, b].rows), problems[a, b].outputs)
        for (a, b), body in bodies.items()
    }
    code = asm.assemble(kernels)
    return {
        pair: asm.run(code, f"k{pair[0]}{pair[1]}", kernel, problems[pair].rows[None])[0]
        for pair, kernel in zip(bodies, kernels.values(), strict=True)
    }


def _sizes(form: str) -> list:
    return [
        pytest.param(size, marks=compared("gfx950", f"{form}_{size}x{size}x{depth}_f8f6f4"))
        for size, depth in DEPTHS.items()
    ]


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("size", _sizes("v_mfma_f32"))
def test_every_pair_of_formats(size: int):
    problems = {pair: Problem(size, pair, place) for place, pair in enumerate(PAIRS)}
    name = f"v_mfma_f32_{size}x{size}x{DEPTHS[size]}_f8f6f4"
    bodies = {pair: problem.line(name) for pair, problem in problems.items()}
    for pair, out in _run_all(size, bodies, problems).items():
        problem = problems[pair]
        expected = _sum(problem.a, problem.b, problem.c)[_place(size)]
        assert_same(out, expected, f"{name}, formats {pair}")


def _short() -> list:
    return [
        pytest.param(size, a, b, marks=compared("gfx950", _short_name(size, a, b)))
        for size in DEPTHS
        for a in (0, 1)
        for b in (0, 1)
    ]


def _short_name(size: int, a: int, b: int) -> str:
    kinds = ("fp8", "bf8")
    return f"v_mfma_f32_{size}x{size}x{DEPTHS[size] // 4}_{kinds[a]}_{kinds[b]}"


@pytest.mark.parametrize(("size", "kind_a", "kind_b"), _short())
def test_a_quarter_of_the_depth(size: int, kind_a: int, kind_b: int):
    rng = np.random.default_rng(size)
    depth = DEPTHS[size] // 4
    codes = [_codes(rng, size, kind)[:, :depth] for kind in (kind_a, kind_b)]
    c = rng.normal(size=(size, size)).astype(F32)
    k = 8 * (LANE[:, None] // size) + np.arange(8)
    operands = [_bits(x[(LANE % size)[:, None], k], 0) for x in codes]
    rows = np.concatenate([*operands, c[_place(size)].view(np.uint32)])
    outputs = size * size // 64
    body = (
        f"{_short_name(size, kind_a, kind_b)} {_range(64, outputs)}, v[16:17], v[18:19], "
        f"{_range(20, outputs)}"
    )
    kernel = asm.Kernel(body, len(rows), outputs)
    out = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows[None])[0]
    expected = _sum(_values(codes[0], kind_a), _values(codes[1], kind_b), c)[_place(size)]
    assert_same(out, expected, body)


@pytest.mark.parametrize("size", _sizes("v_mfma_scale_f32"))
def test_scales_of_blocks(size: int):
    """Byte 1 of A's scales and byte 2 of B's, then A's byte 2 with its NaN; C may be a constant."""
    problems = {pair: Problem(size, pair, place) for place, pair in enumerate(PAIRS)}
    name = f"v_mfma_scale_f32_{size}x{size}x{DEPTHS[size]}_f8f6f4"
    for bytes_of, select, c in (
        ((1, 2), " op_sel:[1,0,0] op_sel_hi:[0,1,0]", ""),
        ((2, 3), " op_sel:[0,1,0] op_sel_hi:[1,1,0]", "1.0"),
    ):
        bodies = {
            pair: problem.line(name, c, problem.scale_registers() + select)
            for pair, problem in problems.items()
        }
        for pair, out in _run_all(size, bodies, problems).items():
            problem = problems[pair]
            total = np.ones_like(problem.c) if c else problem.c
            for block in range(DEPTHS[size] // 32):
                k, lanes = (
                    slice(32 * block, 32 * block + 32),
                    slice(size * block, size * block + size),
                )
                a, b = (problem.scales[i, lanes, bytes_of[i]].astype(int) for i in (0, 1))
                part = _sum(problem.a[:, k], problem.b[:, k], np.zeros_like(problem.c))
                part = np.ldexp(part, a[:, None] + b - 254).astype(F32)
                part[a == 255] = np.nan
                total = total + part
            assert_same(out, total[_place(size)], f"{name}, formats {pair}, bytes {bytes_of}")


def _sparse_name(size: int, a: int, b: int) -> str:
    names = ("fp8", "bf8")
    return f"v_smfmac_f32_{size}x{size}x{DEPTHS[size]}_{names[a]}_{names[b]}"


def _sparse() -> list:
    return [
        pytest.param(size, a, b, marks=compared("gfx950", _sparse_name(size, a, b)))
        for size in DEPTHS
        for a in range(2)
        for b in range(2)
    ]


@pytest.mark.parametrize(("size", "kind_a", "kind_b"), _sparse())
def test_sparse(size: int, kind_a: int, kind_b: int):
    """Two of every four of a row of A are stored, 16 a lane, and 2 bits say where each stands."""
    rng = np.random.default_rng(size + kind_a)
    group = LANE // size
    a, b = (_codes(rng, size, kind) & 0xBF for kind in (kind_a, kind_b))
    pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    place = pairs[rng.integers(0, 6, (64, 8))].reshape(64, 16)
    k_of_a = 32 * group[:, None] + 4 * (np.arange(16) // 2) + place
    stored = a[LANE[:, None] % size, k_of_a]
    kept = np.zeros_like(a)
    kept[LANE[:, None] % size, k_of_a] = stored
    c = rng.standard_normal((size, size)).astype(F32)
    i, j = _place(size)
    positions = (place.astype(np.uint32) << (2 * np.arange(16, dtype=np.uint32))).sum(1)
    rows_a = stored.reshape(64, 16).view(np.uint32).T
    rows_b = _bits(b[LANE[:, None] % size, _k_of(size, kind_b)], kind_b)
    rows = np.concatenate(
        [rows_a, rows_b, positions[None].astype(np.uint32), c[i, j].view(np.uint32)]
    )
    n = len(i)
    moves = "".join(f"v_mov_b32 v{64 + r}, v{29 + r}\n" for r in range(n))
    line = f"{_sparse_name(size, kind_a, kind_b)} {_range(64, n)}, v[16:19], v[20:27], v28"
    kernel = asm.Kernel(f"{moves}s_nop 1\n{line}", len(rows), n)
    actual = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows[None])[0]
    expected = _sum(_values(kept, kind_a), _values(b, kind_b), c)
    assert_same(actual, np.ascontiguousarray(expected[i, j]).view(np.uint32), line)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (".long 0xd3ad0500, 0x04622108", "unknown format 5"),
        ("v_mfma_ld_scale_b32 v30, v31\ns_nop 0\ns_nop 0", "no matrix product behind it"),
        ("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[24:27]\n", None),
        (".long 0xd3ad0800, 0x04622108", "abid without scales"),
        (".long 0xd3ac0000, 0x1801811e, 0xd3ad0800, 0x04622108", "scales must be in registers"),
    ],
)
def test_what_cannot_be_is_said(body: str, says: str | None):
    zeros = "".join(f"v_mov_b32 v{i}, 0\n" for i in range(2, 32)) + "s_nop 1\n"
    kernel = asm.Kernel(zeros + body + "\ns_nop 15\nv_mov_b32 v64, v0", 1)
    code = asm.assemble({"k": kernel})
    rows = np.zeros((1, 1, 64), np.uint32)
    if says is None:
        assert (asm.run(code, "k", kernel, rows) == 0).all()
        return
    with pytest.raises(emulator.EmulatorError, match=says):
        asm.run(code, "k", kernel, rows)
