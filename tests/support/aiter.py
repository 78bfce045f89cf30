"""ROCm/aiter's code objects for gfx950, which are foreign and not part of this repository.

``JAX_FA_AITER`` names its folder ``hsa/gfx950``; tests that need it are skipped without. Arguments,
grids and the choice of kernels are those of aiter's own launchers.
"""

from __future__ import annotations

import csv
import functools
import os
import re
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from jax_fa import emulator

FOLDER = Path(os.environ.get("JAX_FA_AITER", "/nonexistent"))
needs_folder = pytest.mark.skipif(
    "JAX_FA_AITER" not in os.environ, reason="JAX_FA_AITER names no folder hsa/gfx950 of ROCm/aiter"
)

BF16 = ml_dtypes.bfloat16
_SLOT_BYTES = 16

Argument = np.ndarray | int | float | None


@functools.cache
def load(path: str) -> tuple[emulator.CodeObject, str]:
    """The code object at a path below the folder, and its kernel."""
    code = emulator.CodeObject(FOLDER / path)
    (kernel,) = code.kernels
    return code, kernel


@functools.cache
def _rows(path: str) -> list[dict[str, str]]:
    with (FOLDER / path).open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("//")))


def find(path: str, **wanted: Any) -> dict[str, str]:
    """The first row of a table of kernels whose columns are these."""
    for row in _rows(path):
        if all(row[name] == str(value) for name, value in wanted.items()):
            return row
    raise LookupError(f"no kernel in {path} for {wanted}")


def packed(values: Iterable[Argument]) -> bytes:
    """Arguments one after another: addresses of 8 bytes, numbers of 4."""
    return b"".join(_bytes(value) for value in values)


def slots(values: Iterable[Argument]) -> bytes:
    """Arguments in slots of 16 bytes."""
    return b"".join(_bytes(value).ljust(_SLOT_BYTES, b"\0") for value in values)


def _bytes(value: Argument) -> bytes:
    if value is None:
        return struct.pack("<Q", 0)
    if isinstance(value, np.ndarray):
        return struct.pack("<Q", value.ctypes.data)
    if isinstance(value, float):
        return struct.pack("<f", value)
    return struct.pack("<I", value & 0xFFFFFFFF)


def launch(
    path: str,
    grid: Sequence[int],
    block: int,
    kernarg: bytes,
    buffers: Sequence[np.ndarray | None],
    **options: Any,
) -> emulator.Launch:
    """Runs the kernel of a code object; ``buffers`` may hold one array more than once.

    Launchers have one structure for several kernels; a kernel is given what it has arguments for.
    """
    code, kernel = load(path)
    kernarg = kernarg[: code.kernels[kernel].kernarg_bytes]
    arrays = {array.ctypes.data: array for array in buffers if array is not None}
    return code.launch(
        kernel, grid, block, kernarg=kernarg, buffers=list(arrays.values()), **options
    )


def unexplained(findings: Iterable[str], *faults: str) -> list[str]:
    """The findings that match none of these patterns."""
    return [text for text in findings if not any(re.search(fault, text) for fault in faults)]


def normal(rng: np.random.Generator, *shape: int, dtype: Any = BF16) -> np.ndarray:
    return rng.standard_normal(shape, np.float32).astype(dtype)


def quantised(x: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """In int8 or e4m3, with a scale for each row, [..., 1]."""
    is_int = dtype == np.int8
    scale = (np.abs(x).max(-1, keepdims=True) / (127 if is_int else 448)).astype(np.float32)
    return (np.rint(x / scale) if is_int else x / scale).astype(dtype), scale


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    """The root mean square of the error, relative to that of what is expected."""
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    return float(np.sqrt(np.mean((actual - expected) ** 2) / np.mean(expected**2)))
