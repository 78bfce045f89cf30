"""Two spellings of packed sequences: segment ids per token, and cumulative lengths."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax_fa._contract.operands import Integers, as_integers
from jax_fa._mesh.sharding import in_auto_mode


class _Operands(NamedTuple):
    """What is converted."""

    array: jax.Array


def cu_seqlens_to_segment_ids(cu_seqlens: Integers, total: int) -> jax.Array:
    """Segment id of each packed token.

    Args:
      cu_seqlens: int32 [n + 1] or a list, non-decreasing offsets; sequence i is
        ``cu_seqlens[i]:cu_seqlens[i + 1]``.
      total: number of packed tokens, at least ``cu_seqlens[-1]``.

    Returns:
      int32 [total]: i for the tokens of sequence i, -1 (padding) from ``cu_seqlens[-1]`` on.

    Raises:
      TypeError: ``cu_seqlens`` has another dtype, or ``total`` is traced.
      ValueError: ``cu_seqlens`` is not one-dimensional with at least one entry, or one of them does
        not fit int32.
    """
    cu_seqlens = as_integers("cu_seqlens", cu_seqlens)
    _require_vector("cu_seqlens", cu_seqlens, 1)
    total = _require_static("total", total)
    return _segment_ids(total, _Operands(cu_seqlens))


def segment_ids_to_cu_seqlens(segment_ids: Integers, num_segments: int) -> jax.Array:
    """Cumulative lengths of the segments of one packed row.

    Args:
      segment_ids: int32 [total] or a list, non-decreasing over the tokens in use; negative entries
        are padding and stand at the end.
      num_segments: number of segments; ids are 0 <= id < num_segments.

    Returns:
      int32 [num_segments + 1]. Ids that do not occur give empty sequences.

    Raises:
      TypeError: ``segment_ids`` has another dtype, or ``num_segments`` is traced.
      ValueError: ``segment_ids`` is not one-dimensional, or one of them does not fit int32.
    """
    segment_ids = as_integers("segment_ids", segment_ids)
    _require_vector("segment_ids", segment_ids, 0)
    num_segments = _require_static("num_segments", num_segments)
    return _cu_seqlens(num_segments, _Operands(segment_ids))


@functools.partial(jax.jit, static_argnums=0)
def _segment_ids(total: int, operands: _Operands) -> jax.Array:
    def call(operands: _Operands) -> jax.Array:
        (cu_seqlens,) = operands
        positions = jnp.arange(total, dtype=jnp.int32)
        # A token's sequence is the number of those that end at or before it, empty ones included.
        ids = jnp.searchsorted(cu_seqlens[1:], positions, side="right").astype(jnp.int32)
        return jnp.where((positions >= cu_seqlens[0]) & (positions < cu_seqlens[-1]), ids, -1)

    return in_auto_mode(call, ("array", 0))(operands)


@functools.partial(jax.jit, static_argnums=0)
def _cu_seqlens(num_segments: int, operands: _Operands) -> jax.Array:
    def call(operands: _Operands) -> jax.Array:
        (segment_ids,) = operands
        used = jnp.where(segment_ids < 0, num_segments, segment_ids)
        counts = jnp.zeros(num_segments + 1, jnp.int32).at[used].add(1, mode="drop")[:num_segments]
        return jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(counts, dtype=jnp.int32)])

    return in_auto_mode(call, ("array", 0))(operands)


def _require_vector(name: str, array, minimum: int) -> None:
    if array.ndim != 1 or array.shape[0] < minimum:
        raise ValueError(
            f"{name} must have shape (n,) with n >= {minimum}; got shape {tuple(array.shape)}"
        )


def _require_static(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(
            f"{name} must be a Python integer, since it sets a shape; got {type(value).__name__}"
        )
    if value < 0:
        raise ValueError(f"{name} must be >= 0; got {value}")
    return int(value)
