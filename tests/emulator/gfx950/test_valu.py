"""Vector ALU instructions of gfx950 against NumPy, on special and random values."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import gfx950_asm as asm
import numpy as np
import pytest
from compared import compared
from lane_math import (
    F32,
    flush,
    fma,
    ieee_max,
    ieee_min,
    leading_zeros,
    nan_wins,
    operand_count,
    pack_halves,
    permute_bytes,
    reverse_bits,
    signed,
    to_bf16,
    to_int,
    to_u32,
    trailing_zeros,
    zero_extend,
)
from lane_values import assert_same, f32, to_mask, u32

GROUPS = 12


# Single precision: mnemonic, NumPy, and the distance allowed in ulp.
SINGLE: dict[str, tuple[Callable, int]] = {
    "v_add_f32": (lambda a, b: a + b, 0),
    "v_sub_f32": (lambda a, b: a - b, 0),
    "v_subrev_f32": (lambda a, b: b - a, 0),
    "v_mul_f32": (lambda a, b: a * b, 0),
    "v_mul_legacy_f32": (lambda a, b: np.where((a == 0) | (b == 0), F32(0), a * b), 0),
    "v_min_f32": (ieee_min, 0),
    "v_max_f32": (ieee_max, 0),
    "v_fma_f32": (fma, 0),
    "v_min3_f32": (lambda a, b, c: ieee_min(ieee_min(a, b), c), 0),
    "v_max3_f32": (lambda a, b, c: ieee_max(ieee_max(a, b), c), 0),
    "v_minimum3_f32": (lambda *x: nan_wins(ieee_min, *x), 0),
    "v_maximum3_f32": (lambda *x: nan_wins(ieee_max, *x), 0),
    "v_mov_b32": (lambda a: a, 0),
    "v_trunc_f32": (np.trunc, 0),
    "v_ceil_f32": (np.ceil, 0),
    "v_floor_f32": (np.floor, 0),
    "v_rndne_f32": (np.rint, 0),
    "v_rcp_f32": (lambda a: flush(F32(1) / flush(a)), 1),
    "v_rcp_iflag_f32": (lambda a: flush(F32(1) / flush(a)), 1),
    "v_sqrt_f32": (lambda a: np.sqrt(flush(a)), 1),
    "v_rsq_f32": (lambda a: (1 / np.sqrt(flush(a).astype(np.float64))).astype(F32), 1),
    "v_exp_f32": (lambda a: flush(np.exp2(flush(a).astype(np.float64)).astype(F32)), 1),
    "v_log_f32": (lambda a: np.log2(flush(a).astype(np.float64)).astype(F32), 1),
    "v_cvt_i32_f32": (lambda a: to_int(a, -(2**31), 2**31 - 1), 0),
    "v_cvt_u32_f32": (lambda a: to_int(a, 0, 2**32 - 1), 0),
    "v_cvt_f16_f32": (lambda a: zero_extend(a.astype(np.float16)), 0),
    "v_cvt_pk_bf16_f32": (lambda a, b: to_bf16(a) | to_bf16(b) << 16, 0),
    "v_cvt_pk_f16_f32": (lambda a, b: pack_halves(a.astype(np.float16), b.astype(np.float16)), 0),
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
    "v_bfrev_b32": reverse_bits,
    "v_ffbh_u32": leading_zeros,
    "v_ffbl_b32": trailing_zeros,
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
    "v_mul_hi_i32": lambda a, b: to_u32((signed(a) * signed(b)) >> 32),
    "v_mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_mul_i32_i24": lambda a, b: to_u32(signed(a, 24) * signed(b, 24)),
    "v_mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_mad_i32_i24": lambda a, b, c: to_u32(signed(a, 24) * signed(b, 24) + c),
    "v_bfe_u32": lambda a, b, c: (a >> (b & 31)) & ((np.uint32(1) << (c & 31)) - 1),
    "v_bfi_b32": lambda a, b, c: (a & b) | (~a & c),
    "v_bfm_b32": lambda a, b: ((np.uint32(1) << (a & 31)) - 1) << (b & 31),
    "v_alignbit_b32": lambda a, b, c: to_u32(
        ((a.astype(object) << 32) | b) >> (c & 31).astype(object)
    ),
    "v_alignbyte_b32": lambda a, b, c: to_u32(
        ((a.astype(object) << 32) | b) >> (8 * (c & 3)).astype(object)
    ),
    "v_perm_b32": permute_bytes,
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


@compared("gfx950", *SINGLE)
def test_single_precision():
    rows = f32(np.random.default_rng(1), (GROUPS, 3, 64))
    table = {name: operand_count(fn, name) for name, (fn, _) in SINGLE.items()}
    for name, actual in _run_table(table, rows).items():
        fn, ulp = SINGLE[name]
        assert_same(actual, fn(*(rows[:, i] for i in range(table[name]))), name, ulp)


@compared("gfx950", "v_fmac_f32", "v_fmamk_f32", "v_fmaak_f32")
def test_sums_in_place_and_constants():
    rows = f32(np.random.default_rng(21), (GROUPS, 3, 64))
    a, b, c = (rows[:, i] for i in range(3))
    three = np.full_like(a, 3)
    expected = {
        "v_mov_b32 v64, v18\nv_fmac_f32 v64, v16, v17": fma(a, b, c),
        "v_fmamk_f32 v64, v16, 0x40400000, v17": fma(a, three, b),
        "v_fmaak_f32 v64, v16, v17, 0x40400000": fma(a, b, three),
    }
    kernels = {f"k{i}": asm.Kernel(text, 3) for i, text in enumerate(expected)}
    code = asm.assemble(kernels)
    for i, (text, value) in enumerate(expected.items()):
        assert_same(asm.run(code, f"k{i}", kernels[f"k{i}"], rows)[:, 0], value, text)


@compared("gfx950", *INTEGER)
def test_integers():
    rows = u32(np.random.default_rng(2), (GROUPS, 3, 64))
    table = {name: operand_count(fn, name) for name, fn in INTEGER.items()}
    for name, actual in _run_table(table, rows).items():
        expected = INTEGER[name](*(rows[:, i] for i in range(table[name])))
        assert_same(actual, np.asarray(expected), name)


@compared(
    "gfx950",
    "v_add_co_u32",
    "v_addc_co_u32",
    "v_sub_co_u32",
    "v_subb_co_u32",
    "v_lshl_add_u64",
    "v_mad_u64_u32",
    "v_mad_i64_i32",
    "v_lshlrev_b64",
    "v_lshrrev_b64",
    "v_ashrrev_i64",
    "v_mov_b64",
    "v_add_f64",
)
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
        "mad_signed": (signed(low) * signed(high)).view(np.uint64) + b,
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


@compared("gfx950", "v_div_scale_f32", "v_div_fmas_f32", "v_div_fixup_f32")
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


def test_denormals_are_flushed_where_the_mode_says_so():
    rng = np.random.default_rng(18)
    rows = rng.integers(0, 2**32, (GROUPS, 2, 64), dtype=np.uint32) & 0x80FFFFFF
    rows = rows.view(F32)
    kernels = {
        name: asm.Kernel(f"{name} v64, v16, v17", 2, denormals=0)
        for name in ("v_add_f32", "v_mul_f32")
    }
    code = asm.assemble(kernels)
    a, b = flush(rows[:, 0]), flush(rows[:, 1])
    for name, value in (("v_add_f32", a + b), ("v_mul_f32", a * b)):
        actual = asm.run(code, name, kernels[name], rows)[:, 0]
        assert_same(actual, flush(value), name)


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
    nearest = fma(rows[:, 0], rows[:, 1], rows[:, 2])
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
    command = [sys.executable, "-c", _LEVELS]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        subprocess.Popen(
            command,
            env={**environment, "JAX_FA_EMULATOR_SIMD": level},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for level in ("sse2", "avx2", "avx512")
    ]
    outputs = set()
    for process in started:
        out, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
        outputs.add(out)
    assert len(outputs) == 1
    assert len(outputs.pop()) == (7 + 1 + 16 + 1) * 8 * 64 * 4
