"""Packed sequences in the kernels: every order of waves, counts, and what cu_seqlens may hold."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernel_runs import (
    KERNEL_TARGETS,
    assert_near,
    expect_pack,
    recorded,
    run_in_every_order,
    wave_instructions,
)
from packs import Pack

from jax_fa import flash_attention, flash_attention_varlen

attend: Any = functools.partial(flash_attention_varlen, return_lse=True)
CAUSAL = {"causal": True}
MIXED = ((70, 90), (0, 5), (33, 33), (100, 20), (0, 0), (5, 0))
PACKS = (
    Pack("mixed, H = 64", MIXED, n=4, k=2, options=CAUSAL),
    Pack("mixed, H = 128", MIXED, h=128, options={"window": (40, 3)}),
    Pack("mixed, H = 248", MIXED, h=248, options={"logits_soft_cap": 5.0}),
    Pack("more spare rows than a tile", ((130, 130),), n=1, options=CAUSAL, spare=(500, 70)),
    Pack("few rows", ((1, 100), (0, 3), (3, 64), (1, 7)), n=6, k=2, h=72, options=CAUSAL),
    Pack("one row among empties", ((0, 0), (1, 3), (0, 0), (1, 5)), n=9, k=3),
)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize(
    ("pack", "dtype"),
    [*((pack, "bfloat16") for pack in PACKS), *((pack, "float16") for pack in PACKS[::2])],
    ids=str,
)
def test_right_in_every_order(pack, target, dtype):
    operands = pack.operands(dtype)
    call = functools.partial(attend, *operands, **pack.keywords(), implementation=target)
    results, _ = run_in_every_order(call)
    assert_near(results, expect_pack(pack, operands), jnp.nan_to_num(operands[2]), target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("count", [63, 65, 4200])
def test_a_sequence_is_found_among_many(target, count):
    """One more round of the search for each factor of the lanes of a wave."""
    pack = Pack("many", tuple((b % 3, b % 5) for b in range(count)), n=1, h=8, options=CAUSAL)
    operands = pack.operands("bfloat16")
    results = attend(*operands, **pack.keywords(), implementation=target)
    assert_near(results, expect_pack(pack, operands), jnp.nan_to_num(operands[2]), target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("num_splits", [1, 3])
@pytest.mark.parametrize(
    "offsets",
    [
        [0, 90, 30, 120, -1, 150],
        [10**9] * 6,
        [2**31 - 1, -(2**31), 0, 5, 2**31 - 1, -1],
        [150, 120, 90, 60, 30, 0],
        [b * 7919 % 400 - 100 for b in range(200)],  # more sequences than lanes
    ],
    ids=lambda offsets: str(offsets[:6]),
)
def test_nonsense_offsets_stay_within_the_operands(target, num_splits, offsets):
    q, k, v = Pack("", ((150, 150),), n=2, h=16, spare=(0, 0)).operands("bfloat16")
    cu = jnp.array(offsets, jnp.int32)
    with recorded(checks=True):
        results = attend(
            q, k, v, cu_seqlens_q=cu, cu_seqlens_k=cu, num_splits=num_splits, implementation=target
        )
        jax.block_until_ready(results)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("length", "head_dim"), [(1024, 64), (1024, 128), (2048, 128)])
def test_packing_costs_few_instructions(target, causal, length, head_dim):
    sequences = 2
    lengths = ((length, length),) * sequences
    pack = Pack("", lengths, n=1, h=head_dim, options={"causal": causal}, spare=(0, 0))
    operands = pack.operands("bfloat16")
    rows = [x.reshape(sequences, length, *x.shape[1:]) for x in operands]
    call = functools.partial(flash_attention, *rows, causal=causal, implementation=target)
    dense = wave_instructions(call)
    call = functools.partial(attend, *operands, **pack.keywords(), implementation=target)
    assert wave_instructions(call) <= 1.05 * dense


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_workgroups_follow_the_packed_total(target):
    """One long sequence among many: the grid is not the longest times the number of sequences."""
    pack = Pack("", ((1500, 16), *[(1, 16)] * 15), n=1, options={}, spare=(0, 0))
    with recorded() as launches:
        attend(*pack.operands("bfloat16"), **pack.keywords(), implementation=target)
    (launch,) = launches
    rows = {"gfx950": 384, "gfx1201": 256}[target]
    assert launch.kernel.startswith("flash_")
    assert launch.grid[0] <= -(-1515 // rows) + 16 + 1


def test_expectation_by_hand():
    """Two keys of equal logits: the mean of V, and lse = logit + ln 2."""
    pack = Pack("", ((1, 2),), n=1, h=8, spare=(0, 0))
    q, k, v = (jnp.full_like(x, 2) for x in pack.operands("float32"))
    out, lse = expect_pack(pack, (q, k, v.at[1].set(4)))
    np.testing.assert_allclose(out, 3)
    np.testing.assert_allclose(lse, 32 * 8**-0.5 + np.log(2))
