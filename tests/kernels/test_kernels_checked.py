"""Shipped kernels under the emulator's checks: no finding, the same bits in every wave order."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from cases import DENSE, HEAD_DIMS, KERNEL_TARGETS, Case
from packs import CACHES, PACKS, Cache, Pack

from jax_fa import _native, emulator, flash_attention, flash_attention_varlen, paged_attention

# Schedule, when results of loads land, and seed.
ORDERS: list[tuple[emulator.Schedule, emulator.Arrival, int]] = [
    ("round_robin", "late", 0),
    ("run_to_barrier", "early", 0),
    ("reverse", "late", 0),
    *(("random", "random" if seed % 2 else "late", seed) for seed in range(8)),
]
CAP = {"logits_soft_cap": 20.0}
CALLS: dict[type, Callable[..., Any]] = {
    Case: flash_attention,
    Pack: flash_attention_varlen,
    Cache: paged_attention,
}


def _each_head_size(problem: Any) -> list[Any]:
    """A problem at every head size of the kernels, with and without a soft cap."""
    return [
        dataclasses.replace(
            problem,
            name=f"{problem.name}, H = {h}{', capped' if cap else ''}",
            h=h,
            options={**problem.options, **cap},
        )
        for h in (64, 128, 256)
        for cap in ({}, CAP)
    ]


# Every kernel, once.
SMALL = [
    *_each_head_size(Case("dense", t=70, s=200, options={"causal": True})),
    *_each_head_size(Case("decode", t=1, s=300, n=8, k=2)),
    *_each_head_size(Pack("packs", ((70, 130), (5, 9)))),
    *_each_head_size(Cache("pages", ((70, 130), (5, 9)))),
    *_each_head_size(Cache("decode of pages", ((1, 330), (1, 9)), n=8, k=2)),
    *_each_head_size(Case("decode of many rows", t=5, s=300, n=8, k=1)),
    *_each_head_size(Cache("decode of many rows of pages", ((5, 330), (5, 9)), n=8, k=1)),
]
# What uses a kernel's rarer paths: rows that see nothing, lengths, windows, several tiles of rows.
LARGE = [
    *SMALL,
    *DENSE,
    *HEAD_DIMS,
    *PACKS,
    *CACHES,
    Case("long", t=600, s=700, h=128),
    Case("wide", t=300, h=256),
]


def _run(problem: Any, target: str, dtype: str) -> set[str]:
    """Runs a problem in every order; gives the kernels that it launched."""
    call = functools.partial(CALLS[type(problem)], return_lse=True, implementation=target)
    operands, keywords = problem.operands(dtype), problem.keywords()
    bits, kernels = set(), set()
    for schedule, arrival, seed in ORDERS:
        with (
            emulator.configure(schedule=schedule, arrival=arrival, seed=seed, checks="collect"),
            emulator.record() as launches,
        ):
            results = jax.block_until_ready(call(*operands, **keywords))
        for launch in launches:
            assert launch.findings == [], (schedule, seed)
            kernels.add(launch.kernel)
        bits.add(tuple(np.asarray(result).tobytes() for result in results))
    assert len(bits) == 1
    return kernels


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("problem", SMALL, ids=str)
def test_no_finding_and_the_same_bits(problem, target):
    assert _run(problem, target, "bfloat16")


@pytest.mark.slow
@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_every_kernel_in_every_order(target):
    launched = set()
    for dtype in ("bfloat16", "float16"):
        for problem in LARGE:
            launched |= _run(problem, target, dtype)
    assert launched == set(emulator.CodeObject(_native.code_object(target)).kernels)
