"""Vector ALU instructions of gfx950 against NumPy, on special and random values."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import gfx950_asm as asm
import numpy as np
import pytest
from lane_values import assert_same, f16_pairs, f32, to_mask, u32

GROUPS = 12
F32 = np.float32


def _half(x: np.ndarray, high: bool = False) -> np.ndarray:
    return (x >> 16 if high else x & 0xFFFF).astype(np.uint16).view(np.float16)


def _zero_extend(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint16).astype(np.uint32)


def _fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """fma of single precision with one rounding, by way of a sum rounded to odd in double."""
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = total.view(np.int64)
    step = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    return np.where(odd, (bits + step).view(np.float64), total).astype(F32)


def _flush(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(F32(0), x), x).astype(F32)


def _min(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    tie = np.where(np.signbit(a), a, b)
    return np.where(a == b, tie, np.fmin(a, b)).astype(a.dtype)


def _max(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    tie = np.where(np.signbit(a), b, a)
    return np.where(a == b, tie, np.fmax(a, b)).astype(a.dtype)


def _nan_wins(fn: Callable, *x: np.ndarray) -> np.ndarray:
    bad = np.any([np.isnan(v) for v in x], axis=0)
    result = x[0]
    for v in x[1:]:
        result = fn(result, v)
    return np.where(bad, np.nan, result).astype(x[0].dtype)


def _to_int(x: np.ndarray, low: int, high: int) -> np.ndarray:
    clean = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300)
    return np.clip(np.trunc(clean), low, high).astype(np.int64).astype(np.uint32)


def _bf16(x: np.ndarray) -> np.ndarray:
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint32)


def _signed(x: np.ndarray, bits: int = 32) -> np.ndarray:
    shift = 64 - bits
    return (x.astype(np.int64) << shift) >> shift


def _u(x: np.ndarray) -> np.ndarray:
    return (np.asarray(x).astype(object) & 0xFFFFFFFF).astype(np.uint32)


def _reverse(x: np.ndarray) -> np.ndarray:
    return np.array([int(f"{int(v):032b}"[::-1], 2) for v in x.flat], np.uint32).reshape(x.shape)


def _leading(x: np.ndarray) -> np.ndarray:
    values = [32 - int(v).bit_length() if v else 0xFFFFFFFF for v in x.flat]
    return np.array(values, np.uint32).reshape(x.shape)


def _trailing(x: np.ndarray) -> np.ndarray:
    values = [(int(v) & -int(v)).bit_length() - 1 if v else 0xFFFFFFFF for v in x.flat]
    return np.array(values, np.uint32).reshape(x.shape)


def _perm(a: np.ndarray, b: np.ndarray, s: np.ndarray) -> np.ndarray:
    def one(a: int, b: int, s: int) -> int:
        data, result = a << 32 | b, 0
        for i in range(4):
            select = s >> (8 * i) & 0xFF
            if select < 8:
                byte = data >> (8 * select) & 0xFF
            elif select < 12:
                byte = 0xFF * (data >> (16 * (select - 8) + 15) & 1)
            else:
                byte = 0 if select == 12 else 0xFF
            result |= byte << (8 * i)
        return result

    flat = [one(int(x), int(y), int(z)) for x, y, z in zip(a.flat, b.flat, s.flat, strict=True)]
    return np.array(flat, np.uint32).reshape(a.shape)


def _pack(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return _zero_extend(low) | _zero_extend(high) << 16


# Single precision: mnemonic, NumPy, and the distance allowed in ulp.
SINGLE: dict[str, tuple[Callable, int]] = {
    "v_add_f32": (lambda a, b: a + b, 0),
    "v_sub_f32": (lambda a, b: a - b, 0),
    "v_subrev_f32": (lambda a, b: b - a, 0),
    "v_mul_f32": (lambda a, b: a * b, 0),
    "v_mul_legacy_f32": (lambda a, b: np.where((a == 0) | (b == 0), F32(0), a * b), 0),
    "v_min_f32": (_min, 0),
    "v_max_f32": (_max, 0),
    "v_fma_f32": (_fma, 0),
    "v_min3_f32": (lambda a, b, c: _min(_min(a, b), c), 0),
    "v_max3_f32": (lambda a, b, c: _max(_max(a, b), c), 0),
    "v_minimum3_f32": (lambda *x: _nan_wins(_min, *x), 0),
    "v_maximum3_f32": (lambda *x: _nan_wins(_max, *x), 0),
    "v_mov_b32": (lambda a: a, 0),
    "v_trunc_f32": (np.trunc, 0),
    "v_ceil_f32": (np.ceil, 0),
    "v_floor_f32": (np.floor, 0),
    "v_rndne_f32": (np.rint, 0),
    "v_rcp_f32": (lambda a: _flush(F32(1) / _flush(a)), 1),
    "v_rcp_iflag_f32": (lambda a: _flush(F32(1) / _flush(a)), 1),
    "v_sqrt_f32": (lambda a: np.sqrt(_flush(a)), 1),
    "v_rsq_f32": (lambda a: (1 / np.sqrt(_flush(a).astype(np.float64))).astype(F32), 1),
    "v_exp_f32": (lambda a: _flush(np.exp2(_flush(a).astype(np.float64)).astype(F32)), 1),
    "v_log_f32": (lambda a: np.log2(_flush(a).astype(np.float64)).astype(F32), 1),
    "v_cvt_i32_f32": (lambda a: _to_int(a, -(2**31), 2**31 - 1), 0),
    "v_cvt_u32_f32": (lambda a: _to_int(a, 0, 2**32 - 1), 0),
    "v_cvt_f16_f32": (lambda a: _zero_extend(a.astype(np.float16)), 0),
    "v_cvt_pk_bf16_f32": (lambda a, b: _bf16(a) | _bf16(b) << 16, 0),
    "v_cvt_pk_f16_f32": (lambda a, b: _pack(a.astype(np.float16), b.astype(np.float16)), 0),
}

INTEGER: dict[str, Callable] = {
    "v_add_u32": lambda a, b: a + b,
    "v_sub_u32": lambda a, b: a - b,
    "v_subrev_u32": lambda a, b: b - a,
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_not_b32": lambda a: ~a,
    "v_bfrev_b32": _reverse,
    "v_ffbh_u32": _leading,
    "v_ffbl_b32": _trailing,
    "v_lshlrev_b32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32": lambda a, b: (b.view(np.int32) >> (a & 31).view(np.int32)).view(np.uint32),
    "v_min_i32": lambda a, b: np.minimum(a.view(np.int32), b.view(np.int32)).view(np.uint32),
    "v_max_i32": lambda a, b: np.maximum(a.view(np.int32), b.view(np.int32)).view(np.uint32),
    "v_min_u32": np.minimum,
    "v_max_u32": np.maximum,
    "v_med3_i32": lambda *x: np.sort([v.view(np.int32) for v in x], axis=0)[1].view(np.uint32),
    "v_med3_u32": lambda *x: np.sort(x, axis=0)[1],
    "v_max3_u32": lambda a, b, c: np.maximum(np.maximum(a, b), c),
    "v_min3_i32": lambda *x: np.sort([v.view(np.int32) for v in x], axis=0)[0].view(np.uint32),
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: ((a.astype(np.uint64) * b) >> 32).astype(np.uint32),
    "v_mul_hi_i32": lambda a, b: _u((_signed(a) * _signed(b)) >> 32),
    "v_mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_mul_i32_i24": lambda a, b: _u(_signed(a, 24) * _signed(b, 24)),
    "v_mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_mad_i32_i24": lambda a, b, c: _u(_signed(a, 24) * _signed(b, 24) + c),
    "v_bfe_u32": lambda a, b, c: (a >> (b & 31)) & ((np.uint32(1) << (c & 31)) - 1),
    "v_bfi_b32": lambda a, b, c: (a & b) | (~a & c),
    "v_bfm_b32": lambda a, b: ((np.uint32(1) << (a & 31)) - 1) << (b & 31),
    "v_alignbit_b32": lambda a, b, c: _u(((a.astype(object) << 32) | b) >> (c & 31).astype(object)),
    "v_alignbyte_b32": lambda a, b, c: _u(
        ((a.astype(object) << 32) | b) >> (8 * (c & 3)).astype(object)
    ),
    "v_perm_b32": _perm,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b) << (c & 31),
    "v_lshl_or_b32": lambda a, b, c: (a << (b & 31)) | c,
    "v_and_or_b32": lambda a, b, c: (a & b) | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_bcnt_u32_b32": lambda a, b: np.bitwise_count(a) + b,
    "v_cvt_f32_u32": lambda a: a.astype(F32),
    "v_cvt_f32_i32": lambda a: a.view(np.int32).astype(F32),
    "v_cvt_f32_ubyte0": lambda a: (a & 255).astype(F32),
    "v_cvt_f32_ubyte3": lambda a: (a >> 24).astype(F32),
    "v_cvt_pk_u16_u32": lambda a, b: np.minimum(a, 65535) | np.minimum(b, 65535) << 16,
}

HALF: dict[str, Callable] = {
    "v_add_f16": lambda a, b: a + b,
    "v_sub_f16": lambda a, b: a - b,
    "v_mul_f16": lambda a, b: a * b,
    "v_max_f16": _max,
    "v_min_f16": _min,
    "v_fma_f16": lambda a, b, c: (
        a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    ).astype(np.float16),
    "v_rcp_f16": lambda a: (1 / a.astype(F32)).astype(np.float16),
    "v_sqrt_f16": lambda a: np.sqrt(a.astype(F32)).astype(np.float16),
    "v_floor_f16": np.floor,
    "v_trunc_f16": np.trunc,
}


def _arity(fn: Callable, default: int) -> int:
    code = getattr(fn, "__code__", None)
    return code.co_argcount if code and code.co_argcount else default


def _operands(fn: Callable, mnemonic: str) -> int:
    if isinstance(fn, np.ufunc):
        return fn.nin
    return _arity(fn, 3 if "3" in mnemonic.split("_")[1] else 1)


def _run_table(table: dict[str, int], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Runs each mnemonic on its number of operands, of those in rows [W, 3, 64]."""
    kernels = {
        name: asm.Kernel(f"{name} v64, " + ", ".join(f"v{16 + i}" for i in range(count)), 3)
        for name, count in table.items()
    }
    code = asm.assemble(kernels)
    return {name: asm.run(code, name, kernel, rows)[:, 0] for name, kernel in kernels.items()}


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def test_single_precision():
    rows = f32(np.random.default_rng(1), (GROUPS, 3, 64))
    table = {name: _operands(fn, name) for name, (fn, _) in SINGLE.items()}
    for name, actual in _run_table(table, rows).items():
        fn, ulp = SINGLE[name]
        assert_same(actual, fn(*(rows[:, i] for i in range(table[name]))), name, ulp)


def test_integers():
    rows = u32(np.random.default_rng(2), (GROUPS, 3, 64))
    table = {name: _operands(fn, name) for name, fn in INTEGER.items()}
    for name, actual in _run_table(table, rows).items():
        expected = INTEGER[name](*(rows[:, i] for i in range(table[name])))
        assert_same(actual, np.asarray(expected), name)


def test_half_precision_clears_or_keeps_the_upper_half():
    rows = f16_pairs(np.random.default_rng(3), (GROUPS, 4, 64))
    kernels = {}
    for name, fn in HALF.items():
        operands = ", ".join(f"v{16 + i}" for i in range(_operands(fn, name)))
        kernels[name] = asm.Kernel(f"v_mov_b32 v64, v19\n{name} v64, {operands}", 4)
    code = asm.assemble(kernels)
    for name, kernel in kernels.items():
        fn = HALF[name]
        actual = asm.run(code, name, kernel, rows)[:, 0]
        low = fn(*(_half(rows[:, i]) for i in range(_operands(fn, name)))).astype(np.float16)
        assert_same((actual & 0xFFFF).astype(np.uint16).view(np.float16), low, name)
        upper = rows[:, 3] >> 16 if name == "v_fma_f16" else np.zeros_like(rows[:, 3])
        assert_same(actual >> 16, upper, f"upper half of {name}")


def test_packed_half_precision():
    rows = f16_pairs(np.random.default_rng(4), (GROUPS, 3, 64))
    bodies = {
        "v_pk_add_f16": (lambda a, b: a + b, ""),
        "v_pk_mul_f16": (lambda a, b: a * b, ""),
        "v_pk_max_f16": (_max, ""),
        "v_pk_fma_f16": (HALF["v_fma_f16"], ""),
    }
    kernels = {
        name: asm.Kernel(
            f"{name} v64, " + ", ".join(f"v{16 + i}" for i in range(_arity(fn, 2))) + suffix, 3
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
            expected = fn(*(_half(rows[:, i], high) for i in range(_arity(fn, 2))))
            assert_same(_half(actual, high), expected.astype(np.float16), name)
    actual = asm.run(code, "swapped", kernels["swapped"], rows)[:, 0]
    a, b = rows[:, 0], rows[:, 1]
    assert_same(_half(actual), _half(a, True) - _half(b), "low of op_sel")
    assert_same(_half(actual, True), _half(b, True) - _half(a), "high of op_sel")


COMPARES: dict[str, Callable] = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
FLOAT_COMPARES: dict[str, Callable] = COMPARES | {
    "lg": lambda a, b: (a < b) | (a > b),
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: a != b,
    "nlt": lambda a, b: ~(a < b),
}


@pytest.mark.parametrize("kind", ["f32", "i32", "u32", "f16", "u16"])
def test_compares(kind: str):
    rng = np.random.default_rng(5)
    make = {"f32": f32, "f16": f16_pairs}.get(kind, u32)
    rows = make(rng, (GROUPS, 2, 64))
    rows[:, 1, ::3] = rows[:, 0, ::3]
    views = {"f32": F32, "i32": np.int32, "u32": np.uint32, "f16": np.float16, "u16": np.uint16}
    dtype = np.dtype(views[kind])
    a, b = (rows[:, i].view(np.uint32).astype(f"u{dtype.itemsize}").view(dtype) for i in range(2))
    compares = FLOAT_COMPARES if kind.startswith("f") else COMPARES
    kernels = {}
    for name in compares:
        kernels[name] = asm.Kernel(f"v_cmp_{name}_{kind} s[20:21], v16, v17", 2, 0, 1)
    kernels["cmpx"] = asm.Kernel(
        f"v_mov_b32 v64, 0\nv_cmpx_lt_{kind} vcc, v16, v17\nv_mov_b32 v64, 7\n"
        "s_mov_b64 s[20:21], vcc",
        2,
        1,
        1,
    )
    code = asm.assemble(kernels)
    for name, fn in compares.items():
        actual = asm.run(code, name, kernels[name], rows)
        assert_same(actual[:, :, 0], to_mask(fn(a, b)), f"v_cmp_{name}_{kind}")
    actual = asm.run(code, "cmpx", kernels["cmpx"], rows)
    assert_same(actual[:, 0], np.where(a < b, 7, 0).astype(np.uint32), "v_cmpx")
    assert_same(actual[:, 1:, 0], to_mask(a < b), "v_cmpx")


def test_class():
    rng = np.random.default_rng(6)
    rows = np.stack([f32(rng, (GROUPS, 64)).view(np.uint32), u32(rng, (GROUPS, 64)) & 0x3FF], 1)
    kernel = asm.Kernel("v_cmp_class_f32 s[20:21], v16, v17", 2, 0, 1)
    actual = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows)
    x, wanted = np.ascontiguousarray(rows[:, 0]).view(F32), rows[:, 1]
    negative, size = np.signbit(x), np.abs(x)
    number = np.select(
        [np.isnan(x), np.isinf(x), size == 0, size < 2.0**-126], [-1, 9, 6, 7], default=8
    )
    bit = np.where(number < 0, 1, np.where(negative, 11 - number, number))
    expected = (wanted >> bit.astype(np.uint32)) & 1
    assert_same(actual[:, :, 0], to_mask(expected.astype(bool)), "v_cmp_class_f32")


def test_carries_and_64_bit():
    rng = np.random.default_rng(7)
    rows = u32(rng, (GROUPS, 4, 64))
    pairs = "v[64:65], v[16:17], v[18:19]"
    bodies = {
        "add": "v_add_co_u32 v64, vcc, v16, v18\nv_addc_co_u32 v65, vcc, v17, v19, vcc\n",
        "sub": "v_sub_co_u32 v64, vcc, v16, v18\nv_subb_co_u32 v65, vcc, v17, v19, vcc\n",
        "lshl_add": "v_lshl_add_u64 v[64:65], v[16:17], 3, v[18:19]\n",
        "mad": "v_mad_u64_u32 v[64:65], vcc, v16, v17, v[18:19]\n",
        "mad_signed": "v_mad_i64_i32 v[64:65], s[2:3], v16, v17, v[18:19]\n",
        "shift": "v_lshlrev_b64 v[64:65], v16, v[18:19]\n",
        "shift_right": "v_lshrrev_b64 v[64:65], v16, v[18:19]\n",
        "shift_signed": "v_ashrrev_i64 v[64:65], v16, v[18:19]\n",
        "move": "v_mov_b64 v[64:65], v[18:19]\n",
        "overlap": "v_mov_b64 v[64:65], v[16:17]\nv_mov_b64 v[66:67], v[18:19]\n"
        "v_lshl_add_u64 v[64:65], v[64:65], 1, v[66:67]\n",
        "double": f"v_add_f64 {pairs}\n",
    }
    kernels = {
        name: asm.Kernel(body + "s_mov_b64 s[20:21], vcc", 4, 2, 1)
        if "vcc" in body
        else asm.Kernel(body, 4, 2)
        for name, body in bodies.items()
    }
    code = asm.assemble(kernels)
    wide = rows.astype(np.uint64)
    a, b = wide[:, 0] | wide[:, 1] << 32, wide[:, 2] | wide[:, 3] << 32
    low, high = rows[:, 0], rows[:, 1]
    shift = (low & 63).astype(np.uint64)
    product = wide[:, 0] * wide[:, 1]
    expected = {
        "add": a + b,
        "sub": a - b,
        "lshl_add": (a << 3) + b,
        "mad": product + b,
        "mad_signed": (_signed(low) * _signed(high)).view(np.uint64) + b,
        "shift": b << shift,
        "shift_right": b >> shift,
        "shift_signed": (b.view(np.int64) >> shift.view(np.int64)).view(np.uint64),
        "move": b,
        "overlap": (a << 1) + b,
        "double": (a.view(np.float64) + b.view(np.float64)),
    }
    carries = {"add": a + b < a, "sub": a < b, "mad": product + b < b}
    for name, kernel in kernels.items():
        out = asm.run(code, name, kernel, rows)
        actual = out[:, 0].astype(np.uint64) | out[:, 1].astype(np.uint64) << 32
        assert_same(actual, expected[name], name)
        if name in carries:
            assert_same(out[:, 2:, 0], to_mask(carries[name]), f"carry of {name}")


def test_division_is_correctly_rounded():
    """The sequence that compilers emit for a / b in single precision."""
    rows = f32(np.random.default_rng(8), (4 * GROUPS, 2, 64))
    body = """
    v_div_scale_f32 v20, s[2:3], v17, v17, v16
    v_div_scale_f32 v22, vcc, v16, v17, v16
    v_rcp_f32 v21, v20
    s_nop 0
    v_fma_f32 v23, -v20, v21, 1.0
    v_fma_f32 v21, v23, v21, v21
    v_mul_f32 v23, v22, v21
    v_fma_f32 v24, -v20, v23, v22
    v_fma_f32 v23, v24, v21, v23
    v_fma_f32 v24, -v20, v23, v22
    v_div_fmas_f32 v24, v24, v21, v23
    v_div_fixup_f32 v64, v24, v17, v16
    """
    kernel = asm.Kernel(body, 2)
    actual = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows)[:, 0]
    assert_same(actual, rows[:, 0] / rows[:, 1], "division")


def test_modifiers():
    rows = f32(np.random.default_rng(9), (GROUPS, 3, 64))
    a, b, c = (rows[:, i] for i in range(3))
    clamp = lambda x: np.where(x > 0, np.minimum(x, 1), 0).astype(F32)  # noqa: E731
    expected = {
        "v_add_f32 v64, -v16, |v17|": -a + np.abs(b),
        "v_mul_f32 v64, -|v16|, v17 clamp": clamp(-np.abs(a) * b),
        "v_fma_f32 v64, v16, -v17, v18 mul:2": (_fma(a, -b, c) * F32(2)),
        "v_mul_f32 v64, v16, v17 div:2": (a * b) * F32(0.5),
        "v_exp_f32 v64, -v16": _flush(np.exp2(_flush(-a).astype(np.float64)).astype(F32)),
        "v_cndmask_b32 v64, -v16, |v17|, s[10:11]": None,
        "v_add_u32 v64, v16, v17 clamp": np.minimum(
            a.view(np.uint32).astype(np.uint64) + b.view(np.uint32), 2**32 - 1
        ).astype(np.uint32),
    }
    bodies = {f"k{i}": text for i, text in enumerate(expected)}
    kernels = {
        name: asm.Kernel(f"s_mov_b32 s10, 0x5555aaaa\ns_mov_b32 s11, 0x0ff0f00f\n{text}", 3)
        for name, text in bodies.items()
    }
    lanes = [(0x0FF0F00F5555AAAA >> i) & 1 == 1 for i in range(64)]
    expected["v_cndmask_b32 v64, -v16, |v17|, s[10:11]"] = np.where(lanes, np.abs(b), -a)
    code = asm.assemble(kernels)
    for name, text in bodies.items():
        actual = asm.run(code, name, kernels[name], rows)[:, 0]
        assert_same(actual, expected[text], text, 1 if "exp" in text else 0)


def test_inactive_lanes_keep_their_values():
    rows = f32(np.random.default_rng(10), (GROUPS, 3, 64))
    mask = 0x00FF123400018001
    lanes = np.array([(mask >> i) & 1 == 1 for i in range(64)])
    setup = "v_mov_b32 v64, v18\n"
    setup += f"s_mov_b32 exec_lo, {mask & 0xFFFFFFFF}\ns_mov_b32 exec_hi, {mask >> 32}\n"
    kernels = {
        "add": asm.Kernel(setup + "v_add_f32 v64, v16, v17", 3),
        "modified": asm.Kernel(setup + "v_add_f32 v64, -v16, v17", 3),
        "compare": asm.Kernel(setup + "v_cmp_lt_f32 s[20:21], v16, v17", 3, 1, 1),
        "first": asm.Kernel(
            setup + "s_mov_b64 exec, 0x3f0\nv_readfirstlane_b32 s20, v16\n"
            "v_readlane_b32 s21, v17, 40",
            3,
            1,
            1,
        ),
    }
    code = asm.assemble(kernels)
    a, b, c = (rows[:, i] for i in range(3))
    out = {name: asm.run(code, name, kernel, rows) for name, kernel in kernels.items()}
    assert_same(out["add"][:, 0], np.where(lanes, a + b, c), "add")
    assert_same(out["modified"][:, 0], np.where(lanes, b - a, c), "modified")
    assert_same(out["compare"][:, 1:, 0], to_mask((a < b) & lanes), "compare")
    assert_same(out["first"][:, 1, 0], a.view(np.uint32)[:, 4], "v_readfirstlane_b32")
    assert_same(out["first"][:, 2, 0], b.view(np.uint32)[:, 40], "v_readlane_b32")


def _dpp(x: np.ndarray, source: Callable[[int], int], old: np.ndarray, zero: bool) -> np.ndarray:
    result = old.copy()
    for lane in range(64):
        at = source(lane)
        if at >= 0:
            result[:, lane] = x[:, at]
        elif zero:
            result[:, lane] = 0
    return result


def test_dpp():
    rows = u32(np.random.default_rng(11), (2, 2, 64))
    row, at = (lambda i: i & ~15), (lambda i: i & 15)
    sources: dict[str, Callable[[int], int]] = {
        "quad_perm:[3,0,2,1]": lambda i: (i & ~3) + (3, 0, 2, 1)[i & 3],
        "row_shl:3": lambda i: i + 3 if at(i) + 3 < 16 else -1,
        "row_shr:1": lambda i: i - 1 if at(i) >= 1 else -1,
        "row_ror:5": lambda i: row(i) + (at(i) - 5) % 16,
        "row_mirror": lambda i: row(i) + 15 - at(i),
        "row_half_mirror": lambda i: (i & ~7) + 7 - (i & 7),
        "row_bcast:15": lambda i: row(i) - 1 if i >= 16 else -1,
        "row_bcast:31": lambda i: 31 if i >= 32 else -1,
        "row_newbcast:6": lambda i: row(i) + 6,
        "wave_shr:1": lambda i: i - 1,
    }
    kernels = {}
    for index, control in enumerate(sources):
        for zero in (False, True):
            bound = " bound_ctrl:0" if zero else ""
            kernels[f"k{index}{zero}"] = asm.Kernel(
                "v_mov_b32 v64, v17\n"
                f"v_mov_b32_dpp v64, v16 {control} row_mask:0xf bank_mask:0xf{bound}",
                2,
            )
    kernels["masks"] = asm.Kernel(
        "v_mov_b32 v64, v17\nv_add_u32_dpp v64, v16, v17 row_ror:1 row_mask:0x5 bank_mask:0x3", 2
    )
    code = asm.assemble(kernels)
    for index, (control, source) in enumerate(sources.items()):
        for zero in (False, True):
            name = f"k{index}{zero}"
            actual = asm.run(code, name, kernels[name], rows)[:, 0]
            assert_same(actual, _dpp(rows[:, 0], source, rows[:, 1], zero), control)
    actual = asm.run(code, "masks", kernels["masks"], rows)[:, 0]
    moved = rows[:, 0][:, [row(i) + (at(i) - 1) % 16 for i in range(64)]]
    on = [(0x5 >> (i // 16)) & 1 == 1 and (0x3 >> (at(i) // 4)) & 1 == 1 for i in range(64)]
    assert_same(actual, np.where(on, moved + rows[:, 1], rows[:, 1]), "row and bank masks")


def test_sdwa():
    rows = u32(np.random.default_rng(12), (GROUPS, 3, 64))
    a, b, c = (rows[:, i] for i in range(3))
    signed_byte = ((a >> 8) & 0xFF).astype(np.uint8).view(np.int8).astype(np.int64)
    total = _u(signed_byte + ((b >> 16) & 0xFFFF))
    expected = {
        "dst_sel:DWORD dst_unused:UNUSED_PAD": total,
        "dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE": (c & ~np.uint32(0xFF00)) | (total & 0xFF) << 8,
        "dst_sel:WORD_1 dst_unused:UNUSED_PAD": (total & 0xFFFF) << 16,
        "dst_sel:WORD_0 dst_unused:UNUSED_SEXT": _u(_signed(total, 16)),
    }
    kernels = {
        f"k{i}": asm.Kernel(
            "v_mov_b32 v64, v18\n"
            f"v_add_u32_sdwa v64, sext(v16), v17 {text} src0_sel:BYTE_1 src1_sel:WORD_1",
            3,
        )
        for i, text in enumerate(expected)
    }
    code = asm.assemble(kernels)
    for i, (text, value) in enumerate(expected.items()):
        assert_same(asm.run(code, f"k{i}", kernels[f"k{i}"], rows)[:, 0], value, text)


def test_pairs_of_single_precision():
    rows = f32(np.random.default_rng(13), (GROUPS, 6, 64))
    a, b, c = rows[:, 0:2], rows[:, 2:4], rows[:, 4:6]
    expected = {
        "v_pk_mul_f32 v[64:65], v[16:17], v[18:19]": a * b,
        "v_pk_add_f32 v[64:65], v[16:17], v[18:19]": a + b,
        "v_pk_fma_f32 v[64:65], v[16:17], v[18:19], v[20:21]": _fma(a, b, c),
        "v_pk_mul_f32 v[64:65], v[16:17], v[18:19] op_sel_hi:[0,1]": a[:, :1] * b,
        "v_pk_mul_f32 v[64:65], v[16:17], v[18:19] op_sel:[1,0] op_sel_hi:[0,1]": a[:, ::-1] * b,
        "v_pk_add_f32 v[64:65], v[16:17], v[18:19] neg_lo:[1,0] neg_hi:[0,1]": np.stack(
            [b[:, 0] - a[:, 0], a[:, 1] - b[:, 1]], 1
        ),
        "v_pk_mov_b32 v[64:65], v[16:17], v[18:19] op_sel:[1,0]": np.stack([a[:, 1], b[:, 0]], 1),
    }
    kernels = {f"k{i}": asm.Kernel(text, 6, 2) for i, text in enumerate(expected)}
    kernels["in_place"] = asm.Kernel(
        "v_mov_b64 v[64:65], v[16:17]\n"
        "v_pk_mul_f32 v[64:65], v[64:65], v[18:19] op_sel:[1,0] op_sel_hi:[0,1]",
        6,
        2,
    )
    code = asm.assemble(kernels)
    for i, (text, value) in enumerate(expected.items()):
        assert_same(asm.run(code, f"k{i}", kernels[f"k{i}"], rows), value, text)
    actual = asm.run(code, "in_place", kernels["in_place"], rows)
    assert_same(actual, a[:, ::-1] * b, "sources are read before the pair is written")


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
    assert_same(actual, _fma(x, _half(h, True).astype(F32), -_half(old).astype(F32)), "mix")
    actual = asm.run(code, "hi", kernels["hi"], rows)[:, 0]
    single = _fma(x, _half(h).astype(F32), np.ones_like(x))
    assert_same(_half(actual, True), single.astype(np.float16), "mixhi")
    assert_same(actual & 0xFFFF, old & 0xFFFF, "mixhi keeps the lower half")


def test_round_toward_zero_pair():
    rows = f32(np.random.default_rng(16), (GROUPS, 2, 64))
    kernel = asm.Kernel("v_cvt_pkrtz_f16_f32 v64, v16, v17", 2)
    actual = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows)[:, 0]
    for i in range(2):
        x = rows[:, i]
        near = x.astype(np.float16)
        too_far = (np.abs(near.astype(np.float64)) > np.abs(x.astype(np.float64))) & ~np.isnan(x)
        expected = np.where(too_far, np.nextafter(near, np.float16(0)), near).astype(np.float16)
        assert_same(_half(actual, i == 1), expected, "v_cvt_pkrtz_f16_f32")


def test_lane_exchange():
    rows = u32(np.random.default_rng(17), (2, 2, 64))
    kernels = {
        f"swap{n}": asm.Kernel(
            f"v_mov_b32 v64, v16\nv_mov_b32 v65, v17\ns_nop 1\nv_permlane{n}_swap_b32 v64, v65",
            2,
            2,
        )
        for n in (16, 32)
    }
    kernels["writelane"] = asm.Kernel(
        "v_mov_b32 v64, v16\ns_movk_i32 s3, 77\ns_mov_b64 exec, 1\nv_writelane_b32 v64, s3, 9", 2
    )
    kernels["mbcnt"] = asm.Kernel(
        "v_mbcnt_lo_u32_b32 v64, -1, 0\nv_mbcnt_hi_u32_b32 v64, -1, v64", 2
    )
    kernels["bitop3"] = asm.Kernel("v_bitop3_b32 v64, v16, v17, v0 bitop3:0x6c", 2)
    code = asm.assemble(kernels)
    for n in (16, 32):
        out = asm.run(code, f"swap{n}", kernels[f"swap{n}"], rows)
        a = rows[:, 0].reshape(2, -1, 2, n)
        b = rows[:, 1].reshape(2, -1, 2, n)
        expected_a, expected_b = a.copy(), b.copy()
        expected_a[:, :, 1], expected_b[:, :, 0] = b[:, :, 0], a[:, :, 1]
        assert_same(out[:, 0], expected_a.reshape(2, 64), f"v_permlane{n}_swap_b32")
        assert_same(out[:, 1], expected_b.reshape(2, 64), f"v_permlane{n}_swap_b32 source")
    expected = rows[:, 0].copy()
    expected[:, 9] = 77
    assert_same(asm.run(code, "writelane", kernels["writelane"], rows)[:, 0], expected, "writelane")
    lane = np.broadcast_to(np.arange(64, dtype=np.uint32), (2, 64))
    assert_same(asm.run(code, "mbcnt", kernels["mbcnt"], rows)[:, 0], lane, "mbcnt")
    a, b, c = rows[:, 0], rows[:, 1], lane
    expected = np.zeros_like(a)
    for bit in range(8):
        if (0x6C >> bit) & 1:
            terms = [v if (bit >> s) & 1 else ~v for v, s in ((a, 2), (b, 1), (c, 0))]
            expected |= terms[0] & terms[1] & terms[2]
    assert_same(asm.run(code, "bitop3", kernels["bitop3"], rows)[:, 0], expected, "bitop3")


def test_denormals_are_flushed_where_the_mode_says_so():
    rng = np.random.default_rng(18)
    rows = rng.integers(0, 2**32, (GROUPS, 2, 64), dtype=np.uint32) & 0x80FFFFFF
    rows = rows.view(F32)
    kernels = {
        name: asm.Kernel(f"{name} v64, v16, v17", 2, denormals=0)
        for name in ("v_add_f32", "v_mul_f32")
    }
    code = asm.assemble(kernels)
    a, b = _flush(rows[:, 0]), _flush(rows[:, 1])
    for name, value in (("v_add_f32", a + b), ("v_mul_f32", a * b)):
        actual = asm.run(code, name, kernels[name], rows)[:, 0]
        assert_same(actual, _flush(value), name)


@pytest.mark.parametrize(("mode", "name"), list(enumerate(["nearest", "up", "down", "zero"])))
def test_rounding_modes(mode: int, name: str):
    """Sums and products lie on the side of the exact value that MODE asks for."""
    rows = np.random.default_rng(19).normal(size=(GROUPS, 3, 64)).astype(F32)
    a, b = (rows[:, i].astype(np.float64) for i in range(2))
    body = f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), {mode}\n"
    body += "v_add_f32 v64, v16, v17\nv_mul_f32 v65, v16, v17\nv_fma_f32 v66, v16, v17, v18"
    kernel = asm.Kernel(body, 3, 3)
    out = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows).view(F32)
    for i, exact in enumerate((a + b, a * b)):  # exact in double
        near = exact.astype(F32)
        expected = near
        if mode:
            below, above = near.astype(np.float64) < exact, near.astype(np.float64) > exact
            toward_zero = np.where(exact > 0, above, below)
            move_up = below & (mode == 1) | toward_zero & (mode == 3) & (exact < 0)
            move_down = above & (mode == 2) | toward_zero & (mode == 3) & (exact > 0)
            expected = np.where(move_up, np.nextafter(near, F32(np.inf)), near)
            expected = np.where(move_down, np.nextafter(near, F32(-np.inf)), expected)
        assert_same(out[:, i], expected.astype(F32), f"{name}, result {i}")
    nearest = _fma(rows[:, 0], rows[:, 1], rows[:, 2])
    assert_same(out[:, 2], nearest, f"{name}, fma", 0 if mode == 0 else 1)


_LEVELS = """
import sys
import numpy as np
import gfx950_asm as asm
from lane_values import f32
rows = f32(np.random.default_rng(20), (8, 3, 64))
names = "exp log rcp rsq sqrt sin cos".split()
kernels = {n: asm.Kernel(f"v_{n}_f32 v64, v16", 3) for n in names}
kernels["fma"] = asm.Kernel("v_fma_f32 v64, v16, v17, v18", 3)
kernels["mfma"] = asm.Kernel("v_mfma_f32_32x32x2_f32 v[64:79], v16, v17, 0", 3, 16)
kernels["dot"] = asm.Kernel("v_dot2_f32_bf16 v64, v16, v17, v18", 3)
code = asm.assemble(kernels)
for n, k in kernels.items():
    sys.stdout.buffer.write(asm.run(code, n, k, rows).tobytes())
"""


def test_every_simd_level_gives_the_same_bits():
    outputs = set()
    for level in ("sse2", "avx2", "avx512"):
        environment = {**os.environ, "JAX_FA_EMULATOR_SIMD": level}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        # -P: the working folder's jax_fa must not hide the installed one.
        command = [sys.executable, "-P", "-c", _LEVELS]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert len(outputs.pop()) == (7 + 1 + 16 + 1) * 8 * 64 * 4
