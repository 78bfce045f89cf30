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
from packs import CACHES, PAGED_RUNS, PAGED_TARGETS, Cache, clean
from sweeps import swept
from tolerance import assert_close, compiled_reference, expect

from jax_fa import flash_attention_varlen, merge_attention, paged_attention, reference

attend_lse: Any = functools.partial(paged_attention, return_lse=True)
expect_paged = compiled_reference(reference.paged_attention)
NAMED = {cache.name: cache for cache in CACHES}
CHUNK, MIXED = NAMED["a chunk of prefill"], NAMED["a mixed batch"]


def check(cache, implementation, dtype, seed=0, **how):
    operands = cache.operands(dtype, seed)
    out, lse = attend_lse(*operands, **cache.keywords(), implementation=implementation, **how)
    assert out.dtype == dtype
    assert lse.dtype == jnp.float32
    assert lse.shape == operands[0].shape[:-1]
    expected = expect_paged(*operands, **cache.keywords())
    assert_close((out, lse), expected, clean(operands[2]), implementation)


# One case of each option on xla, whose code does not depend on the size of a page.
XLA_CASES = {"an empty sequence", "page 100", "a chunk of prefill", "T > S", "a mixed batch"}
XLA_CASES |= {"a mixed batch, HND", "HND", "not causal", "window", "soft cap", "nothing spare"}


@pytest.mark.parametrize(
    ("cache", "implementation", "dtype"),
    swept(
        ((cache, *run) for cache in CACHES for run in PAGED_RUNS),
        lambda cache, implementation, _: implementation != "xla" or str(cache) in XLA_CASES,
    ),
    ids=str,
)
def test_matches_the_reference(cache, implementation, dtype):
    check(cache, implementation, dtype)


@pytest.mark.parametrize("name", ["T > S", "HND"])
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
@settings(max_examples=10, deadline=None)
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
