"""Which schedule of xla a program holds, and that no other is traced for it."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import pytest
from cases import Case
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from meshes import place

from jax_fa import flash_attention, nn
from jax_fa._xla import batched, blockwise

OPERANDS = Case("", batch=(2,), t=300, s=300, n=4, k=2, h=16).operands("float32")


def total(*operands):
    return jnp.sum(flash_attention(*operands, causal=True))


def biased(q, k, v):
    return jnp.sum(nn.dot_product_attention(q, k, v, jnp.ones((4, 300, 300))))


@pytest.fixture
def traced(monkeypatch):
    """Names of the schedules that have been traced, in order."""
    names = []

    def count(name, function, *operands, **options):
        names.append(name)
        return function(*operands, **options)

    for module in (batched, blockwise):
        name = module.__name__.rpartition(".")[2]
        for function in ("forward", "backward"):
            counted = functools.partial(count, name, getattr(module, function))
            monkeypatch.setattr(module, function, counted)
    return names


@pytest.mark.parametrize("function", [total, jax.grad(total), biased], ids=["out", "grad", "bias"])
def test_a_cpu_traces_its_own_alone(function, traced):
    jax.jit(lambda *x: function(*x)).lower(*OPERANDS)
    assert set(traced) == {"blockwise"}


def loops(function, operands, *platforms):
    """How many loops a program has: on CPUs more, as sequences and blocks are walked there."""
    f = jax.jit(lambda *x: function(*x))
    text = f.trace(*operands).lower(lowering_platforms=platforms).as_text()
    return text.count("stablehlo.while")


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("function", [total, jax.grad(total), biased], ids=["out", "grad", "bias"])
def test_each_platform_has_its_own(function, mapped):
    operands = OPERANDS
    if mapped:
        function, operands = jax.vmap(function), [x[None] for x in OPERANDS]
    cpu, cuda = (loops(function, operands, platform) for platform in ("cpu", "cuda"))
    assert cpu > cuda
    assert loops(function, operands, "cpu", "cuda") == cpu + cuda


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=str)
def test_within_shard_map(kind):
    mesh = jax.make_mesh((2, 2), ("b", "h"), axis_types=(kind,) * 2)
    rows = P("b", None, "h")
    attend = functools.partial(flash_attention, causal=True)
    divided = jax.shard_map(attend, mesh=mesh, in_specs=rows, out_specs=rows)
    gradient = jax.grad(lambda *x: jnp.sum(divided(*x)), argnums=(0, 1, 2))
    with jax.set_mesh(mesh):
        placed = place(OPERANDS, mesh, (rows,) * 3)
        assert loops(gradient, placed, "cpu") > loops(gradient, placed, "cuda")
