"""Attention over a mesh of devices: what divides, what is refused, with how much traffic."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import KERNEL_TARGETS, Case
from jax import export
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from meshes import assert_same, mesh_of, place, run_divided, scalar_of
from packs import PAGED_RUNS, Cache, Pack
from sweeps import swept

from jax_fa import flash_attention, flash_attention_varlen, nn, paged_attention

attend: Any = functools.partial(paged_attention, return_lse=True)
CACHE = Cache(
    "", ((3, 20), (3, 9), (3, 33), (3, 1)), n=8, k=2, h=16, page_size=4, spare_pages=4
)  # 22 pages
ROWS, PAGES = P("b", None, "h"), P(None, None, "h")
PLACED = ROWS, PAGES, PAGES, P("b"), P("b")


def operands(cache=CACHE, dtype="float32"):
    return [jnp.nan_to_num(x) if x.dtype == dtype else x for x in cache.operands(dtype)]


@pytest.mark.parametrize(
    "specs",
    [
        PLACED,
        (ROWS, P(), P(), P(), P()),
        (P(None, None, "h"), PAGES, PAGES, P(), P()),
        (P(), P(), P(), P("b"), P()),
        (P(("b", "h")), P(), P(), P(("b", "h")), P()),
    ],
    ids=str,
)
@pytest.mark.parametrize(("implementation", "dtype"), swept(PAGED_RUNS, PAGED_RUNS[:2]))
def test_sequences_and_heads_divide_without_traffic(implementation, dtype, specs):
    made = operands(dtype=dtype)
    f = jax.jit(functools.partial(attend, implementation=implementation))
    placed = place(made, mesh_of(AxisType.Auto), specs)
    (out, lse), traffic = run_divided(f, *placed)
    assert_same((out.astype(jnp.float32), lse), [x.astype(jnp.float32) for x in f(*made)])
    assert traffic == []
    divided = max((x for x in (specs[0], specs[3]) if x), key=len)
    assert tuple(out.sharding.spec)[: len(divided)] == tuple(divided)


@pytest.mark.parametrize(
    "specs",
    [
        (P(None, None, None, "h"), P(None, None, None, "h"), P(None, None, None, "h"), P(), P()),
        (P(None, None, ("b", "h")), P(), P(), P(), P()),  # more ways than there are key heads
        (P("b", None, "h"), P(None, None, "b"), PAGES, P("h"), P("b")),
        (P(), P(), P(), P(None, "b"), P("b")),
    ],
    ids=str,
)
def test_other_placements_are_moved_and_right(specs):
    made = operands()
    tables = jnp.pad(made[3], ((0, 0), (0, made[3].shape[1] % 2)))
    made[3] = tables
    f = jax.jit(attend)
    assert_same(f(*place(made, mesh_of(AxisType.Auto), specs)), f(*made))


def test_packed_queries_divide_by_heads():
    cache = dataclasses.replace(CACHE, packed=True, layout="HND")
    made, keywords = operands(cache), cache.keywords()
    pages = P(None, "h")
    placed = place(made, mesh_of(AxisType.Auto), (P(None, "h"), pages, pages, P(), P()))
    f = jax.jit(lambda *x: attend(*x, **keywords))
    found, traffic = run_divided(f, *placed)
    assert_same(found, f(*made))
    assert traffic == []


DIVIDED = [P("b"), P(None, "b"), P(("b", "h"))]


@pytest.mark.parametrize("name", ["k_pages", "v_pages"])
@pytest.mark.parametrize("spec", DIVIDED[:2], ids=str)
def test_a_pool_divided_by_pages_is_refused(name, spec):
    specs = [P(), *(spec if n == name else P() for n in ("k_pages", "v_pages")), P(), P()]
    placed = place(operands(), mesh_of(AxisType.Auto), specs)
    text = rf"{name} must not be sharded over its pages.*jax\.shard_map"
    with pytest.raises(ValueError, match=text):
        attend(*placed)
    with pytest.raises(jax.errors.JaxRuntimeError, match=f"{name} must not be sharded over its"):
        jax.jit(attend)(*placed)
    mesh = mesh_of(AxisType.Explicit)
    with jax.set_mesh(mesh), pytest.raises(ValueError, match=text):
        jax.jit(attend).trace(*place(operands(), mesh, specs))


def test_a_mesh_axis_of_one_device_divides_nothing():
    mesh = jax.make_mesh((1, 4), ("b", "h"), axis_types=(AxisType.Auto,) * 2)
    made = operands()
    placed = place(made, mesh, (P(), P("b"), P("b"), P(), P()))
    assert_same(attend(*placed), attend(*made))
    assert_same(jax.jit(attend)(*placed), attend(*made))


def test_each_device_may_have_a_pool_of_its_own():
    """What the refusal advises: tables count pages within the device's own pool."""
    halves = [operands(dataclasses.replace(CACHE, lengths=CACHE.lengths[i::2])) for i in (0, 1)]
    pages = max(h[1].shape[0] for h in halves)
    width = max(h[3].shape[1] for h in halves)
    for h in halves:
        h[1], h[2] = (jnp.pad(x, ((0, pages - x.shape[0]), *[(0, 0)] * 3)) for x in h[1:3])
        h[3] = jnp.pad(h[3], ((0, 0), (0, width - h[3].shape[1])))
    joined = [jnp.concatenate(pair) for pair in zip(*halves, strict=True)]
    mesh = jax.make_mesh((2,), ("b",), axis_types=(AxisType.Auto,))
    f = jax.jit(jax.shard_map(attend, mesh=mesh, in_specs=(P("b"),) * 5, out_specs=P("b")))
    placed = place(joined, mesh, [P("b")] * 5)
    expected = [jnp.concatenate(pair) for pair in zip(*(attend(*h) for h in halves), strict=True)]
    found, traffic = run_divided(f, *placed)
    assert_same(found, expected)
    assert traffic == []


gradients = jax.jit(jax.grad(scalar_of(attend), argnums=(0, 1, 2)))


def test_axes_of_type_explicit():
    made, mesh = operands(), mesh_of(AxisType.Explicit)
    with jax.set_mesh(mesh):
        placed = place(made, mesh, PLACED)
        (out, lse), traffic = run_divided(jax.jit(attend), *placed)
        assert jax.typeof(out).sharding.spec == P("b", None, "h", None)
        assert jax.typeof(lse).sharding.spec == P("b", None, "h")
        assert traffic == []
        found = gradients(*placed)
        assert jax.typeof(found[1]).sharding.spec == P(None, None, "h", None)
    assert_same((out, lse), attend(*made))
    assert_same(found, gradients(*made))


@pytest.mark.parametrize(
    ("specs", "traffic"),
    swept(
        [
            ((P(None, None, "h"), PAGES, PAGES, P(), P()), set()),
            (PLACED, {"all-reduce"}),  # of the pools' gradients: every sequence adds to them
            ((P("b"), P(), P(), P(), P()), {"all-reduce"}),
            ((P(("b", "h")), P(), P(), P(("b", "h")), P()), {"all-reduce"}),
        ],
        lambda specs, _: specs[1] == PAGES,
    ),
    ids=str,
)
def test_gradients_divide(specs, traffic):
    check_gradients(CACHE, specs, traffic)


def test_gradients_of_packed_queries_divide_by_heads():
    cache = dataclasses.replace(CACHE, packed=True)
    check_gradients(cache, (P(None, "h"), PAGES, PAGES, P(), P()), set())


def check_gradients(cache, specs, traffic):
    made = operands(cache)
    f = jax.grad(scalar_of(functools.partial(attend, **cache.keywords())), argnums=(0, 1, 2))
    placed = place(made, mesh_of(AxisType.Auto), specs)
    found, sent = run_divided(jax.jit(f), *placed)
    assert_same(found, jax.jit(f)(*made))
    assert set(sent) == traffic
    for gradient, spec in zip(found, specs, strict=False):
        assert tuple(gradient.sharding.spec)[: len(spec)] == tuple(spec)


def test_the_query_gradient_alone_divides_without_traffic():
    f = jax.jit(jax.grad(scalar_of(attend)))
    placed = place(operands(), mesh_of(AxisType.Auto), PLACED)
    found, traffic = run_divided(f, *placed)
    assert_same([found], [f(*operands())])
    assert traffic == []


DISAGREEING = [
    (ROWS, P(), P()),
    (P(), P(), PAGES),
    (P(None, None, None, "b"), P(None, None, "b"), P(None, None, None, "h")),
]


@pytest.mark.parametrize(
    ("dense", "specs"),
    swept(
        itertools.product([False, True], DISAGREEING),
        [(False, DISAGREEING[2]), (True, DISAGREEING[1])],
    ),
    ids=str,
)
def test_gradients_have_their_operands_shardings(dense, specs):
    """The types of arrays over Explicit axes demand it."""
    if dense:
        case = Case("", batch=(4,), t=10, s=12, n=8, k=2, h=16)
        f, made = flash_attention, case.operands("float32")
    else:
        f, made = paged_attention, operands()
    f = jax.grad(scalar_of(functools.partial(f, return_lse=True)), argnums=(0, 1, 2))
    mesh = mesh_of(AxisType.Explicit)
    with jax.set_mesh(mesh):
        placed = place(made, mesh, [*specs, *[P()] * (len(made) - 3)])
        found = jax.jit(f)(*placed)
        for gradient, operand in zip(found, placed, strict=False):
            assert jax.typeof(gradient).sharding == jax.typeof(operand).sharding
    assert_same(found, jax.jit(f)(*made))


def test_some_axes_explicit_and_others_not():
    mesh = jax.make_mesh((2, 2), ("b", "h"), axis_types=(AxisType.Explicit, AxisType.Auto))
    made, specs = operands(), (P("b"), P(), P(), P("b"), P("b"))
    f = jax.jit(attend)
    with jax.set_mesh(mesh):
        placed = place(made, mesh, specs)
        found, (divided, traffic) = gradients(*placed), run_divided(f, *placed)
        assert traffic == []
        assert jax.typeof(divided[0]).sharding.spec == P("b", None, None, None)
    assert_same(divided, f(*made))
    assert_same(found, gradients(*made))


def test_inside_of_shard_map_over_some_axes():
    made, mesh = operands(), mesh_of(AxisType.Auto)
    specs = P("b"), P(), P(), P("b"), P("b")
    f = jax.shard_map(attend, mesh=mesh, in_specs=specs, out_specs=P("b"), axis_names={"b"})
    assert_same(jax.jit(f)(*place(made, mesh, PLACED)), attend(*made))


def test_vmap_of_divided_operands():
    made = operands()
    stacked = [jnp.stack([x, x]) if i in (0, 3, 4) else x for i, x in enumerate(made)]
    specs = P(None, *ROWS), PAGES, PAGES, P(None, "b"), P(None, "b")
    f = jax.jit(jax.vmap(attend, (0, None, None, 0, 0)))
    out, lse = f(*place(stacked, mesh_of(AxisType.Auto), specs))
    expected = attend(*made)
    for i in range(2):
        assert_same((out[i], lse[i]), expected)


def test_on_another_device_than_the_default():
    made = operands()
    device = jax.devices()[1]
    out, lse = attend(*(jax.device_put(x, device) for x in made))
    assert out.devices() == {device}
    assert_same((out, lse), attend(*made))


def test_export_for_two_platforms_and_call():
    made = operands(dtype="bfloat16")
    allowed = [export.DisabledSafetyCheck.custom_call("jax_fa_paged")]
    f = jax.jit(attend)
    exported = export.export(f, platforms=("cpu", "rocm"), disabled_checks=allowed)(*made)
    loaded = export.deserialize(exported.serialize())
    assert_same(
        [x.astype(jnp.float32) for x in loaded.call(*made)],
        [x.astype(jnp.float32) for x in f(*made)],
    )


# --- Dense and packed attention -------------------------------------------------------------------


def check_divided(attend, arrays, specs, kind=AxisType.Auto):
    """Forward and gradients: right, and without traffic."""
    gradients = jax.grad(scalar_of(attend), argnums=(0, 1, 2))
    mesh, results = mesh_of(kind), []
    with jax.set_mesh(mesh):
        placed = place(arrays, mesh, specs)
        for f in (jax.jit(attend), jax.jit(gradients)):
            found, traffic = run_divided(f, *placed)
            assert traffic == []
            results.append(found)
    for f, found in zip((attend, gradients), results, strict=True):
        assert_same(found, jax.jit(f)(*arrays))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=str)
def test_dense_attention_divides_without_traffic(kind):
    case = Case("", batch=(4,), t=10, s=12, n=8, k=2, h=16)
    lengths = jnp.array([12, 3, 7, 0], jnp.int32)

    def attend(q, k, v, lengths):
        return flash_attention(q, k, v, key_lengths=lengths, causal=True, return_lse=True)

    arrays = *case.operands("float32"), lengths
    check_divided(attend, arrays, (ROWS, ROWS, ROWS, P("b")), kind)


def test_segments_divide_without_traffic():
    case = Case("", batch=(4,), t=12, s=12, n=8, k=2, h=16)
    ids = jnp.sort(jnp.asarray(np.random.default_rng(0).integers(0, 4, (4, 12)), jnp.int32))

    def attend(q, k, v, ids):
        return flash_attention(
            q, k, v, query_segment_ids=ids, key_segment_ids=ids, causal=True, return_lse=True
        )

    check_divided(attend, (*case.operands("float32"), ids), (ROWS, P("b"), ROWS, P("b")))


def test_packed_sequences_divide_by_heads_without_traffic():
    pack = Pack("", ((3, 5), (7, 9)), n=8, k=2, h=16, spare=(0, 0))
    heads = P(None, "h")

    def attend(q, k, v, cu_q, cu_k):
        return flash_attention_varlen(
            q, k, v, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, causal=True, return_lse=True
        )

    arrays = *pack.operands("float32"), *pack.offsets().values()
    check_divided(attend, arrays, (heads, heads, heads, P(), P()))


def test_a_divided_sequence_is_brought_together():
    case = Case("", batch=(4,), t=10, s=12, n=8, k=2, h=16)
    attend = functools.partial(flash_attention, causal=True, return_lse=True)
    f = jax.jit(jax.grad(scalar_of(attend), argnums=(0, 1, 2)))
    specs = P(None, "b", "h"), P(None, "b"), P("h")
    arrays = case.operands("float32")
    assert_same(f(*place(arrays, mesh_of(AxisType.Auto), specs)), f(*arrays))


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_dense_kernels_divide(target):
    case = Case("", batch=(4,), t=10, s=12, n=8, k=2, h=16)
    f = jax.jit(functools.partial(flash_attention, causal=True, implementation=target))
    arrays = case.operands("bfloat16")
    placed = place(arrays, mesh_of(AxisType.Auto), (ROWS, ROWS, ROWS))
    found, traffic = run_divided(f, *placed)
    np.testing.assert_array_equal(np.asarray(found, np.float32), np.asarray(f(*arrays), np.float32))
    assert traffic == []


@pytest.mark.parametrize("bias_spec", swept([P(), P("b", "h")], [P("b", "h")]), ids=str)
def test_a_bias_over_explicit_axes(bias_spec):
    case = Case("", batch=(4,), t=10, s=12, n=8, k=2, h=16)
    rng = np.random.default_rng(0)
    bias = jnp.asarray(rng.standard_normal((4, 8, 10, 12), np.float32))
    made: Any = (*case.operands("float32"), bias)
    mesh = mesh_of(AxisType.Explicit)

    def attend(q, k, v, bias):
        return nn.dot_product_attention(q, k, v, bias, return_residual=True)

    gradients = jax.grad(scalar_of(attend), argnums=(0, 1, 2, 3))
    with jax.set_mesh(mesh):
        placed = place(made, mesh, (ROWS, ROWS, ROWS, bias_spec))
        found, divided = jax.jit(gradients)(*placed), jax.jit(attend)(*placed)
        assert jax.typeof(divided[0]).sharding.spec == P("b", None, "h", None)
    assert_same(divided, jax.jit(attend)(*made))
    assert_same(found, jax.jit(gradients)(*made))
