"""Timing and memory of compiled functions, side by side in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax


def time_alternately(
    functions: Sequence[Callable[..., Any]], operands: Sequence[Any], rounds: int = 7
) -> list[float]:
    """Best seconds of each compiled function, measured in turn so that drift hits all alike."""
    for function in functions:
        jax.block_until_ready(function(*operands))
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            jax.block_until_ready(function(*operands))
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def median_ratio(a: Sequence[float], b: Sequence[float]) -> float:
    """Median of the pairwise ratios a / b."""
    return statistics.median(x / y for x, y in zip(a, b, strict=True))


def temporary_bytes(compiled: Any) -> int:
    """Temporary memory of a compiled function."""
    return compiled.memory_analysis().temp_size_in_bytes
