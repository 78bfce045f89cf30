"""A mesh of four devices, arrays on it, and what the compiled program sends over it."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding


def mesh_of(kind: AxisType):
    return jax.make_mesh((2, 2), ("b", "h"), axis_types=(kind,) * 2)


def place(arrays, mesh, specs):
    return [jax.device_put(x, NamedSharding(mesh, s)) for x, s in zip(arrays, specs, strict=True)]


def run_divided(f, *arrays):
    """(the results of a jitted `f`, what its compiled program sends from device to device)."""
    program = f.lower(*arrays).compile()
    return program(*arrays), collectives_in(program.as_text())


def collectives_in(text: str) -> list[str]:
    """What a compiled program's text sends from device to device."""
    return re.findall(r" (all-[\w-]+|collective-[\w-]+|reduce-scatter)\(", text)


def assert_same(actual, expected):
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def scalar_of(attend):
    """A scalar function of the operands through which both out and lse have gradients."""

    def total(*arrays):
        out, lse = attend(*arrays)
        return jnp.sum(jnp.sin(out)) + jnp.sum(jnp.where(lse > -1e30, lse, 0))

    return total
