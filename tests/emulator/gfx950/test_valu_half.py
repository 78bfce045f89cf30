"""Vector ALU instructions of gfx950 on halves of registers, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import gfx950_asm as asm
import numpy as np
import pytest
from compared import compared
from lane_math import F32, arity, fma, half_of, ieee_max, ieee_min, nan_wins, operand_count
from lane_values import assert_same, f16_pairs, f32

GROUPS = 12


HALF: dict[str, Callable] = {
    "v_add_f16": lambda a, b: a + b,
    "v_sub_f16": lambda a, b: a - b,
    "v_mul_f16": lambda a, b: a * b,
    "v_max_f16": ieee_max,
    "v_min_f16": ieee_min,
    "v_fma_f16": lambda a, b, c: (
        a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    ).astype(np.float16),
    "v_rcp_f16": lambda a: (1 / a.astype(F32)).astype(np.float16),
    "v_sqrt_f16": lambda a: np.sqrt(a.astype(F32)).astype(np.float16),
    "v_floor_f16": np.floor,
    "v_trunc_f16": np.trunc,
}


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@compared("gfx950", *HALF)
def test_half_precision_clears_or_keeps_the_upper_half():
    rows = f16_pairs(np.random.default_rng(3), (GROUPS, 4, 64))
    kernels = {}
    for name, fn in HALF.items():
        operands = ", ".join(f"v{16 + i}" for i in range(operand_count(fn, name)))
        kernels[name] = asm.Kernel(f"v_mov_b32 v64, v19\n{name} v64, {operands}", 4)
    code = asm.assemble(kernels)
    for name, kernel in kernels.items():
        fn = HALF[name]
        actual = asm.run(code, name, kernel, rows)[:, 0]
        low = fn(*(half_of(rows[:, i]) for i in range(operand_count(fn, name)))).astype(np.float16)
        assert_same((actual & 0xFFFF).astype(np.uint16).view(np.float16), low, name)
        upper = rows[:, 3] >> 16 if name == "v_fma_f16" else np.zeros_like(rows[:, 3])
        assert_same(actual >> 16, upper, f"upper half of {name}")


@compared(
    "gfx950", *("v_pk_add_f16", "v_pk_mul_f16", "v_pk_max_f16", "v_pk_fma_f16", "v_pk_maximum3_f16")
)
def test_packed_half_precision():
    rows = f16_pairs(np.random.default_rng(4), (GROUPS, 3, 64))
    bodies = {
        "v_pk_add_f16": (lambda a, b: a + b, ""),
        "v_pk_mul_f16": (lambda a, b: a * b, ""),
        "v_pk_max_f16": (ieee_max, ""),
        "v_pk_maximum3_f16": (lambda a, b, c: nan_wins(ieee_max, a, b, c), ""),
        "v_pk_fma_f16": (HALF["v_fma_f16"], ""),
    }
    kernels = {
        name: asm.Kernel(
            f"{name} v64, " + ", ".join(f"v{16 + i}" for i in range(arity(fn, 2))) + suffix, 3
        )
        for name, (fn, suffix) in bodies.items()
    }
    kernels["swapped"] = asm.Kernel(
        "v_pk_add_f16 v64, v16, v17 op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[0,1] neg_hi:[1,0]", 3
    )
    code = asm.assemble(kernels)
    for name, (fn, _) in bodies.items():
        actual = asm.run(code, name, kernels[name], rows)[:, 0]
        for high in (False, True):
            expected = fn(*(half_of(rows[:, i], high) for i in range(arity(fn, 2))))
            assert_same(half_of(actual, high), expected.astype(np.float16), name)
    actual = asm.run(code, "swapped", kernels["swapped"], rows)[:, 0]
    a, b = rows[:, 0], rows[:, 1]
    assert_same(half_of(actual), half_of(a, True) - half_of(b), "low of op_sel")
    assert_same(half_of(actual, True), half_of(b, True) - half_of(a), "high of op_sel")


@compared("gfx950", "v_dot2c_f32_f16", "v_dot2c_f32_bf16")
def test_dot_products_of_pairs_onto_a_sum():
    """The lower product is added first, each with one rounding."""
    halves = f16_pairs(np.random.default_rng(21), (GROUPS, 2, 64))
    sums = f32(np.random.default_rng(22), (GROUPS, 1, 64)).view(np.uint32)
    rows = np.concatenate([halves, sums], 1)
    a, b, c = rows[:, 0], rows[:, 1], rows[:, 2].copy().view(F32)
    kernels = {
        name: asm.Kernel(f"v_mov_b32 v64, v18\nv_dot2c_f32_{name} v64, v16, v17", 3)
        for name in ("f16", "bf16")
    }
    wide = {
        "f16": lambda x, high: half_of(x, high).astype(F32),
        "bf16": lambda x, high: (x & 0xFFFF0000 if high else x << 16).view(F32),
    }
    code = asm.assemble(kernels)
    for name, single in wide.items():
        expected = fma(single(a, False), single(b, False), c)
        expected = fma(single(a, True), single(b, True), expected)
        assert_same(asm.run(code, name, kernels[name], rows)[:, 0], expected, f"v_dot2c_f32_{name}")


@compared("gfx950", "v_fma_mix_f32", "v_fma_mixhi_f16")
def test_mixed_precision():
    rows = f32(np.random.default_rng(14), (GROUPS, 2, 64)).view(np.uint32)
    halves = f16_pairs(np.random.default_rng(15), (GROUPS, 2, 64))
    rows = np.concatenate([rows, halves], 1)
    x = rows[:, 0].copy().view(F32)
    h, old = rows[:, 2], rows[:, 3]
    kernels = {
        "mix": asm.Kernel("v_fma_mix_f32 v64, v16, v18, -v19 op_sel:[0,1,0] op_sel_hi:[0,1,1]", 4),
        "hi": asm.Kernel(
            "v_mov_b32 v64, v19\nv_fma_mixhi_f16 v64, v16, v18, 1.0 op_sel_hi:[0,1,0]", 4
        ),
    }
    code = asm.assemble(kernels)
    actual = asm.run(code, "mix", kernels["mix"], rows)[:, 0]
    assert_same(actual, fma(x, half_of(h, True).astype(F32), -half_of(old).astype(F32)), "mix")
    actual = asm.run(code, "hi", kernels["hi"], rows)[:, 0]
    single = fma(x, half_of(h).astype(F32), np.ones_like(x))
    assert_same(half_of(actual, True), single.astype(np.float16), "mixhi")
    assert_same(actual & 0xFFFF, old & 0xFFFF, "mixhi keeps the lower half")


@compared("gfx950", "v_cvt_pkrtz_f16_f32")
def test_round_toward_zero_pair():
    rows = f32(np.random.default_rng(16), (GROUPS, 2, 64))
    kernel = asm.Kernel("v_cvt_pkrtz_f16_f32 v64, v16, v17", 2)
    actual = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows)[:, 0]
    for i in range(2):
        x = rows[:, i]
        near = x.astype(np.float16)
        too_far = (np.abs(near.astype(np.float64)) > np.abs(x.astype(np.float64))) & ~np.isnan(x)
        expected = np.where(too_far, np.nextafter(near, np.float16(0)), near).astype(np.float16)
        assert_same(half_of(actual, i == 1), expected, "v_cvt_pkrtz_f16_f32")


@compared("gfx950", "v_cvt_f32_f16")
def test_single_precision_of_a_half():
    rows = f16_pairs(np.random.default_rng(22), (GROUPS, 1, 64))
    kernel = asm.Kernel("v_cvt_f32_f16 v64, v16", 1)
    actual = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows)[:, 0]
    assert_same(actual, half_of(rows[:, 0]).astype(F32), "v_cvt_f32_f16")
