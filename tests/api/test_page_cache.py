"""append_to_pages against a loop in NumPy."""

import itertools
import math
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.export import export
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from meshes import mesh_of, place, run_divided
from sweeps import swept

from jax_fa import append_to_pages


def _expected(pages, new, tables, lengths, counts):
    pages = np.array(pages)
    page_size = pages.shape[1]
    for b in range(new.shape[0]):
        for t in range(counts[b]):
            logical, row = divmod(int(lengths[b]) + t, page_size)
            if logical < tables.shape[1] and 0 <= tables[b, logical] < pages.shape[0]:
                pages[tables[b, logical], row] = new[b, t]
    return pages


@pytest.mark.parametrize("layout", ["NHD", "HND"])
@pytest.mark.parametrize("page_size", [1, 3, 16])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_append_matches_a_loop(layout, page_size, dtype):
    rng = np.random.default_rng(page_size)
    batch, tokens, heads, head_dim, max_pages = 3, 5, 2, 8, 4
    num_pages = batch * max_pages + 1
    tables = rng.permutation(num_pages)[: batch * max_pages].reshape(batch, max_pages)
    tables[1, -1], tables[2, 0] = -1, 2**30
    lengths = np.array([0, max_pages * page_size - 2, 1])
    counts = np.array([5, 4, 0])
    tails = (heads, head_dim), (heads, 4)
    k_pages, v_pages = (rng.normal(size=(num_pages, page_size, *x)).astype(dtype) for x in tails)
    key, value = (rng.normal(size=(batch, tokens, *x)).astype(dtype) for x in tails)

    def stored(pages):
        return jnp.asarray(pages if layout == "NHD" else pages.swapaxes(1, 2))

    new_k, new_v = jax.jit(append_to_pages, static_argnames="layout", donate_argnums=(0, 1))(
        stored(k_pages),
        stored(v_pages),
        jnp.asarray(key),
        jnp.asarray(value),
        jnp.asarray(tables, jnp.int32),
        jnp.asarray(lengths, jnp.int32),
        new_lengths=jnp.asarray(counts, jnp.int32),
        layout=layout,
    )
    np.testing.assert_array_equal(new_k, stored(_expected(k_pages, key, tables, lengths, counts)))
    np.testing.assert_array_equal(new_v, stored(_expected(v_pages, value, tables, lengths, counts)))


POOL = (64, 16, 2, 8)


def pool_types(dtype):
    return [jax.ShapeDtypeStruct(POOL, dtype)] * 2


def token_types(dtype):
    new = jax.ShapeDtypeStruct((2, 1, 2, 8), dtype)
    tables = jax.ShapeDtypeStruct((2, 4), jnp.int32)
    return new, new, tables, jax.ShapeDtypeStruct((2,), jnp.int32)


def append_thrice(k_pages, v_pages, key, value, tables, lengths):
    def step(pages, i):
        return append_to_pages(pages[0], pages[1], key, value, tables, lengths + i), None

    return jax.lax.scan(step, (k_pages, v_pages), jnp.arange(3))[0]


@pytest.mark.parametrize("append", [append_to_pages, append_thrice])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_append_in_place_makes_no_copy_of_the_pool(dtype, append):
    step = jax.jit(append, donate_argnums=(0, 1))
    compiled = step.lower(*pool_types(dtype), *token_types(dtype)).compile()
    analysis: Any = compiled.memory_analysis()
    assert analysis.temp_size_in_bytes < math.prod(POOL)
    assert not re.search(
        r"\[64,16,2,8\]\S* (copy|convert|bitcast-convert)\(", str(compiled.as_text())
    )


def test_bfloat16_for_export_is_of_standard_operations():
    traced = jax.jit(append_to_pages).trace(*pool_types("bfloat16"), *token_types("bfloat16"))
    assert "jax_fa_append" in traced.lower().as_text()
    exported = export(jax.jit(append_to_pages))(*pool_types("bfloat16"), *token_types("bfloat16"))
    assert "custom_call" not in exported.mlir_module()


@pytest.mark.parametrize("heads_first", [False, True])
@pytest.mark.parametrize(
    ("name", "wrong", "text"),
    [
        ("pages", ((4, 2, 2), "bfloat16"), "pages must be"),
        ("page", ((1, 3), "int32"), r"page must be \[B, T\] = \[1, 2\]"),
        ("page", ((1, 2), "int16"), "page must be i32"),
        ("row", ((2, 1), "int32"), "row must be"),
        ("new", ((1, 2, 3, 8), "bfloat16"), r"new must be \[B, T, K, H\] = \[1, 2, 2, 8\]"),
        ("new", ((1, 2, 2, 8), "float16"), "new must be bf16"),
    ],
)
def test_the_handler_refuses_wrong_operands(name, wrong, text, heads_first):
    operands = {
        "pages": ((4, 2, 2, 8), "bfloat16"),
        "page": ((1, 2), "int32"),
        "row": ((1, 2), "int32"),
        "new": ((1, 2, 2, 8), "bfloat16"),
    } | {name: wrong}
    pages, *rest = (jnp.zeros(*x) for x in operands.values())
    call = jax.ffi.ffi_call("jax_fa_append", jax.ShapeDtypeStruct(pages.shape, pages.dtype))
    with pytest.raises(Exception, match=text):
        jax.block_until_ready(call(pages, *rest, hnd=heads_first))


def test_append_is_one_scatter_for_each_pool():
    """In the pool's own type: on GPUs that is in place."""
    traced = jax.jit(append_to_pages).trace(*pool_types("bfloat16"), *token_types("bfloat16"))
    text = traced.lower(lowering_platforms=("rocm",)).as_text()
    assert text.count('"stablehlo.scatter"') == 2
    made = re.findall(r"= (\S+) [^\n]*-> tensor<64x16x2x8xbf16>", text)
    assert set(made) <= {"call"}, made


def test_positions_and_pages_that_overflow_are_dropped():
    pages = jnp.zeros((4, 2, 1, 8))
    new = jnp.ones((3, 2, 1, 8))
    tables = jnp.array([[0, 1], [2, -1], [2**31 - 1, 3]], jnp.int32)
    lengths = jnp.array([2**31 - 1, 2, 0], jnp.int32)  # the next position is negative
    k_pages, _ = append_to_pages(pages, pages, new, new, tables, lengths)
    assert not np.asarray(k_pages).any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_gradients_flow_through_an_append(dtype):
    rng = np.random.default_rng(0)
    pages, new = (jnp.asarray(rng.normal(size=s), dtype) for s in ((4, 2, 1, 8), (1, 1, 1, 8)))
    tables, lengths = jnp.array([[3, 1]], jnp.int32), jnp.array([2], jnp.int32)

    def total(pages, new):
        k_pages, _ = append_to_pages(pages, pages, new, new, tables, lengths)
        return jnp.sum(k_pages**2)

    d_pages, d_new = jax.grad(total, argnums=(0, 1))(pages, new)
    np.testing.assert_array_equal(d_pages, (2 * pages).at[1, 0].set(0))
    np.testing.assert_array_equal(d_new, 2 * new)
    _, tangent = jax.jvp(total, (pages, new), (pages, new))
    np.testing.assert_allclose(tangent, total(pages, new) * 2, rtol=1e-2)


def append_operands(dtype):
    """Operands of three appends to one pool."""
    rng = np.random.default_rng(0)
    shapes = (6, 2, 2, 8), (6, 2, 2, 4), (3, 2, 2, 2, 8), (3, 2, 2, 2, 4)
    arrays = [jnp.asarray(rng.normal(size=s), dtype) for s in shapes]
    tables = np.stack([rng.permutation(6).reshape(2, 3) for _ in range(3)])
    return *arrays, jnp.asarray(tables, jnp.int32), jnp.array([1, 3], jnp.int32)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_append_under_vmap(dtype):
    operands = append_operands(dtype)
    many = jax.jit(jax.vmap(append_to_pages, (None, None, 0, 0, 0, None)))(*operands)
    for i in range(3):
        one = append_to_pages(*(x[i] if 2 <= j < 5 else x for j, x in enumerate(operands)))
        for a, b in zip(many, one, strict=True):
            np.testing.assert_array_equal(a[i], b)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_pools_under_vmap(dtype):
    operands = append_operands(dtype)
    pools = [jnp.stack([x, -x, x + 1]) for x in operands[:2]]
    operands = [*pools, *operands[2:5], jnp.tile(operands[5], (3, 1))]
    many = jax.vmap(append_to_pages)(*operands)
    for i in range(3):
        one = append_to_pages(*(x[i] for x in operands))
        for a, b in zip(many, one, strict=True):
            np.testing.assert_array_equal(a[i], b)


def test_a_pool_of_each_device_is_written_in_place():
    mesh, pools = mesh_of(AxisType.Auto), P(("b", "h"))
    specs = pools, pools, *[P("b", None, "h")] * 2, P("b"), P("b")
    arrays = [x[0] if 2 <= j < 5 else x for j, x in enumerate(append_operands("bfloat16"))]
    arrays[:2] = [jnp.tile(x[:, :, :1], (4, 1, 1, 1)) for x in arrays[:2]]
    append = jax.shard_map(append_to_pages, mesh=mesh, in_specs=specs, out_specs=(pools, pools))
    step = jax.jit(append, donate_argnums=(0, 1))
    assert "jax_fa_append" in step.lower(*arrays).as_text()
    written = step(*[jnp.array(x) for x in arrays])
    for device in range(4):
        b, h = divmod(device, 2)
        pages = slice(6 * device, 6 * device + 6)
        row, head = slice(b, b + 1), slice(h, h + 1)
        own = *(x[pages] for x in arrays[:2]), *(x[row, :, head] for x in arrays[2:4])
        one = append_to_pages(*[*own, *(x[row] for x in arrays[4:])])
        for found, expected in zip(written, one, strict=True):
            np.testing.assert_array_equal(found[pages], expected)


@pytest.mark.parametrize(
    ("rows", "dtype", "kind"),
    swept(
        itertools.product(
            [P(None, None, "h"), P("b", None, "h")],
            ["bfloat16", "float32"],
            [AxisType.Auto, AxisType.Explicit],
        ),
        lambda rows, dtype, kind: (dtype == "bfloat16") == (kind is AxisType.Auto),
    ),
    ids=str,
)
def test_append_over_a_mesh(rows, dtype, kind):
    operands = [x[0] if 2 <= j < 5 else x for j, x in enumerate(append_operands(dtype))]
    heads, mesh = P(None, None, "h", None), mesh_of(kind)
    placed = place(operands, mesh, (heads, heads, rows, rows, P(), P(rows[0])))

    def total(*operands):
        return sum(jnp.sum(x.astype(jnp.float32) ** 2) for x in append_to_pages(*operands))

    gradients = jax.grad(total, argnums=(0, 1, 2, 3))
    with jax.set_mesh(mesh):
        found, traffic = run_divided(jax.jit(append_to_pages), *placed)
        for results, f in (
            (found, append_to_pages),
            (append_to_pages(*placed), append_to_pages),
            (jax.jit(gradients)(*placed), gradients),
        ):
            for a, b in zip(results, jax.jit(f)(*operands), strict=True):
                np.testing.assert_array_equal(a, b)
        assert [x.sharding.spec for x in found] == [heads, heads]
        if rows == P(None, None, "h"):
            assert traffic == []


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"k_pages": jnp.zeros((4, 4, 2, 8), jnp.int8)}, TypeError, "k_pages must have one of"),
        ({"layout": "DHN"}, ValueError, 'layout must be "NHD" or "HND"'),
        (
            {"k_pages": jnp.zeros((4, 2, 8))},
            ValueError,
            r"k_pages must have shape \(P, page, K, H\)",
        ),
        ({"key": jnp.zeros((1, 1, 3, 8))}, ValueError, r"key must have shape \(B, T, K, H\)"),
        ({"value": jnp.zeros((1, 2, 2, 8))}, ValueError, "value must have shape"),
        ({"v_pages": jnp.zeros((4, 3, 2, 8))}, ValueError, "v_pages must have shape"),
        ({"block_tables": jnp.zeros((2, 2), jnp.int32)}, ValueError, "block_tables must have"),
        ({"block_tables": jnp.zeros((1, 2))}, TypeError, "block_tables must have dtype int32"),
        ({"key_lengths": jnp.zeros((2,), jnp.int32)}, ValueError, "key_lengths must have shape"),
        ({"key_lengths": jnp.zeros((1,))}, TypeError, "key_lengths must have dtype int32"),
        ({"new_lengths": jnp.zeros((1,))}, TypeError, "new_lengths must have dtype int32"),
    ],
)
def test_errors_name_the_argument(change, error, text):
    operands = {
        "k_pages": jnp.zeros((4, 2, 2, 8)),
        "v_pages": jnp.zeros((4, 2, 2, 8)),
        "key": jnp.zeros((1, 1, 2, 8)),
        "value": jnp.zeros((1, 1, 2, 8)),
        "block_tables": jnp.zeros((1, 2), jnp.int32),
        "key_lengths": jnp.zeros((1,), jnp.int32),
    }
    with pytest.raises(error, match=text):
        append_to_pages(**(operands | change))
