"""Operands placed over mesh axes of type Explicit, without jax.set_mesh.

The types of such arrays say how they lie, so that operations need no context.
"""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from cases import KERNEL_TARGETS
from jax.sharding import AxisType
from meshes import mesh_of, place
from operations import KERNELS, OPERATIONS
from sweeps import swept

PLACEMENTS = {
    "sequences": ("b", None),
    "heads": (None, "h"),
    "both": ("b", "h"),
    "whole": (None,) * 2,
}


def agree(found, expected, name):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4, err_msg=name)


ALIKE = "causal, window, soft cap", "paged packed prefill", "layout HND"
ALIKE += "nn", "nn, lengths", "nn, bias", "nn, mask"
"""Operations that take their operands as others do."""


@pytest.mark.parametrize("name", swept(OPERATIONS, lambda name: name not in ALIKE))
def test_operands_alone_say_how_they_lie(name):
    operation = OPERATIONS[name]
    operands = operation.problem.operands("float32")
    placed = place(operands, mesh_of(AxisType.Explicit), operation.specs("b", "h"))
    for direction, f in operation.directions("xla").items():
        f = jax.jit(f)
        agree(f(*placed), f(*operands), direction)


@pytest.mark.parametrize(
    ("name", "placement"),
    swept(
        itertools.product(["dense", "paged decode", "nn, mask", "append to pages"], PLACEMENTS),
        [
            *(("dense", "sequences"), ("paged decode", "heads"), ("nn, mask", "both")),
            *(("append to pages", "heads"), ("dense", "whole")),
        ],
    ),
)
def test_without_jit_too(name, placement):
    operation = OPERATIONS[name]
    operands = operation.problem.operands("float32")
    placed = place(operands, mesh_of(AxisType.Explicit), operation.specs(*PLACEMENTS[placement]))
    f = operation.problem.on("xla")
    agree(f(*placed), f(*operands), name)


@pytest.mark.parametrize("placement", swept(PLACEMENTS, ["both"]))
def test_gradients_without_jit(placement):
    operation = OPERATIONS["dense"]
    operands = operation.problem.operands("float32")
    placed = place(operands, mesh_of(AxisType.Explicit), operation.specs(*PLACEMENTS[placement]))

    def gradients(operands):
        results, pull = jax.vjp(operation.problem.on("xla"), *operands)
        return pull(results)

    found = gradients(placed)
    for gradient, operand in zip(found, placed, strict=True):
        assert jax.typeof(gradient).sharding == jax.typeof(operand).sharding
    agree(found, gradients(operands), "gradients")


@pytest.mark.parametrize("placed_alone", [(0,), (1, 2)], ids=str)
def test_some_operands_placed_and_others_not(placed_alone):
    """Those that lie on one device have no mesh in their types."""
    operation = OPERATIONS["lengths"]
    operands = operation.problem.operands("float32")
    placed = place(operands, mesh_of(AxisType.Explicit), operation.specs("b", "h"))
    mixed = [placed[i] if i in placed_alone else np.asarray(x) for i, x in enumerate(operands)]
    f = jax.jit(operation.problem.on("xla"))
    agree(f(*mixed), f(*operands), "mixed")


def test_some_axes_explicit_and_others_not():
    mesh = jax.make_mesh((2, 2), ("b", "h"), axis_types=(AxisType.Explicit, AxisType.Auto))
    operation = OPERATIONS["dense"]
    operands = operation.problem.operands("float32")
    placed = place(operands, mesh, operation.specs("b", None))
    f = jax.jit(operation.problem.on("xla"))
    agree(f(*placed), f(*operands), "dense")


@pytest.mark.parametrize(
    ("name", "target"),
    swept(itertools.product(KERNELS, KERNEL_TARGETS), lambda _, target: target == "gfx950"),
)
def test_kernels(name, target):
    operation = OPERATIONS[name]
    operands = operation.problem.operands("bfloat16")
    placed = place(operands, mesh_of(AxisType.Explicit), operation.specs("b", "h"))
    f = jax.jit(operation.problem.on(target))
    agree(f(*placed), f(*operands), name)
