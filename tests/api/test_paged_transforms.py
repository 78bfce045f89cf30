"""paged_attention under grad, vmap, shard_map and lowering."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from packs import CACHES, PAGED_TARGETS, Cache, clean
from tolerance import assert_gradients_close

from jax_fa import paged_attention, reference

attend_lse: Any = functools.partial(paged_attention, return_lse=True)
NAMED = {cache.name: cache for cache in CACHES}
CHUNK, MIXED = NAMED["a chunk of prefill"], NAMED["a mixed batch"]


# --- Gradients ------------------------------------------------------------------------------------


def total(attend, operands, *rest, **keywords):
    out, lse = attend(*operands, *rest, return_lse=True, **keywords)
    return jnp.sum(jnp.sin(out.astype(jnp.float32))) + jnp.sum(jnp.where(lse > -1e30, lse, 0) ** 2)


@pytest.mark.parametrize("name", ["a mixed batch, HND"])
def test_gradients(name):
    cache = NAMED[name]
    (*operands, tables, lengths), keywords = cache.operands("float32"), cache.keywords()
    zeros = [clean(x) for x in operands]

    def gradients(attend, operands):
        f = functools.partial(total, attend)
        return jax.jit(jax.grad(lambda *x: f(x, tables, lengths, **keywords), argnums=(0, 1, 2)))(
            *operands
        )

    actual = gradients(paged_attention, operands)
    expected = gradients(reference.paged_attention, zeros)
    assert_gradients_close(actual, expected)


def test_nan_in_one_sequence_leaves_gradients_of_others_pages():
    q, k, v, tables, lengths = Cache("", ((3, 9), (3, 9)), n=2, k=1, spare_pages=2).operands(
        "float32"
    )
    k, v = clean(k), clean(v)
    f = jax.grad(lambda q, k, v: total(paged_attention, (q, k, v), tables, lengths), (1, 2))
    others = np.setdiff1d(np.arange(k.shape[0]), np.asarray(tables[0, :1]))
    for a, b in zip(f(q.at[0, 1].set(jnp.nan), k, v), f(q, k, v), strict=True):
        np.testing.assert_array_equal(a[others], b[others])
        assert np.isnan(a).any()


def test_gradients_of_shared_pages_add_up():
    q, k, v, tables, lengths = Cache("", ((3, 40), (3, 40)), n=4, k=2).operands("float32")
    tables, k, v = tables.at[1, :2].set(tables[0, :2]), clean(k), clean(v)

    def gradient(attend):
        return jax.jit(jax.grad(lambda k, v: total(attend, (q, k, v), tables, lengths), (0, 1)))(
            k, v
        )

    assert_gradients_close(gradient(paged_attention), gradient(reference.paged_attention))


def test_the_gradient_of_the_query_alone_takes_no_pool():
    pool = jax.ShapeDtypeStruct((4096, 16, 2, 32), jnp.float32)
    q = jax.ShapeDtypeStruct((4, 1, 4, 32), jnp.float32)
    tables, lengths = (jax.ShapeDtypeStruct(s, jnp.int32) for s in ((4, 8), (4,)))

    def scalar(q, k, v, tables, lengths):
        return jnp.sum(paged_attention(q, k, v, tables, lengths))

    def temporary_bytes(f, *shapes):
        analysis: Any = jax.jit(f).lower(*shapes).compile().memory_analysis()
        return analysis.temp_size_in_bytes

    gradient = jax.grad(scalar)
    assert temporary_bytes(gradient, q, pool, pool, tables, lengths) < 4096 * 16 * 2 * 32
    q, tables, lengths = (
        jax.ShapeDtypeStruct((3, *x.shape), x.dtype) for x in (q, tables, lengths)
    )
    gradient = jax.vmap(gradient, (0, None, None, 0, 0))
    assert temporary_bytes(gradient, q, pool, pool, tables, lengths) < 4096 * 16 * 2 * 32


def test_integers_have_float0_gradients():
    q, k, v, tables, lengths = CHUNK.operands("float32")
    out, vjp = jax.vjp(lambda *x: paged_attention(q, k, v, *x), tables, lengths)
    assert [g.dtype for g in vjp(jnp.ones_like(out))] == [jax.dtypes.float0] * 2


# --- Composition ----------------------------------------------------------------------------------


def check_vmap(implementation, dtype, axes, packed, gradient=False):
    """axes: of the query, the pools, and the tables with all lengths."""
    cache = Cache("", ((4, 20), (1, 9)), n=4, k=2, h=16, page_size=4, packed=packed)
    made = []
    for seed in range(3):
        lengths = ((4 - seed, 20 - seed), (1 + seed, 9))
        one = dataclasses.replace(cache, lengths=lengths)
        q, *pools, tables, key_lengths = one.operands(dtype, seed)
        if not packed:
            q = jnp.pad(q, ((0, 0), (0, 4 - q.shape[1]), (0, 0), (0, 0)))
        queries = jnp.asarray([t for t, _ in lengths], jnp.int32)
        name = "cu_seqlens_q" if packed else "query_lengths"
        lengths = {name: one.keywords().get(name, queries)}
        pools = pools if axes[1:] == (0, 0) else [clean(x) for x in pools]
        q = q if axes[0] == axes[2] else clean(q)
        made.append((q, tuple(pools), (tables, key_lengths, lengths)))

    def attend(q, pools, tables):
        *integers, lengths = tables
        call = functools.partial(
            attend_lse, **lengths, implementation=implementation, window=(9, None)
        )
        if gradient:
            return jax.grad(lambda q, p: total(call, (q, *p), *integers), argnums=(0, 1))(q, pools)
        return jax.tree.map(lambda x: x.astype(jnp.float32), call(q, *pools, *integers))

    attend = jax.jit(attend)
    chosen = [
        jax.tree.map(lambda *x: jnp.stack(x), *side) if axis == 0 else side[0]
        for axis, side in zip(axes, zip(*made, strict=True), strict=True)
    ]
    pairs = list(zip(axes, chosen, strict=True))
    actual = jax.jit(jax.vmap(attend, axes))(*chosen)
    rows = [
        attend(*(jax.tree.map(lambda x, i=i: x[i], c) if a == 0 else c for a, c in pairs))
        for i in range(3)
    ]
    expected = jax.tree.map(lambda *x: jnp.stack(x), *rows)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("axes", "packed"),
    [
        pytest.param((0, 0, 0), True, marks=pytest.mark.slow),
        ((0, None, 0), True),
        ((0, 0, 0), False),
        ((0, None, None), False),
    ],
    ids=str,
)
def test_vmap(axes, packed):
    check_vmap("xla", "float32", axes, packed)


@pytest.mark.parametrize("axes", [(0, None, 0)], ids=str)
def test_vmap_of_grad(axes):
    check_vmap("xla", "float32", axes, packed=False, gradient=True)


@pytest.mark.parametrize("target", PAGED_TARGETS)
@pytest.mark.parametrize("axes", [(0, 0, 0), (0, None, 0)], ids=str)
def test_vmap_of_kernels(target, axes):
    check_vmap(target, "bfloat16", axes, packed=False)


@pytest.mark.parametrize("axes", [(0, None, None, 0, 0), (0, None, None, None, None)], ids=str)
def test_vmap_does_not_copy_a_pool_that_is_not_mapped(axes):
    q = jax.ShapeDtypeStruct((6, 2, 1, 4, 16), jnp.float32)
    pool = jax.ShapeDtypeStruct((11, 4, 2, 16), jnp.float32)
    tables, lengths = jax.ShapeDtypeStruct((2, 5), jnp.int32), jax.ShapeDtypeStruct((2,), jnp.int32)
    if axes[3] == 0:
        tables, lengths = (jax.ShapeDtypeStruct((6, *x.shape), x.dtype) for x in (tables, lengths))
    text = str(jax.make_jaxpr(jax.vmap(paged_attention, axes))(q, pool, pool, tables, lengths))
    assert "f32[66,4,2,16]" not in text
    assert "f32[6,11,4,2,16]" not in text


def test_gradients_under_shard_map():
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    q, k, v, tables, lengths = CHUNK.operands("float32")
    k, v, q = clean(k), clean(v), clean(q)
    attend = functools.partial(paged_attention, return_lse=True)
    pools = P(None, None, "x")
    mapped = jax.shard_map(
        attend, mesh=mesh, in_specs=(pools, pools, pools, P(), P()), out_specs=pools
    )

    def gradients(f):
        def scalar(*x):
            out, lse = f(*x, tables, lengths)
            return jnp.sum(jnp.sin(out)) + jnp.sum(lse)

        return jax.jit(jax.grad(scalar, argnums=(0, 1, 2)))(q, k, v)

    for a, b in zip(gradients(mapped), gradients(attend), strict=True):
        np.testing.assert_array_equal(a, b)


def lower(platform, cache=CHUNK, dtype="bfloat16", **options):
    f = functools.partial(paged_attention, **cache.keywords(), **options)
    return jax.jit(f).trace(*cache.operands(dtype)).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("layout", ["NHD", "HND"])
@pytest.mark.parametrize("packed", [False, True])
def test_rocm_gets_the_custom_call(layout, packed):
    cache = dataclasses.replace(CHUNK, layout=layout, packed=packed)
    text = lower("rocm", cache, num_splits=2)
    assert text.count("@jax_fa_paged") == 1
    assert 'target = "any"' in text
    assert "stablehlo.while" not in text
    assert f"hnd = {str(layout == 'HND').lower()}" in text
    rows = (32 + 17 + 3) if packed else 2 * 32
    assert f"tensor<{2 * rows * 4 * (64 + 1) * 4}xui8>" in text
    # The pool goes in as it is.
    operands = [str(x.shape).strip("(,)").replace(", ", "x") for x in cache.operands("bfloat16")]
    integers = ["0xi32", "3xi32"] if packed else ["2xi32", "0xi32"]
    kinds = "xbf16", "xbf16", "xbf16", "xi32", "xi32"
    types = [x + kind for x, kind in zip(operands, kinds, strict=True)] + integers
    assert ", ".join(f"tensor<{x}>" for x in types) in text


def test_other_platforms_and_types_get_xla():
    assert "jax_fa_paged" not in lower("cuda")
    assert "jax_fa_paged" not in lower("rocm", dtype="float32")
    assert "jax_fa_paged" not in lower("rocm", dataclasses.replace(CHUNK, h=20))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_xla_takes_no_memory_of_the_size_of_the_pool(dtype):
    q, pool = (jax.ShapeDtypeStruct(x, dtype) for x in ((2, 1, 4, 64), (4096, 16, 2, 64)))
    tables, lengths = (jax.ShapeDtypeStruct(x, jnp.int32) for x in ((2, 8), (2,)))
    compiled = jax.jit(paged_attention).lower(q, pool, pool, tables, lengths).compile()
    analysis: Any = compiled.memory_analysis()
    assert analysis.temp_size_in_bytes < 4096 * 16 * 2 * 64 / 10


@pytest.mark.on_cpu
def test_decode_in_xla_takes_a_row_a_sequence():
    """Work for one query of each sequence does not grow with the batch of the others."""

    def flops(batch):
        q = jax.ShapeDtypeStruct((batch, 1, 4, 32), jnp.float32)
        pool = jax.ShapeDtypeStruct((64, 16, 2, 32), jnp.float32)
        tables = jax.ShapeDtypeStruct((batch, 8), jnp.int32)
        lengths = jax.ShapeDtypeStruct((batch,), jnp.int32)
        lowered = jax.jit(paged_attention).lower(q, pool, pool, tables, lengths)
        analysis: Any = lowered.compile().cost_analysis()
        return analysis["flops"]

    assert flops(32) < 1.5 * flops(1)  # of one trip of the loop over sequences
