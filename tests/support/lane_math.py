"""What vector instructions compute, in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

F32 = np.float32


def half_of(x: np.ndarray, high: bool = False) -> np.ndarray:
    return (x >> 16 if high else x & 0xFFFF).astype(np.uint16).view(np.float16)


def zero_extend(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint16).astype(np.uint32)


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """fma of single precision with one rounding, by way of a sum rounded to odd in double."""
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = total.view(np.int64)
    step = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    return np.where(odd, (bits + step).view(np.float64), total).astype(F32)


def flush(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(F32(0), x), x).astype(F32)


def ieee_min(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    tie = np.where(np.signbit(a), a, b)
    return np.where(a == b, tie, np.fmin(a, b)).astype(a.dtype)


def ieee_max(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    tie = np.where(np.signbit(a), b, a)
    return np.where(a == b, tie, np.fmax(a, b)).astype(a.dtype)


def nan_wins(fn: Callable, *x: np.ndarray) -> np.ndarray:
    bad = np.any([np.isnan(v) for v in x], axis=0)
    result = x[0]
    for v in x[1:]:
        result = fn(result, v)
    return np.where(bad, np.nan, result).astype(x[0].dtype)


def to_int(x: np.ndarray, low: int, high: int) -> np.ndarray:
    clean = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300)
    return np.clip(np.trunc(clean), low, high).astype(np.int64).astype(np.uint32)


def to_bf16(x: np.ndarray) -> np.ndarray:
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint32)


def signed(x: np.ndarray, bits: int = 32) -> np.ndarray:
    shift = 64 - bits
    return (x.astype(np.int64) << shift) >> shift


def to_u32(x: np.ndarray) -> np.ndarray:
    return (np.asarray(x).astype(object) & 0xFFFFFFFF).astype(np.uint32)


def reverse_bits(x: np.ndarray) -> np.ndarray:
    return np.array([int(f"{int(v):032b}"[::-1], 2) for v in x.flat], np.uint32).reshape(x.shape)


def leading_zeros(x: np.ndarray) -> np.ndarray:
    values = [32 - int(v).bit_length() if v else 0xFFFFFFFF for v in x.flat]
    return np.array(values, np.uint32).reshape(x.shape)


def trailing_zeros(x: np.ndarray) -> np.ndarray:
    values = [(int(v) & -int(v)).bit_length() - 1 if v else 0xFFFFFFFF for v in x.flat]
    return np.array(values, np.uint32).reshape(x.shape)


def permute_bytes(a: np.ndarray, b: np.ndarray, s: np.ndarray) -> np.ndarray:
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


def pack_halves(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return zero_extend(low) | zero_extend(high) << 16


def arity(fn: Callable, default: int) -> int:
    code = getattr(fn, "__code__", None)
    return code.co_argcount if code and code.co_argcount else default


def operand_count(fn: Callable, mnemonic: str) -> int:
    if isinstance(fn, np.ufunc):
        return fn.nin
    return arity(fn, 3 if "3" in mnemonic.split("_")[1] else 1)
