"""Scalar instructions of both targets against Python integers and NumPy."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from assemble import assemble

from jax_fa import emulator

M32, M64 = (1 << 32) - 1, (1 << 64) - 1

# Each workgroup takes its row of operands: a (s[16:17]), b (s[18:19]), and stores the result
# s[20:21], SCC before in s24 and after in s22.
_GFX950 = """
s_load_dwordx4 s[8:11], s[0:1], 0x0
s_lshl_b32 s12, s2, 5
s_waitcnt lgkmcnt(0)
s_load_dwordx4 s[16:19], s[8:9], s12
s_add_u32 s14, s12, 16
s_load_dword s24, s[8:9], s14
s_waitcnt lgkmcnt(0)
s_mov_b64 s[20:21], 0
s_cmp_eq_u32 s24, 1
{instruction}
s_cselect_b32 s22, 1, 0
v_mov_b32 v1, 0
v_mov_b32 v2, s20
v_mov_b32 v3, s21
v_mov_b32 v4, s22
s_lshl_b32 s12, s2, 4
s_add_u32 s10, s10, s12
s_addc_u32 s11, s11, 0
global_store_dwordx3 v1, v[2:4], s[10:11]
s_endpgm
"""
_GFX1201 = """
s_load_b128 s[8:11], s[0:1], 0x0
s_mov_b32 s2, ttmp9
s_lshl_b32 s12, s2, 5
s_wait_kmcnt 0x0
s_load_b128 s[16:19], s[8:9], s12 offset:0x0
s_load_b32 s24, s[8:9], s12 offset:0x10
s_wait_kmcnt 0x0
s_mov_b64 s[20:21], 0
s_cmp_eq_u32 s24, 1
{instruction}
s_cselect_b32 s22, 1, 0
v_mov_b32 v1, 0
v_mov_b32 v2, s20
v_mov_b32 v3, s21
v_mov_b32 v4, s22
s_lshl_b32 s12, s2, 4
s_add_co_u32 s10, s10, s12
s_add_co_ci_u32 s11, s11, 0
global_store_b96 v1, v[2:4], s[10:11]
s_endpgm
"""

NO = ""  # the target has no such instruction


class Op(NamedTuple):
    """An instruction on a (64 or 32 bits wide), b and SCC; ``model`` gives result and SCC.

    SCC of None: kept. ``widths`` are the bits of result, a and b; b of 0: a single operand.
    """

    gfx950: str
    gfx1201: str
    widths: tuple[int, int, int]
    model: Callable[[int, int, int], tuple[int, int | None]]


def _signed(value: int, bits: int = 32) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _nonzero(function, bits=32):
    mask = (1 << bits) - 1

    def model(a, b, scc):
        del scc
        result = function(a, b) & mask
        return result, int(result != 0)

    return model


def _keep(function, bits=32):
    return lambda a, b, scc: (function(a, b) & ((1 << bits) - 1), None)


def _bfe(a, b, bits, signed):
    offset, width = b & (bits - 1), min((b >> 16) & 0x7F, bits)
    if width == 0:
        return 0
    value = (_signed(a, bits) if signed else a) >> offset
    value &= (1 << width) - 1
    return _signed(value, width) if signed else value


def _first_one(a, bits):
    return next((i for i in range(bits) if (a >> i) & 1), -1)


def _leading(a, bits):
    return next((i for i in range(bits) if (a >> (bits - 1 - i)) & 1), -1)


def _leading_signs(a, bits):
    sign = a >> (bits - 1)
    return next((i for i in range(bits) if (a >> (bits - 1 - i)) & 1 != sign), -1)


def _reverse(a, bits):
    return int(f"{a:0{bits}b}"[::-1], 2)


def _quads(a, bits):
    return [(a >> i) & 15 != 0 for i in range(0, bits, 4)]


def _overflow(value):
    return int(not -(1 << 31) <= value < 1 << 31)


def _add_signed(a, b, scc):
    total = _signed(a) + _signed(b)
    return total & M32, _overflow(total)


def _sub_signed(a, b, scc):
    total = _signed(a) - _signed(b)
    return total & M32, _overflow(total)


def _shift_add(by):
    return lambda a, b, scc: (((a << by) + b) & M32, int((a << by) + b > M32))


S32, S64, D64 = (32, 32, 32), (64, 64, 64), (64, 64, 32)

OPS = [
    Op("s_add_u32", "s_add_co_u32", S32, lambda a, b, c: ((a + b) & M32, int(a + b > M32))),
    Op("s_sub_u32", "s_sub_co_u32", S32, lambda a, b, c: ((a - b) & M32, int(b > a))),
    Op("s_add_i32", "s_add_co_i32", S32, _add_signed),
    Op("s_sub_i32", "s_sub_co_i32", S32, _sub_signed),
    Op("s_addc_u32", "s_add_co_ci_u32", S32, lambda a, b, c: ((a + b + c) & M32, a + b + c > M32)),
    Op("s_subb_u32", "s_sub_co_ci_u32", S32, lambda a, b, c: ((a - b - c) & M32, b + c > a)),
    Op(
        "s_min_i32",
        "s_min_i32",
        S32,
        lambda a, b, c: (min((_signed(a), a), (_signed(b), b))[1], _signed(a) < _signed(b)),
    ),
    Op("s_min_u32", "s_min_u32", S32, lambda a, b, c: (min(a, b), a < b)),
    Op(
        "s_max_i32",
        "s_max_i32",
        S32,
        lambda a, b, c: (max((_signed(a), a), (_signed(b), b))[1], _signed(a) >= _signed(b)),
    ),
    Op("s_max_u32", "s_max_u32", S32, lambda a, b, c: (max(a, b), a >= b)),
    Op("s_cselect_b32", "s_cselect_b32", S32, lambda a, b, c: (a if c else b, None)),
    Op("s_cselect_b64", "s_cselect_b64", S64, lambda a, b, c: (a if c else b, None)),
    Op("s_and_b32", "s_and_b32", S32, _nonzero(lambda a, b: a & b)),
    Op("s_or_b64", "s_or_b64", S64, _nonzero(lambda a, b: a | b, 64)),
    Op("s_xor_b64", "s_xor_b64", S64, _nonzero(lambda a, b: a ^ b, 64)),
    Op("s_andn2_b64", "s_and_not1_b64", S64, _nonzero(lambda a, b: a & ~b, 64)),
    Op("s_orn2_b32", "s_or_not1_b32", S32, _nonzero(lambda a, b: a | ~b)),
    Op("s_nand_b32", "s_nand_b32", S32, _nonzero(lambda a, b: ~(a & b))),
    Op("s_nor_b64", "s_nor_b64", S64, _nonzero(lambda a, b: ~(a | b), 64)),
    Op("s_xnor_b32", "s_xnor_b32", S32, _nonzero(lambda a, b: ~(a ^ b))),
    Op("s_lshl_b32", "s_lshl_b32", S32, _nonzero(lambda a, b: a << (b & 31))),
    Op("s_lshl_b64", "s_lshl_b64", D64, _nonzero(lambda a, b: a << (b & 63), 64)),
    Op("s_lshr_b32", "s_lshr_b32", S32, _nonzero(lambda a, b: a >> (b & 31))),
    Op("s_lshr_b64", "s_lshr_b64", D64, _nonzero(lambda a, b: a >> (b & 63), 64)),
    Op("s_ashr_i32", "s_ashr_i32", S32, _nonzero(lambda a, b: _signed(a) >> (b & 31))),
    Op("s_ashr_i64", "s_ashr_i64", D64, _nonzero(lambda a, b: _signed(a, 64) >> (b & 63), 64)),
    Op("s_bfm_b32", "s_bfm_b32", S32, _keep(lambda a, b: ((1 << (a & 31)) - 1) << (b & 31))),
    Op(
        "s_bfm_b64",
        "s_bfm_b64",
        (64, 32, 32),
        _keep(lambda a, b: ((1 << (a & 63)) - 1) << (b & 63), 64),
    ),
    Op("s_mul_i32", "s_mul_i32", S32, _keep(lambda a, b: a * b)),
    Op("s_mul_hi_u32", "s_mul_hi_u32", S32, _keep(lambda a, b: a * b >> 32)),
    Op("s_mul_hi_i32", "s_mul_hi_i32", S32, _keep(lambda a, b: _signed(a) * _signed(b) >> 32)),
    Op("s_bfe_u32", "s_bfe_u32", S32, _nonzero(lambda a, b: _bfe(a, b, 32, False))),
    Op("s_bfe_i32", "s_bfe_i32", S32, _nonzero(lambda a, b: _bfe(a, b, 32, True))),
    Op("s_bfe_u64", "s_bfe_u64", D64, _nonzero(lambda a, b: _bfe(a, b, 64, False), 64)),
    Op("s_bfe_i64", "s_bfe_i64", D64, _nonzero(lambda a, b: _bfe(a, b, 64, True), 64)),
    Op("s_absdiff_i32", "s_absdiff_i32", S32, _nonzero(lambda a, b: abs(_signed((a - b) & M32)))),
    Op("s_lshl1_add_u32", "s_lshl1_add_u32", S32, _shift_add(1)),
    Op("s_lshl4_add_u32", "s_lshl4_add_u32", S32, _shift_add(4)),
    Op("s_pack_ll_b32_b16", "s_pack_ll_b32_b16", S32, _keep(lambda a, b: (a & 0xFFFF) | b << 16)),
    Op(
        "s_pack_lh_b32_b16",
        "s_pack_lh_b32_b16",
        S32,
        _keep(lambda a, b: (a & 0xFFFF) | (b >> 16) << 16),
    ),
    Op(
        "s_pack_hh_b32_b16",
        "s_pack_hh_b32_b16",
        S32,
        _keep(lambda a, b: (a >> 16) | (b >> 16) << 16),
    ),
    Op(NO, "s_pack_hl_b32_b16", S32, _keep(lambda a, b: (a >> 16) | b << 16)),
    Op(NO, "s_add_nc_u64", S64, _keep(lambda a, b: a + b, 64)),
    Op(NO, "s_sub_nc_u64", S64, _keep(lambda a, b: a - b, 64)),
    Op(NO, "s_mul_u64", S64, _keep(lambda a, b: a * b, 64)),
    Op("s_mov_b64", "s_mov_b64", (64, 64, 0), _keep(lambda a, b: a, 64)),
    Op("s_not_b32", "s_not_b32", (32, 32, 0), _nonzero(lambda a, b: ~a)),
    Op("s_cmov_b32", "s_cmov_b32", (32, 32, 0), lambda a, b, c: (a if c else 0, None)),
    Op("s_brev_b32", "s_brev_b32", (32, 32, 0), _keep(lambda a, b: _reverse(a, 32))),
    Op("s_brev_b64", "s_brev_b64", (64, 64, 0), _keep(lambda a, b: _reverse(a, 64), 64)),
    Op("s_bcnt1_i32_b64", "s_bcnt1_i32_b64", (32, 64, 0), _nonzero(lambda a, b: a.bit_count())),
    Op(
        "s_bcnt0_i32_b32", "s_bcnt0_i32_b32", (32, 32, 0), _nonzero(lambda a, b: 32 - a.bit_count())
    ),
    Op("s_ff1_i32_b32", "s_ctz_i32_b32", (32, 32, 0), _keep(lambda a, b: _first_one(a, 32))),
    Op("s_ff1_i32_b64", "s_ctz_i32_b64", (32, 64, 0), _keep(lambda a, b: _first_one(a, 64))),
    Op("s_ff0_i32_b32", NO, (32, 32, 0), _keep(lambda a, b: _first_one(~a & M32, 32))),
    Op("s_flbit_i32_b32", "s_clz_i32_u32", (32, 32, 0), _keep(lambda a, b: _leading(a, 32))),
    Op("s_flbit_i32", "s_cls_i32", (32, 32, 0), _keep(lambda a, b: _leading_signs(a, 32))),
    Op("s_flbit_i32_i64", "s_cls_i32_i64", (32, 64, 0), _keep(lambda a, b: _leading_signs(a, 64))),
    Op("s_sext_i32_i8", "s_sext_i32_i8", (32, 32, 0), _keep(lambda a, b: _signed(a & 0xFF, 8))),
    Op(
        "s_sext_i32_i16", "s_sext_i32_i16", (32, 32, 0), _keep(lambda a, b: _signed(a & 0xFFFF, 16))
    ),
    Op("s_bitset1_b32", "s_bitset1_b32", (32, 32, 0), _keep(lambda a, b: 1 << (a & 31))),
    Op("s_bitset1_b64", "s_bitset1_b64", (64, 32, 0), _keep(lambda a, b: 1 << (a & 63), 64)),
    Op("s_abs_i32", "s_abs_i32", (32, 32, 0), _nonzero(lambda a, b: abs(_signed(a)))),
    Op(
        "s_wqm_b64",
        "s_wqm_b64",
        (64, 64, 0),
        _nonzero(lambda a, b: sum(15 << 4 * i for i, q in enumerate(_quads(a, 64)) if q), 64),
    ),
    Op(
        "s_quadmask_b32",
        "s_quadmask_b32",
        (32, 32, 0),
        _nonzero(lambda a, b: sum(1 << i for i, q in enumerate(_quads(a, 32)) if q)),
    ),
    Op(
        "s_bitreplicate_b64_b32",
        "s_bitreplicate_b64_b32",
        (64, 32, 0),
        _keep(lambda a, b: sum(3 << 2 * i for i in range(32) if (a >> i) & 1), 64),
    ),
]

COMPARES = {
    "eq_i32": (lambda a, b: a == b, 32),
    "lg_i32": (lambda a, b: a != b, 32),
    "gt_i32": (lambda a, b: _signed(a) > _signed(b), 32),
    "ge_i32": (lambda a, b: _signed(a) >= _signed(b), 32),
    "lt_i32": (lambda a, b: _signed(a) < _signed(b), 32),
    "le_i32": (lambda a, b: _signed(a) <= _signed(b), 32),
    "gt_u32": (lambda a, b: a > b, 32),
    "ge_u32": (lambda a, b: a >= b, 32),
    "lt_u32": (lambda a, b: a < b, 32),
    "le_u32": (lambda a, b: a <= b, 32),
    "eq_u64": (lambda a, b: a == b, 64),
    "lg_u64": (lambda a, b: a != b, 64),
}


def _operands() -> np.ndarray:
    """Rows of a, b (64 bits each), SCC and padding."""
    special = [0, 1, 2, 31, 32, 63, 0x7FFFFFFF, 0x80000000, M32, 1 << 32, 1 << 63, M64, 0x00080004]
    rng = np.random.default_rng(0)
    rows = [(a, b, (a ^ b ^ i) & 1) for i, a in enumerate(special) for b in special]
    rows += [
        (int(a), int(b), int(c))
        for a, b, c in zip(
            rng.integers(0, 1 << 64, 60, np.uint64),
            rng.integers(0, 1 << 64, 60, np.uint64),
            rng.integers(0, 2, 60),
            strict=True,
        )
    ]
    return np.array([(*row, 0) for row in rows], np.uint64)


def _registers(first: int, bits: int) -> str:
    return f"s[{first}:{first + 1}]" if bits == 64 else f"s{first}"


def _run(
    target: str, instruction: str, denormals: int = 3
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Operands, results and SCC afterwards of every row; ``denormals`` 3 keeps them, 0 flushes."""
    body = (_GFX950 if target == "gfx950" else _GFX1201).format(instruction=instruction)
    mode = f".amdhsa_float_denorm_mode_32 {denormals}"
    code = emulator.CodeObject(assemble(target, body, ("pointer", "pointer"), extra=mode))
    operands = _operands()
    out = np.zeros((len(operands), 4), np.uint32)
    code.launch("kernel", len(operands), 1, args=[operands, out], threads=1)
    return operands, out[:, 0] | out[:, 1].astype(np.uint64) << np.uint64(32), out[:, 2]


CASES = [(target, op) for target in ("gfx950", "gfx1201") for op in OPS if getattr(op, target)]


@pytest.mark.parametrize(
    ("target", "op"), CASES, ids=[f"{target}-{getattr(op, target)}" for target, op in CASES]
)
def test_integer_instruction(target, op):
    result_bits, a_bits, b_bits = op.widths
    operands = [_registers(20, result_bits), _registers(16, a_bits)]
    if b_bits:
        operands.append(_registers(18, b_bits))
    rows, results, sccs = _run(target, f"{getattr(op, target)} {', '.join(operands)}")
    for (a, b, before, _), result, scc in zip(rows.tolist(), results, sccs, strict=True):
        a, b = a & ((1 << a_bits) - 1), b & ((1 << b_bits) - 1)
        expected, expected_scc = op.model(a, b, before)
        assert result == expected & ((1 << result_bits) - 1), (hex(a), hex(b), before)
        assert scc == (before if expected_scc is None else expected_scc), (hex(a), hex(b))


@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
@pytest.mark.parametrize("compare", sorted(COMPARES))
def test_compare(target, compare):
    function, bits = COMPARES[compare]
    instruction = f"s_cmp_{compare} {_registers(16, bits)}, {_registers(18, bits)}"
    rows, _, sccs = _run(target, instruction)
    mask = (1 << bits) - 1
    for (a, b, _, _), scc in zip(rows.tolist(), sccs, strict=True):
        assert scc == function(a & mask, b & mask), (hex(a), hex(b))


# name: (result type, NumPy function of the operands)
FLOATS = {
    "s_add_f32": (np.float32, lambda a, b: a + b),
    "s_sub_f32": (np.float32, lambda a, b: a - b),
    "s_mul_f32": (np.float32, lambda a, b: a * b),
    "s_min_num_f32": (np.float32, np.fmin),
    "s_max_num_f32": (np.float32, np.fmax),
    "s_minimum_f32": (np.float32, np.minimum),
    "s_maximum_f32": (np.float32, np.maximum),
    "s_add_f16": (np.float16, lambda a, b: a + b),
    "s_sub_f16": (np.float16, lambda a, b: a - b),
    "s_mul_f16": (np.float16, lambda a, b: a * b),
    "s_minimum_f16": (np.float16, np.minimum),
    "s_max_num_f16": (np.float16, np.fmax),
    "s_ceil_f32": (np.float32, lambda a, b: np.ceil(a)),
    "s_floor_f32": (np.float32, lambda a, b: np.floor(a)),
    "s_trunc_f16": (np.float16, lambda a, b: np.trunc(a)),
    "s_rndne_f32": (np.float32, lambda a, b: np.rint(a)),
    "s_rndne_f16": (np.float16, lambda a, b: np.rint(a)),
}


@pytest.mark.parametrize("name", sorted(FLOATS))
def test_gfx1201_float_instruction(name):
    dtype, function = FLOATS[name]
    unary = name.split("_")[1] in ("ceil", "floor", "trunc", "rndne")
    rows, results, _ = _run("gfx1201", f"{name} s20, s16" + ("" if unary else ", s18"))
    a, b = (rows[:, i].astype(np.uint32).view(np.float32) for i in (0, 1))
    actual = results.astype(np.uint32).view(np.float32)
    if dtype == np.float16:
        a, b, actual = (x.view(np.float16)[::2] for x in (a, b, actual))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(actual, function(a, b).astype(dtype))


def test_gfx1201_denormals_are_flushed_where_mode_says_so():
    rows, results, _ = _run("gfx1201", "s_add_f32 s20, s16, s18", denormals=0)
    a, b = (rows[:, i].astype(np.uint32).view(np.float32) for i in (0, 1))
    tiny = np.finfo(np.float32).tiny

    def flush(x):
        return np.where(np.abs(x) < tiny, np.float32(0), x)

    with np.errstate(all="ignore"):
        expected = flush(flush(a) + flush(b))
    np.testing.assert_array_equal(results.astype(np.uint32).view(np.float32), expected)


@pytest.mark.parametrize("bits", [32, 16])
def test_gfx1201_float_compares(bits):
    names = {"lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater}
    for name, function in names.items():
        for prefix, want in (("", True), ("n", False)):
            instruction = f"s_cmp_{prefix}{name}_f{bits} s16, s18"
            rows, _, sccs = _run("gfx1201", instruction)
            a, b = (rows[:, i].astype(np.uint32).view(np.float32) for i in (0, 1))
            if bits == 16:
                a, b = (x.view(np.float16)[::2] for x in (a, b))
            np.testing.assert_array_equal(sccs == 1, function(a, b) == want)


def test_gfx1201_conversions():
    rows, results, _ = _run("gfx1201", "s_cvt_f16_f32 s20, s16")
    a = rows[:, 0].astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        expected = a.astype(np.float16)
    np.testing.assert_array_equal(results.astype(np.uint32).view(np.float16)[::2], expected)
    rows, results, _ = _run("gfx1201", "s_cvt_f32_i32 s20, s16")
    expected = rows[:, 0].astype(np.uint32).view(np.int32).astype(np.float32)
    np.testing.assert_array_equal(results.astype(np.uint32).view(np.float32), expected)
    rows, results, _ = _run("gfx1201", "s_cvt_i32_f32 s20, s16")
    a = rows[:, 0].astype(np.uint32).view(np.float32).astype(np.float64)
    expected = np.clip(np.trunc(np.nan_to_num(a, nan=0)), -(2.0**31), 2.0**31 - 1)
    np.testing.assert_array_equal(results.astype(np.uint32).view(np.int32), expected)


def test_exec_mask_operations():
    """s_and_saveexec and the vector instructions it governs."""
    body = """
    s_load_dwordx2 s[8:9], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    v_mov_b32 v2, 1
    s_mov_b32 s12, 0x0f0f0f0f
    s_mov_b32 s13, 0x000000ff
    s_waitcnt lgkmcnt(0)
    s_and_saveexec_b64 s[14:15], s[12:13]
    v_mov_b32 v2, 2
    s_cbranch_execz .Lnone
    s_andn2_b64 exec, s[14:15], exec
    v_add_u32 v2, 4, v2
    .Lnone:
    s_mov_b64 exec, s[14:15]
    global_store_dword v1, v2, s[8:9]
    s_endpgm
    """
    out = np.zeros(64, np.int32)
    emulator.CodeObject(assemble("gfx950", body)).launch("kernel", 1, 64, args=[out])
    taken = (0x000000FF0F0F0F0F >> np.arange(64, dtype=np.uint64)) & np.uint64(1) == 1
    np.testing.assert_array_equal(out, np.where(taken, 2, 5))


def test_call_and_return():
    body = """
    s_load_dwordx2 s[8:9], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    s_getpc_b64 s[4:5]
    .Lhere:
    s_add_u32 s4, s4, .Lfunction-.Lhere
    s_addc_u32 s5, s5, 0
    s_swappc_b64 s[6:7], s[4:5]
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v2, s[8:9]
    s_endpgm
    .Lfunction:
    v_mov_b32 v2, 9
    s_setpc_b64 s[6:7]
    """
    out = np.zeros(64, np.int32)
    emulator.CodeObject(assemble("gfx950", body)).launch("kernel", 1, 64, args=[out])
    np.testing.assert_array_equal(out, 9)


def test_scalar_buffer_load_past_its_end_is_zero():
    body = """
    s_load_dwordx4 s[8:11], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
    s_mov_b64 s[16:17], s[8:9]
    s_and_b32 s17, s17, 0xffff
    s_mov_b32 s18, 12
    s_mov_b32 s19, 0
    s_buffer_load_dwordx4 s[20:23], s[16:19], 0x0
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v2, s22
    global_store_dword v1, v2, s[10:11]
    v_mov_b32 v2, s23
    global_store_dword v1, v2, s[10:11] offset:4
    s_endpgm
    """
    source, out = np.arange(10, 14, dtype=np.int32), np.full(2, -1, np.int32)
    code = emulator.CodeObject(assemble("gfx950", body, ("pointer", "pointer")))
    code.launch("kernel", 1, 1, args=[source, out])
    np.testing.assert_array_equal(out, [12, 0])
