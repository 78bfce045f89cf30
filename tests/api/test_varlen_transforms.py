"""flash_attention_varlen under grad, vmap, shard_map and lowering."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from packs import PACKS, VARLEN_TARGETS, Pack, clean
from sweeps import swept
from tolerance import assert_close, assert_gradients_close, compiled_reference

from jax_fa import flash_attention_varlen, reference
from jax_fa._ops import select as _select

attend_lse: Any = functools.partial(flash_attention_varlen, return_lse=True)
expect_varlen = compiled_reference(reference.flash_attention_varlen)
MIXED, WINDOW = PACKS[1], PACKS[9]


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
    assert_gradients_close(actual, expected)


@pytest.mark.parametrize("target", VARLEN_TARGETS)
def test_kernel_gradients(target):
    operands, keywords = MIXED.operands("bfloat16"), MIXED.keywords()

    def gradients(implementation):
        attend = functools.partial(flash_attention_varlen, implementation=implementation)
        gradient = jax.grad(lambda *x: total(attend, x, **keywords), argnums=(0, 1, 2))
        return jax.jit(gradient)(*operands)

    assert_gradients_close(gradients(target), gradients("xla"), "bfloat16")


def test_offsets_have_float0_gradients():
    operands, offsets = MIXED.operands("float32"), MIXED.offsets()
    out, vjp = jax.vjp(lambda c: flash_attention_varlen(*operands, **c), offsets)
    (gradients,) = vjp(jnp.ones_like(out))
    assert all(g.dtype == jax.dtypes.float0 for g in gradients.values())


# --- Composition ----------------------------------------------------------------------------------

AXES = [(0, 0, 0), (0, None, None), (None, 0, 0)]


@pytest.mark.parametrize("axes", swept([(x,) for x in AXES], [(x,) for x in AXES[1:]]), ids=str)
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


def test_nonsense_stays_in_its_pack():
    q, k, v = (jnp.stack([x, x]) for x in MIXED.operands("float32"))
    right = MIXED.offsets()
    for wrong in (10**6, -5):
        offsets = {n: jnp.stack([x.at[2].set(wrong), x]) for n, x in right.items()}
        out, lse = jax.vmap(lambda *x: attend_lse(*x[:3], causal=True, **x[3]))(q, k, v, offsets)
        assert_close(
            (out[1], lse[1]), expect_varlen(q[1], k[1], v[1], causal=True, **right), clean(v), "xla"
        )


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
