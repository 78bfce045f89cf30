"""Halves of registers, dual issue, mixed precision and division of gfx1201, against NumPy."""

from __future__ import annotations

import gfx1201_asm as asm
import numpy as np
import pytest
from compared import compared
from gfx1201_asm import Case
from lane_math import fma, half_of
from lane_values import assert_same, f16_pairs, f32, u32

GROUPS = 6
LANES = np.arange(32)
F32, F64 = np.float32, np.float64


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def _vop3(number: int, op_sel: int, *sources: int) -> str:
    """A VOP3 instruction into v64, where the assembler has no way to write its op_sel."""
    low = 0xD4000000 | number << 16 | op_sel << 11 | 64
    return f".long {low:#x}, {sum(code << 9 * i for i, code in enumerate(sources)):#x}"


@compared(
    "gfx1201",
    "v_add_f16",
    "v_mul_f16",
    "v_fma_f16",
    "v_fmac_f16",
    "v_and_b16",
    "v_cvt_f16_f32",
    "v_cvt_i32_i16",
    "v_frexp_exp_i16_f16",
    "v_frexp_mant_f16",
)
def test_halves_of_registers():
    rows = f16_pairs(np.random.default_rng(5), (GROUPS, 3, 32))
    halves = rows.view(np.float16).reshape(GROUPS, 3, 32, 2)
    old = 0xABCD1234
    cases = {
        # v_add_f16 v64.l, v16.l, v17.l: the upper half stays.
        "low": Case(f"v_mov_b32 v64, {old:#x}\nv_add_f16 v64, v16, v17"),
        "e64": Case(f"v_mov_b32 v64, {old:#x}\n{_vop3(0x135, 0b1001, 272, 273)}"),
        # v_add_f16_e32 v64.h, v16.h, v17.l: bit 7 of a register number is the upper half.
        "e32": Case(f"v_mov_b32 v64, {old:#x}\n.long {50 << 25 | 192 << 17 | 17 << 9 | 400}"),
        "fma": Case(f"v_mov_b32 v64, {old:#x}\nv_fma_f16 v64, v16, v17, v18 op_sel:[0,1,1,0]"),
        "fmac": Case("v_mov_b32 v64, v18\nv_fmac_f16 v64, v16, v17"),
        "literal": Case("v_mul_f16 v64, 0x4200, v16\nv_and_b32 v64, 0xffff, v64"),
        "inline": Case("v_mul_f16 v64, 2.0, v16\nv_and_b32 v64, 0xffff, v64"),
        "and": Case(f"v_mov_b32 v64, {old:#x}\n{_vop3(866, 0b0011, 272, 273)}"),
        "cvt": Case(f"v_mov_b32 v64, {old:#x}\n{_vop3(0x18A, 0b1000, 242)}"),
        "i16": Case(_vop3(0x1EA, 0b0001, 272)),
        "frexp": Case("v_frexp_exp_i16_f16 v64, v16\nv_frexp_mant_f16 v65, v16", 2),
    }
    cases = {name: Case("v_mov_b32 v64, 0\n" + c.body, c.outputs) for name, c in cases.items()}
    cases["frexp"] = Case("v_mov_b32 v65, 0\n" + cases["frexp"].body, 2)
    out = {name: value.view(np.uint16) for name, value in asm.run(cases, rows).items()}

    def check(name: str, half: int, expected: np.ndarray, other: int | None = None):
        actual = out[name][:, 0].reshape(GROUPS, 32, 2)
        assert_same(actual[..., half], expected.astype(np.float16), name)
        if other is not None:
            assert (actual[..., 1 - half] == other).all(), name

    a, b, c = (halves[:, i] for i in range(3))

    def fma(x, y, z):
        return x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)

    check("low", 0, a[..., 0] + b[..., 0], 0xABCD)
    check("e64", 1, a[..., 1] * b[..., 0], 0x1234)
    check("e32", 1, a[..., 1] + b[..., 0], 0x1234)
    check("fma", 0, fma(a[..., 0], b[..., 1], c[..., 1]), 0xABCD)
    check("fmac", 0, fma(a[..., 0], b[..., 0], c[..., 0]))
    check("literal", 0, a[..., 0] * np.float16(3))
    check("inline", 0, a[..., 0] * np.float16(2))
    check("cvt", 1, np.ones((GROUPS, 32)), 0x1234)
    both = (rows[:, 0] & rows[:, 1]) >> 16
    assert_same(out["and"].view(np.uint32)[:, 0], 0xABCD0000 | both, "v_and_b16")
    signed = (rows[:, 0].view(np.int32) >> 16).astype(np.int32)
    assert_same(out["i16"].view(np.int32)[:, 0], signed, "v_cvt_i32_i16")
    finite = np.isfinite(a[..., 0])
    mantissa, exponent = np.frexp(a[..., 0].astype(np.float32))
    got = out["frexp"].view(np.uint32)
    assert_same(
        (got[:, 0] & 0xFFFF).astype(np.uint16).view(np.int16)[finite],
        exponent[finite].astype(np.int16),
        "v_frexp_exp_i16_f16",
    )
    assert_same(
        (got[:, 1] & 0xFFFF).astype(np.uint16).view(np.float16)[finite],
        mantissa[finite].astype(np.float16),
        "v_frexp_mant_f16",
    )


@compared(
    "gfx1201",
    "v_dual_mul_f32",
    "v_dual_add_f32",
    "v_dual_sub_f32",
    "v_dual_mov_b32",
    "v_dual_fmac_f32",
    "v_dual_max_num_f32",
    "v_dual_cndmask_b32",
)
def test_dual_issue():
    rows = f32(np.random.default_rng(6), (GROUPS, 4, 32))
    a, b, c, d = (rows[:, i] for i in range(4))
    dual = {
        "plain": ("v_dual_mul_f32 v64, v16, v17 :: v_dual_add_f32 v65, v18, v19", a * b, c + d),
        "literal": (
            "v_dual_mul_f32 v64, 0x40400000, v17 :: v_dual_sub_f32 v65, 0x40400000, v18",
            b * np.float32(3),
            np.float32(3) - c,
        ),
        "sum first": (
            "v_dual_add_f32 v64, v16, v17 :: v_dual_mul_f32 v65, v18, v19",
            a + b,
            c * d,
        ),
        "difference first": (
            "v_dual_sub_f32 v64, v16, v17 :: v_dual_mul_f32 v65, v18, v19",
            a - b,
            c * d,
        ),
        # Each half reads what the other writes.
        "crossed": (
            "v_mov_b32 v64, v16\nv_mov_b32 v65, v17\n"
            "v_dual_mov_b32 v64, v65 :: v_dual_mov_b32 v65, v64",
            b,
            a,
        ),
        "x reads y": (
            "v_mov_b32 v65, v16\nv_dual_mov_b32 v64, v65 :: v_dual_mul_f32 v65, v18, v19",
            a,
            c * d,
        ),
        "y reads x": (
            "v_mov_b32 v64, v16\nv_dual_mul_f32 v64, v18, v19 :: v_dual_mov_b32 v65, v64",
            c * d,
            a,
        ),
        "accumulate": (
            "v_mov_b32 v64, v18\nv_mov_b32 v65, v19\n"
            "v_dual_fmac_f32 v64, 2.0, v17 :: v_dual_max_num_f32 v65, v65, v18",
            (b.astype(np.float64) * 2 + c).astype(np.float32),
            np.fmax(d, c) + np.float32(0),
        ),
        "condition": (
            "v_cmp_lt_f32 vcc_lo, v16, v17\n"
            "v_dual_cndmask_b32 v64, v16, v17 :: v_dual_cndmask_b32 v65, v18, v19",
            np.where(a < b, b, a),
            np.where(a < b, d, c),
        ),
    }
    out = asm.run({name: Case(body, 2) for name, (body, _, _) in dual.items()}, rows)
    for name, (_, first, second) in dual.items():
        actual = out[name].view(np.float32)
        if name == "accumulate":  # zeros of either sign are the same maximum
            actual[:, 1] += np.float32(0)
        assert_same(actual[:, 0], first.astype(np.float32), f"{name}, first")
        assert_same(actual[:, 1], second.astype(np.float32), f"{name}, second")


@compared(
    "gfx1201",
    "v_dual_add_nc_u32",
    "v_dual_and_b32",
    "v_dual_lshlrev_b32",
    "v_dual_fmaak_f32",
    "v_dual_fmamk_f32",
)
def test_dual_issue_of_integers_and_constants():
    rows = u32(np.random.default_rng(12), (GROUPS, 3, 32))
    a, b, c = (rows[:, i] for i in range(3))
    x, y = a.view(F32), b.view(F32)
    three = np.full((GROUPS, 32), 3, F32)
    dual = {
        "v_dual_mov_b32 v64, v16 :: v_dual_add_nc_u32 v65, v17, v18": (a, b + c),
        "v_dual_mov_b32 v64, v17 :: v_dual_and_b32 v65, v16, v18": (b, a & c),
        "v_dual_mov_b32 v64, v18 :: v_dual_lshlrev_b32 v65, v16, v17": (c, b << (a & 31)),
        "v_dual_fmaak_f32 v64, v16, v17, 0x40400000 :: v_dual_mov_b32 v65, v18": (
            fma(x, y, three),
            c,
        ),
        "v_dual_fmamk_f32 v64, v16, 0x40400000, v17 :: v_dual_mov_b32 v65, v18": (
            fma(x, three, y),
            c,
        ),
    }
    out = asm.run({body: Case(body, 2) for body in dual}, rows)
    for body, expected in dual.items():
        for place, value in enumerate(expected):
            assert_same(out[body][:, place], value, body)


@compared(
    "gfx1201",
    "v_fmac_f32",
    "v_fmamk_f32",
    "v_fmaak_f32",
    "v_fma_mixlo_f16",
    "v_fma_mixhi_f16",
    "v_mbcnt_lo_u32_b32",
    "v_cvt_pk_rtz_f16_f32",
    "v_cvt_f16_f32",
)
def test_sums_in_place_constants_and_mixed_precision():
    rows = f32(np.random.default_rng(13), (GROUPS, 3, 32))
    a, b, c = (rows[:, i] for i in range(3))
    three = np.full_like(a, 3)
    halves = [half_of(value.view(np.uint32)).astype(F32) for value in (a, b)]
    cases = {
        "fmac": "v_mov_b32 v64, v18\nv_fmac_f32 v64, v16, v17",
        "fmamk": "v_fmamk_f32 v64, v16, 0x40400000, v17",
        "fmaak": "v_fmaak_f32 v64, v16, v17, 0x40400000",
        "mixlo": "v_mov_b32 v64, 0\nv_fma_mixlo_f16 v64, v16, v17, v18 op_sel_hi:[1,0,0]",
        "mixhi": "v_mov_b32 v64, 0\nv_fma_mixhi_f16 v64, v16, v17, v18 op_sel_hi:[0,1,0]",
        "lanes": "v_mbcnt_lo_u32_b32 v64, -1, 0",
        "half": "v_mov_b32 v64, v18\nv_cvt_f16_f32 v64, v16",
        "rtz": "v_cvt_pk_rtz_f16_f32 v64, v16, v17",
    }
    out = asm.run({name: Case(body) for name, body in cases.items()}, rows)
    out = {name: value[:, 0] for name, value in out.items()}
    assert_same(out["fmac"], fma(a, b, c), "v_fmac_f32")
    assert_same(out["fmamk"], fma(a, three, b), "v_fmamk_f32")
    assert_same(out["fmaak"], fma(a, b, three), "v_fmaak_f32")
    low = fma(halves[0], b, c).astype(np.float16)
    assert_same(half_of(out["mixlo"]), low, "v_fma_mixlo_f16")
    high = fma(a, halves[1], c).astype(np.float16)
    assert_same(half_of(out["mixhi"], True), high, "v_fma_mixhi_f16")
    assert_same(out["lanes"], np.broadcast_to(LANES.astype(np.uint32), a.shape), "v_mbcnt")
    assert_same(half_of(out["half"]), a.astype(np.float16), "v_cvt_f16_f32")
    assert_same(out["half"] >> 16, c.view(np.uint32) >> 16, "v_cvt_f16_f32 keeps the upper half")
    for high, x in enumerate((a, b)):
        near = x.astype(np.float16)
        too_far = (np.abs(near.astype(F64)) > np.abs(x.astype(F64))) & ~np.isnan(x)
        expected = np.where(too_far, np.nextafter(near, np.float16(0)), near).astype(np.float16)
        assert_same(half_of(out["rtz"], bool(high)), expected, "v_cvt_pk_rtz_f16_f32")


@compared("gfx1201", "v_dot2_f32_f16", "v_dot2_f32_bf16")
def test_dot_products_of_pairs():
    """The lower product is added first, each with one rounding."""
    halves = f16_pairs(np.random.default_rng(14), (GROUPS, 2, 32))
    sums = f32(np.random.default_rng(15), (GROUPS, 1, 32)).view(np.uint32)
    rows = np.concatenate([halves, sums], 1)
    a, b, c = rows[:, 0], rows[:, 1], rows[:, 2].copy().view(F32)
    out = asm.run(
        {name: Case(f"v_dot2_f32_{name} v64, v16, v17, v18", 1) for name in ("f16", "bf16")},
        rows,
    )
    wide = {
        "f16": lambda x, high: half_of(x, high).astype(F32),
        "bf16": lambda x, high: (x & 0xFFFF0000 if high else x << 16).view(F32),
    }
    for name, single in wide.items():
        expected = fma(single(a, False), single(b, False), c)
        expected = fma(single(a, True), single(b, True), expected)
        assert_same(out[name][:, 0], expected, f"v_dot2_f32_{name}")


@compared("gfx1201", "v_dual_dot2acc_f32_f16", "v_dual_dot2acc_f32_bf16")
def test_dual_dot_products_of_pairs():
    """Their sources are whole registers, also those from v128 on."""
    rows = f16_pairs(np.random.default_rng(17), (GROUPS, 4, 32))
    a, b, c, d = (rows[:, i] for i in range(4))
    moves = (
        "v_mov_b32 v64, 1.0\nv_mov_b32 v65, 2.0\n"
        "v_mov_b32 v200, v16\nv_mov_b32 v145, v17\nv_mov_b32 v203, v18\nv_mov_b32 v150, v19\n"
    )
    cases = {
        "f16": "v_dual_dot2acc_f32_f16 v64, v200, v145 :: v_dual_dot2acc_f32_f16 v65, v203, v150",
        "bf16": "v_dual_dot2acc_f32_bf16 v64, v200, v145 :: v_dual_mov_b32 v65, v203",
    }
    out = asm.run({name: Case(moves + body, 2) for name, body in cases.items()}, rows)

    def dot(x, y, sum_, single):
        sum_ = fma(single(x, False), single(y, False), sum_)
        return fma(single(x, True), single(y, True), sum_)

    def half(x, high):
        return half_of(x, high).astype(F32)

    def upper(x, high):
        return (x & 0xFFFF0000 if high else x << 16).view(F32)

    one = np.ones_like(a, F32)
    assert_same(out["f16"][:, 0], dot(a, b, one, half), "first")
    assert_same(out["f16"][:, 1], dot(c, d, 2 * one, half), "second")
    assert_same(out["bf16"][:, 0], dot(a, b, one, upper), "bfloat16")


@compared("gfx1201", "v_div_scale_f32", "v_div_fmas_f32", "v_div_fixup_f32")
def test_division_is_correctly_rounded():
    """The sequence that compilers emit for a / b in single precision."""
    rows = f32(np.random.default_rng(16), (GROUPS, 2, 32))
    body = """
    v_div_scale_f32 v20, s20, v17, v17, v16
    v_div_scale_f32 v22, vcc_lo, v16, v17, v16
    v_rcp_f32 v21, v20
    v_fma_f32 v23, -v20, v21, 1.0
    v_fma_f32 v21, v23, v21, v21
    v_mul_f32 v23, v22, v21
    v_fma_f32 v24, -v20, v23, v22
    v_fma_f32 v23, v24, v21, v23
    v_fma_f32 v24, -v20, v23, v22
    v_div_fmas_f32 v24, v24, v21, v23
    v_div_fixup_f32 v64, v24, v17, v16
    """
    out = asm.run({"division": Case(body)}, rows)["division"]
    assert_same(out[:, 0], rows[:, 0] / rows[:, 1], "division")
