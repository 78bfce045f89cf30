"""The instructions that gfx1201's flash kernels execute for each tile of keys that nothing cuts.

Matrix and vector instructions go down one pipe, so that first-order time is 16 clocks for each of
the former and one for each of the latter; the heads of csrc/kernels/mainloop/gfx1201/ have the
budget.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_fa import emulator, flash_attention

ROWS = 128  # one workgroup where a wave has 16 rows, and half of one where it has 32
UNIT = 32 * 16  # scores: the keys and rows that counts are given for


@functools.cache
def _per_unit(dtype: str, head_dim: int) -> dict[str, float]:
    """Instructions by class for 32 keys of 16 rows: the difference that further keys make."""
    counts = [_count(dtype, head_dim, keys) for keys in (256, 512)]
    units = (512 - 256) * ROWS / UNIT
    return {name: (counts[1][name] - counts[0].get(name, 0)) / units for name in counts[1]}


def _count(dtype: str, head_dim: int, keys: int) -> dict[str, int]:
    rng = np.random.default_rng(head_dim)
    query, key, value = (
        rng.standard_normal((1, length, 1, head_dim), np.float32) for length in (ROWS, keys, keys)
    )
    key[:, :32] *= 2  # rows have seen what is nearly their largest score
    with emulator.record() as launches:
        out = flash_attention(
            *(jnp.asarray(x, dtype) for x in (query, key, value)), implementation="gfx1201"
        )
        jax.block_until_ready(out)
    (launch,) = launches
    assert launch.kernel.startswith("flash")
    return launch.counts["class"]


def _vector_slots(per_unit: dict[str, float]) -> float:
    return per_unit["valu"] + per_unit.get("valu_dual", 0)


def _cycles_per_score(per_unit: dict[str, float]) -> float:
    """First-order clocks of a CU, whose two SIMDs share the scores."""
    return (16 * per_unit["matrix"] + _vector_slots(per_unit)) / UNIT / 2


@pytest.mark.parametrize(
    ("head_dim", "vector_slots", "cycles"), [(64, 41, 0.2905), (128, 37, 0.5365), (256, 42, 1.042)]
)
def test_a_whole_head_keeps_its_budget(head_dim, vector_slots, cycles):
    counts = [_per_unit(dtype, head_dim) for dtype in ("bfloat16", "float16")]
    for per_unit in counts:
        assert per_unit["matrix"] == head_dim / 4
        assert _vector_slots(per_unit) <= vector_slots
        assert _cycles_per_score(per_unit) <= cycles
    assert _cycles_per_score(counts[0]) == pytest.approx(_cycles_per_score(counts[1]), abs=0.003)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    ("head_dim", "full_head_dim"),
    [(96, 128), (80, 128), (72, 128), (48, 64), (160, 256), (192, 256)],
)
def test_a_head_that_fills_part_of_the_tile_costs_its_share(dtype, head_dim, full_head_dim):
    ragged, full = (_per_unit(dtype, h) for h in (head_dim, full_head_dim))
    steps = -(-head_dim // 16)
    assert ragged["matrix"] == 4 * steps
    assert _vector_slots(ragged) <= _vector_slots(full) + 5
