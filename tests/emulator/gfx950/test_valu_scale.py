"""Conversions of gfx950 between narrow floats and wider ones with a scale, against ml_dtypes."""

import gfx950_asm as asm
import ml_dtypes
import numpy as np
import pytest
from compared import compared
from lane_values import assert_same

NARROW = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}
WIDE = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}


def _scales(rng: np.random.Generator) -> np.ndarray:
    """Powers of two; sign and mantissa do not count."""
    exponents = rng.integers(110, 140, 64)
    return (exponents << 23 | rng.integers(0, 2**23, 64) | rng.integers(0, 2, 64) << 31).astype(
        np.uint32
    )


def _factor(scale: np.ndarray) -> np.ndarray:
    return np.ldexp(np.float32(1), (scale >> 23 & 255).astype(np.int32) - 127)


def _run(body: str, rows: np.ndarray, outputs: int) -> np.ndarray:
    kernel = asm.Kernel(body, len(rows), outputs)
    return asm.run(asm.assemble({"k": kernel}), "k", kernel, rows[None])[0]


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        pytest.param(w, n, marks=compared("gfx950", f"v_cvt_scalef32_pk_{w}_{n}"))
        for w in WIDE
        for n in NARROW
    ],
)
def test_to_wider_floats(wide: str, narrow: str):
    """Of either half of the source."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 256, (64, 4)).astype(np.uint8)
    scale = _scales(rng)
    rows = np.stack([codes.view(np.uint32)[:, 0], scale])
    name = f"v_cvt_scalef32_pk_{wide}_{narrow}"
    body = f"{name} v64, v16, v17\n{name} v65, v16, v17 op_sel:[1,0,0]\n"
    actual = _run(body, rows, 2).view(np.uint16).reshape(2, 64, 2)
    with np.errstate(all="ignore"):
        value = codes.view(NARROW[narrow]).astype(np.float32) * _factor(scale)[:, None]
        expected = value.astype(WIDE[wide])
    for row, columns in enumerate((slice(0, 2), slice(2, 4))):
        wanted = expected[:, columns]
        given = np.ascontiguousarray(actual[row]).view(WIDE[wide])
        np.testing.assert_array_equal(given.astype(np.float32), wanted.astype(np.float32))


@compared("gfx950", "v_cvt_scalef32_pk_fp4_f32")
def test_to_floats_of_four_bits():
    """Ties to even, the largest instead of what is larger, one byte of the destination."""
    rng = np.random.default_rng(2)
    exact = np.array([0, 0.25, 0.5, 0.75, 1, 1.25, 1.75, 2.5, 3.5, 5, 6, 7, 1e30, np.inf, 1e-30])
    values = np.concatenate([exact, -exact, rng.normal(0, 3, 98)]).astype(np.float32)
    scale = _scales(rng)
    with np.errstate(over="ignore"):
        pair = values.reshape(2, 64) * _factor(scale)
    old = rng.integers(0, 2**32, 64, dtype=np.uint32)
    rows = np.stack([*pair.view(np.uint32), scale, old])
    body = "".join(f"v_mov_b32 v{64 + i}, v19\n" for i in range(4))
    for i in range(4):
        body += (
            f"v_cvt_scalef32_pk_fp4_f32 v{64 + i}, v16, v17, v18 op_sel:[0,0,{i & 1},{i >> 1}]\n"
        )
    actual = _run(body, rows, 4)
    clipped = np.clip(pair / _factor(scale), -6, 6)
    codes = clipped.astype(ml_dtypes.float4_e2m1fn).view(np.uint8).astype(np.uint32)
    byte = codes[0] | codes[1] << 4
    expected = [old & ~np.uint32(0xFF << 8 * i) | byte << np.uint32(8 * i) for i in range(4)]
    assert_same(actual, np.stack(expected).astype(np.uint32), "to fp4")
