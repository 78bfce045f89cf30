"""How the call composes: vmap, lowering to ROCm, export, replicated and varying operands."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import IMPLEMENTATIONS, KERNEL_TARGETS, Case
from jax import export
from jax.sharding import PartitionSpec as P
from sweeps import swept

from jax_fa import flash_attention, flash_attention_varlen, paged_attention
from jax_fa._ops import select as _select

AXES = list(itertools.product([0, 1, None], repeat=3))[:-1]
# Each operand mapped alone, not mapped alone, and along either axis.
SOME_AXES = [(1, 0, 1), (0, None, None), (None, 1, 0), (1, None, 0), (0, 1, None)]


def loop_over(function, axes, operands, size):
    rows = [
        function(
            *(x if a is None else jnp.take(x, i, a) for x, a in zip(operands, axes, strict=True))
        )
        for i in range(size)
    ]
    return jax.tree.map(lambda *x: jnp.stack(x), *rows)


def mapped_operands(dtype, axes, size):
    operands = Case("", batch=(2,), t=9, s=12, n=4, k=2, h=16).operands(dtype)
    return [
        x if a is None else jnp.stack([x * (i + 1) for i in range(size)], a)
        for x, a in zip(operands, axes, strict=True)
    ]


def check_vmap(implementation, dtype, axes, function=None):
    attend = functools.partial(
        flash_attention, causal=True, return_lse=True, implementation=implementation
    )
    function = function or attend
    operands = mapped_operands(dtype, axes, 3)
    actual = jax.jit(jax.vmap(function, in_axes=axes))(*operands)
    expected = loop_over(jax.jit(function), axes, operands, 3)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(
            np.asarray(a, np.float32), np.asarray(b, np.float32), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("axes", swept([(x,) for x in AXES], [(x,) for x in SOME_AXES]), ids=str)
def test_vmap_over_every_combination_of_axes(axes):
    check_vmap("xla", "float32", axes)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("axes", [(0, 0, 0), (0, None, None), (None, 1, 0)], ids=str)
def test_vmap_of_kernels(target, axes):
    check_vmap(target, "bfloat16", axes)


@pytest.mark.parametrize(
    "axes",
    swept([((0, 0, 0),), ((0, None, None),), ((None, 0, None),)], [((0, None, None),)]),
    ids=str,
)
def test_vmap_of_grad(axes):
    def gradient(q, k, v):
        return jax.grad(
            lambda *x: jnp.sum(jnp.sin(flash_attention(*x, causal=True))), argnums=(0, 1, 2)
        )(q, k, v)

    check_vmap("xla", "float32", axes, gradient)


@pytest.mark.parametrize("lengths_axis", [0, None])
@pytest.mark.parametrize("query_axis", [0, None])
def test_vmap_over_lengths(lengths_axis, query_axis):
    q, k, v = Case("", batch=(2,), t=9, s=12).operands("float32")
    lengths = jnp.array([[3, 12], [0, 7], [5, 5]], jnp.int32)
    lengths = lengths if lengths_axis == 0 else lengths[0]
    q = jnp.stack([q, q + 1, q * 2]) if query_axis == 0 else q
    axes = query_axis, None, None, lengths_axis
    if axes == (None,) * 4:
        pytest.skip("nothing to map")

    def attend(q, k, v, lengths):
        return flash_attention(q, k, v, key_lengths=lengths, return_lse=True)

    actual = jax.vmap(attend, in_axes=axes)(q, k, v, lengths)
    expected = loop_over(attend, axes, (q, k, v, lengths), 3)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_nested_vmap():
    q, k, v = Case("", batch=(2, 3, 2), t=5, s=6, h=8).operands("float32")
    nested = jax.vmap(jax.vmap(flash_attention), in_axes=1, out_axes=1)
    np.testing.assert_allclose(nested(q, k, v), flash_attention(q, k, v), rtol=1e-5, atol=1e-6)


def test_vmap_over_queries_alone_does_not_copy_the_keys():
    q = jax.ShapeDtypeStruct((6, 2, 9, 4, 16), jnp.float32)
    kv = jax.ShapeDtypeStruct((2, 11, 2, 16), jnp.float32)
    text = str(jax.make_jaxpr(jax.vmap(flash_attention, in_axes=(0, None, None)))(q, kv, kv))
    assert "6,2,11,2,16" not in text


# --- Lowering -------------------------------------------------------------------------------------


def lower(platform, dtype="bfloat16", h=64, **options):
    q = jax.ShapeDtypeStruct((2, 16, 4, h), dtype)
    kv = jax.ShapeDtypeStruct((2, 16, 2, h), dtype)
    f = jax.jit(lambda q, k, v: flash_attention(q, k, v, causal=True, **options))
    return f.trace(q, kv, kv).lower(lowering_platforms=(platform,)).as_text()


def test_rocm_gets_the_custom_call():
    text = lower("rocm")
    assert "@jax_fa_flash" in text
    assert 'target = "any"' in text
    assert "stablehlo.while" not in text


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_other_platforms_get_xla(platform):
    text = lower(platform)
    assert "jax_fa_flash" not in text
    assert "stablehlo.dot_general" in text
    # Small blocks in turn suit a CPU alone: elsewhere all of this is one tile.
    assert ("stablehlo.while" in text) == (platform == "cpu")


@pytest.mark.parametrize(("dtype", "h"), [("float32", 64), ("bfloat16", 288)])
def test_rocm_gets_xla_where_there_is_no_kernel(dtype, h):
    assert "jax_fa_flash" not in lower("rocm", dtype, h)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("platform", ["cpu", "rocm"])
def test_named_target_is_in_the_call(target, platform):
    text = lower(platform, implementation=target)
    assert "@jax_fa_flash" in text
    assert f'target = "{target}"' in text
    assert "tensor<2x16x4x64xbf16>" in text
    # Row-major, and attributes of one type whatever Python's was.
    rank4, rank1 = "dense<[3, 2, 1, 0]> : tensor<4xindex>", "dense<0> : tensor<1xindex>"
    assert f"operand_layouts = [{', '.join([rank4] * 3 + [rank1] * 2)}]" in text
    assert "window_left = -1 : i64" in text
    assert "window_right = 0 : i64" in text
    assert "scale = 1.250000e-01 : f32" in text


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_named_target_elsewhere_is_refused_by_name(target):
    assert f"jax_fa_implementation_{target}_serves_cpu_and_rocm_only" in lower(
        "cuda", implementation=target
    )


def test_gradient_and_vmap_lower_to_rocm():
    q = jax.ShapeDtypeStruct((3, 2, 16, 4, 64), jnp.bfloat16)

    def total(q, k, v):
        return flash_attention(q, k, v).astype(jnp.float32).sum()

    f = jax.jit(jax.vmap(jax.grad(total, argnums=(0, 1, 2))))
    text = f.trace(q, q, q).lower(lowering_platforms=("rocm",)).as_text()
    assert text.count("@jax_fa_flash") == 1


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_export_and_call(implementation):
    operands = Case("", t=9, s=12).operands("bfloat16")
    f = jax.jit(functools.partial(flash_attention, implementation=implementation))
    allowed = [export.DisabledSafetyCheck.custom_call("jax_fa_flash")]
    exported = export.export(f, disabled_checks=allowed)(*operands)
    loaded = export.deserialize(exported.serialize())
    np.testing.assert_array_equal(loaded.call(*operands), f(*operands))


@pytest.mark.parametrize("sizes", swept(["b, 9", "1, t"], ["1, t"]))
def test_export_with_symbolic_sizes(sizes):
    """Packed or longer dimensions need a constraint: at least a block of them."""
    symbols = export.symbolic_shape(f"{sizes}, 2, 16", constraints=["t >= 128"] * ("t" in sizes))
    types = [jax.ShapeDtypeStruct(symbols, "bfloat16")] * 3
    f = jax.jit(lambda *x: jax.vjp(flash_attention, *x)[1](x[0]))
    allowed = [export.DisabledSafetyCheck.custom_call("jax_fa_flash")]
    exported = export.export(f, platforms=("cpu", "rocm"), disabled_checks=allowed)(*types)
    for size in (129, 300):
        shape = {"b, 9": (size, 9), "1, t": (1, size)}[sizes]
        rng = np.random.default_rng(0)
        operands = [jnp.asarray(rng.standard_normal((*shape, 2, 16)), "bfloat16")] * 3
        for a, b in zip(exported.call(*operands), f(*operands), strict=True):
            np.testing.assert_allclose(np.asarray(a, "f4"), np.asarray(b, "f4"), atol=1e-2)


@pytest.mark.parametrize("implementation", swept(IMPLEMENTATIONS, ["xla", "gfx950"]))
@pytest.mark.parametrize(
    "specs",
    [
        pytest.param((P("x"),) * 3, marks=pytest.mark.slow, id="all"),
        pytest.param((P("x"), P(), P()), id="query alone"),
    ],
)
def test_gradients_under_shard_map(implementation, specs):
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    dtype = "float32" if implementation == "xla" else "bfloat16"
    operands = Case("", batch=(2,), t=9, s=12).operands(dtype)
    attend = functools.partial(flash_attention, implementation=implementation)

    def gradient(f):
        return jax.jit(
            jax.grad(lambda *x: jnp.sum(jnp.sin(f(*x)).astype(jnp.float32)), argnums=(0, 1, 2))
        )(*operands)

    with jax.set_mesh(mesh):
        actual = gradient(jax.shard_map(attend, in_specs=specs, out_specs=P("x")))
    for a, b in zip(actual, gradient(attend), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_vmap_over_no_example():
    x, offsets = jnp.ones((0, 5, 2, 8)), jnp.zeros((0, 3), jnp.int32)
    assert jax.vmap(lambda x: flash_attention(x, x, x))(x[:, None]).shape == (0, 1, 5, 2, 8)

    def packed(x, offsets):
        return flash_attention_varlen(x, x, x, cu_seqlens_q=offsets, cu_seqlens_k=offsets)

    assert jax.vmap(packed)(x, offsets).shape == x.shape

    def total(pool):
        tables, lengths = jnp.zeros((1, 2), jnp.int32), jnp.ones((1,), jnp.int32)
        return jnp.sum(paged_attention(jnp.ones((1, 1, 2, 8)), pool, pool, tables, lengths))

    pools = jnp.ones((0, 4, 4, 1, 8))
    assert jax.vmap(jax.grad(total))(pools).shape == pools.shape


def test_eager_calls_reuse_one_trace(monkeypatch):
    traces = []
    choose = _select.choose

    def count(*args, **keywords):
        traces.append(args)
        return choose(*args, **keywords)

    monkeypatch.setattr(_select, "choose", count)
    operands = Case("", t=11, s=13, h=8).operands("float32")
    for _ in range(3):
        flash_attention(*operands, scale=0.37)  # a scale that nothing else has traced
    assert len(traces) == 1
