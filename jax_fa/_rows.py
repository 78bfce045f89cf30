"""Work items: which rows of which sequence the blockwise implementation takes at a time.

Operands are flat: rows [R, N, H] and keys [C, K, H] of all sequences one after another, whether
padded to one length (dense) or packed (variable length). An item is up to block_q rows of one
sequence, and everything about it that the inner loops need.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jax_fa._spec import OPEN, AttentionSpec


class Items(NamedTuple):
    """int32 [items] each."""

    query_start: jax.Array  # flat index of the sequence's first row
    key_start: jax.Array  # flat index of the sequence's first key
    query_length: jax.Array  # T_b
    key_length: jax.Array  # S_b
    first_row: jax.Array  # of the item, within its sequence


def dense_items(
    batch: int,
    t: int,
    s: int,
    query_lengths: jax.Array | None,
    key_lengths: jax.Array | None,
    block_q: int,
) -> Items:
    """Items of [batch, T] rows on [batch, S] keys; lengths are [batch]."""
    blocks = -(-t // block_q)
    sequence = jnp.repeat(jnp.arange(batch, dtype=jnp.int32), blocks)
    first_row = jnp.tile(jnp.arange(blocks, dtype=jnp.int32) * block_q, batch)

    def of_sequence(lengths: jax.Array | None, limit: int) -> jax.Array:
        if lengths is None:
            return jnp.full(sequence.shape, limit, jnp.int32)
        return jnp.clip(lengths, 0, limit)[sequence]

    return Items(
        query_start=sequence * t,
        key_start=sequence * s,
        query_length=of_sequence(query_lengths, t),
        key_length=of_sequence(key_lengths, s),
        first_row=first_row,
    )


def row_interval(
    spec: AttentionSpec, query_length: jax.Array, key_length: jax.Array, row: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Keys [begin, end) that rows of a sequence see; empty past the query length. All int32."""
    diagonal = row if spec.top_left else row + key_length - query_length
    begin = jnp.zeros_like(diagonal)
    end = jnp.broadcast_to(key_length, diagonal.shape)
    if spec.window_left != OPEN:
        begin = jnp.maximum(begin, diagonal - spec.window_left)
    if spec.window_right != OPEN:
        end = jnp.minimum(end, diagonal + spec.window_right + 1)
    return begin, jnp.where((row >= 0) & (row < query_length), end, 0)
