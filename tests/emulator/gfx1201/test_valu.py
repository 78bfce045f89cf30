"""What gfx1201 does its own way, against NumPy: opcode numbers and names, wave32 masks. Halves
of registers, dual issue, lane moves and memory have files of their own."""

from __future__ import annotations

from collections.abc import Callable

import gfx1201_asm as asm
import numpy as np
import pytest
from assemble import assemble
from compared import compared
from gfx1201_asm import Case
from lane_math import fma, permute_bytes, reverse_bits
from lane_values import assert_same, f32, u32

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
    "v_fma_f32": (3, fma, 0),
    "v_trunc_f32": (1, np.trunc, 0),
    "v_ceil_f32": (1, np.ceil, 0),
    "v_floor_f32": (1, np.floor, 0),
    "v_rndne_f32": (1, np.rint, 0),
    "v_rcp_f32": (1, lambda a: F32(1) / a, 1),
    "v_rcp_iflag_f32": (1, lambda a: F32(1) / a, 1),
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
    "v_bfrev_b32": (1, reverse_bits),
    "v_clz_i32_u32": (1, lambda a: _bit_search(a, lambda v: 32 - v.bit_length())),
    "v_ctz_i32_b32": (1, lambda a: _bit_search(a, lambda v: (v & -v).bit_length() - 1)),
    "v_lshlrev_b32": (2, lambda a, b: b << (a & 31)),
    "v_lshrrev_b32": (2, lambda a, b: b >> (a & 31)),
    "v_ashrrev_i32": (2, lambda a, b: (_signed(b) >> _signed(a & 31)).view(np.uint32)),
    "v_min_i32": (2, lambda a, b: np.minimum(_signed(a), _signed(b)).view(np.uint32)),
    "v_max_i32": (2, lambda a, b: np.maximum(_signed(a), _signed(b)).view(np.uint32)),
    "v_min_u32": (2, np.minimum),
    "v_max_u32": (2, np.maximum),
    "v_minmax_i32": (
        3,
        lambda a, b, c: np.maximum(np.minimum(*map(_signed, (a, b))), _signed(c)).view(np.uint32),
    ),
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
    "v_perm_b32": (3, permute_bytes),
    "v_pack_b32_f16": (2, lambda a, b: (a & 0xFFFF) | b << 16),
    "v_cvt_f32_u32": (1, lambda a: a.astype(F32)),
    "v_cvt_f32_i32": (1, lambda a: _signed(a).astype(F32)),
    "v_cvt_f32_ubyte2": (1, lambda a: (a >> 16 & 255).astype(F32)),
    "v_cvt_u32_u16": (1, lambda a: a & 0xFFFF),
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


@compared("gfx1201", *SINGLE)
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


@compared("gfx1201", *INTEGER)
def test_integers():
    rows = u32(np.random.default_rng(2), (GROUPS, 3, 32))
    counts = {name: count for name, (count, _) in INTEGER.items()}
    for name, actual in _run_table(counts, rows).items():
        count, fn = INTEGER[name]
        expected = fn(*(rows[:, i] for i in range(count)))
        assert_same(actual, np.asarray(expected), name)


@compared(
    "gfx1201",
    "v_cndmask_b32",
    "v_add_co_u32",
    "v_add_co_ci_u32",
    "v_sub_co_u32",
    "v_sub_co_ci_u32",
    "v_mad_co_u64_u32",
    "v_lshlrev_b64",
)
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
        "shift": Case("v_lshlrev_b64 v[64:65], v16, v[18:19]", 2),
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
    shifted = y << (a & 63)
    assert_same(out["shift"][:, 0], shifted.astype(np.uint32), "v_lshlrev_b64, low")
    assert_same(out["shift"][:, 1], (shifted >> 32).astype(np.uint32), "v_lshlrev_b64, high")
    product = a.astype(np.uint64) * b + y
    assert_same(out["mad"][:, 0], product.astype(np.uint32), "v_mad_co_u64_u32, low")
    assert_same(out["mad"][:, 1], (product >> 32).astype(np.uint32), "v_mad_co_u64_u32, high")


@compared("gfx1201", "v_s_exp_f32", "v_s_rcp_f32", "v_s_sqrt_f32")
def test_scalar_transcendentals():
    cases = {
        "exp": Case("v_s_exp_f32 s20, 0x40600000\nv_mov_b32 v64, s20"),
        "rcp": Case(
            "s_mov_b32 s20, 0x40800000\nv_s_rcp_f32 s20, -s20\n"
            "s_wait_alu depctr_va_sdst(0)\nv_mov_b32 v64, s20"
        ),
        "sqrt": Case("v_s_sqrt_f32 s20, |-4.0|\nv_mov_b32 v64, s20"),
    }
    out = asm.run(cases, np.zeros((1, 1, 32), np.uint32))
    for name, expected in {"exp": 2**3.5, "rcp": -0.25, "sqrt": 2.0}.items():
        np.testing.assert_allclose(out[name].view(np.float32), expected, rtol=2e-7)


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
