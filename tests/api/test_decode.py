"""Decoding on a paged cache: prefill, append, attend, one token after another under one jit."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packs import PAGED_RUNS, PAGED_TARGETS
from tolerance import assert_close, expect

from jax_fa import _native, emulator, flash_attention, paged_attention
from jax_fa._contract.tolerance import out_tolerance

B, N, K, H, D = 2, 4, 2, 32, 24
PROMPTS, STEPS, PAGE, POOL = (7, 3), 6, 4, 9


def weights(dtype):
    """A layer's weights: [D, N, H] for queries, [D, K, H] for keys and values, [N, H, D] back."""
    rng = np.random.default_rng(0)
    shapes = (D, N, H), (D, K, H), (D, K, H), (N, H, D)
    return [jnp.asarray(rng.standard_normal(s, np.float32) / np.sqrt(D), dtype) for s in shapes]


def project(w, x):
    return tuple(jnp.einsum("btd,dnh->btnh", x, one) for one in w[:3])


def next_input(w, out):
    """An input of about the size of the prompt's."""
    x = jnp.einsum("btnh,nhd->btd", out, w[3])
    return x / jnp.linalg.norm(x.astype(jnp.float32), axis=-1, keepdims=True).astype(x.dtype) * 4


def readme_generate(**how):
    """The README's function, with this layer, and paged_attention as said by `how`."""
    text = (Path(__file__).parents[2] / "README.md").read_text()
    (code,) = (x for x in re.findall(r"```python\n(.*?)```", text, re.S) if "def generate" in x)
    names: dict[str, Any] = {"project": project, "next_input": next_input}
    exec(code, names)
    names["paged_attention"] = functools.partial(paged_attention, **how)
    return names["generate"]


def problem(dtype):
    """(prompt, lengths, k_pages, v_pages, block_tables); the pool is NaN."""
    rng = np.random.default_rng(1)
    prompt = rng.standard_normal((B, max(PROMPTS), D), np.float32)
    tables = jnp.asarray(rng.permutation(POOL)[: B * 4].reshape(B, 4), jnp.int32)
    pools = [jnp.full((POOL, PAGE, K, H), jnp.nan, dtype) for _ in range(2)]
    return jnp.asarray(prompt, dtype), jnp.array(PROMPTS, jnp.int32), *pools, tables


@pytest.mark.parametrize(
    ("implementation", "dtype", "num_splits"),
    [("xla", "float32", None), *((t, "bfloat16", 3) for t in PAGED_TARGETS)],
)
def test_each_token_is_dense_attention_over_the_growing_sequence(implementation, dtype, num_splits):
    w, operands = weights(dtype), problem(dtype)
    generate = readme_generate(implementation=implementation, num_splits=num_splits)
    outs, *_ = generate(w, *operands, steps=STEPS)
    assert outs.shape == (STEPS + 1, B, 1, N, H)
    inputs = [next_input(w, out) for out in outs]
    for b, length in enumerate(PROMPTS):
        xs = [operands[0][b : b + 1, :length], *(x[b : b + 1] for x in inputs)]
        for i, out in enumerate(outs):
            query, key, value = project(w, jnp.concatenate(xs[: i + 1], 1))
            padding = ((0, 0), (0, max(PROMPTS) + STEPS - key.shape[1]), (0, 0), (0, 0))
            expected, _ = expect(
                query[:, -1:],
                jnp.pad(key, padding),
                jnp.pad(value, padding),
                key_lengths=jnp.array([key.shape[1]], jnp.int32),
            )
            np.testing.assert_allclose(
                np.asarray(out[b : b + 1], np.float32),
                expected,
                rtol=0,
                atol=out_tolerance(value),
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
    prompt, lengths, *_, tables = problem(dtype)
    pool = jax.ShapeDtypeStruct((512, PAGE, K, H), dtype)
    generate = readme_generate(implementation=implementation)
    lowered = generate.lower(weights(dtype), prompt, lengths, pool, pool, tables, steps=STEPS)
    compiled = lowered.compile()
    analysis: Any = compiled.memory_analysis()
    pool_bytes = int(np.prod(pool.shape)) * jnp.dtype(dtype).itemsize
    assert analysis.alias_size_in_bytes >= 2 * pool_bytes
    assert analysis.temp_size_in_bytes < pool_bytes
    in_place = {"parameter", "get-tuple-element", "scatter", "fusion", "bitcast"}
    assert ops_of_pool_size(str(compiled.as_text()), pool.shape) <= in_place


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
    for num_splits in (None, 2, 40):  # 40: more than there are tiles of keys
        actual = attend(q, k, v, key_lengths=lengths, num_splits=num_splits)
        assert_close(actual, expected, jnp.nan_to_num(v), implementation)


@pytest.mark.parametrize("target", PAGED_TARGETS)
def test_decode_reads_keys_and_values_once_on_all_compute_units(target):
    compute_units = _native.targets()[target]["compute_units"]
    length, page, heads, kv_heads, head_dim = 8192, 16, 32, 8, 128
    pages = length // page
    query = jnp.ones((1, 1, heads, head_dim), jnp.bfloat16)
    pool = jnp.ones((pages, page, kv_heads, head_dim), jnp.bfloat16)
    tables = jnp.asarray(np.random.default_rng(0).permutation(pages)[None], jnp.int32)
    lengths = jnp.array([length], jnp.int32)
    with emulator.configure(checks=False), emulator.record() as launches:
        jax.block_until_ready(
            paged_attention(query, pool, pool, tables, lengths, implementation=target)
        )
    attend, merge = launches
    assert "decode" in attend.kernel
    assert "merge" in merge.kernel
    assert np.prod(attend.grid) >= compute_units
    operands = attend.bytes["operands"]
    read = sum(count["read"] for name, count in operands.items() if "_pages" in name)
    assert pool.nbytes * 2 <= read <= 1.02 * pool.nbytes * 2
