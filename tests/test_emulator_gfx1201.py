"""What gfx1201 does its own way, against NumPy: opcode numbers and names, wave32 masks, halves of
registers, dual issue, lane moves, the gfx12 memory encodings."""

from __future__ import annotations

from collections.abc import Callable

import gfx1201_asm as asm
import numpy as np
import pytest
from assemble import assemble
from gfx1201_asm import Case
from lane_values import assert_same, f16_pairs, f32, u32

from jax_fa import emulator

GROUPS = 6
LANES = np.arange(32)

F32, I32, F64 = np.float32, np.int32, np.float64


def _signed(x: np.ndarray) -> np.ndarray:
    return x.view(I32)


def _wide(fn: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A function of single precision by way of double, rounded once."""
    return lambda *x: fn(*(v.astype(F64) for v in x)).astype(F32)


# Mnemonic: number of operands, NumPy, allowed distance in ulp.
SINGLE: dict[str, tuple[int, Callable, int]] = {
    "v_mov_b32": (1, lambda a: a, 0),
    "v_add_f32": (2, lambda a, b: a + b, 0),
    "v_sub_f32": (2, lambda a, b: a - b, 0),
    "v_subrev_f32": (2, lambda a, b: b - a, 0),
    "v_mul_f32": (2, lambda a, b: a * b, 0),
    "v_mul_dx9_zero_f32": (2, lambda a, b: np.where((a == 0) | (b == 0), F32(0), a * b), 0),
    "v_min_num_f32": (2, np.fmin, 0),
    "v_max_num_f32": (2, np.fmax, 0),
    "v_min3_num_f32": (3, lambda a, b, c: np.fmin(np.fmin(a, b), c), 0),
    "v_max3_num_f32": (3, lambda a, b, c: np.fmax(np.fmax(a, b), c), 0),
    "v_minmax_num_f32": (3, lambda a, b, c: np.fmax(np.fmin(a, b), c), 0),
    "v_maxmin_num_f32": (3, lambda a, b, c: np.fmin(np.fmax(a, b), c), 0),
    "v_minimum_f32": (2, np.minimum, 0),
    "v_maximum_f32": (2, np.maximum, 0),
    "v_maximum3_f32": (3, lambda a, b, c: np.maximum(np.maximum(a, b), c), 0),
    "v_trunc_f32": (1, np.trunc, 0),
    "v_ceil_f32": (1, np.ceil, 0),
    "v_floor_f32": (1, np.floor, 0),
    "v_rndne_f32": (1, np.rint, 0),
    "v_rcp_f32": (1, lambda a: F32(1) / a, 1),
    "v_rsq_f32": (1, _wide(lambda a: 1 / np.sqrt(a)), 1),
    "v_sqrt_f32": (1, np.sqrt, 1),
    "v_exp_f32": (1, _wide(np.exp2), 1),
    "v_log_f32": (1, _wide(np.log2), 1),
    "v_cvt_f32_f16": (1, lambda a: a.view(np.float16)[..., ::2].astype(F32), 0),
}

INTEGER: dict[str, tuple[int, Callable]] = {
    "v_add_nc_u32": (2, lambda a, b: a + b),
    "v_sub_nc_u32": (2, lambda a, b: a - b),
    "v_subrev_nc_u32": (2, lambda a, b: b - a),
    "v_and_b32": (2, lambda a, b: a & b),
    "v_or_b32": (2, lambda a, b: a | b),
    "v_xor_b32": (2, lambda a, b: a ^ b),
    "v_xnor_b32": (2, lambda a, b: ~(a ^ b)),
    "v_not_b32": (1, lambda a: ~a),
    "v_clz_i32_u32": (1, lambda a: _bit_search(a, lambda v: 32 - v.bit_length())),
    "v_ctz_i32_b32": (1, lambda a: _bit_search(a, lambda v: (v & -v).bit_length() - 1)),
    "v_lshlrev_b32": (2, lambda a, b: b << (a & 31)),
    "v_lshrrev_b32": (2, lambda a, b: b >> (a & 31)),
    "v_ashrrev_i32": (2, lambda a, b: (_signed(b) >> _signed(a & 31)).view(np.uint32)),
    "v_min_i32": (2, lambda a, b: np.minimum(_signed(a), _signed(b)).view(np.uint32)),
    "v_max_i32": (2, lambda a, b: np.maximum(_signed(a), _signed(b)).view(np.uint32)),
    "v_min_u32": (2, np.minimum),
    "v_max_u32": (2, np.maximum),
    "v_med3_u32": (3, lambda *x: np.sort(x, axis=0)[1]),
    "v_mul_lo_u32": (2, lambda a, b: a * b),
    "v_mul_hi_u32": (2, lambda a, b: (a.astype(np.uint64) * b >> 32).astype(np.uint32)),
    "v_mul_u32_u24": (2, lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    "v_mad_u32_u24": (3, lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c),
    "v_bfe_u32": (3, lambda a, b, c: (a >> (b & 31)) & ((np.uint32(1) << (c & 31)) - 1)),
    "v_bfi_b32": (3, lambda a, b, c: (a & b) | (~a & c)),
    "v_lshl_add_u32": (3, lambda a, b, c: (a << (b & 31)) + c),
    "v_add_lshl_u32": (3, lambda a, b, c: (a + b) << (c & 31)),
    "v_lshl_or_b32": (3, lambda a, b, c: (a << (b & 31)) | c),
    "v_and_or_b32": (3, lambda a, b, c: (a & b) | c),
    "v_or3_b32": (3, lambda a, b, c: a | b | c),
    "v_xor3_b32": (3, lambda a, b, c: a ^ b ^ c),
    "v_xad_u32": (3, lambda a, b, c: (a ^ b) + c),
    "v_add3_u32": (3, lambda a, b, c: a + b + c),
    "v_cvt_f32_u32": (1, lambda a: a.astype(F32)),
    "v_cvt_f32_i32": (1, lambda a: _signed(a).astype(F32)),
    "v_cvt_f32_ubyte2": (1, lambda a: (a >> 16 & 255).astype(F32)),
    "v_cvt_u32_u16": (1, lambda a: a & 0xFFFF),
}

FLOAT_COMPARES: dict[str, Callable] = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "lg": lambda a, b: (a < b) | (a > b),
    "ge": lambda a, b: a >= b,
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: a != b,
    "nlt": lambda a, b: ~(a < b),
}
INT_COMPARES: dict[str, Callable] = {
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "ne": np.not_equal,
    "ge": np.greater_equal,
}


def _bit_search(x: np.ndarray, find: Callable[[int], int]) -> np.ndarray:
    found = [find(int(v)) if v else 0xFFFFFFFF for v in x.flat]
    return np.array(found, np.uint32).reshape(x.shape)


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def _run_table(counts: dict[str, int], rows: np.ndarray) -> dict[str, np.ndarray]:
    cases = {
        name: Case(f"{name} v64, " + ", ".join(f"v{16 + i}" for i in range(count)))
        for name, count in counts.items()
    }
    return {name: out[:, 0] for name, out in asm.run(cases, rows).items()}


def test_single_precision():
    rows = f32(np.random.default_rng(1), (GROUPS, 3, 32))
    # No denormals (transcendentals flush them), one kind of zero (minimum and maximum order them).
    rows = np.where(np.abs(rows) < 1e-30, F32(0), rows)
    counts = {name: count for name, (count, _, _) in SINGLE.items()}
    for name, actual in _run_table(counts, rows).items():
        count, fn, ulp = SINGLE[name]
        expected = fn(*(rows[:, i] for i in range(count)))
        tiny = (np.abs(expected) < 1.2e-38) & (expected != 0)
        keep = ~tiny if count == 1 else np.ones_like(tiny)
        assert_same(actual[keep], expected[keep], name, ulp)


def test_integers():
    rows = u32(np.random.default_rng(2), (GROUPS, 3, 32))
    counts = {name: count for name, (count, _) in INTEGER.items()}
    for name, actual in _run_table(counts, rows).items():
        count, fn = INTEGER[name]
        expected = fn(*(rows[:, i] for i in range(count)))
        assert_same(actual, np.asarray(expected), name)


@pytest.mark.parametrize("kind", ["f32", "i32", "u32"])
def test_compares_write_one_scalar_register(kind: str):
    rng = np.random.default_rng(3)
    rows = (f32 if kind == "f32" else u32)(rng, (GROUPS, 2, 32))
    rows[:, 1, ::3] = rows[:, 0, ::3]
    a, b = (
        rows[:, i].view({"f32": np.float32, "i32": np.int32, "u32": np.uint32}[kind])
        for i in (0, 1)
    )
    relations = FLOAT_COMPARES if kind == "f32" else INT_COMPARES
    cases = {}
    for name in relations:
        # s21 must stay as it is: a wave32 mask has one register.
        cases[name] = Case(
            f"s_mov_b32 s21, 77\nv_cmp_{name}_{kind} s20, v16, v17\n"
            f"v_cmp_{name}_{kind} vcc_lo, v16, v17\n"
            "v_mov_b32 v64, s20\nv_mov_b32 v65, s21\nv_mov_b32 v66, vcc_lo",
            3,
        )
    for name, out in asm.run(cases, rows).items():
        mask = np.packbits(relations[name](a, b), axis=-1, bitorder="little").view(np.uint32)
        assert_same(out[:, 0], np.broadcast_to(mask, (GROUPS, 32)), name)
        assert (out[:, 1] == 77).all()
        assert_same(out[:, 2], out[:, 0], name)


def test_masks_and_exec():
    rows = u32(np.random.default_rng(4), (GROUPS, 4, 32))
    a, b, c, d = (rows[:, i] for i in range(4))
    cases = {
        "cndmask": Case("v_cmp_lt_u32 vcc_lo, v16, v17\nv_cndmask_b32 v64, v18, v19, vcc_lo"),
        "cndmask_e64": Case("v_cmp_lt_u32 s20, v16, v17\nv_cndmask_b32 v64, v18, v19, s20"),
        "carry": Case(
            "v_add_co_u32 v64, s20, v16, v18\nv_add_co_ci_u32_e64 v65, s21, v17, v19, s20\n"
            "v_sub_co_u32 v66, vcc_lo, v16, v18\n"
            "v_sub_co_ci_u32 v67, vcc_lo, v17, v19, vcc_lo",
            4,
        ),
        "cmpx": Case("v_mov_b32 v64, 5\nv_cmpx_gt_u32 v16, v17\nv_mov_b32 v64, v18"),
        "null": Case("v_add_co_u32 v64, null, v16, v17"),
        "mad": Case("v_mad_co_u64_u32 v[64:65], null, v16, v17, v[18:19]", 2),
    }
    out = asm.run(cases, rows)
    expected = np.where(a < b, d, c)
    assert_same(out["cndmask"][:, 0], expected, "v_cndmask_b32_e32")
    assert_same(out["cndmask_e64"][:, 0], expected, "v_cndmask_b32_e64")
    x = a.astype(np.uint64) | b.astype(np.uint64) << 32
    y = c.astype(np.uint64) | d.astype(np.uint64) << 32
    for at, total in ((0, x + y), (2, x - y)):
        assert_same(out["carry"][:, at], total.astype(np.uint32), "carry, low")
        assert_same(out["carry"][:, at + 1], (total >> 32).astype(np.uint32), "carry, high")
    assert_same(out["cmpx"][:, 0], np.where(a > b, c, np.uint32(5)), "v_cmpx")
    assert_same(out["null"][:, 0], a + b, "v_add_co_u32 with null")
    product = a.astype(np.uint64) * b + y
    assert_same(out["mad"][:, 0], product.astype(np.uint32), "v_mad_co_u64_u32, low")
    assert_same(out["mad"][:, 1], (product >> 32).astype(np.uint32), "v_mad_co_u64_u32, high")


def _vop3(number: int, op_sel: int, *sources: int) -> str:
    """A VOP3 instruction into v64, where the assembler has no way to write its op_sel."""
    low = 0xD4000000 | number << 16 | op_sel << 11 | 64
    return f".long {low:#x}, {sum(code << 9 * i for i, code in enumerate(sources)):#x}"


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


def _moves() -> dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]]:
    row, quad = LANES & ~15, LANES & ~3
    reverse8 = "[7,6,5,4,3,2,1,0]"
    select = (LANES * 7 + 3) & 15
    low = sum(int(select[i]) << 4 * i for i in range(8))
    high = sum(int(select[8 + i]) << 4 * i for i in range(8))
    set_select = f"s_mov_b32 s20, {low:#x}\ns_mov_b32 s21, {high:#x}\n"
    in_row = select[LANES & 15]
    return {
        "quad_perm": (
            "v_mov_b32_dpp v64, v16 quad_perm:[3,1,0,2] row_mask:0xf bank_mask:0xf",
            lambda x: x[..., quad + np.array([3, 1, 0, 2])[LANES & 3]],
        ),
        "row_shr": (
            "v_mov_b32 v64, v17\nv_mov_b32_dpp v64, v16 row_shr:3 row_mask:0xf bank_mask:0xf",
            lambda x: np.where((LANES & 15) >= 3, x[..., np.maximum(LANES - 3, 0)], 0) + 0,
        ),
        "row_shl zero": (
            "v_mov_b32_dpp v64, v16 row_shl:2 row_mask:0xf bank_mask:0xf bound_ctrl:1",
            lambda x: np.where((LANES & 15) < 14, x[..., np.minimum(LANES + 2, 31)], 0),
        ),
        "row_ror": (
            "v_mov_b32_dpp v64, v16 row_ror:5 row_mask:0xf bank_mask:0xf",
            lambda x: x[..., row + ((LANES - 5) & 15)],
        ),
        "row_share": (
            "v_mov_b32_dpp v64, v16 row_share:6 row_mask:0xf bank_mask:0xf",
            lambda x: x[..., row + 6],
        ),
        "row_xmask": (
            "v_mov_b32_dpp v64, v16 row_xmask:9 row_mask:0xf bank_mask:0xf",
            lambda x: x[..., row + ((LANES & 15) ^ 9)],
        ),
        "dpp8": (
            f"v_mov_b32_dpp v64, v16 dpp8:{reverse8}",
            lambda x: x[..., (LANES & ~7) + 7 - (LANES & 7)],
        ),
        "e64_dpp8": (
            f"v_or3_b32_e64_dpp v64, v16, v17, 0 dpp8:{reverse8}",
            lambda x: x[..., (LANES & ~7) + 7 - (LANES & 7)],
        ),
        "permlane16": (
            set_select + "v_mov_b32 v64, 0\nv_permlane16_b32 v64, v16, s20, s21",
            lambda x: x[..., row + in_row],
        ),
        "permlanex16": (
            set_select + "v_mov_b32 v64, 0\nv_permlanex16_b32 v64, v16, s20, s21",
            lambda x: x[..., (row ^ 16) + in_row],
        ),
        # Source and destination are one register: read before written.
        "permlanex16 in place": (
            set_select + "v_mov_b32 v64, v16\nv_permlanex16_b32 v64, v64, s20, s21",
            lambda x: x[..., (row ^ 16) + in_row],
        ),
        "permlane16_var": (
            "v_mov_b32 v64, 0\nv_lshrrev_b32 v2, 2, v1\nv_mul_u32_u24 v2, 7, v2\n"
            "v_permlane16_var_b32 v64, v16, v2",
            lambda x: x[..., row + (LANES * 7 & 15)],
        ),
        "permlane64": ("v_permlane64_b32 v64, v16", lambda x: x),
        "readlane": (
            "v_readlane_b32 s20, v16, 19\nv_mov_b32 v64, s20",
            lambda x: np.broadcast_to(x[..., 19:20], x.shape),
        ),
        "readfirstlane": (
            "s_mov_b32 exec_lo, 0xff0\nv_readfirstlane_b32 s20, v16\ns_mov_b32 exec_lo, -1\n"
            "v_mov_b32 v64, s20",
            lambda x: np.broadcast_to(x[..., 4:5], x.shape),
        ),
        "bpermute": (
            "v_xor_b32 v2, 0x54, v1\nds_bpermute_b32 v64, v2, v16\ns_wait_dscnt 0x0",
            lambda x: x[..., LANES ^ 21],
        ),
    }


def test_lane_moves():
    rows = u32(np.random.default_rng(7), (GROUPS, 2, 32))
    rows[:, 1] = 0
    moves = _moves()
    out = asm.run({name: Case(body) for name, (body, _) in moves.items()}, rows, lds_bytes=256)
    for name, (_, fn) in moves.items():
        assert_same(out[name][:, 0], fn(rows[:, 0]).astype(np.uint32), name)


def test_permlane_of_lanes_that_are_off():
    rows = u32(np.random.default_rng(8), (GROUPS, 1, 32))
    body = "s_mov_b32 s20, 0x76543210\ns_mov_b32 s21, 0xfedcba98\nv_mov_b32 v64, 9\n"
    body += "s_mov_b32 exec_lo, 0xffff\nv_permlanex16_b32 v64, v16, s20, s21"
    out = asm.run(
        {
            "keep": Case(body),
            "zero": Case(body + " op_sel:[0,1]"),
            "fi": Case(body + " op_sel:[1,0]"),
        },
        rows,
    )
    lower = LANES < 16
    assert (out["keep"] == 9).all()
    assert (out["zero"][:, 0] == np.where(lower, 0, 9)).all()
    expected = np.where(lower, rows[:, 0][:, LANES ^ 16], 9)
    assert_same(out["fi"][:, 0], expected.astype(np.uint32), "fetch of inactive lanes")


def test_scalar_transcendentals():
    cases = {
        "exp": Case("v_s_exp_f32 s20, 0x40600000\nv_mov_b32 v64, s20"),
        "rcp": Case("s_mov_b32 s20, 0x40800000\nv_s_rcp_f32 s20, -s20\nv_mov_b32 v64, s20"),
        "sqrt": Case("v_s_sqrt_f32 s20, |-4.0|\nv_mov_b32 v64, s20"),
    }
    out = asm.run(cases, np.zeros((1, 1, 32), np.uint32))
    for name, expected in {"exp": 2**3.5, "rcp": -0.25, "sqrt": 2.0}.items():
        np.testing.assert_allclose(out[name].view(np.float32), expected, rtol=2e-7)


def test_global_and_lds_encodings():
    rows = u32(np.random.default_rng(9), (GROUPS, 4, 32))
    pair = "v_mov_b32 v2, s4\nv_mov_b32 v3, s5\nv_add_co_u32 v2, vcc_lo, v2, v1\n"
    pair += "v_add_co_ci_u32 v3, vcc_lo, 0, v3, vcc_lo\n"
    wide = "v_lshlrev_b32 v2, 4, v0\n"
    cases = {
        "off": Case(pair + "global_load_b32 v64, v[2:3], off offset:128\ns_wait_loadcnt 0x0"),
        "negative": Case(
            "v_add_nc_u32 v2, 0x100, v1\nglobal_load_b32 v64, v2, s[4:5] offset:-128\n"
            "s_wait_loadcnt 0x0"
        ),
        "flat": Case(pair + "flat_load_b32 v64, v[2:3] offset:256\ns_wait_loadcnt_dscnt 0x0"),
        "b128": Case(wide + "global_load_b128 v[64:67], v2, s[4:5]\ns_wait_loadcnt 0x0", 4),
        "d16_hi": Case(
            "v_mov_b32 v64, 1\nglobal_load_d16_hi_b16 v64, v1, s[4:5]\ns_wait_loadcnt 0x0"
        ),
        "i8": Case("global_load_i8 v64, v1, s[4:5] offset:3\ns_wait_loadcnt 0x0"),
        "lds": Case(
            "ds_store_b32 v1, v16 offset:128\nds_store_b32 v1, v17\ns_wait_dscnt 0x0\n"
            "ds_load_2addr_b32 v[64:65], v1 offset0:32 offset1:0\n"
            "ds_load_b32 v66, v1 offset:128\ns_wait_dscnt 0x0",
            3,
        ),
        "stride64": Case(
            "ds_store_2addr_stride64_b32 v1, v16, v17 offset0:1 offset1:2\ns_wait_dscnt 0x0\n"
            "ds_load_b32 v64, v1 offset:256\nds_load_b32 v65, v1 offset:512\ns_wait_dscnt 0x0",
            2,
        ),
        # The new value comes first, then what to compare with.
        "cmpstore": Case(
            "ds_store_b32 v1, v16\ns_wait_dscnt 0x0\n"
            "ds_cmpstore_rtn_b32 v64, v1, v17, v16\ns_wait_dscnt 0x0\n"
            "ds_load_b32 v65, v1\ns_wait_dscnt 0x0",
            2,
        ),
    }
    out = asm.run(cases, rows, lds_bytes=1024)
    flat = rows.reshape(GROUPS, -1)
    assert_same(out["off"][:, 0], rows[:, 1], "global_load_b32 off")
    assert_same(out["negative"][:, 0], rows[:, 1], "negative offset")
    assert_same(out["flat"][:, 0], rows[:, 2], "flat_load_b32")
    assert_same(out["b128"].transpose(0, 2, 1).reshape(GROUPS, -1), flat, "global_load_b128")
    assert_same(out["d16_hi"][:, 0], (rows[:, 0] << 16) | 1, "global_load_d16_hi_b16")
    assert_same(out["i8"].view(np.int32)[:, 0], rows[:, 0].view(np.int32) >> 24, "global_load_i8")
    assert_same(out["lds"][:, 0], rows[:, 0], "ds_load_2addr_b32, first")
    assert_same(out["lds"][:, 1], rows[:, 1], "ds_load_2addr_b32, second")
    assert_same(out["lds"][:, 2], rows[:, 0], "ds_load_b32 with an offset")
    assert_same(out["stride64"], rows[:, :2], "ds_store_2addr_stride64_b32")
    assert_same(out["cmpstore"], rows[:, :2], "ds_cmpstore_rtn_b32")


def test_buffer_encoding_and_range():
    rows = u32(np.random.default_rng(10), (1, 2, 32))
    resource = "s_mov_b32 s12, s4\ns_and_b32 s13, s5, 0xffff\ns_mov_b32 s14, 192\n"
    resource += "s_mov_b32 s15, 0x31027000\n"
    cases = {
        "offen": Case(
            resource
            + "buffer_load_b32 v64, v1, s[12:15], null offen offset:128\ns_wait_loadcnt 0x0"
        ),
        "soffset": Case(
            resource
            + "s_movk_i32 s20, 0x44\nbuffer_load_b64 v[64:65], off, s[12:15], s20 offset:4\n"
            "s_wait_loadcnt 0x0",
            2,
        ),
    }
    out = asm.run(cases, rows)
    # 192 bytes are there; what lies past them reads as zero.
    expected = np.where(LANES < 16, rows[:, 1], 0).astype(np.uint32)
    assert_same(out["offen"][:, 0], expected, "buffer_load_b32")
    for i in (0, 1):
        assert (out["soffset"][:, i] == rows[0, 0, 18 + i]).all()


def test_atomics_return_when_asked():
    data, out = np.arange(32, dtype=np.uint32), np.zeros(64, np.uint32)
    body = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v2, 100
  s_wait_kmcnt 0x0
  global_atomic_add_u32 v3, v1, v2, s[4:5] th:TH_ATOMIC_RETURN
  s_wait_loadcnt 0x0
  global_atomic_add_u32 v1, v2, s[4:5]
  s_wait_storecnt 0x0
  global_load_b32 v4, v1, s[4:5]
  global_store_b32 v1, v3, s[6:7]
  s_wait_loadcnt 0x0
  global_store_b32 v1, v4, s[6:7] offset:128
  s_endpgm"""
    code = emulator.CodeObject(assemble("gfx1201", body, ("pointer", "pointer")))
    code.launch("kernel", 1, 32, [data, out])
    assert (out[:32] == np.arange(32)).all()
    assert (out[32:] == np.arange(32) + 200).all()
    assert (data == np.arange(32) + 200).all()


def test_transposing_load():
    rows = u32(np.random.default_rng(11), (GROUPS, 4, 32))
    # Lane l gives the address of 8 halves; a stride of 16 bytes makes an 8 x 8 block of 8 lanes.
    case = Case(
        "v_lshlrev_b32 v2, 4, v0\nglobal_load_tr_b128 v[64:67], v2, s[4:5]\ns_wait_loadcnt 0x0", 4
    )
    out = asm.run({"tr": case}, rows)["tr"]
    blocks = rows.reshape(GROUPS, -1).view(np.uint16).reshape(GROUPS, 4, 8, 8)
    received = out.transpose(0, 2, 1)  # [W, lane, 4 dwords]
    halves = np.ascontiguousarray(received).view(np.uint16).reshape(GROUPS, 4, 8, 8)
    assert_same(halves, blocks.swapaxes(-1, -2), "global_load_tr_b128")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("s_load_b64 s[4:5], s[0:1], 0x0\nv_mov_b32 v2, s4", "s4"),
        (
            "s_load_b64 s[4:5], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\ns_wait_kmcnt 0x0\n"
            "global_load_b32 v2, v1, s[4:5]\ns_wait_storecnt 0x0\ns_wait_dscnt 0x0\n"
            "v_add_nc_u32 v3, v2, v2",
            "v2",
        ),
        (".long 0xcc500000, 0x1c020100", "VOP3P opcode 80"),
        (".long 0xee1fc07c, 0, 0", "GLOBAL opcode 127"),
    ],
)
def test_what_is_wrong_is_named(line: str, message: str):
    code = assemble("gfx1201", f"{line}\ns_endpgm")
    with pytest.raises(emulator.EmulatorError, match=message):
        emulator.CodeObject(code).launch("kernel", 1, 32, [np.zeros(32, np.uint32)])


def test_kernels_for_waves_of_64_lanes_are_refused():
    code = assemble("gfx1201", "s_endpgm")
    wide = code.replace(b".wavefront_size\x20", b".wavefront_size\x40")
    assert wide != code
    with pytest.raises(emulator.EmulatorError, match="waves of 64 lanes"):
        emulator.CodeObject(wide)
