"""The blockwise implementation by itself: blocks, work items, memory."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import Case
from sweeps import swept
from tolerance import assert_close, expect

from jax_fa import flash_attention, reference
from jax_fa._contract.spec import AttentionSpec
from jax_fa._xla import blockwise as _blockwise
from jax_fa._xla import rows as _rows
from jax_fa._xla.keys import FlatKeys

T, S, N, K, H = 45, 61, 4, 2, 16


@pytest.fixture(params=swept([((16, 8),), ((7, 64),), ((64, 5),)], [((7, 64),)]), ids=str)
def small_blocks(request, monkeypatch):
    monkeypatch.setattr(_rows, "BLOCK_Q", request.param[0])
    monkeypatch.setattr(_blockwise, "BLOCK_K", request.param[1])


def operands(t=T, s=S):
    return (x[0] for x in Case("", t=t, s=s, n=N, k=K, h=H).operands("float32"))


def work(t=T, s=S):
    return _rows.dense_work(1, t, s, None, None)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"causal": True},
        {"causal": True, "top_left": True},
        {"window": (9, 20), "logits_soft_cap": 2.0},
    ],
    ids=str,
)
def test_blocks_of_any_size_give_the_reference(options):
    spec = AttentionSpec.make(head_dim=H, **options)
    q, k, v = operands()

    def ours(q, k, v):
        return _blockwise.forward(spec, q, FlatKeys(k, v), work())

    out, lse = jax.jit(ours)(q, k, v)
    assert_close((out, lse), expect(q, k, v, **options), v, "xla")

    rng = np.random.default_rng(3)
    d_out = jnp.asarray(rng.standard_normal(out.shape), jnp.float32)
    d_lse = jnp.asarray(rng.standard_normal(lse.shape), jnp.float32)
    _, vjp = jax.vjp(
        functools.partial(reference.flash_attention, return_lse=True, **options), q, k, v
    )
    expected = vjp((d_out, d_lse))

    @jax.jit
    def gradients(q, k, v, *results):
        return _blockwise.backward(spec, q, FlatKeys(k, v), work(), *results)

    d_query, d_keys, d_bias = gradients(q, k, v, out, lse, d_out, d_lse)
    assert d_bias is None
    for a, b in zip((d_query, *d_keys), expected, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5 * max(1, float(jnp.abs(b).max())), rtol=0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(0, 4)] * 3),
        ({"causal": True}, [(0, 2), (0, 3), (0, 4)]),
        ({"causal": True, "top_left": True}, [(0, 1), (0, 2), (0, 3)]),
        ({"window": (0, 0)}, [(1, 2), (2, 3), (3, 4)]),
        ({"window": (17, 0)}, [(0, 2), (0, 3), (1, 4)]),
        ({"window": (None, 16)}, [(0, 3), (0, 4), (0, 4)]),
    ],
    ids=str,
)
def test_blocks_that_no_row_sees_are_skipped(monkeypatch, options, expected):
    monkeypatch.setattr(_rows, "BLOCK_Q", 16)
    monkeypatch.setattr(_blockwise, "BLOCK_K", 16)
    spec = AttentionSpec.make(head_dim=H, **options)
    q, k, v = operands(48, 64)
    problem = _blockwise._Problem.of(spec, FlatKeys(k, v), work(48, 64), None)
    every = work(48, 64).items
    for i, block_range in enumerate(expected):
        *_, (first, last) = problem.rows(q, _rows.Items(*(field[i] for field in every)))
        assert (int(first), int(last)) == block_range


def test_an_item_that_sees_nothing_has_no_blocks():
    spec = AttentionSpec.make(head_dim=H, causal=True)
    q, k, v = operands()
    problem = _blockwise._Problem.of(spec, FlatKeys(k, v), work(), None)
    for query_length, key_length in ((0, S), (T, 0)):
        item = _rows.Items(*(jnp.int32(x) for x in (0, 0, 0, query_length, key_length, 0)))
        *_, (first, last) = problem.rows(q, item)
        assert int(first) == int(last)


@pytest.mark.usefixtures("small_blocks")
def test_packed_sequences_do_not_meet():
    """Sequences one after another, a poisoned one between them, a row that is nobody's."""
    lengths = (13, 20), (9, 17), (22, 24)  # T_b, S_b
    q, k, v = operands()
    q, k, v = q.at[13:22].set(jnp.nan), k.at[20:37].set(jnp.nan), v.at[20:37].set(jnp.inf)
    spec = AttentionSpec.make(head_dim=H, causal=True)
    rows = []
    query_start = key_start = 0
    block = _rows.block_q(T)
    for t, s in lengths:
        rows += [(0, query_start, key_start, t, s, first) for first in range(0, t, block)]
        query_start, key_start = query_start + t, key_start + s
    fields = (jnp.asarray(field, jnp.int32) for field in zip(*rows, strict=True))
    items = _rows.Items(*fields)
    packed = _rows.Work(items, len(rows), block, _rows.Sequences(*items[1:5]))
    out, lse = _blockwise.forward(spec, q, FlatKeys(k, v), packed)
    for query, key in ((slice(0, 13), slice(0, 20)), (slice(22, 44), slice(37, 61))):
        expected = expect(q[query], k[key], v[key], causal=True)
        assert_close((out[query], lse[query]), expected, v[key], "xla")
    np.testing.assert_array_equal(out[44:], 0)
    assert np.isneginf(lse[44:]).all()


@pytest.mark.parametrize(
    ("dtype", "gradient"),
    swept(
        itertools.product(["float32", "bfloat16"], [False, True]),
        [("bfloat16", False), ("float32", True)],
    ),
)
def test_memory_grows_with_the_sequence_not_its_square(dtype, gradient):
    def temporary_bytes(length):
        def attend(q, k, v):
            return flash_attention(q, k, v, causal=True, implementation="xla")

        def total(q, k, v):
            return attend(q, k, v).astype(jnp.float32).sum()

        function = jax.grad(total, argnums=(0, 1, 2)) if gradient else attend
        x = jax.ShapeDtypeStruct((1, length, 2, 32), dtype)
        analysis: Any = jax.jit(function).lower(x, x, x).compile().memory_analysis()
        return analysis.temp_size_in_bytes

    short, long = temporary_bytes(1024), temporary_bytes(4096)
    assert long < 5 * short
    assert long < 2 * 4096 * 4096 * 4 / 8  # scores of two heads in float32
