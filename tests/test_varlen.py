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
from jax.sharding import PartitionSpec as P
from packs import PACKS, VARLEN_RUNS, VARLEN_TARGETS, Pack
from tolerance import assert_close, compiled_reference, expect

from jax_fa import _select, flash_attention_varlen, reference

attend_lse: Any = functools.partial(flash_attention_varlen, return_lse=True)
expect_varlen = compiled_reference(reference.flash_attention_varlen)
MIXED, WINDOW = PACKS[1], PACKS[9]


def clean(array):
    """For the tolerance, which grows with the values."""
    return jnp.nan_to_num(array)


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


@pytest.mark.parametrize(("implementation", "dtype"), VARLEN_RUNS)
@pytest.mark.parametrize("pack", PACKS, ids=str)
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


@pytest.mark.parametrize("hints", [(0, 0), (10**6, 10**6)], ids=str)
@pytest.mark.parametrize(("implementation", "dtype"), VARLEN_RUNS)
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
@settings(max_examples=20, deadline=None)
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


# --- Gradients ------------------------------------------------------------------------------------


def total(attend, operands, **keywords):
    """A scalar that depends on every element of out and of the finite lse."""
    out, lse = attend(*operands, return_lse=True, **keywords)
    return jnp.sum(jnp.sin(out.astype(jnp.float32))) + jnp.sum(jnp.where(lse > -1e30, lse, 0) ** 2)


@pytest.mark.parametrize("pack", [MIXED, PACKS[11]], ids=str)
def test_gradients(pack):
    operands, keywords = pack.operands("float32"), pack.keywords()
    actual = jax.jit(
        jax.grad(lambda *x: total(flash_attention_varlen, x, **keywords), argnums=(0, 1, 2))
    )(*operands)
    # The reference keeps NaN out of results, not out of gradients.
    zeros = [clean(x) for x in operands]
    expected = jax.jit(
        jax.grad(lambda *x: total(reference.flash_attention_varlen, x, **keywords), (0, 1, 2))
    )(*zeros)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=5e-5 * max(1, float(jnp.abs(b).max())), rtol=0)


@pytest.mark.parametrize("target", VARLEN_TARGETS)
def test_kernel_gradients(target):
    operands, keywords = MIXED.operands("bfloat16"), MIXED.keywords()

    def gradients(implementation):
        attend = functools.partial(flash_attention_varlen, implementation=implementation)
        return jax.grad(lambda *x: total(attend, x, **keywords), argnums=(0, 1, 2))(*operands)

    for a, b in zip(gradients(target), gradients("xla"), strict=True):
        a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
        np.testing.assert_allclose(a, b, atol=6e-2 * max(1, np.abs(b).max()), rtol=0)


def test_offsets_have_float0_gradients():
    operands, offsets = MIXED.operands("float32"), MIXED.offsets()
    out, vjp = jax.vjp(lambda c: flash_attention_varlen(*operands, **c), offsets)
    (gradients,) = vjp(jnp.ones_like(out))
    assert all(g.dtype == jax.dtypes.float0 for g in gradients.values())


# --- Composition ----------------------------------------------------------------------------------

AXES = [(0, 0, 0), (0, None, None), (None, 0, 0)]


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_vmap(axes):
    """Over the query, keys and values, and offsets: packs of different lengths and spare parts."""
    check_vmap("xla", "float32", axes)


@pytest.mark.parametrize("target", VARLEN_TARGETS)
@pytest.mark.parametrize("axes", [(0, 0, 0), (0, None, None)], ids=str)
def test_vmap_of_kernels(target, axes):
    check_vmap(target, "bfloat16", axes)


def check_vmap(implementation, dtype, axes):
    packs = [
        Pack("", ((7, 20), (20, 3)), n=4, k=2, h=16, spare=(3, 9)),
        Pack("", ((0, 12), (30, 20)), n=4, k=2, h=16, spare=(0, 0)),
        Pack("", ((1, 0), (2, 5)), n=4, k=2, h=16, spare=(27, 27)),
    ]

    def attend(q, kv, cu):
        out = attend_lse(q, *kv, causal=True, **cu, implementation=implementation)
        return tuple(x.astype(jnp.float32) for x in out)

    made = [(q, (k, v), p.offsets()) for p in packs for q, k, v in [p.operands(dtype)]]
    # Whole operands where the offsets of one pack meet the rows of another.
    made = [jax.tree.map(jnp.nan_to_num, x) if 0 not in axes[2:] else x for x in made]
    chosen = [
        jax.tree.map(lambda *x: jnp.stack(x), *side) if axis == 0 else side[0]
        for axis, side in zip(axes, zip(*made, strict=True), strict=True)
    ]
    actual = jax.jit(jax.vmap(attend, axes))(*chosen)
    one, pairs = jax.jit(attend), list(zip(axes, chosen, strict=True))
    rows = [
        one(*(jax.tree.map(lambda x, i=i: x[i], c) if a == 0 else c for a, c in pairs))
        for i in range(3)
    ]
    for a, b in zip(actual, zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(a, jnp.stack(b), rtol=1e-5, atol=1e-5)


def test_vmap_of_grad_and_nested_vmap():
    pack = Pack("", ((7, 9), (0, 2), (10, 5)), n=4, k=2, h=16, spare=(1, 2))
    operands = [jnp.stack([clean(x) * (i + 1) for i in range(4)]) for x in pack.operands("float32")]

    def gradient(*x):
        return jax.grad(lambda *x: total(flash_attention_varlen, x, **pack.keywords()), (0, 1, 2))(
            *x
        )

    nested = jax.jit(jax.vmap(jax.vmap(gradient)))
    actual = nested(*(x.reshape(2, 2, *x.shape[1:]) for x in operands))
    one = jax.jit(gradient)
    rows = [one(*(x[j] for x in operands)) for j in range(4)]
    for a, b in zip(actual, zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(a.reshape(4, *a.shape[2:]), jnp.stack(b), rtol=1e-4, atol=1e-5)


def test_vmap_over_queries_alone_does_not_copy_the_keys():
    q = jax.ShapeDtypeStruct((6, 9, 4, 16), jnp.float32)
    kv = jax.ShapeDtypeStruct((11, 2, 16), jnp.float32)
    cu = jax.ShapeDtypeStruct((3,), jnp.int32)

    def attend(q, k, v, c):
        return flash_attention_varlen(q, k, v, cu_seqlens_q=c, cu_seqlens_k=c)

    text = str(jax.make_jaxpr(jax.vmap(attend, (0, None, None, None)))(q, kv, kv, cu))
    assert "f32[6,11,2,16]" not in text
    assert "f32[66,2,16]" not in text


def test_gradients_under_shard_map():
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    operands, keywords = MIXED.operands("float32"), MIXED.keywords()

    def attend(q, k, v, cu_q, cu_k):
        return flash_attention_varlen(
            q, k, v, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, causal=True, return_lse=True
        )

    specs = P(None, "x"), P(None, "x"), P(None, "x"), P(), P()
    mapped = jax.shard_map(attend, mesh=mesh, in_specs=specs, out_specs=P(None, "x"))

    def gradients(f):
        def scalar(*x):
            out, lse = f(*x, keywords["cu_seqlens_q"], keywords["cu_seqlens_k"])
            return jnp.sum(jnp.sin(out)) + jnp.sum(jnp.where(lse > -1e30, lse, 0))

        return jax.jit(jax.grad(scalar, argnums=(0, 1, 2)))(*operands)

    for a, b in zip(gradients(mapped), gradients(attend), strict=True):
        np.testing.assert_array_equal(a, b)


def lower(platform, dtype="bfloat16", **options):
    f = functools.partial(flash_attention_varlen, **MIXED.keywords(), **options)
    return jax.jit(f).trace(*MIXED.operands(dtype)).lower(lowering_platforms=(platform,)).as_text()


def test_rocm_gets_the_custom_call():
    text = lower("rocm")
    assert text.count("@jax_fa_varlen") == 1
    assert 'target = "any"' in text
    assert "stablehlo.while" not in text
    assert "tensor<70x4x64xbf16>" in text
    assert "tensor<6xi32>" in text
    assert "num_splits = 1 : i64" in text
    assert "tensor<0xui8>" in text  # no workspace


def test_splits_have_a_workspace():
    text = lower("rocm", num_splits=3)
    assert "num_splits = 3 : i64" in text
    assert f"tensor<{3 * 70 * 4 * (64 + 1) * 4}xui8>" in text


def test_other_platforms_and_types_get_xla():
    assert "jax_fa_varlen" not in lower("cuda")
    assert "jax_fa_varlen" not in lower("rocm", "float32")


def test_eager_calls_reuse_one_trace(monkeypatch):
    traces = []
    choose = _select.choose

    def count(*args, **keywords):
        traces.append(args)
        return choose(*args, **keywords)

    monkeypatch.setattr(_select, "choose", count)
    operands, keywords = MIXED.operands("float32"), MIXED.keywords()
    for longest in (50, 49, 51):  # hints of one order of size share a program
        flash_attention_varlen(*operands, scale=0.41, max_seqlen_q=longest, **keywords)
    assert len(traces) == 1


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
