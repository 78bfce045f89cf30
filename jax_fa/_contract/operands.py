"""Operands as JAX arrays: what is taken for one.

Integer operands are int32. Numbers that are known, in lists and NumPy arrays of any integer type,
are taken where they fit; a jax.Array is of int32 already, since it may be traced or on a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

Integers: TypeAlias = ArrayLike | Sequence[int] | Sequence[Sequence[int]]
"""An array of int32, or known integers that fit."""


def as_array(name: str, operand: Any) -> jax.Array:
    """`operand` as a JAX array, or a TypeError that names it."""
    if not isinstance(operand, (jax.Array, np.ndarray)) and not hasattr(operand, "__jax_array__"):
        raise TypeError(f"{name} must be an array; got {type(operand).__name__}")
    if isinstance(operand, np.ndarray) and operand.dtype.kind in "OSUMm":
        raise TypeError(f"{name} must be an array of numbers; got dtype {operand.dtype}")
    return jnp.asarray(operand)


def optional_integers(name: str, operand: Any) -> jax.Array | None:
    """`operand` as an int32 JAX array, or a TypeError or ValueError; None stays None."""
    return None if operand is None else as_integers(name, operand)


def as_integers(name: str, operand: Any) -> jax.Array:
    """`operand` as an int32 JAX array.

    Raises:
      TypeError: it is no array of integers, or a jax.Array of another dtype than int32.
      ValueError: a number does not fit.
    """
    if isinstance(operand, (list, tuple)):
        operand = _from_list(name, operand)
    if isinstance(operand, np.ndarray) and operand.dtype.kind in "iu":
        operand = _narrowed(name, operand)
    if hasattr(operand, "dtype"):  # before JAX would narrow a NumPy array
        require_int32(name, operand)
    return as_array(name, operand)


def require_int32(name: str, operand: Any) -> None:
    """Raises TypeError unless `operand` is int32."""
    if operand.dtype != jnp.int32:
        raise TypeError(f"{name} must have dtype int32; got {operand.dtype}")


def _from_list(name: str, numbers: Any) -> Any:
    """A list or tuple as an array, a jax.Array if that is in it."""
    if any(isinstance(x, jax.Array) for x in jax.tree.leaves(numbers)):
        return jnp.asarray(numbers)
    try:
        array = np.asarray(numbers)
    except ValueError:
        array = np.asarray(None)
    if array.size == 0:
        return array.astype(np.int32)
    if array.dtype == object and all(isinstance(x, int) for x in array.reshape(-1)):
        raise ValueError(f"{name} must have numbers that fit int32; got {numbers}")
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must be an array of int32, or a list of integers or of equally long such "
            f"lists; got {numbers}"
        )
    return array


def _narrowed(name: str, array: np.ndarray) -> np.ndarray:
    """An array of integers, as int32."""
    if array.size and not -(2**31) <= array.min() <= array.max() < 2**31:
        raise ValueError(
            f"{name} must have numbers that fit int32; got dtype {array.dtype}, numbers from "
            f"{array.min()} to {array.max()}"
        )
    return array.astype(np.int32)
