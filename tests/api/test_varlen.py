"""flash_attention_varlen on every implementation against the reference."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packs import PACKS, VARLEN_RUNS, VARLEN_TARGETS, Pack, clean
from sweeps import swept
from tolerance import assert_close, compiled_reference, expect

from jax_fa import flash_attention_varlen, reference

attend_lse: Any = functools.partial(flash_attention_varlen, return_lse=True)
expect_varlen = compiled_reference(reference.flash_attention_varlen)
MIXED, WINDOW = PACKS[1], PACKS[9]


def check(pack, implementation, dtype, **how):
    operands = pack.operands(dtype)
    out, lse = attend_lse(*operands, **pack.keywords(), implementation=implementation, **how)
    assert out.dtype == dtype
    assert lse.dtype == jnp.float32
    assert lse.shape == operands[0].shape[:-1]
    expected = expect_varlen(*operands, **pack.keywords())
    assert_close((out, lse), expected, clean(operands[2]), implementation)
    used = sum(t for t, _ in pack.lengths)
    np.testing.assert_array_equal(np.asarray(out[used:], np.float32), 0)
    assert np.isneginf(np.asarray(lse[used:])).all()


# Of those that differ in lengths alone, half on xla.
XLA_PACKS = {"T != S", "empty in the middle", "no keys", "all empty", "window", "window (0, 0)"}
XLA_PACKS |= {"soft cap", "no sequences", "about a tile"}


@pytest.mark.parametrize(
    ("pack", "implementation", "dtype"),
    swept(
        ((pack, *run) for pack in PACKS for run in VARLEN_RUNS),
        lambda pack, implementation, _: implementation != "xla" or str(pack) in XLA_PACKS,
    ),
    ids=str,
)
def test_matches_the_reference(pack, implementation, dtype):
    check(pack, implementation, dtype)


@pytest.mark.parametrize("pack", [WINDOW], ids=str)
def test_the_reference_is_dense_attention_on_each_sequence(pack):
    q, k, v = pack.operands("float32")
    out, lse = expect_varlen(q, k, v, **pack.keywords())
    row = key = 0
    for t, s in pack.lengths:
        rows, keys = slice(row, row + t), slice(key, key + s)
        if t == s == 0:
            continue
        expected = expect(q[rows], k[keys], v[keys], **pack.options)
        assert_close((out[rows], lse[rows]), expected, v[keys], "xla")
        row, key = row + t, key + s
    np.testing.assert_array_equal(out[row:], 0)
    assert np.isneginf(lse[row:]).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_xla_in_half_precision(dtype):
    check(MIXED, "xla", dtype)


@pytest.mark.parametrize("target", VARLEN_TARGETS)
def test_kernels_in_float16(target):
    check(MIXED, target, "float16")


@pytest.mark.parametrize(
    ("hints", "implementation", "dtype"),
    swept(
        ((hints, *run) for hints in ((0, 0), (10**6, 10**6)) for run in VARLEN_RUNS),
        lambda hints, implementation, _: implementation != "xla" or hints == (0, 0),
    ),
    ids=str,
)
def test_hints_never_cost_rows(implementation, dtype, hints):
    check(MIXED, implementation, dtype, max_seqlen_q=hints[0], max_seqlen_k=hints[1])


@pytest.mark.parametrize(
    ("implementation", "dtype", "num_splits"),
    [("xla", "float32", 2), *((t, "bfloat16", n) for t in VARLEN_TARGETS for n in (1, 2, 7))],
)
def test_any_number_of_splits(implementation, dtype, num_splits):
    check(MIXED, implementation, dtype, num_splits=num_splits)


def any_lengths(count, rows, keys):
    """`count` sequences that fit into `rows` rows and `keys` keys."""

    def cut(limit):
        ends = st.lists(st.integers(0, limit), min_size=count, max_size=count).map(sorted)
        return ends.map(lambda e: [b - a for a, b in itertools.pairwise([0, *e])])

    return st.tuples(cut(rows), cut(keys)).map(lambda sides: tuple(zip(*sides, strict=True)))


@pytest.mark.parametrize(("implementation", "dtype"), VARLEN_RUNS)
@settings(max_examples=10, deadline=None)
@given(
    lengths=any_lengths(5, 70, 90),
    options=st.sampled_from([{}, {"causal": True}, {"window": (9, 4)}]),
    seed=st.integers(0, 3),
)
def test_any_lengths(implementation, dtype, lengths, options, seed):
    check_any(implementation, dtype, lengths, options, seed)


@pytest.mark.slow
@pytest.mark.parametrize(("implementation", "dtype"), VARLEN_RUNS)
@settings(max_examples=300, deadline=None)
@given(
    lengths=any_lengths(5, 300, 400),
    options=st.sampled_from([{}, {"causal": True}, {"window": (40, 4)}, {"logits_soft_cap": 3.0}]),
    seed=st.integers(0, 9),
)
def test_sweep_of_lengths(implementation, dtype, lengths, options, seed):
    check_any(implementation, dtype, lengths, options, seed, 300, 400)


def check_any(implementation, dtype, lengths, options, seed, rows=70, keys=90):
    """Operands of one shape, whatever the lengths, so that one program serves all."""
    used = [sum(side) for side in zip(*lengths, strict=True)]
    spare = rows - used[0], keys - used[1]
    pack = Pack("drawn", lengths, n=4, k=2, options=options, spare=spare)
    operands = pack.operands(dtype, seed)
    actual = attend_lse(*operands, **pack.keywords(), implementation=implementation)
    expected = expect_varlen(*operands, **pack.keywords())
    assert_close(actual, expected, clean(operands[2]), implementation)


@pytest.mark.parametrize(
    ("cu_seqlens_q", "cu_seqlens_k"),
    [
        ([0, 40, 20, 60], [0, 30, 60, 70]),
        ([0, 20, 40, 60], [0, 70, 10, 50]),
        ([-5, 20, 2**31 - 1, 30], [-(2**31), 2**31 - 1, -1, 50]),
        ([60, 40, 20, 0], [70, 50, 20, 0]),
        ([10**6] * 4, [-(10**6)] * 4),
        ([7, 20, 30, 60], [9, 20, 40, 70]),
    ],
    ids=str,
)
@pytest.mark.parametrize(("implementation", "dtype"), VARLEN_RUNS)
def test_nonsense_offsets_end(implementation, dtype, cu_seqlens_q, cu_seqlens_k):
    pack = Pack("", ((60, 70),), h=16, spare=(0, 0))
    out, lse = attend_lse(
        *pack.operands(dtype),
        cu_seqlens_q=jnp.asarray(cu_seqlens_q, jnp.int32),
        cu_seqlens_k=jnp.asarray(cu_seqlens_k, jnp.int32),
        implementation=implementation,
    )
    assert jax.block_until_ready(out).shape == (60, 2, 16)
    assert lse.shape == (60, 2)


@pytest.mark.parametrize(("implementation", "dtype"), VARLEN_RUNS)
def test_offsets_may_start_late(implementation, dtype):
    pack = Pack("", ((20, 30), (17, 9)), n=4, k=2, options={"causal": True})
    q, k, v = pack.operands(dtype)
    early, late = pack.keywords(), pack.keywords()
    q_late, k_late, v_late = (
        jnp.concatenate([jnp.full((4, *x.shape[1:]), jnp.nan, x.dtype), x]) for x in (q, k, v)
    )
    for name in ("cu_seqlens_q", "cu_seqlens_k"):
        late[name] = late[name] + 4
    out, lse = attend_lse(q_late, k_late, v_late, implementation=implementation, **late)
    np.testing.assert_array_equal(np.asarray(out[:4], np.float32), 0)
    np.testing.assert_array_equal(np.asarray(lse[:4]), -np.inf)
    assert_close((out[4:], lse[4:]), expect_varlen(q, k, v, **early), clean(v), implementation)


@pytest.mark.parametrize(("implementation", "dtype"), VARLEN_RUNS)
def test_sliced_and_transposed_operands(implementation, dtype):
    q, k, v = MIXED.operands(dtype)
    keywords = MIXED.keywords()

    @jax.jit
    def sliced(q_heads_first, kv):
        key, value = kv[..., :64], kv[..., 64:]
        q = q_heads_first.swapaxes(0, 1)
        return attend_lse(q, key, value, implementation=implementation, **keywords)

    actual = sliced(q.swapaxes(0, 1), jnp.concatenate([k, v], -1))
    for a, b in zip(
        actual, attend_lse(q, k, v, implementation=implementation, **keywords), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize(("implementation", "dtype"), VARLEN_RUNS)
def test_same_inputs_same_bits(implementation, dtype):
    operands = MIXED.operands(dtype)
    first = attend_lse(*operands, **MIXED.keywords(), implementation=implementation)
    again = attend_lse(*operands, **MIXED.keywords(), implementation=implementation)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_many_sequences_cost_their_rows_alone():
    """Memory for sequences that are not there is that of their offsets."""

    def temporary_bytes(n):
        x = jax.ShapeDtypeStruct((512, 2, 32), jnp.float32)
        cu = jax.ShapeDtypeStruct((n + 1,), jnp.int32)

        def attend(q, k, v, a, b):
            return flash_attention_varlen(q, k, v, cu_seqlens_q=a, cu_seqlens_k=b)

        analysis: Any = jax.jit(attend).lower(x, x, x, cu, cu).compile().memory_analysis()
        return analysis.temp_size_in_bytes

    assert temporary_bytes(4096) < temporary_bytes(1) + 4096 * 4 * 20


def test_one_sequence_is_dense_attention():
    q, k, v = Pack("", ((50, 60),), n=4, k=2, spare=(0, 0)).operands("float32")
    cu = {"cu_seqlens_q": jnp.array([0, 50], jnp.int32), "cu_seqlens_k": jnp.array([0, 60])}
    cu = {name: x.astype(jnp.int32) for name, x in cu.items()}
    assert_close(attend_lse(q, k, v, causal=True, **cu), expect(q, k, v, causal=True), v, "xla")
