"""Varying manual axes: what shard_map's replication check must know of every value we make.

A result type without them makes gradients silently wrong under ``shard_map(check_vma=True)``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def varying_axes(array: Any) -> frozenset:
    """Manual mesh axes over which `array` varies."""
    aval = jax.typeof(array)
    if hasattr(aval, "manual_axis_type"):
        return frozenset(aval.manual_axis_type.varying)
    return frozenset(getattr(aval, "vma", ()))


def vary_over(array: jax.Array, axes: frozenset) -> jax.Array:
    """`array`, cast to vary over `axes` too."""
    missing = tuple(axes - varying_axes(array))
    return lax.pcast(array, missing, to="varying") if missing else array


def vary_together(*operands: Any) -> tuple:
    """The operands, each an array, None or a tuple of these, cast to vary over the same axes."""
    axes = frozenset().union(*map(varying_axes, jax.tree.leaves(operands)))
    return jax.tree.map(lambda x: vary_over(x, axes), operands)


def full(shape: tuple[int, ...], fill: float, dtype: Any, like: jax.Array) -> jax.Array:
    """jnp.full that varies over the axes of `like`."""
    return vary_over(jnp.full(shape, fill, dtype), varying_axes(like))
