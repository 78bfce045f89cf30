"""Shipped kernels under the emulator's checks: no finding, the same bits in every wave order."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from cases import DENSE, HEAD_DIMS, KERNEL_TARGETS, Case

from jax_fa import _native, emulator, flash_attention

# Schedule and seed.
ORDERS: list[tuple[emulator.Schedule, int]] = [
    ("round_robin", 0),
    ("run_to_barrier", 0),
    ("reverse", 0),
    *(("random", seed) for seed in range(8)),
]
CAP = {"logits_soft_cap": 20.0}
SMALL = tuple(
    Case(f"H = {h}{' capped' if cap else ''}", t=70, s=200, h=h, options={"causal": True, **cap})
    for h in (64, 128, 256)
    for cap in ({}, CAP)
)
# What uses a kernel's rarer paths: rows that see nothing, lengths, windows, several tiles of rows.
LARGE = (*SMALL, *DENSE, *HEAD_DIMS, Case("long", t=600, s=700, h=128), Case("wide", t=300, h=256))


def _run(case: Case, target: str, dtype: str) -> set[str]:
    """Runs a case in every order; gives the kernels that it launched."""
    operands = case.operands(dtype)
    bits, kernels = set(), set()
    for schedule, seed in ORDERS:
        with (
            emulator.configure(schedule=schedule, seed=seed, checks="collect"),
            emulator.record() as launches,
        ):
            results = flash_attention(
                *operands, return_lse=True, implementation=target, **case.keywords()
            )
            jax.block_until_ready(results)
        for launch in launches:
            assert launch.findings == [], (schedule, seed)
            kernels.add(launch.kernel)
        bits.add(tuple(np.asarray(result).tobytes() for result in results))
    assert len(bits) == 1
    return kernels


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_no_finding_and_the_same_bits(case, target, dtype):
    assert _run(case, target, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_every_kernel_in_every_order(target):
    launched = set()
    for dtype in ("bfloat16", "float16"):
        for case in LARGE:
            launched |= _run(case, target, dtype)
    assert launched == set(emulator.CodeObject(_native.code_object(target)).kernels)
