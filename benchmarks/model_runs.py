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
import peer_triton
from model_cases import Case

from jax_fa import _native, emulator, flash_attention
from jax_fa._ops import select as _select
from jax_fa.emulator.timing import Samples

DIES = {"gfx950": 8, "gfx1201": 1}


@dataclasses.dataclass(frozen=True)
class Run:
    """The kernels of one call on one case, launched one after another, and their samples."""

    who: str
    code: emulator.CodeObject
    parts: list[tuple[emulator.Launch, Samples]]

    def grids(self, overrides: dict[str, float] | None = None) -> list[dict[str, float]]:
        """Modelled time of each launch."""
        return [samples.grid(overrides) for _, samples in self.parts]

    def clk(self) -> float:
        """Modelled clocks of all launches."""
        return sum(grid["clk"] for grid in self.grids())


def places(count: int) -> list[int]:
    """Two at each end, since the tile of the last rows may be short, and the middle."""
    return sorted(
        {place for place in (0, 1, count // 2, count - 2, count - 1) if 0 <= place < count}
    )


def operands(
    case: Case, heads: int = 1, kv_heads: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit-normal query, key and value of one sequence."""
    rng = np.random.default_rng(0)

    def normal(length: int, heads: int) -> np.ndarray:
        return rng.standard_normal((1, length, heads, case.h), np.float32).astype(
            ml_dtypes.bfloat16
        )

    kv_heads = heads if kv_heads is None else kv_heads
    return normal(case.t, heads), normal(case.keys, kv_heads), normal(case.keys, kv_heads)


def run_ours(case: Case) -> Run:
    """The shipped kernels, through the FFI handler and the launcher."""
    group = case.n // case.k
    shapes = (case.batch, case.t, case.n, case.h), (case.batch, case.keys, case.k, case.h)
    # The splits of the whole case: one head alone would be split to fill the chip.
    splits = _select.dense_splits(case.target, *shapes)
    whole_group = _launches(case, group, splits, [0])
    packs_heads = whole_group[0].kernel.startswith("decode")
    # Decode takes the heads of a group together, flash one by one.
    launched = _launches(case, group, splits, None) if packs_heads else _launches(case, 1, 1, None)
    repeats = case.batch * (case.k if packs_heads else case.n)
    dies = DIES[case.target]
    parts = []
    for launch in launched:
        count = launch.grid[0]
        in_passes = case.causal and dies > 1 and not packs_heads
        order = _dispatched(count, repeats, dies, 1 if packs_heads else group, in_passes)
        moved = float(sum(case.operand_bytes.values())) if launch is launched[0] else 0.0
        parts.append((launch, Samples(launch.trace, count, order, moved, moved)))
    return Run("jax_fa", emulator.CodeObject(_native.code_object(case.target)), parts)


def _dispatched(count: int, repeats: int, dies: int, group: int, in_passes: bool) -> np.ndarray:
    """By workgroup of the whole grid, which of the `count` of one head does the same work.

    csrc/kernels/attention/scheduler.h: what shares a key head follows one another on one die; under
    a causal mask, on a chip of several, in passes through all heads.
    """
    order, left = [], count
    while left:
        tiles = max(1, 1 << (left // 2).bit_length() - 1) if in_passes and left > 1 else left
        order.append(count - left + np.arange(tiles * repeats) // dies // group % tiles)
        left -= tiles
    return np.concatenate(order)


def _launches(
    case: Case, heads: int, splits: int, workgroups: list[int] | None
) -> list[emulator.Launch]:
    """Emulates some workgroups of one key head and its `heads` query heads; None: `places`."""
    query, key, value = map(jnp.asarray, operands(case, heads, 1))
    if workgroups is None:
        workgroups = places(_launches(case, heads, splits, [0])[0].grid[0])
    with emulator.configure(timing=True, workgroups=workgroups), emulator.record() as launches:
        out = flash_attention(
            *(query, key, value),
            causal=case.causal,
            num_splits=splits,
            implementation=case.target,
        )
        jax.block_until_ready(out)
    return list(launches)


def run_aiter(folder: Path) -> Callable[[Case], Run | None]:
    """AITER's v3 kernels out of `folder`."""

    def run(case: Case) -> Run | None:
        if (case.target, case.h, case.keys) != (peer_aiter.TARGET, peer_aiter.HEAD_DIM, case.t):
            return None
        loaded = peer_aiter.load(folder, "_causal" if case.causal else "")
        count = peer_aiter.grid(case.t, 1, 1, case.causal)[0]
        launched, _, _ = peer_aiter.launch(loaded, operands(case), case.causal, **_sampled(count))
        return Run("aiter", loaded[0], [(launched, _tiles_first(case, launched, count))])

    return run


def run_triton(case: Case) -> Run | None:
    """The best of the Triton kernel's configurations."""
    runs = []
    for config in peer_triton.CONFIGS[case.target]:
        if case.keys != case.t or not peer_triton.fits(config, case.t):
            continue
        count = case.t // config[0]
        launched, _ = peer_triton.launch(
            case.target, config, operands(case), case.causal, **_sampled(count)
        )
        code, _ = peer_triton.build(case.target, config, case.h, case.causal)
        who = "triton " + "x".join(map(str, config))
        runs.append(Run(who, code, [(launched, _tiles_first(case, launched, count))]))
    return min(runs, key=Run.clk, default=None)


def _sampled(count: int) -> dict[str, Any]:
    return {"checks": False, "timing": True, "workgroups": places(count)}


def _tiles_first(case: Case, launched: emulator.Launch, count: int) -> Samples:
    """A grid of query tiles, heads, sequences: every die fetches all keys and values."""
    order = np.arange(count * case.n * case.batch) % count
    bytes_ = case.operand_bytes
    die_bytes = bytes_["qo"] + bytes_["lse"] + DIES[case.target] * bytes_["kv"]
    return Samples(launched.trace, count, order, die_bytes, sum(bytes_.values()))


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
        out = flash_attention(query, key, value, causal=True, implementation=target)
        jax.block_until_ready(out)
    full = sum(launch.cycles or 0 for launch in launches)
    sampled = run_ours(case).clk()
    return {
        "workgroups": launches[0].grid[0],
        "full_clk": full,
        "sampled_clk": sampled,
        "difference": sampled / full - 1,
    }
