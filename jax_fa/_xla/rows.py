"""Work items: which rows of which sequence the blockwise implementation takes at a time.

Rows are flat: those of all sequences one after another, whether padded to one length (dense) or
packed (variable length). An item is up to block_q rows of one sequence, and everything about it
that the inner loops need.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jax_fa._contract.spec import OPEN, AttentionSpec

BLOCK_Q = 128


class Items(NamedTuple):
    """int32 [items] each."""

    sequence: jax.Array
    query_start: jax.Array  # flat index of the sequence's first row
    key_start: jax.Array  # flat index of the sequence's first key, where keys are flat
    query_length: jax.Array  # T_b
    key_length: jax.Array  # S_b
    first_row: jax.Array  # of the item, within its sequence


class Sequences(NamedTuple):
    """int32 [sequences] each; as in Items."""

    query_start: jax.Array
    key_start: jax.Array
    query_length: jax.Array
    key_length: jax.Array


class Work(NamedTuple):
    """The items of a call. Rows of no item are empty."""

    items: Items
    count: Any  # items in use; may be traced, so that surplus ones cost nothing
    block_q: int  # rows of an item, at most all rows
    sequences: Sequences
    longest: int | None = None  # keys of a sequence, where known
    batch: tuple[int, int] | None = None  # (sequences, rows of each), where they are alike
    lengths: bool = True  # whether these may be less than there are rows and keys
    expected: int | None = None  # a guess at the longest query length


def block_q(rows: int) -> int:
    """Rows of an item when a sequence has up to `rows` rows."""
    return max(1, min(BLOCK_Q, rows))


def dense_work(
    batch: int,
    t: int,
    s: int,
    query_lengths: jax.Array | None,
    key_lengths: jax.Array | None,
) -> Work:
    """Items of [batch, T] rows on up to S keys each; lengths are [batch]."""
    size = block_q(t)
    blocks = -(-t // size)
    number = jnp.arange(batch, dtype=jnp.int32)

    def clipped(lengths: jax.Array | None, limit: int) -> jax.Array:
        if lengths is None:
            return jnp.full(number.shape, limit, jnp.int32)
        return jnp.clip(lengths, 0, limit)

    sequences = Sequences(
        query_start=number * t,
        key_start=number * s,
        query_length=clipped(query_lengths, t),
        key_length=clipped(key_lengths, s),
    )
    sequence = jnp.repeat(number, blocks)
    first_row = jnp.tile(jnp.arange(blocks, dtype=jnp.int32) * size, batch)
    items = Items._make((sequence, *(field[sequence] for field in sequences), first_row))
    lengths = query_lengths is not None or key_lengths is not None
    return Work(items, first_row.shape[0], size, sequences, s, (batch, t), lengths)


def packed_work(
    cu_seqlens_q: jax.Array,
    key_start: jax.Array,
    key_length: jax.Array,
    total: int,
    longest: int | None = None,
) -> Work:
    """Items of sequences packed into `total` rows, whatever their lengths.

    cu_seqlens_q: int32 [n + 1], monotone and within [0, total]; key_start and key_length: [n].
    longest: a guess at the longest query length; a wrong one costs time alone.
    """
    size = block_q(total if longest is None else min(total, longest))
    query_start, query_length = cu_seqlens_q[:-1], jnp.diff(cu_seqlens_q)
    n = query_start.shape[0]
    # Rows on no keys are empty: no item.
    blocks = jnp.where(key_length > 0, -(-query_length // size), 0)
    ends = jnp.cumsum(blocks, dtype=jnp.int32)
    slots = -(-total // size) + n if n else 0
    sequence = jnp.repeat(jnp.arange(n, dtype=jnp.int32), blocks, total_repeat_length=slots)
    sequences = Sequences(query_start, key_start, query_length, key_length)
    first_row = (jnp.arange(slots, dtype=jnp.int32) - (ends - blocks)[sequence]) * size
    items = Items._make((sequence, *(field[sequence] for field in sequences), first_row))
    return Work(items, ends[-1] if n else 0, size, sequences, expected=longest)


def monotone(cu_seqlens: jax.Array, total: int) -> jax.Array:
    """Offsets that nobody can be led astray by: within [0, total] and never decreasing."""
    return lax.cummax(jnp.clip(cu_seqlens, 0, total), axis=cu_seqlens.ndim - 1)


def joined_packs(cu_seqlens: jax.Array, total: int) -> jax.Array:
    """Offsets [A, n + 1] into each of A packs, made offsets into the packs one after another."""
    packs = jnp.arange(cu_seqlens.shape[0], dtype=jnp.int32)
    return monotone(cu_seqlens, total) + packs[:, None] * total


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
