"""Scalar integer instructions of both targets against Python integers."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from compared import compared
from scalar_asm import M32, Instructions, registers

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
    Op("s_and_b64", "s_and_b64", S64, _nonzero(lambda a, b: a & b, 64)),
    Op("s_or_b32", "s_or_b32", S32, _nonzero(lambda a, b: a | b)),
    Op("s_xor_b32", "s_xor_b32", S32, _nonzero(lambda a, b: a ^ b)),
    Op("s_andn2_b32", "s_and_not1_b32", S32, _nonzero(lambda a, b: a & ~b)),
    Op("s_or_b64", "s_or_b64", S64, _nonzero(lambda a, b: a | b, 64)),
    Op("s_xor_b64", "s_xor_b64", S64, _nonzero(lambda a, b: a ^ b, 64)),
    Op("s_andn2_b64", "s_and_not1_b64", S64, _nonzero(lambda a, b: a & ~b, 64)),
    Op("s_orn2_b32", "s_or_not1_b32", S32, _nonzero(lambda a, b: a | ~b)),
    Op("s_orn2_b64", "s_or_not1_b64", S64, _nonzero(lambda a, b: a | ~b, 64)),
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
    Op("s_lshl2_add_u32", "s_lshl2_add_u32", S32, _shift_add(2)),
    Op("s_lshl3_add_u32", "s_lshl3_add_u32", S32, _shift_add(3)),
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
    Op("s_mov_b32", "s_mov_b32", (32, 32, 0), _keep(lambda a, b: a)),
    Op("s_mov_b64", "s_mov_b64", (64, 64, 0), _keep(lambda a, b: a, 64)),
    Op("s_not_b32", "s_not_b32", (32, 32, 0), _nonzero(lambda a, b: ~a)),
    Op("s_cmov_b32", "s_cmov_b32", (32, 32, 0), lambda a, b, c: (a if c else 0, None)),
    Op("s_brev_b32", "s_brev_b32", (32, 32, 0), _keep(lambda a, b: _reverse(a, 32))),
    Op("s_brev_b64", "s_brev_b64", (64, 64, 0), _keep(lambda a, b: _reverse(a, 64), 64)),
    Op("s_bcnt1_i32_b32", "s_bcnt1_i32_b32", (32, 32, 0), _nonzero(lambda a, b: a.bit_count())),
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

# The name after s_cmp_, or that of an instruction with another beginning.
COMPARES = {
    "eq_i32": (lambda a, b: a == b, 32),
    "lg_i32": (lambda a, b: a != b, 32),
    "gt_i32": (lambda a, b: _signed(a) > _signed(b), 32),
    "ge_i32": (lambda a, b: _signed(a) >= _signed(b), 32),
    "lt_i32": (lambda a, b: _signed(a) < _signed(b), 32),
    "le_i32": (lambda a, b: _signed(a) <= _signed(b), 32),
    "eq_u32": (lambda a, b: a == b, 32),
    "lg_u32": (lambda a, b: a != b, 32),
    "gt_u32": (lambda a, b: a > b, 32),
    "ge_u32": (lambda a, b: a >= b, 32),
    "lt_u32": (lambda a, b: a < b, 32),
    "le_u32": (lambda a, b: a <= b, 32),
    "eq_u64": (lambda a, b: a == b, 64),
    "lg_u64": (lambda a, b: a != b, 64),
    "bitcmp0_b32": (lambda a, b: not a >> (b & 31) & 1, 32),
    "bitcmp1_b32": (lambda a, b: bool(a >> (b & 31) & 1), 32),
}

TARGETS = ("gfx950", "gfx1201")
CASES = [
    pytest.param(*(target, op), id=f"{target}-{name}", marks=compared(target, name))
    for target in TARGETS
    for op in OPS
    if (name := getattr(op, target))
]


def _compare(name: str) -> str:
    return f"s_{name}" if name.startswith("bit") else f"s_cmp_{name}"


def _has_constant_form(name: str) -> bool:
    return name.endswith(("_i32", "_u32"))


_CONSTANT_COMPARES = {"gfx950": True, "gfx1201": False}


def _lines(target: str) -> dict[str, str]:
    lines = {}
    for name, (_, bits) in COMPARES.items():
        lines[name] = f"{_compare(name)} {registers(16, bits)}, {registers(18, bits)}"
        if _CONSTANT_COMPARES[target] and _has_constant_form(name):
            lines[f"k_{name}"] = f"s_cmpk_{name} s16, {CONSTANT:#x}"
    for name, row in CONSTANTS.items():
        lines[name.replace(" ", "_")] = row[{"gfx950": 0, "gfx1201": 1}[target]]
    for op in OPS:
        result_bits, a_bits, b_bits = op.widths
        operands = [registers(20, result_bits), registers(16, a_bits)]
        if b_bits:
            operands.append(registers(18, b_bits))
        if mnemonic := getattr(op, target):
            lines[mnemonic] = f"{mnemonic} {', '.join(operands)}"
    return lines


# With a constant in the instruction, on s20, which begins as 0: (gfx950, gfx1201, result and SCC).
CONSTANTS = {
    "move": ("s_movk_i32 s20, 0x8001", "s_movk_i32 s20, 0x8001", 0xFFFF8001, None),
    "add": ("s_addk_i32 s20, 0x8001", "s_addk_co_i32 s20, 0x8001", 0xFFFF8001, 0),
    "add twice": (
        "s_mov_b32 s20, 0x7fffffff\ns_addk_i32 s20, 2",
        "s_mov_b32 s20, 0x7fffffff\ns_addk_co_i32 s20, 2",
        0x80000001,
        1,
    ),
    "multiply": (
        "s_mov_b32 s20, 0x10001\ns_mulk_i32 s20, 0xfffd",
        "s_mov_b32 s20, 0x10001\ns_mulk_i32 s20, 0xfffd",
        -3 * 0x10001 & M32,
        None,
    ),
    "clear a bit": (
        *("s_mov_b32 s20, -1\ns_bitset0_b32 s20, 37",) * 2,
        0xFFFFFFDF,
        None,
    ),
}
# gfx950 compares with a constant of 16 bits, whose sign goes on where integers are signed.
CONSTANT = 0x8001


INSTRUCTIONS = {target: Instructions(target, _lines(target)) for target in TARGETS}


@pytest.mark.parametrize(("target", "op"), CASES)
def test_integer_instruction(target, op):
    result_bits, a_bits, b_bits = op.widths
    rows, results, sccs = INSTRUCTIONS[target].run(getattr(op, target))
    for (a, b, before, _), result, scc in zip(rows.tolist(), results, sccs, strict=True):
        a, b = a & ((1 << a_bits) - 1), b & ((1 << b_bits) - 1)
        expected, expected_scc = op.model(a, b, before)
        assert result == expected & ((1 << result_bits) - 1), (hex(a), hex(b), before)
        assert scc == (before if expected_scc is None else expected_scc), (hex(a), hex(b))


@pytest.mark.parametrize(
    ("target", "compare"),
    [
        pytest.param(*(target, name), marks=compared(target, _compare(name)))
        for target in TARGETS
        for name in sorted(COMPARES)
    ],
)
def test_compare(target, compare):
    function, bits = COMPARES[compare]
    rows, _, sccs = INSTRUCTIONS[target].run(compare)
    mask = (1 << bits) - 1
    for (a, b, _, _), scc in zip(rows.tolist(), sccs, strict=True):
        assert scc == function(a & mask, b & mask), (hex(a), hex(b))


@pytest.mark.parametrize(
    "compare",
    [
        pytest.param(name, marks=compared("gfx950", f"s_cmpk_{name}"))
        for name in filter(_has_constant_form, sorted(COMPARES))
    ],
)
def test_compare_with_a_constant(compare):
    function, _ = COMPARES[compare]
    rows, _, sccs = INSTRUCTIONS["gfx950"].run(f"k_{compare}")
    constant = CONSTANT | 0xFFFF0000 if compare.endswith("i32") else CONSTANT
    assert list(sccs) == [function(a & M32, constant) for a in rows[:, 0].tolist()]


@pytest.mark.parametrize(
    ("target", "name"),
    [
        pytest.param(*(target, name), marks=compared(target, row[place].split("\n")[-1].split()[0]))
        for place, target in enumerate(TARGETS)
        for name, row in CONSTANTS.items()
    ],
)
def test_constant_in_the_instruction(target, name):
    _, _, expected, expected_scc = CONSTANTS[name]
    rows, results, sccs = INSTRUCTIONS[target].run(name.replace(" ", "_"))
    assert (results == expected).all()
    assert (sccs == (rows[:, 2] if expected_scc is None else expected_scc)).all()
