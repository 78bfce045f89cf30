"""Conversions between segment ids and cumulative lengths, and attention within segments."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_runs import KERNEL_TARGETS, run_in_every_order
from packs import VARLEN_TARGETS, Pack
from sweeps import swept
from tolerance import assert_close, assert_gradients_close, expect

from jax_fa import (
    cu_seqlens_to_segment_ids,
    flash_attention,
    flash_attention_varlen,
    reference,
    segment_ids_to_cu_seqlens,
)
from jax_fa._ops import segments as _segments


@pytest.mark.parametrize(
    ("cu_seqlens", "total", "expected"),
    [
        ([0, 2, 5], 5, [0, 0, 1, 1, 1]),
        ([0, 2, 5], 7, [0, 0, 1, 1, 1, -1, -1]),
        ([0, 0, 3, 3, 4, 4], 6, [1, 1, 1, 3, -1, -1]),
        ([0, 0, 0], 2, [-1, -1]),
        ([0], 2, [-1, -1]),
        ([0, 1], 0, []),
    ],
)
def test_cu_seqlens_to_segment_ids(cu_seqlens, total, expected):
    ids = cu_seqlens_to_segment_ids(jnp.array(cu_seqlens, jnp.int32), total)
    assert ids.dtype == jnp.int32
    np.testing.assert_array_equal(ids, np.array(expected, np.int32))


@pytest.mark.parametrize(
    ("ids", "num_segments", "expected"),
    [
        ([0, 0, 1, 1, 1], 2, [0, 2, 5]),
        ([1, 1, 1, 3, -1, -1], 5, [0, 0, 3, 3, 4, 4]),
        ([-1, -1], 2, [0, 0, 0]),
        ([], 1, [0, 0]),
        ([0, 0], 0, [0]),
    ],
)
def test_segment_ids_to_cu_seqlens(ids, num_segments, expected):
    cu_seqlens = segment_ids_to_cu_seqlens(jnp.array(ids, jnp.int32), num_segments)
    assert cu_seqlens.dtype == jnp.int32
    np.testing.assert_array_equal(cu_seqlens, expected)


def test_round_trip_under_jit():
    cu_seqlens = jnp.array([0, 3, 3, 7, 12], jnp.int32)
    back = jax.jit(lambda c: segment_ids_to_cu_seqlens(cu_seqlens_to_segment_ids(c, 16), 4))
    np.testing.assert_array_equal(back(cu_seqlens), cu_seqlens)


def test_errors_name_the_argument():
    with pytest.raises(TypeError, match=r"cu_seqlens must have dtype int32; got float32"):
        cu_seqlens_to_segment_ids(jnp.zeros(2), 3)
    with pytest.raises(ValueError, match=r"cu_seqlens must have shape \(n,\).*got shape \(1, 2\)"):
        cu_seqlens_to_segment_ids(jnp.zeros((1, 2), jnp.int32), 3)
    wide: Any = np.array([0, 2**40])
    with pytest.raises(
        ValueError, match="cu_seqlens must have numbers that fit int32; got dtype int64"
    ):
        cu_seqlens_to_segment_ids(wide, 5)
    with pytest.raises(TypeError, match="total must be a Python integer"):
        jax.jit(cu_seqlens_to_segment_ids)(jnp.zeros(2, jnp.int32), 3)
    with pytest.raises(ValueError, match="num_segments must be >= 0; got -1"):
        segment_ids_to_cu_seqlens(jnp.zeros(2, jnp.int32), -1)
    with pytest.raises(TypeError, match="segment_ids must have dtype int32"):
        segment_ids_to_cu_seqlens(jnp.zeros(2), 1)


# --- Attention within segments --------------------------------------------------------------------

attend_lse: Any = functools.partial(flash_attention, return_lse=True)
RUNS = [("xla", "float32"), *((target, "bfloat16") for target in VARLEN_TARGETS)]
T, S = 40, 50

# Ids of the rows and of the keys, as runs of (id, length); the rest is padding at the end.
ROWS = {
    "packed": ([(0, 10), (1, 20)], [(0, 30), (1, 20)]),
    "whole": ([(0, T)], [(0, S)]),
    "ids skip numbers": ([(3, 7), (10, 9), (2**30, 20)], [(3, 1), (10, 30), (2**30, 19)]),
    "segments of one side alone": ([(0, 5), (2, 9), (3, 9)], [(1, 9), (2, 3), (4, 9)]),
    "padding first": ([(-1, 5), (0, 9), (1, 20)], [(-4, 9), (0, 20), (1, 3)]),
    "padding between": ([(0, 5), (-1, 9), (1, 20)], [(0, 9), (-1, 20), (1, 3)]),
    "segments of one token": ([(i, 1) for i in range(T)], [(i, 1) for i in range(T)]),
    "nothing but padding": ([], [(0, 9)]),
    "no keys in common": ([(0, 9)], [(1, 9)]),
    "the largest id, then padding": ([(0, 9), (2**31 - 1, 20)], [(0, 9), (2**31 - 1, 20)]),
}


def segment_ids(runs, length):
    ids = np.full(length, -1, np.int32)
    at = 0
    for identity, count in runs:
        ids[at : at + count] = identity
        at += count
    return ids


def segmented(names, dtype, n=4, k=2, h=64):
    """Operands of a batch of ROWS, NaN in the padding, and their ids."""
    rng = np.random.default_rng(0)
    ids = [
        np.stack([segment_ids(ROWS[name][side], length) for name in names])
        for side, length in ((0, T), (1, S))
    ]
    operands = []
    for side, length, heads in ((0, T, n), (1, S, k), (1, S, k)):
        x = rng.standard_normal((len(names), length, heads, h), np.float32)
        x[ids[side] < 0] = np.nan
        operands.append(jnp.asarray(x, dtype))
    return operands, {"query_segment_ids": jnp.array(ids[0]), "key_segment_ids": jnp.array(ids[1])}


@pytest.mark.parametrize(("implementation", "dtype"), RUNS)
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"window": (5, 2)}], ids=str)
def test_attention_stays_in_its_segment(implementation, dtype, options):
    operands, ids = segmented(list(ROWS), dtype)
    actual = attend_lse(*operands, **ids, **options, implementation=implementation)
    expected = expect(*operands, **ids, **options)
    assert_close(actual, expected, jnp.nan_to_num(operands[2]), implementation)
    padding = np.asarray(ids["query_segment_ids"]) < 0
    np.testing.assert_array_equal(np.asarray(actual[0], np.float32)[padding], 0)
    assert np.isneginf(np.asarray(actual[1])[padding]).all()


def test_exactly_as_if_unpacked():
    (q, k, v), ids = segmented(["ids skip numbers"], "float32")
    out, lse = attend_lse(q[0], k[0], v[0], causal=True, **{n: x[0] for n, x in ids.items()})
    row = key = 0
    for (_, t), (_, s) in zip(*ROWS["ids skip numbers"], strict=True):
        rows, keys = slice(row, row + t), slice(key, key + s)
        expected = expect(q[0, rows], k[0, keys], v[0, keys], causal=True)
        assert_close((out[rows], lse[rows]), expected, v[0, keys], "xla")
        row, key = row + t, key + s


@pytest.mark.parametrize(("implementation", "dtype"), RUNS)
def test_ids_and_cu_seqlens_say_the_same(implementation, dtype):
    pack = Pack("", ((10, 30), (0, 4), (25, 12)), n=4, k=2)
    q, k, v = pack.operands(dtype)
    offsets = pack.offsets()
    ids = {
        f"{name}_segment_ids": cu_seqlens_to_segment_ids(offsets[f"cu_seqlens_{name[0]}"], rows)
        for name, rows in (("query", q.shape[0]), ("key", k.shape[0]))
    }
    by_ids = attend_lse(q, k, v, causal=True, **ids, implementation=implementation)
    packed: Any = functools.partial(flash_attention_varlen, return_lse=True, implementation="xla")
    expected = packed(q, k, v, causal=True, **offsets)
    assert_close(by_ids, expected, jnp.nan_to_num(v), implementation)


def test_lengths_end_segments_early():
    operands, ids = segmented(["packed", "whole"], "float32")
    lengths = {"query_lengths": jnp.array([25, 3]), "key_lengths": jnp.array([40, 0])}
    lengths = {name: x.astype(jnp.int32) for name, x in lengths.items()}
    actual = attend_lse(*operands, **ids, **lengths, causal=True)
    expected = expect(*operands, **ids, **lengths, causal=True)
    assert_close(actual, expected, operands[2], "xla")
    assert np.isneginf(np.asarray(actual[1])[0, 25:]).all()
    assert np.isneginf(np.asarray(actual[1])[1]).all()


def test_gradients_within_segments():
    operands, ids = segmented(["packed", "padding between"], "float32", h=16)

    def gradients(attend, operands):
        def total(*x):
            out, lse = attend(*x, **ids, causal=True, return_lse=True)
            return jnp.sum(jnp.sin(out)) + jnp.sum(jnp.where(lse > -1e30, lse, 0) ** 2)

        return jax.jit(jax.grad(total, argnums=(0, 1, 2)))(*operands)

    actual = gradients(flash_attention, operands)
    expected = gradients(reference.flash_attention, [jnp.nan_to_num(x) for x in operands])
    assert_gradients_close(actual, expected)


def test_vmap_over_segments():
    (q, k, v), ids = segmented(["packed", "padding between", "whole"], "float32", h=16)
    q, k, v = (jnp.nan_to_num(x) for x in (q, k, v))

    def attend(q, ids):
        return attend_lse(q, k[0], v[0], **ids, causal=True)

    actual = jax.jit(jax.vmap(jax.vmap(attend, (None, 0)), (0, None)))(q, ids)
    one = jax.jit(attend)
    for i in range(3):
        for j in range(3):
            expected = one(q[i], {name: x[j] for name, x in ids.items()})
            for a, b in zip(actual, expected, strict=True):
                np.testing.assert_allclose(a[i, j], b, rtol=1e-5, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_ids(data):
    def ids(length):
        drawn = data.draw(st.lists(st.integers(-1, 6), min_size=length, max_size=length))
        padding = [x for x in drawn if x < 0]
        return jnp.array(sorted(x for x in drawn if x >= 0) + padding, jnp.int32)

    named = {"query_segment_ids": ids(T), "key_segment_ids": ids(S)}
    operands, _ = segmented(["whole"], "float32")
    q, k, v = (x[0] for x in operands)
    actual = attend_lse(q, k, v, **named, causal=True)
    assert_close(actual, expect(q, k, v, **named, causal=True), v, "xla")


def test_offsets_of_segments_are_compact():
    ids = jnp.array([[0, 0, 1, -1], [5, 5, 5, 5]], jnp.int32)
    cu_q, cu_k, count = _segments.packed_offsets(ids, ids)
    assert int(count) == 5
    # The fourth row has no keys, and the fourth key no rows.
    np.testing.assert_array_equal(cu_q[:6], [0, 2, 3, 4, 4, 8])
    np.testing.assert_array_equal(cu_k[:6], [0, 2, 3, 3, 4, 8])
    assert set(np.asarray(cu_q[6:])) == set(np.asarray(cu_k[6:])) == {8}


def test_rocm_takes_the_kernel_of_packed_sequences():
    operands, ids = segmented(["packed", "whole"], "bfloat16")
    f = jax.jit(functools.partial(flash_attention, causal=True))
    text = f.trace(*operands, **ids).lower(lowering_platforms=("rocm",)).as_text()
    assert text.count("@jax_fa_varlen") == 1
    assert f"tensor<{2 * T}x4x64xbf16>, tensor<{2 * S}x2x64xbf16>" in text


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize(
    ("n", "h"),
    swept([(1, 64), *((8, h) for h in (64, 128, 256))], [(8, 64)]),
)
def test_more_segments_than_the_launch_has_room_for(target, n, h):
    """Few rows of a key head are another kernel's than many."""
    total, step = 660, 6
    rng = np.random.default_rng(0)
    q, k, v = (
        jnp.asarray(rng.standard_normal((1, total, heads, h), np.float32), jnp.bfloat16)
        for heads in (n, 1, 1)
    )
    ids = jnp.arange(total, dtype=jnp.int32)[None] // step
    named = {"query_segment_ids": ids, "key_segment_ids": ids}
    *_, count = _segments.packed_offsets(ids, ids)
    assert count > 64 + 8
    call = functools.partial(attend_lse, q, k, v, **named, causal=True, implementation=target)
    results, kernels = run_in_every_order(call)
    assert kernels == {f"{'decode' if n == 1 else 'flash'}_bfloat16_h{h}_plain"}
    assert_close(results, expect(q, k, v, **named, causal=True), v, target)


@pytest.mark.on_cpu
def test_one_launch_whatever_the_ids():
    """A choice between launches would have the host wait for the device."""
    operands, ids = segmented(["packed", "whole"], "bfloat16")
    f = jax.jit(functools.partial(flash_attention, implementation="gfx950"))
    text = str(f.lower(*operands, **ids).compile().as_text())
    assert "jax_fa_varlen" in text
    assert " conditional(" not in text


def test_ids_that_are_not_sorted_end():
    operands, ids = segmented(["whole"], "float32")
    ids = {name: x[:, ::-1] * 0 + jnp.arange(x.shape[1], 0, -1) for name, x in ids.items()}
    ids = {name: x.astype(jnp.int32) for name, x in ids.items()}
    assert jax.block_until_ready(attend_lse(*operands, **ids)[0]).shape == (1, T, 4, 64)


def test_errors_of_attention_name_the_ids():
    (q, k, v), ids = segmented(["whole"], "float32")
    query, key = ids["query_segment_ids"], ids["key_segment_ids"]
    cases: Any = (
        ({"query_segment_ids": query}, ValueError, "key_segment_ids must be given together"),
        ({"key_segment_ids": key}, ValueError, "query_segment_ids must be given together"),
        (ids | {"key_segment_ids": query}, ValueError, r"key_segment_ids must have shape .*S\)"),
        (ids | {"query_segment_ids": query[0]}, ValueError, r"query_segment_ids .*\*B, T\)"),
        (ids | {"key_segment_ids": key * 1.0}, TypeError, "key_segment_ids must have dtype int32"),
    )
    for wrong, error, text in cases:
        with pytest.raises(error, match=text):
            flash_attention(q, k, v, **wrong)
