"""Two spellings of packed sequences: segment ids per token, and cumulative lengths."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax_fa._contract import shapes as _shapes


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


def cu_seqlens_to_segment_ids(cu_seqlens: jax.Array, total: int) -> jax.Array:
    """Segment id of each packed token.

    Args:
      cu_seqlens: int32 [n + 1], non-decreasing offsets; sequence i is
        ``cu_seqlens[i]:cu_seqlens[i + 1]``.
      total: number of packed tokens, at least ``cu_seqlens[-1]``.

    Returns:
      int32 [total]: i for the tokens of sequence i, -1 (padding) from ``cu_seqlens[-1]`` on.

    Raises:
      TypeError: ``cu_seqlens`` is not int32, or ``total`` is traced.
      ValueError: ``cu_seqlens`` is not one-dimensional with at least one entry.
    """
    cu_seqlens = _shapes.as_integers("cu_seqlens", cu_seqlens)
    _require_vector("cu_seqlens", cu_seqlens, 1)
    total = _require_static("total", total)
    positions = jnp.arange(total, dtype=jnp.int32)
    # The count of ends at or before a token is its sequence; empty sequences are stepped over.
    ids = jnp.searchsorted(cu_seqlens[1:], positions, side="right").astype(jnp.int32)
    return jnp.where((positions >= cu_seqlens[0]) & (positions < cu_seqlens[-1]), ids, -1)


def segment_ids_to_cu_seqlens(segment_ids: jax.Array, num_segments: int) -> jax.Array:
    """Cumulative lengths of the segments of one packed row.

    Args:
      segment_ids: int32 [total], non-decreasing over the tokens in use; negative entries are
        padding and stand at the end.
      num_segments: number of segments; ids are 0 <= id < num_segments.

    Returns:
      int32 [num_segments + 1]. Ids that do not occur give empty sequences.

    Raises:
      TypeError: ``segment_ids`` is not int32, or ``num_segments`` is traced.
      ValueError: ``segment_ids`` is not one-dimensional.
    """
    segment_ids = _shapes.as_integers("segment_ids", segment_ids)
    _require_vector("segment_ids", segment_ids, 0)
    num_segments = _require_static("num_segments", num_segments)
    used = jnp.where(segment_ids < 0, num_segments, segment_ids)
    counts = jnp.zeros(num_segments + 1, jnp.int32).at[used].add(1, mode="drop")[:num_segments]
    return jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(counts, dtype=jnp.int32)])


def packed_offsets(
    query_segment_ids: jax.Array, key_segment_ids: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Segments of rows [B, T] and keys [B, S], as sequences packed into B T rows and B S keys.

    Returns:
      (cu_seqlens_q, cu_seqlens_k, count): int32, the offsets of one length, which depends on B, T
      and S alone; only the first `count` of their sequences are not empty. Each segment that has
      both rows and keys is a sequence; what stands between two of them is a sequence without keys
      and one without rows. Ids that are not sorted give any offsets.
    """
    batch, t = query_segment_ids.shape
    s = key_segment_ids.shape[1]
    segments = min(t, s)  # of one row, that have both
    find = jax.vmap(jnp.searchsorted, in_axes=(0, 0))
    find_last = jax.vmap(lambda a, v: jnp.searchsorted(a, v, side="right"))
    so_far = lax.cummax(jnp.maximum(query_segment_ids, -1), axis=1)
    opens = query_segment_ids > jnp.pad(so_far, ((0, 0), (1, 0)), constant_values=-1)[:, :t]
    end_q = find_last(_from_here_on(query_segment_ids), query_segment_ids)
    begin_k = find(lax.cummax(key_segment_ids, axis=1), query_segment_ids)
    end_k = find_last(_from_here_on(key_segment_ids), query_segment_ids)
    opens &= begin_k < end_k

    slot = jnp.where(opens, jnp.cumsum(opens, axis=1) - 1, segments)
    sequence = jnp.arange(batch, dtype=jnp.int32)[:, None]

    def of_segments(values: jax.Array, length: int) -> jax.Array:
        """[B, segments], offsets into all B sequences; unused slots lie at the sequence's end."""
        table = jnp.full((batch, segments), length, jnp.int32)
        table = table.at[sequence, slot].set(values.astype(jnp.int32), mode="drop")
        return (table + sequence * length).reshape(-1)

    begin_q = of_segments(jnp.broadcast_to(jnp.arange(t), (batch, t)), t)
    end_q, begin_k, end_k = of_segments(end_q, t), of_segments(begin_k, s), of_segments(end_k, s)
    zero, last_q = jnp.zeros(1, jnp.int32), jnp.full(1, batch * t, jnp.int32)
    next_q = jnp.concatenate([begin_q[1:], last_q])[: begin_q.size]
    first_q = jnp.concatenate([begin_q, last_q])[:1]
    offsets_q = jnp.stack([begin_q, end_q, next_q], 1).reshape(-1)
    offsets_k = jnp.stack([begin_k, end_k, end_k], 1).reshape(-1)
    return _without_empty(
        jnp.concatenate([zero, first_q, offsets_q]),
        jnp.concatenate([zero, zero, offsets_k]),
    )


def _without_empty(
    offsets_q: jax.Array, offsets_k: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The offsets, sequences that have neither rows nor keys moved to the end; how many have."""
    used = (jnp.diff(offsets_q) > 0) | (jnp.diff(offsets_k) > 0)
    slot = jnp.where(used, jnp.cumsum(used) - 1, offsets_q.size)

    def moved(offsets: jax.Array) -> jax.Array:
        ends = jnp.broadcast_to(offsets[-1], offsets.shape)
        return ends.at[slot].set(offsets[:-1], mode="drop")

    return moved(offsets_q), moved(offsets_k), jnp.sum(used)


def _from_here_on(ids: jax.Array) -> jax.Array:
    """The least id that is no padding, at or after each token of [B, T]; sorted."""
    ids = jnp.where(ids < 0, jnp.iinfo(jnp.int32).max, ids)
    return lax.cummin(ids, axis=1, reverse=True)
