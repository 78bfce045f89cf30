"""Where rounding could take more than its share: large logits, long sums, the largest numbers."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import KERNEL_TARGETS
from tolerance import lse_tolerance

from jax_fa import flash_attention, flash_attention_varlen, nn
from jax_fa._contract.spec import AttentionSpec
from jax_fa._xla import batched, blockwise, ragged, rows, tiles
from jax_fa._xla.keys import FlatKeys

# Rounding, and memory, are those of programs as users have them.
pytestmark = pytest.mark.optimized

LOWEST = float(np.finfo(np.float32).min)


@pytest.fixture(params=[blockwise, batched], ids=["blockwise", "batched"])
def schedule(request, monkeypatch):
    """Each schedule, in blocks of some 64 rows and keys."""
    for module in (tiles, ragged):
        monkeypatch.setattr(module, "BLOCK", 64)
    monkeypatch.setattr(batched, "FORWARD_SCORES", 2**16)
    monkeypatch.setattr(batched, "BACKWARD_SCORES", 2**16)
    return request.param


def bias_of(schedule, bias):
    """[N, T, S] as the schedule takes it."""
    bias = jnp.swapaxes(bias, 0, 1)
    return bias if schedule is blockwise else bias[None]


def attend(schedule, q, k, v, bias=None, d_out=None, **options):
    """One sequence [T, N, H]: out, lse, and gradients of q, k, v (and bias) by d_out."""
    spec = AttentionSpec.make(head_dim=q.shape[-1], **options)

    @jax.jit
    def run(q, k, v, bias, d_out):
        keys, work = FlatKeys(k, v), rows.dense_work(1, len(q), len(k), None, None)
        given = None if bias is None else bias_of(schedule, bias)
        out, lse = schedule.forward(spec, q, keys, work, given)
        if d_out is None:
            return out, lse
        operands = spec, q, keys, work, out, lse, d_out, jnp.zeros_like(lse)
        d_query, d_keys, d_bias = schedule.backward(*operands, given, with_d_bias=given is not None)
        return out, lse, d_query, *d_keys, d_bias

    return run(q, k, v, bias, d_out)


def exact(q, k, v, bias, d_out):
    """Out and gradients of q, k, v, bias [N, T, S] by float64, from logits in float32."""
    q, k, v, bias, d_out = (np.asarray(x, np.float64) for x in (q, k, v, bias, d_out))
    scale = 1 / math.sqrt(q.shape[-1])
    scores = np.float32(np.einsum("tnh,snh->nts", q, k) * scale)
    logits = np.float64(scores + np.float32(bias))
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    d_weights = np.einsum("tnh,snh->nts", d_out, v)
    d_logits = weights * (d_weights - (weights * d_weights).sum(-1, keepdims=True))
    out = np.einsum("nts,snh->tnh", weights, v)
    d_query = np.einsum("nts,snh->tnh", d_logits, k) * scale
    d_key = np.einsum("nts,tnh->snh", d_logits, q) * scale
    return out, d_query, d_key, np.einsum("nts,tnh->snh", weights, d_out), d_logits


def normal(rng, *shape):
    return jnp.asarray(rng.standard_normal(shape), jnp.float32)


@pytest.mark.parametrize("size", [1e3, 1e4])
def test_equal_logits_of_any_size_share_alike(schedule, size):
    q, ones = jnp.full((8, 1, 8), size, jnp.bfloat16), jnp.ones((8, 1, 8), jnp.bfloat16)
    *_, d_value, _ = attend(schedule, q, q, ones, d_out=ones)
    np.testing.assert_array_equal(np.asarray(d_value, np.float32), 1)


@pytest.mark.parametrize("kind", ["a row of the lowest number", "row less key"])
def test_gradients_with_a_bias_of_large_numbers(schedule, kind):
    rng = np.random.default_rng(1)
    t = 6 if kind.startswith("a row") else 257
    q, k, v, d_out = (normal(rng, t, 2, 8) for _ in range(4))
    if kind.startswith("a row"):
        bias = jnp.zeros((1, t, t)).at[:, 1].set(LOWEST)
    else:
        bias = (jnp.arange(t)[:, None] - jnp.arange(t)[None]).astype(jnp.float32)[None]
    out, _, *gradients, _ = attend(schedule, q, k, v, bias, d_out)
    expected_out, *expected, _ = exact(q, k, v, bias, d_out)
    np.testing.assert_allclose(out, expected_out, atol=2e-5)
    for a, b in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=5e-6 * max(1, np.abs(b).max()))


@pytest.mark.parametrize("implementation", KERNEL_TARGETS)
def test_gradients_of_large_logits_after_a_kernel(implementation):
    q, ones = jnp.full((1, 8, 1, 8), 1e3, jnp.bfloat16), jnp.ones((1, 8, 1, 8), jnp.bfloat16)

    def total(v):
        out = flash_attention(q, q, v, implementation=implementation)
        return out.astype(jnp.float32).sum()

    np.testing.assert_array_equal(np.asarray(jax.grad(total)(ones), np.float32), 1)


def test_a_bias_constant_along_keys_has_no_gradient(schedule):
    rng = np.random.default_rng(0)
    q, k, v = (normal(rng, x, 6, 16).astype(jnp.bfloat16) for x in (33, 100, 100))
    bias = jnp.asarray(rng.standard_normal((1, 33, 1)), jnp.bfloat16)
    d_out = normal(rng, 33, 6, 16).astype(jnp.bfloat16)
    *_, d_bias = attend(schedule, q, k, v, bias, d_out)
    np.testing.assert_allclose(d_bias, 0, atol=1e-5)


def test_values_near_the_largest_number(schedule):
    for dtype in (jnp.bfloat16, jnp.float32):
        q, v = jnp.zeros((3, 1, 8), dtype), jnp.full((200, 1, 8), 3e38, dtype)
        out, _ = attend(schedule, q, jnp.zeros_like(v), v)
        relative = np.asarray(out, np.float64) / np.asarray(v[:3], np.float64)
        np.testing.assert_allclose(relative, 1, rtol=1e-2 if dtype == jnp.bfloat16 else 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("s", [2**17, 2**20])
def test_many_small_weights_beside_a_large_one(schedule, s, dtype):
    q = jnp.zeros((1, 1, 8), dtype).at[..., 0].set(1)
    k = jnp.zeros((s, 1, 8), dtype).at[70_000, 0, 0].set(17)
    v = jnp.ones((s, 1, 8), dtype).at[70_000].set(0)
    out, lse = attend(schedule, q, k, v, scale=1.0)
    total = math.exp(17) + s - 1
    allowed = float(lse_tolerance(math.log(total), np.dtype(dtype), "xla"))
    np.testing.assert_allclose(lse, math.log(total), atol=allowed, rtol=0)
    np.testing.assert_allclose(np.asarray(out, np.float64), (s - 1) / total, rtol=0.03)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_memory_follows_lengths(dtype):
    """One query on 128 keys of a buffer of 100,000: no copy of it, in no dtype."""
    s, length = 100_000, jnp.array([128], jnp.int32)
    dense = functools.partial(flash_attention, key_lengths=length, implementation="xla")
    packed = functools.partial(
        flash_attention_varlen,
        cu_seqlens_q=jnp.array([0, 1], jnp.int32),
        cu_seqlens_k=jnp.array([0, 128], jnp.int32),
        implementation="xla",
    )
    for attend, lead in ((dense, (1,)), (packed, ())):
        q, k = (jax.ShapeDtypeStruct((*lead, t, 1, 64), dtype) for t in (1, s))
        analysis: Any = jax.jit(attend).lower(q, k, k).compile().memory_analysis()
        assert analysis.temp_size_in_bytes < 1.01 * 2**20


@pytest.mark.parametrize("attend", [flash_attention, nn.dot_product_attention], ids=["ours", "nn"])
def test_tiny_sequences_are_taken_together(attend):
    q = jax.ShapeDtypeStruct((4096, 1, 2, 8), jnp.float32)
    lowered = jax.jit(functools.partial(attend, implementation="xla")).trace(q, q, q)
    assert "stablehlo.while" not in lowered.lower(lowering_platforms=("cpu",)).as_text()
