"""Decoding on a paged cache: prefill, append, attend, one token after another under one jit."""

from __future__ import annotations

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packs import PAGED_RUNS, PAGED_TARGETS
from tolerance import assert_close, expect

from jax_fa import append_to_pages, flash_attention, paged_attention
from jax_fa._tolerance import out_tolerance

B, N, K, H, D = 2, 4, 2, 32, 24
PROMPTS, STEPS, PAGE = (7, 3), 6, 4
POOL = 9


def weights(dtype):
    """Of one layer: [D, N, H] for queries, [D, K, H] for keys and values, [N, H, D] back."""
    rng = np.random.default_rng(0)
    shapes = (D, N, H), (D, K, H), (D, K, H), (N, H, D)
    return [jnp.asarray(rng.standard_normal(s, np.float32) / np.sqrt(D), dtype) for s in shapes]


def project(w, x):
    return tuple(jnp.einsum("btd,dnh->btnh", x, one) for one in w[:3])


def back(w, out):
    """The next token's input, of about the size of the last one's."""
    x = jnp.einsum("btnh,nhd->btd", out, w[3])
    return x / jnp.linalg.norm(x.astype(jnp.float32), axis=-1, keepdims=True).astype(x.dtype) * 4


@functools.partial(jax.jit, static_argnames=("implementation", "num_splits"), donate_argnums=(1, 2))
def generate(w, k_pages, v_pages, tables, prompt, lengths, *, implementation, num_splits=None):
    """(outputs of every step [STEPS, B, 1, N, H], k_pages, v_pages)."""
    attend = functools.partial(
        paged_attention, implementation=implementation, num_splits=num_splits
    )
    query, key, value = project(w, prompt)
    start = jnp.zeros_like(lengths)
    k_pages, v_pages = append_to_pages(
        k_pages, v_pages, key, value, tables, start, new_lengths=lengths
    )
    out = attend(query, k_pages, v_pages, tables, lengths, query_lengths=lengths)
    last = jnp.take_along_axis(out, (lengths - 1)[:, None, None, None], axis=1)

    def step(carry, _):
        x, k_pages, v_pages, lengths = carry
        query, key, value = project(w, x)
        k_pages, v_pages = append_to_pages(k_pages, v_pages, key, value, tables, lengths)
        lengths = lengths + 1
        out = attend(query, k_pages, v_pages, tables, lengths)
        return (back(w, out), k_pages, v_pages, lengths), (x, out)

    carry = back(w, last), k_pages, v_pages, lengths
    (_, k_pages, v_pages, _), outs = jax.lax.scan(step, carry, length=STEPS)
    return last, outs, k_pages, v_pages


def problem(dtype):
    rng = np.random.default_rng(1)
    prompt = rng.standard_normal((B, max(PROMPTS), D), np.float32)
    tables = jnp.asarray(rng.permutation(POOL)[: B * 4].reshape(B, 4), jnp.int32)
    pools = [jnp.full((POOL, PAGE, K, H), jnp.nan, dtype) for _ in range(2)]
    return pools, tables, jnp.asarray(prompt, dtype), jnp.array(PROMPTS, jnp.int32)


@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
@pytest.mark.parametrize("num_splits", [None, 3])
def test_each_token_is_dense_attention_over_the_growing_sequence(implementation, dtype, num_splits):
    w = weights(dtype)
    pools, tables, prompt, lengths = problem(dtype)
    last, (xs, outs), *_ = generate(
        w, *pools, tables, prompt, lengths, implementation=implementation, num_splits=num_splits
    )
    assert np.isfinite(np.asarray(outs, np.float32)).all()
    # Each step's own input is taken, so that rounding does not add up over the steps.
    for b, length in enumerate(PROMPTS):
        xs_b = [prompt[b : b + 1, :length], *xs[:, b : b + 1]]
        results = [last[b], *outs[:, b]]
        for i, result in enumerate(results):
            query, key, value = project(w, jnp.concatenate(xs_b[: i + 1], 1))
            padding = ((0, 0), (0, max(PROMPTS) + STEPS - key.shape[1]), (0, 0), (0, 0))
            out, _ = expect(
                query[:, -1:],
                jnp.pad(key, padding),
                jnp.pad(value, padding),
                key_lengths=jnp.array([key.shape[1]], jnp.int32),
            )
            np.testing.assert_allclose(
                np.asarray(result, np.float32), out[0], rtol=0, atol=out_tolerance(value)
            )


def ops_of_pool_size(text, shape):
    """Opcodes of the compiled instructions that make something as large as the pool."""
    size = int(np.prod(shape))
    made = re.findall(r"= \w+\[([\d,]+)\]\S* ([\w-]+)\(", text)
    return {op for dims, op in made if np.prod([int(d) for d in dims.split(",")]) >= size}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_decode_step_makes_no_copy_of_the_pool(dtype):
    check_no_copy("xla", dtype)


@pytest.mark.parametrize("target", PAGED_TARGETS)
def test_the_decode_step_of_kernels_makes_no_copy_of_the_pool(target):
    check_no_copy(target, "float16")


def check_no_copy(implementation, dtype):
    _, tables, prompt, lengths = problem(dtype)
    pool = jax.ShapeDtypeStruct((512, PAGE, K, H), dtype)
    compiled = generate.lower(
        weights(dtype), pool, pool, tables, prompt, lengths, implementation=implementation
    ).compile()
    text = str(compiled.as_text())
    analysis: Any = compiled.memory_analysis()
    pool_bytes = int(np.prod(pool.shape)) * jnp.dtype(dtype).itemsize
    assert analysis.alias_size_in_bytes >= 2 * pool_bytes
    assert analysis.temp_size_in_bytes < pool_bytes
    in_place = {"parameter", "get-tuple-element", "scatter", "fusion", "bitcast"}
    assert ops_of_pool_size(text, pool.shape) <= in_place
    # Every fusion of that size is one around a scatter.
    assert text.count("scatter(") >= 4


@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
@pytest.mark.parametrize("t", [1, 8])
def test_dense_decode_is_any_number_of_splits(implementation, dtype, t):
    """Dense attention of few rows takes the same kernel."""
    rng = np.random.default_rng(0)
    shapes = (2, t, 8, 64), (2, 600, 2, 64), (2, 600, 2, 64)
    q, k, v = (jnp.asarray(rng.standard_normal(s, np.float32), dtype) for s in shapes)
    lengths = jnp.array([600, 130], jnp.int32)
    k, v = (x.at[1, 130:].set(jnp.nan) for x in (k, v))
    expected = expect(q, k, v, causal=True, key_lengths=lengths)
    attend: Any = functools.partial(
        flash_attention, causal=True, return_lse=True, implementation=implementation
    )
    for num_splits in (None, 1, 2, 7, 40):  # 40: more than there are tiles of keys
        actual = attend(q, k, v, key_lengths=lengths, num_splits=num_splits)
        assert_close(actual, expected, jnp.nan_to_num(v), implementation)
