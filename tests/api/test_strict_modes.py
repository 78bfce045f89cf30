"""Every operation under JAX's strict modes, as users may set them for their whole program."""

from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp
import pytest
from operations import KERNELS, OPERATIONS
from sweeps import swept


@contextlib.contextmanager
def no_promotion():
    """Neither of ranks nor of dtypes."""
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        yield


def directions(name, dtype, implementation):
    """Operands, and the forward and the gradient of a scalar that is strict itself."""
    operation = OPERATIONS[name]
    operands = operation.problem.operands(dtype)
    forward, count = operation.problem.on(implementation), operation.floats

    def total(*floats):
        results = jax.tree.leaves(forward(*floats, *operands[count:]))
        return sum(jnp.sum(x.astype(jnp.float32)) for x in results[:2])

    yield forward, operands
    if count:
        yield jax.grad(total, argnums=tuple(range(count))), operands[:count]


def lower(f, operands):
    """For both schedules of xla too."""
    jax.jit(lambda *x: f(*x)).trace(*operands).lower(lowering_platforms=("cpu", "cuda"))


@pytest.mark.parametrize("name", OPERATIONS)
def test_nothing_is_promoted(name):
    for f, operands in directions(name, "bfloat16", "xla"):
        with no_promotion():
            lower(f, operands)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_nor_in_other_dtypes(dtype):
    for f, operands in directions("dense", dtype, "xla"):
        with no_promotion():
            lower(f, operands)


@pytest.mark.parametrize("name", KERNELS)
def test_nothing_is_promoted_for_kernels(name):
    for f, operands in directions(name, "bfloat16", None):
        with no_promotion():
            jax.jit(lambda *x, f=f: f(*x)).trace(*operands).lower(lowering_platforms=("rocm",))


@pytest.mark.parametrize(
    "name",
    swept(
        OPERATIONS,
        [
            *("dense", "segment ids", "varlen", "paged decode", "nn, bias and mask", "merge"),
            *("append to pages", "cu_seqlens_to_segment_ids", "segment_ids_to_cu_seqlens"),
        ],
    ),
)
def test_nothing_is_transferred(name):
    operation = OPERATIONS[name]
    operands = operation.problem.operands("bfloat16")
    with jax.transfer_guard("disallow"):
        jax.block_until_ready(operation.problem.on("xla")(*operands))


def test_nothing_is_transferred_for_a_gradient():
    operation = OPERATIONS["lengths"]
    query, *rest = operation.problem.operands("bfloat16")
    results, pull = jax.vjp(lambda q: operation.problem.on("xla")(q, *rest), query)
    with jax.transfer_guard("disallow"):
        jax.block_until_ready(pull(results))
