"""Segments of padded rows, as packed sequences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


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
    segments = min(t, s)  # the most that one row can have with both queries and keys
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
