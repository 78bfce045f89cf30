"""Segments of padded rows, as packed sequences."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
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
    # A scan, a search or a scatter takes XLA a tenth of a second to compile, a sort a tenth of it:
    # what is kept moves to the front by sorting, and the scans and searches are made as one.
    batch, t = query_segment_ids.shape
    s = key_segment_ids.shape[1]
    segments = min(t, s)  # the most that one row can have with both queries and keys
    opens, end_q, begin_k, end_k = _places(query_segment_ids, key_segment_ids)
    begin_q = lax.broadcasted_iota(jnp.int32, (batch, t), 1)
    places = _moved_to_front(
        opens & (begin_k < end_k), [begin_q, end_q, begin_k, end_k], [t, t, s, s]
    )

    sequence = jnp.arange(batch, dtype=jnp.int32)[:, None]
    begin_q, end_q, begin_k, end_k = (
        (place[:, :segments] + sequence * length).reshape(-1)
        for place, length in zip(places, [t, t, s, s], strict=True)
    )
    next_q = jnp.append(begin_q, jnp.int32(batch * t))
    offsets_q = jnp.stack([begin_q, end_q, next_q[1:]], axis=1).reshape(-1)
    offsets_k = jnp.stack([begin_k, end_k, end_k], axis=1).reshape(-1)
    return _without_empty(
        jnp.concatenate([jnp.zeros(1, jnp.int32), next_q[:1], offsets_q]),
        jnp.concatenate([jnp.zeros(2, jnp.int32), offsets_k]),
    )


def _moved_to_front(
    kept: jax.Array, values: Sequence[jax.Array], others: Sequence[int | jax.Array]
) -> Sequence[jax.Array]:
    """The values at which `kept` holds, in their order along the last axis; then the other one."""
    filled = [jnp.where(kept, value, other) for value, other in zip(values, others, strict=True)]
    return lax.sort([~kept, *filled], num_keys=1)[1:]


def _places(
    query_ids: jax.Array, key_ids: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """What is known of the segment of each row [B, T].

    Returns:
      Whether it begins there; where in its sequence it ends, its keys begin and its keys end.
    """
    (batch, t), (_, s) = query_ids.shape, key_ids.shape
    longest = max(t, s)

    def padded(ids: jax.Array, padding: int) -> jax.Array:
        return jnp.pad(ids, ((0, 0), (0, longest - ids.shape[1])), constant_values=padding)

    # Scanned, the former tell the last id so far, -1 before the first; the latter tell, backwards
    # and negative, the least id from here on that is no padding: that is past all of them.
    past = np.iinfo(np.int32).min
    so_far = [padded(query_ids, -1), padded(key_ids, np.iinfo(np.int32).max)]
    on = [padded(jnp.where(ids < 0, past, -ids), past)[:, ::-1] for ids in (query_ids, key_ids)]
    queries_so_far, keys_so_far, queries_on, keys_on = lax.cummax(jnp.stack([*so_far, *on]), axis=2)

    before = jnp.concatenate([jnp.full((batch, 1), -1), queries_so_far], axis=1)[:, :t]
    opens = query_ids > jnp.maximum(before, -1)
    find = jax.vmap(jax.vmap(jnp.searchsorted))
    begin_k, past_q, past_k = find(
        jnp.stack([keys_so_far, queries_on, keys_on]),
        jnp.stack([query_ids, -query_ids, -query_ids]),
    )
    return opens, longest - past_q, begin_k, longest - past_k


def _without_empty(
    offsets_q: jax.Array, offsets_k: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The offsets, sequences that have neither rows nor keys moved to the end; how many have."""
    used = (offsets_q[1:] > offsets_q[:-1]) | (offsets_k[1:] > offsets_k[:-1])
    last_q, last_k = offsets_q[-1:], offsets_k[-1:]
    begins = _moved_to_front(used, [offsets_q[:-1], offsets_k[:-1]], [last_q, last_k])
    return (
        jnp.concatenate([begins[0], last_q]),
        jnp.concatenate([begins[1], last_k]),
        jnp.sum(used, dtype=jnp.int32),
    )
