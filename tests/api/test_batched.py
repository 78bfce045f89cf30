"""The schedules of the blockwise implementation, by themselves, over the same cases."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import Case
from packs import Cache, Pack, clean
from sweeps import swept
from tolerance import assert_close, assert_gradients_close

from jax_fa import reference
from jax_fa._contract.spec import AttentionSpec
from jax_fa._ops import dense, paged, varlen
from jax_fa._xla import batched, blockwise, ragged, rows, tiles
from jax_fa._xla.aligned import Aligned
from jax_fa._xla.keys import FlatKeys

CAUSAL = {"causal": True}
CAPPED = {"window": (9, 20), "logits_soft_cap": 2.0}
LENGTHS = {"query_lengths": (45, 0, 17), "key_lengths": (33, 61, 50)}


def _dense(name: str, **rest: Any) -> Case:
    return Case(name, **{"batch": (2,), "t": 45, "s": 61, "n": 4, "k": 2, "h": 16, **rest})


DENSE = (
    _dense("plain"),
    _dense("causal", options=CAUSAL),
    _dense("window and soft cap", options=CAPPED),
    _dense("lengths", batch=(3,), options=CAUSAL, **LENGTHS),
    _dense("one query", batch=(3,), t=1, s=97),
    _dense("negative scale", options={"scale": -0.3}, s=45),
)
PACKS = (
    Pack("packed", ((20, 41), (33, 7), (0, 5), (1, 33), (5, 0)), n=4, k=2, h=16, options=CAUSAL),
    Pack("packed, window", ((40, 50), (30, 40)), n=4, k=2, h=16, options=CAPPED),
)
CACHES = (
    Cache("pages", ((5, 40), (3, 13), (0, 7), (4, 0)), n=4, k=2, h=16),
    Cache("pages, packed", ((1, 50), (33, 33), (20, 60)), n=4, k=2, h=16, packed=True),
    Cache("pages, HND", ((3, 50), (3, 33)), n=4, k=2, h=16, layout="HND"),
)


def problem_of(case: Any) -> tuple[Any, AttentionSpec, Any, Any]:
    """(the operation, its static options, its operands, the reference on them)."""
    arrays, keywords = case.operands("float32"), case.keywords()
    if isinstance(case, Case):
        operation, operands, oracle = dense.OPERATION, dense.Operands, reference.flash_attention
    elif isinstance(case, Pack):
        operation, operands = varlen.OPERATION, varlen.Operands
        oracle = reference.flash_attention_varlen
    else:
        operation, operands, oracle = paged.OPERATION, paged.Operands, reference.paged_attention
    named = {name: keywords[name] for name in operands._fields if name in keywords}
    options = dict(case.options)
    if isinstance(case, Cache):
        options = {"causal": True, **options}
    spec = AttentionSpec.make(
        head_dim=case.h, heads_first=keywords.get("layout") == "HND", **options
    )
    keywords |= {} if isinstance(case, Pack) else options
    return operation, spec, operands(*arrays, **named), functools.partial(oracle, **keywords)


ALL = *DENSE, *PACKS, *CACHES


@pytest.fixture(params=[pytest.param(1, marks=pytest.mark.slow), 3])
def small_tiles(request, monkeypatch):
    """Blocks of 16 rows and keys; so many sequences or lanes a step."""
    for module in (tiles, ragged):
        monkeypatch.setattr(module, "BLOCK", 16)
        monkeypatch.setattr(module, "FEW", 4)
    monkeypatch.setattr(ragged, "KEYS_OF_FEW_ROWS", 32)
    monkeypatch.setattr(batched, "UNROLLED", 2)
    for name in ("FORWARD_SCORES", "BACKWARD_SCORES"):
        monkeypatch.setattr(batched, name, request.param * 4 * 16 * 16)


def attend(schedule, operation, spec, operands, cotangents):
    """(out, lse), and gradients of query, keys and values."""
    query = operands.query
    flat, keys, work = operation.problem(spec, operands)
    out, lse = schedule.forward(spec, flat, keys, work)
    results = out, lse, *(x.reshape(y.shape) for x, y in zip(cotangents, (out, lse), strict=True))
    d_query, d_keys, _ = schedule.backward(spec, flat, keys, work, *results)
    found = out.reshape(*query.shape[:-1], -1), lse.reshape(query.shape[:-1])
    gradients = zip((d_query, *d_keys), operands[:3], strict=True)
    return found, tuple(d.reshape(x.shape) for d, x in gradients)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("case", swept(ALL, (DENSE[3], CACHES[1])), ids=str)
def test_tiles_give_the_reference(case):
    check(case, batched)


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=str)
def test_blocks_give_the_reference(case):
    check(case, blockwise)


def check(case, schedule):
    operation, spec, operands, oracle = problem_of(case)
    rng = np.random.default_rng(3)
    shape = operands.query.shape
    d_out, d_lse = (jnp.asarray(rng.standard_normal(x), jnp.float32) for x in (shape, shape[:-1]))
    run = jax.jit(functools.partial(attend, schedule, operation, spec))
    found, gradients = run(operands, (d_out, d_lse))

    whole = tuple(clean(x) for x in operands[:3])
    rest = operands[3:5] if not isinstance(case, Case) else ()

    def expect(*arrays):
        return oracle(*arrays, *(() if isinstance(case, Pack) else rest), return_lse=True)

    expected, vjp = jax.vjp(expect, *whole)
    assert_close(found, expected, whole[2], "xla")
    d_lse = jnp.where(jnp.isneginf(expected[1]), 0, d_lse)
    assert_gradients_close(gradients, vjp((d_out, d_lse)))
    again = run(operands, (d_out, d_lse))
    jax.tree.map(np.testing.assert_array_equal, again, (found, gradients))


@pytest.mark.usefixtures("small_tiles")
def test_what_lies_past_lengths_changes_nothing():
    case = DENSE[3]
    operation, spec, operands, _ = problem_of(case)
    cotangents = jnp.ones(operands.query.shape), jnp.ones(operands.query.shape[:-1])
    run = jax.jit(functools.partial(attend, batched, operation, spec))
    expected = run(operands, cotangents)

    def poison(x, lengths):
        past = jnp.arange(x.shape[1]) >= lengths[:, None]
        return jnp.where(past.reshape(*past.shape, *(1,) * (x.ndim - 2)), jnp.nan, x)

    q_lengths, k_lengths = operands.query_lengths, operands.key_lengths
    poisoned = operands._replace(
        query=poison(operands.query, q_lengths),
        key=poison(operands.key, k_lengths),
        value=poison(operands.value, k_lengths),
    )
    found = run(poisoned, tuple(poison(x, q_lengths) for x in cotangents))
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(
    ("shape", "lengths"),
    swept(
        itertools.product(
            [(1, 1, 1, 1), (2, 45, 4, 61), (1, 45, 1, 1), (2, 1, 4, 61)], [False, True]
        ),
        [((2, 45, 4, 61), True), ((1, 45, 1, 1), False)],
    ),
)
def test_a_bias_as_one_sequence_after_another(shape, lengths):
    spec = AttentionSpec.make(head_dim=16, causal=True, top_left=True)
    q, k, v = DENSE[0].operands("float32")
    rng = np.random.default_rng(5)
    bias = jnp.asarray(rng.standard_normal(shape), jnp.float32)
    bias = jnp.where(bias > 1, -jnp.inf, bias) if bias.size > 1000 else bias
    of_lengths = (jnp.array([45, 17]), jnp.array([33, 61])) if lengths else (None, None)
    d_out, d_lse = jnp.asarray(rng.standard_normal(q.shape)), jnp.ones(q.shape[:-1])

    def gradients(schedule, work, bias, q, k, v, d_out, d_lse):
        out, lse = schedule.forward(spec, q, FlatKeys(k, v), work, bias)
        operands = spec, q, FlatKeys(k, v), work, out, lse, d_out, d_lse
        d_query, d_keys, d_bias = schedule.backward(*operands, bias, with_d_bias=True)
        return out, lse, d_query, *d_keys, d_bias

    @jax.jit
    def together(bias, *arrays):
        work = rows.dense_work(2, 45, 61, *of_lengths)
        return gradients(batched, work, bias, *(x.reshape(-1, *x.shape[2:]) for x in arrays))

    @functools.partial(jax.jit, static_argnums=0)
    def alone(b, bias, *arrays):
        work = rows.dense_work(1, 45, 61, *(x if x is None else x[b : b + 1] for x in of_lengths))
        own = bias[b if bias.shape[0] > 1 else 0]
        return gradients(blockwise, work, own, *(x[b] for x in arrays))

    found = together(bias, q, k, v, d_out, d_lse)
    pairs = zip(*(alone(b, bias, q, k, v, d_out, d_lse) for b in range(2)), strict=True)
    *expected, d_bias = (jnp.stack(pair) for pair in pairs)
    d_bias = d_bias if shape[0] > 1 else d_bias.sum(0, keepdims=True)
    for a, b in zip(found, (*expected, d_bias), strict=True):
        np.testing.assert_allclose(a, b.reshape(a.shape), atol=2e-5, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(0, 4)] * 3),
        ({"causal": True}, [(0, 2), (0, 3), (0, 4)]),
        ({"causal": True, "top_left": True}, [(0, 1), (0, 2), (0, 3)]),
        ({"window": (0, 0)}, [(1, 2), (2, 3), (3, 4)]),
        ({"window": (None, 16)}, [(0, 3), (0, 4), (0, 4)]),
    ],
    ids=str,
)
def test_tiles_that_no_row_sees_are_skipped(monkeypatch, options, expected):
    monkeypatch.setattr(tiles, "BLOCK", 16)
    monkeypatch.setattr(tiles, "FEW", 1)
    spec = AttentionSpec.make(head_dim=16, **options)
    plan = Aligned.of(spec, rows.dense_work(2, 48, 64, None, None), 64, 4, 4 * 16 * 16)
    assert (plan.block, plan.width) == ((16, 16), 1)
    one = [(16 * i, block) for i, pair in enumerate(expected) for block in range(*pair)]
    assert plan.table.tolist() == [[b, *tile] for b in range(2) for tile in one]
