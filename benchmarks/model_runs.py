"""Kernels under the timing model: which workgroups of a case are emulated, and where each is found.

A runner emulates samples of the workgroups of one head of one sequence, whose rows are packed; the
other heads and sequences do the same work. What order the whole grid is dispatched in is the
kernel's own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import peer_aiter
from public_figures import Case

from jax_fa import _native, emulator, flash_attention
from jax_fa._timing import Samples

DIES = {"gfx950": 8, "gfx1201": 1}


@dataclasses.dataclass(frozen=True)
class Run:
    """One kernel on one case: the launch that was emulated, and its samples."""

    who: str
    code: emulator.CodeObject
    launch: emulator.Launch
    samples: Samples


def places(count: int) -> list[int]:
    """Two at each end, since the tile of the last rows may be short, and the middle."""
    return sorted(
        {place for place in (0, 1, count // 2, count - 2, count - 1) if 0 <= place < count}
    )


def operands(case: Case, heads: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit-normal query, key and value of one sequence."""
    rng = np.random.default_rng(0)
    shape = (3, 1, case.t, heads, case.h)
    query, key, value = rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)
    return query, key, value


def run_ours(case: Case) -> Run:
    """The shipped kernel, through the FFI handler and the launcher."""
    query, key, value = map(jnp.asarray, operands(case))

    def launch(workgroups: list[int]) -> emulator.Launch:
        with (
            emulator.configure(timing=True, workgroups=workgroups),
            emulator.record() as launches,
        ):
            _attend(case, query, key, value)
        return launches[0]

    count = launch([0]).grid[0]
    launched = launch(places(count))
    # csrc/kernels/attention/scheduler.h: the query tiles and heads that share a key head follow one
    # another on one die.
    group, dies = case.n // case.k, DIES[case.target]
    order = np.arange(count * case.n * case.batch) // dies // group % count
    bytes_ = case.operand_bytes
    moved = sum(bytes_.values())
    code = emulator.CodeObject(_native.code_object(case.target))
    return Run("jax_fa", code, launched, Samples(launched.trace, count, order, moved, moved))


def run_aiter(folder: Path) -> Callable[[Case], Run | None]:
    """AITER's v3 kernels out of `folder`."""

    def run(case: Case) -> Run | None:
        if case.target != peer_aiter.TARGET or case.h != peer_aiter.HEAD_DIM:
            return None
        loaded = peer_aiter.load(folder, "_causal" if case.causal else "")
        count = peer_aiter.grid(case.t, 1, 1, case.causal)[0]
        launched, _, _ = peer_aiter.launch(
            loaded,
            operands(case),
            case.causal,
            checks=False,
            timing=True,
            workgroups=places(count),
        )
        # Query tiles first, so that every die fetches all keys and values.
        order = np.arange(count * case.n * case.batch) % count
        bytes_ = case.operand_bytes
        die_bytes = bytes_["qo"] + bytes_["lse"] + DIES[case.target] * bytes_["kv"]
        memory_bytes = sum(bytes_.values())
        samples = Samples(launched.trace, count, order, die_bytes, memory_bytes)
        return Run("aiter", loaded[0], launched, samples)

    return run


def _attend(case: Case, query: jax.Array, key: jax.Array, value: jax.Array) -> None:
    # Unsplit, as with all heads and sequences of the case.
    options: dict[str, Any] = {"causal": case.causal, "num_splits": 1}
    out = flash_attention(query, key, value, **options, implementation=case.target)
    jax.block_until_ready(out)


# More workgroups than the chip holds at a time, the last of a head with fewer rows.
_CHECKS = {
    "gfx950": Case("check", "gfx950", 1, 1024, 96, 96, 128, True, {}),
    "gfx1201": Case("check", "gfx1201", 1, 720, 16, 16, 128, True, {}),
}


def check_sampling(target: str) -> dict[str, float]:
    """A causal grid run whole, against the same by samples."""
    case = _CHECKS[target]
    query, key, value = map(jnp.asarray, operands(case, case.n))
    with emulator.configure(timing=True), emulator.record() as launches:
        _attend(case, query, key, value)
    full = launches[0].cycles
    assert full is not None
    sampled = run_ours(case).samples.grid()["clk"]
    return {
        "workgroups": launches[0].grid[0],
        "full_clk": full,
        "sampled_clk": sampled,
        "difference": sampled / full - 1,
    }
