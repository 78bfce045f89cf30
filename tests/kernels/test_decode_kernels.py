"""Few query rows and split keys in the kernels: ratios of heads, numbers of splits, counts."""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernel_runs import (
    KERNEL_TARGETS,
    assert_keys_are_read_once,
    assert_near,
    attention,
    expect_cache,
    recorded,
    run_in_every_order,
)
from packs import Cache
from sweeps import swept

from jax_fa import _native, flash_attention, paged_attention

attend: Any = functools.partial(flash_attention, return_lse=True)


def operands(t, s, n, k, h, dtype="bfloat16", batch=1, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (batch, t, n, h), (batch, s, k, h), (batch, s, k, h)
    return [jnp.asarray(rng.standard_normal(x, np.float32), dtype) for x in shapes]


def expect(query, key, value, key_lengths=None, **options):
    """(out, lse) of dense operands."""
    parts = []
    for b in range(query.shape[0]):
        s = None if key_lengths is None else int(key_lengths[b])
        arrays = (np.asarray(x, np.float64) for x in (query[b], key[b, :s], value[b, :s]))
        parts.append(attention(*arrays, **options))
    return tuple(np.stack(x) for x in zip(*parts, strict=True))


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 2), (3, 1), (15, 3), (7, 1), (8, 1), (16, 1)])
def test_any_ratio_of_heads(target, n, k):
    for t in (1, 3, 8):
        q, key, value = operands(t, 150, n, k, 64)
        call = functools.partial(attend, q, key, value, causal=True, implementation=target)
        with recorded(checks=True) as launches:
            results = jax.block_until_ready(call())
        packed = t * n // k <= 64
        assert {launch.kernel.startswith("decode_") for launch in launches} == {packed}
        assert_near(results, expect(q, key, value, causal=True), value, target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize(
    ("h", "dtype"),
    swept(
        itertools.product([64, 72, 256], ["bfloat16", "float16"]),
        [(72, "bfloat16"), (64, "float16"), (256, "bfloat16")],
    ),
)
def test_splits_are_right_in_every_order(target, h, dtype):
    q, key, value = operands(2, 300, 6, 2, h, dtype, batch=2)
    lengths = jnp.array([300, 70], jnp.int32)
    expected = expect(q, key, value, lengths, causal=True, window=(200, 0))
    value = value.at[1, 70:].set(jnp.nan)
    key = key.at[1, 70:].set(jnp.nan)
    for num_splits in (1, 2, 7, 40):
        call = functools.partial(
            attend,
            *(q, key, value),
            causal=True,
            window=(200, 0),
            key_lengths=lengths,
            num_splits=num_splits,
            implementation=target,
        )
        results, kernels = run_in_every_order(call)
        assert (f"merge_{dtype}" in kernels) == (num_splits > 1)
        assert_near(results, expected, jnp.nan_to_num(value), target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_many_rows_may_be_split_too(target):
    q, key, value = operands(100, 400, 2, 1, 64)
    for options in ({"causal": True}, {"logits_soft_cap": 5.0}, {"scale": -0.2}):
        results = attend(q, key, value, **options, num_splits=3, implementation=target)
        assert_near(results, expect(q, key, value, **options), value, target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_splits_of_a_cache(target):
    cache = Cache("", ((1, 0), (2, 700), (1, 30)), 16, n=4, k=2, h=128, packed=True)
    arrays = cache.operands("bfloat16")
    for num_splits in (1, 2, 7):
        results = paged_attention(
            *arrays,
            **cache.keywords(),
            num_splits=num_splits,
            return_lse=True,
            implementation=target,
        )
        expected = expect_cache(cache, arrays)
        assert_near(results, expected, jnp.nan_to_num(arrays[2]), target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_parts_far_apart_and_equal_merge(target):
    """One key far above all others, in the last split; then equal logits that are very large."""
    q, key, value = operands(1, 512, 1, 1, 64)
    key = key.at[0, 500].set(300 * q[0, 0])
    results = attend(q, key, value, num_splits=4, implementation=target)
    np.testing.assert_allclose(results[0][0, 0], value[0, 500], atol=2.5e-2)
    large = jnp.full_like(key, 133120)
    results = attend(large[:, :1], large, large, num_splits=4, implementation=target)
    np.testing.assert_array_equal(np.asarray(results[0], np.float32), 133120)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_a_nan_reaches_the_rows_that_see_it(target):
    q, key, value = operands(4, 256, 2, 1, 64)
    key = key.at[0, 255].set(jnp.nan)  # seen by the last token alone
    out, lse = attend(q, key, value, causal=True, num_splits=2, implementation=target)
    assert np.isnan(np.asarray(out[0, 3], np.float32)).all()
    assert np.isnan(np.asarray(lse[0, 3])).all()
    expected = expect(q[:, :3], key[:, :255], value[:, :255], causal=True)
    assert_near((out[:, :3], lse[:, :3]), expected, value, target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("page_size", [None, 16, 64])
def test_keys_and_values_are_read_once(target, page_size):
    q = jnp.zeros((8, 1, 32, 128), jnp.bfloat16)
    assert_keys_are_read_once(q, (8, 8192, 8, 128), page_size, target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize(("t", "s"), [(1, 8192), (1, 9000), (8, 8192)])
def test_one_sequence_fills_the_chip(target, t, s):
    with recorded() as launches:
        q, key, value = (
            jnp.zeros((1, x, y, 128), jnp.bfloat16) for x, y in ((t, 32), (s, 8), (s, 8))
        )
        jax.block_until_ready(flash_attention(q, key, value, implementation=target))
    decode, merge = launches
    assert merge.kernel == "merge_bfloat16"
    assert decode.grid[0] >= _native.targets()[target]["compute_units"]
