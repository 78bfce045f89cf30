"""paged_attention on every implementation against the reference, and that against dense."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P
from packs import CACHES, PAGED_RUNS, PAGED_TARGETS, Cache
from tolerance import assert_close, compiled_reference, expect

from jax_fa import flash_attention_varlen, merge_attention, paged_attention, reference

attend_lse: Any = functools.partial(paged_attention, return_lse=True)
expect_paged = compiled_reference(reference.paged_attention)
NAMED = {cache.name: cache for cache in CACHES}
CHUNK, MIXED = NAMED["a chunk of prefill"], NAMED["a mixed batch"]


def clean(array):
    return jnp.nan_to_num(array)


def check(cache, implementation, dtype, seed=0, **how):
    operands = cache.operands(dtype, seed)
    out, lse = attend_lse(*operands, **cache.keywords(), implementation=implementation, **how)
    assert out.dtype == dtype
    assert lse.dtype == jnp.float32
    assert lse.shape == operands[0].shape[:-1]
    expected = expect_paged(*operands, **cache.keywords())
    assert_close((out, lse), expected, clean(operands[2]), implementation)


@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
@pytest.mark.parametrize("cache", CACHES, ids=str)
def test_matches_the_reference(cache, implementation, dtype):
    check(cache, implementation, dtype)


@pytest.mark.parametrize("name", ["page 4, length 13", "T > S", "HND"])
def test_the_reference_is_dense_attention_on_each_sequence(name):
    cache = NAMED[name]
    q, k_pages, v_pages, tables, _ = cache.operands("float32")
    out, lse = expect_paged(q, k_pages, v_pages, tables, _, **cache.keywords())
    for b, (t, s) in enumerate(cache.lengths):
        at = np.arange(s)
        page, row = np.asarray(tables)[b, at // cache.page_size], at % cache.page_size
        pools = np.asarray(k_pages), np.asarray(v_pages)
        k, v = (p[page, :, row] if cache.layout == "HND" else p[page, row] for p in pools)
        assert np.isfinite(k).all()
        expected = expect(q[b, :t], jnp.asarray(k), jnp.asarray(v), causal=True)
        assert_close((out[b, :t], lse[b, :t]), expected, jnp.asarray(v), "xla")
        np.testing.assert_array_equal(out[b, t:], 0)


def test_packed_rows_are_padded_rows():
    cache = MIXED
    packed = cache.operands("float32")
    out, lse = expect_paged(*packed, **cache.keywords())
    rows = dataclasses.replace(cache, packed=False)
    q = np.zeros((len(cache.lengths), cache.longest(), cache.n, cache.h), np.float32)
    start = 0
    for b, (t, _) in enumerate(cache.lengths):
        q[b, :t] = packed[0][start : start + t]
        start += t
    out_rows, lse_rows = expect_paged(jnp.asarray(q), *packed[1:], **rows.keywords())
    start = 0
    for b, (t, _) in enumerate(cache.lengths):
        np.testing.assert_allclose(out[start : start + t], out_rows[b, :t], atol=1e-5)
        np.testing.assert_allclose(lse[start : start + t], lse_rows[b, :t], atol=1e-5)
        start += t
    np.testing.assert_array_equal(out[start:], 0)


@pytest.mark.parametrize(
    ("name", "dtype"), [("decode", "float16"), ("a chunk of prefill", "bfloat16")]
)
def test_xla_in_half_precision(name, dtype):
    check(NAMED[name], "xla", dtype)


@pytest.mark.parametrize("target", PAGED_TARGETS)
@pytest.mark.parametrize("name", ["decode", "a chunk of prefill"])
def test_kernels_in_float16(target, name):
    check(NAMED[name], target, "float16")


@pytest.mark.parametrize(
    ("implementation", "dtype", "num_splits"),
    [("xla", "float32", 2), *((t, "bfloat16", n) for t in PAGED_TARGETS for n in (1, 2, 7, None))],
)
@pytest.mark.parametrize("name", ["decode", "a mixed batch"])
def test_any_number_of_splits(implementation, dtype, name, num_splits):
    check(NAMED[name], implementation, dtype, num_splits=num_splits)


@pytest.mark.parametrize("hint", [1, 10**6])
@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
def test_a_hint_never_costs_rows(implementation, dtype, hint):
    check(MIXED, implementation, dtype, max_seqlen_q=hint)


@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
def test_a_surplus_page_in_the_table_is_ignored(implementation, dtype):
    """Page 16, length 32, a third entry that is another sequence's page: the same bits."""
    cache = Cache("", ((1, 32), (1, 48)), n=4, k=2)
    q, k, v, tables, lengths = cache.operands(dtype)
    results = [
        attend_lse(q, k, v, tables.at[0, 2].set(entry), lengths, implementation=implementation)
        for entry in (tables[1, 0], -1, 2**31 - 1)
    ]
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
def test_sequences_may_share_pages(implementation, dtype):
    q, k, v, tables, _ = Cache("", ((3, 40), (3, 40)), n=4, k=2).operands(dtype)
    tables = tables.at[1, :2].set(tables[0, :2])
    operands = q, clean(k), clean(v), tables, jnp.array([40, 35], jnp.int32)
    actual = attend_lse(*operands, implementation=implementation)
    assert_close(actual, expect_paged(*operands), clean(v), implementation)


@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
def test_page_ids_past_65536(implementation, dtype):
    check(Cache("", ((2, 40), (1, 9)), page_size=2, h=8, spare_pages=70_000), implementation, dtype)


@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
def test_sliced_and_transposed_operands(implementation, dtype):
    """Pools of different layouts, one of them half of another array, queries heads first."""
    q, k, v, tables, lengths = dataclasses.replace(CHUNK, packed=True).operands(dtype)
    cu = dataclasses.replace(CHUNK, packed=True).keywords()

    @jax.jit
    def sliced(q_heads_first, both, v_transposed):
        return attend_lse(
            q_heads_first.swapaxes(0, 1),
            both[..., :64],
            v_transposed.transpose(2, 3, 0, 1),
            tables,
            lengths,
            implementation=implementation,
            **cu,
        )

    actual = sliced(q.swapaxes(0, 1), jnp.concatenate([k, v], -1), v.transpose(2, 3, 0, 1))
    expected = attend_lse(q, k, v, tables, lengths, implementation=implementation, **cu)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
def test_parts_of_a_cache_merge(implementation, dtype):
    """A shared prefix, an own part of which one is empty; logits in one part far above."""
    q, k, v, tables, _ = Cache("", ((3, 48), (3, 48)), n=4, k=2).operands(dtype)
    k = k.at[tables[0, 0], 5].multiply(60)
    attend = functools.partial(attend_lse, causal=False, implementation=implementation)
    ends, prefix = jnp.array([48, 32], jnp.int32), jnp.array([32, 32], jnp.int32)
    parts = attend(q, k, v, tables, prefix), attend(q, k, v, tables[:, 2:], ends - prefix)
    assert np.isneginf(np.asarray(parts[1][1][1])).all()
    whole = expect_paged(q, k, v, tables, ends, causal=False)
    assert_close(merge_attention(*parts[0], *parts[1]), whole, clean(v), implementation)


NONSENSE = {
    "a page outside of the pool": ({"tables": [[2**31 - 1, -7]]}, {}),
    "a negative length": ({"lengths": [-5]}, {}),
    "a length past the table": ({"lengths": [2**31 - 1]}, {}),
    "a negative query length": ({}, {"query_lengths": [-1]}),
    "a huge query length": ({}, {"query_lengths": [2**31 - 1]}),
}


@pytest.mark.parametrize("name", NONSENSE)
@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
def test_nonsense_ends_and_stays_in_its_sequence(implementation, dtype, name):
    changes, keywords = NONSENSE[name]
    cache = Cache("", ((4, 20), (4, 25)), n=4, k=2, spare_entries=0)
    q, k, v, tables, lengths = cache.operands(dtype)
    k, v = clean(k), clean(v)
    expected = expect_paged(q, k, v, tables, lengths)
    tables = tables.at[:1].set(jnp.array(changes.get("tables", tables[:1]), jnp.int32))
    lengths = lengths.at[:1].set(jnp.array(changes.get("lengths", lengths[:1]), jnp.int32))
    keywords = {n: jnp.array([*x, 4], jnp.int32) for n, x in keywords.items()}
    out, lse = attend_lse(q, k, v, tables, lengths, implementation=implementation, **keywords)
    assert_close((out[1], lse[1]), [x[1] for x in expected], v, implementation)


@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
def test_nonsense_offsets_end(implementation, dtype):
    q, k, v, tables, lengths = dataclasses.replace(MIXED, h=16).operands(dtype)
    for offsets in ([0, 9, 3, 60, -1, 70], [10**9] * 6, [50, 40, 30, 20, 10, 0]):
        cu = jnp.array(offsets, jnp.int32)
        out = paged_attention(
            q, k, v, tables, lengths, cu_seqlens_q=cu, implementation=implementation
        )
        assert jax.block_until_ready(out).shape == q.shape


@st.composite
def caches(draw, longest_q, longest_k, page_sizes, layouts=("NHD", "HND")):
    """Shapes from few, so that few programs serve many lengths, tables and pools."""
    page_size = draw(st.sampled_from(page_sizes))
    t = draw(st.sampled_from(longest_q))
    lengths = [(draw(st.integers(0, t)), draw(st.integers(0, longest_k))) for _ in range(3)]
    pages = [-(-s // page_size) for _, s in lengths]
    most = -(-longest_k // page_size)
    cache = Cache(
        "drawn",
        ((t, lengths[0][1]), *lengths[1:]),
        page_size=page_size,
        n=4,
        k=2,
        spare_pages=3 * most - sum(pages),
        spare_entries=most - max(pages),
        layout=draw(st.sampled_from(layouts)),
        options=draw(st.sampled_from([{}, {"window": (9, 4)}])),
    )
    return cache, draw(st.integers(0, 9))


def check_drawn(drawn, implementation, dtype):
    cache, seed = drawn
    q, *rest = cache.operands(dtype, seed)
    given_lengths = {"query_lengths": jnp.array([t for t, _ in cache.lengths], jnp.int32)}
    keywords = {**cache.keywords(), **given_lengths}
    actual = attend_lse(q, *rest, **keywords, implementation=implementation)
    assert_close(actual, expect_paged(q, *rest, **keywords), clean(rest[1]), implementation)


@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
@settings(max_examples=20, deadline=None)
@given(drawn=caches([4], 50, [3], ["NHD"]))
def test_any_cache(implementation, dtype, drawn):
    check_drawn(drawn, implementation, dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
@settings(max_examples=300, deadline=None)
@given(drawn=caches([1, 70], 300, [1, 2, 7, 16, 64, 100, 128, 256]))
def test_sweep_of_caches(implementation, dtype, drawn):
    check_drawn(drawn, implementation, dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("implementation", "dtype"), PAGED_RUNS)
@pytest.mark.parametrize("page_size", [1, 16, 64, 100, 128, 256, 2048])
@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_sweep_of_page_sizes(implementation, dtype, page_size, layout):
    cache = Cache("", ((70, 300), (1, 257), (8, 8)), page_size=page_size, n=8, k=2, layout=layout)
    check(cache, implementation, dtype)
    check(dataclasses.replace(cache, packed=True), implementation, dtype)


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
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=5e-5 * max(1, float(jnp.abs(b).max())), rtol=0)


def test_gradients_of_shared_pages_add_up():
    q, k, v, tables, lengths = Cache("", ((3, 40), (3, 40)), n=4, k=2).operands("float32")
    tables, k, v = tables.at[1, :2].set(tables[0, :2]), clean(k), clean(v)

    def gradient(attend):
        return jax.jit(jax.grad(lambda k, v: total(attend, (q, k, v), tables, lengths), (0, 1)))(
            k, v
        )

    for a, b in zip(gradient(paged_attention), gradient(reference.paged_attention), strict=True):
        np.testing.assert_allclose(a, b, atol=5e-5 * max(1, float(jnp.abs(b).max())), rtol=0)


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
        ((0, 0, 0), True),
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


def test_one_page_is_packed_attention():
    q, k, v, tables, lengths = Cache("", ((8, 20),), page_size=20, n=4, k=2).operands("float32")
    page = int(tables[0, 0])
    expected = flash_attention_varlen(
        q[0],
        k[page],
        v[page],
        causal=True,
        return_lse=True,
        cu_seqlens_q=jnp.array([0, 8], jnp.int32),
        cu_seqlens_k=jnp.array([0, 20], jnp.int32),
    )
    actual = attend_lse(q, k, v, tables, lengths)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a[0], b, atol=1e-5)
