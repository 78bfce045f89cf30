"""Operands for tests of vector instructions: special values crossed with random ones, and
comparisons that take any NaN for any other."""

from __future__ import annotations

import numpy as np

LANES = 64

_F32 = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-40, -1e-45]
_F32 += [3.4028235e38, 1.17549435e-38, -1.17549435e-38, 65504.0, 65520.0, 6e-8, 2.0**31, -(2.0**31)]
_F32 += [2.0**32, 4294967040.0, 0.49999997, 8388607.5, -8388609.0, 1e30]
_I32 = [0, 1, 2, 31, 32, 33, 63, 64, 0x7F, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFF, 0x800000]
_I32 += [0xFFFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFF8000, 0xAAAAAAAA]
_F16 = [0x0000, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0x0001, 0x83FF, 0x7BFF, 0x0400]
_F16 += [0x3800, 0x4248, 0xC500, 0x1400]


def _mix(special: np.ndarray, ordinary: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    pick = rng.random(ordinary.shape) < 0.3
    return np.where(pick, rng.choice(special, ordinary.shape), ordinary).astype(ordinary.dtype)


def f32(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Single precision: specials, ordinary numbers, and any bit pattern that is no NaN."""
    ordinary = rng.normal(size=shape).astype(np.float32) * 4
    wild = rng.integers(0, 2**32, shape, dtype=np.uint32).view(np.float32)
    wild = np.where(np.isnan(wild), np.float32(1), wild)
    ordinary = np.where(rng.random(shape) < 0.3, wild, ordinary)
    return _mix(np.array(_F32, np.float32), ordinary, rng)


def u32(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Integers: edges, small ones, and any bit pattern."""
    ordinary = rng.integers(0, 2**32, shape, dtype=np.uint32)
    ordinary = np.where(rng.random(shape) < 0.3, ordinary % 70, ordinary)
    return _mix(np.array(_I32, np.uint32), ordinary, rng)


def f16_pairs(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Dwords of two half precision numbers."""
    halves = rng.normal(size=(*shape, 2)).astype(np.float16).view(np.uint16)
    wild = rng.integers(0, 2**16, halves.shape, dtype=np.uint16)
    wild = np.where((wild & 0x7C00) == 0x7C00, np.uint16(0x3C00), wild)
    halves = np.where(rng.random(halves.shape) < 0.3, wild, halves)
    halves = _mix(np.array(_F16, np.uint16), halves, rng)
    return np.ascontiguousarray(halves).view(np.uint32)[..., 0]


def to_mask(lanes: np.ndarray) -> np.ndarray:
    """[W, 64] of bool to the two dwords of a lane mask [W, 2]."""
    bits = np.packbits(lanes, axis=-1, bitorder="little")
    return np.ascontiguousarray(bits).view(np.uint32)


def assert_same(actual: np.ndarray, expected: np.ndarray, what: str, ulp: int = 0) -> None:
    """Holds results to equal bits, or floats to a distance of `ulp`; all NaNs are equal."""
    expected = np.ascontiguousarray(expected)
    actual = np.ascontiguousarray(actual).view(expected.dtype).reshape(expected.shape)
    same = actual.view(f"u{expected.dtype.itemsize}") == expected.view(
        f"u{expected.dtype.itemsize}"
    )
    if expected.dtype.kind == "f":
        same |= np.isnan(actual) & np.isnan(expected)
        if ulp:
            integer = f"i{expected.dtype.itemsize}"
            near = np.abs(actual.view(integer).astype(object) - expected.view(integer)) <= ulp
            same |= near.astype(bool)
    if not same.all():
        where = tuple(np.argwhere(~same)[0])
        raise AssertionError(
            f"{what}: {np.count_nonzero(~same)} of {same.size} lanes differ, first at {where}: "
            f"got {actual[where]!r}, expected {expected[where]!r}"
        )
