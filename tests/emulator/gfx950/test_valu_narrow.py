"""Conversions of gfx950 between single precision and floats of 8 bits, against ml_dtypes."""

from __future__ import annotations

import gfx950_asm as asm
import ml_dtypes
import numpy as np
import pytest
from compared import compared
from lane_values import assert_same, f32, u32

GROUPS = 12
FORMATS = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}


def _cases(*mnemonics: str) -> list:
    return [
        pytest.param(name, marks=compared("gfx950", *(m.format(name) for m in mnemonics)))
        for name in FORMATS
    ]


def _single(codes: np.ndarray, name: str) -> np.ndarray:
    return codes.astype(np.uint8).view(FORMATS[name]).astype(np.float32)


@pytest.mark.parametrize("name", _cases("v_cvt_f32_{}", "v_cvt_pk_f32_{}"))
def test_to_single_precision(name: str):
    rows = u32(np.random.default_rng(1), (GROUPS, 1, 64))
    rows[:4, 0] = np.arange(256, dtype=np.uint32).reshape(4, 64) * 0x01010101  # every code
    body = f"v_cvt_f32_{name} v64, v16\n"
    body += "".join(
        f"v_cvt_f32_{name}_sdwa v{64 + byte}, v16 src0_sel:BYTE_{byte}\n" for byte in (1, 2, 3)
    )
    body += f"v_cvt_pk_f32_{name} v[68:69], v16\n"
    body += f"v_cvt_pk_f32_{name}_sdwa v[70:71], v16 src0_sel:WORD_1"
    kernel = asm.Kernel(body, 1, 8)
    out = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows)
    for register, byte in enumerate((0, 1, 2, 3, 0, 1, 2, 3)):
        expected = _single(rows[:, 0] >> (8 * byte) & 0xFF, name)
        assert_same(out[:, register], expected, f"{name}, register {register}")


@pytest.mark.parametrize("name", _cases("v_cvt_pk_{}_f32"))
def test_from_single_precision(name: str):
    rng = np.random.default_rng(2)
    rows = f32(rng, (GROUPS, 3, 64))
    # Near every number of the format, and halfway between neighbours.
    codes = np.arange(256).reshape(2, 2, 64)
    near = _single(codes, name)
    next_to = _single(np.where(codes & 0x7F == 0x7F, codes, codes + 1), name)
    with np.errstate(invalid="ignore"):
        rows[:2, :2], rows[2:4, :2] = near, (near + next_to) / 2
        for place, towards in ((4, np.inf), (6, -np.inf)):
            rows[place : place + 2, :2] = np.nextafter(rows[2:4, :2], np.float32(towards))
    body = f"v_mov_b32 v64, v18\nv_cvt_pk_{name}_f32 v64, v16, v17\n"
    body += f"v_mov_b32 v65, v18\nv_cvt_pk_{name}_f32 v65, -v16, |v17| op_sel:[0,0,1]\ns_nop 0"
    kernel = asm.Kernel(body, 3, 2)
    out = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows)
    old = rows[:, 2].copy().view(np.uint32)
    assert_same(out[:, 0] >> 16, old >> 16, "the upper half stays")
    assert_same(out[:, 1] & 0xFFFF, old & 0xFFFF, "the lower half stays")
    a, b = rows[:, 0], rows[:, 1]
    for register, shift, value in ((0, 0, a), (0, 8, b), (1, 16, -a), (1, 24, np.abs(b))):
        with np.errstate(over="ignore", invalid="ignore"):
            expected = value.astype(FORMATS[name]).astype(np.float32)
        actual = _single(out[:, register] >> shift & 0xFF, name)
        assert_same(actual, expected, f"v_cvt_pk_{name}_f32, bits from {shift}")
