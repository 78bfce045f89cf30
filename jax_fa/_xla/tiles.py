"""Tiles: which rows and keys the batched implementation takes at a time.

A tile is a block of rows of one sequence and a block of its keys. A step of the loop takes as many
tiles as make its products large, and never two with rows in common: aligned.py for sequences of
one length, ragged.py for those of any. What rows and keys have in sum, from all their tiles, is
[B, K, R, ...]: heads first, so that a step's part of it is changed in place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jax_fa._contract.spec import AttentionSpec
from jax_fa._xla.keys import Pair
from jax_fa._xla.rows import row_interval

BLOCK = 1024
"""Rows and keys of a tile, where there are so many."""

FEW = 64
"""Blocks are multiples of it, where there are several."""


class Rows(NamedTuple):
    """The rows of a step's tiles, [W, rows]; W may be 1 where they are alike in all."""

    start: Any  # of the slices
    index: jax.Array  # within the sequence; may lie outside of it
    mine: jax.Array  # bool: not part of another block
    query_length: jax.Array  # [W, 1], as key_length
    key_length: jax.Array

    def interval(self, spec: AttentionSpec) -> Pair:
        """Keys [begin, end) that each row sees."""
        shape = jnp.broadcast_shapes(self.index.shape, self.query_length.shape)
        index = jnp.broadcast_to(self.index, shape)
        begin, end = row_interval(spec, self.query_length, self.key_length, index)
        return begin, jnp.where(self.mine, end, 0)


class KeyTile(NamedTuple):
    """The keys of a step's tiles."""

    block: Any  # what `add` needs
    key: jax.Array  # [W, keys, K, H], zeros outside of the sequence
    value: jax.Array  # [W, keys, K, Hv]
    index: jax.Array  # [W, keys], within the sequence; W may be 1
    mine: jax.Array  # bool: not part of another block


def block_sizes(t: int, s: int, heads: int, scores: int) -> tuple[int, int]:
    """Rows and keys of tiles of up to `scores` scores of all heads, where T and S are so long."""
    area = BLOCK * BLOCK
    rows = even(t, BLOCK)
    keys = even(s, max(BLOCK, area // rows))
    rows = even(t, max(BLOCK, area // keys))
    while heads * rows * keys > scores and rows > 2 * FEW:
        rows = even(t, rows // 2)
    return rows, keys


def even(total: int, limit: int) -> int:
    """The size of as few blocks of at most `limit` as make up `total`, all of about one size."""
    blocks = -(-total // max(limit, 1))
    size = -(-total // blocks)
    return size if blocks == 1 else min(total, -(-size // FEW) * FEW)


def starts(array: jax.Array, sequence: Any, row: Any, axis: int = 1) -> list:
    starts = [0] * array.ndim
    starts[0], starts[axis] = sequence, row
    return [jnp.int32(x) for x in starts]


def part_of(sums: jax.Array, at: tuple[Any, Any], size: tuple[int, int]) -> jax.Array:
    """[W, K, rows, ...] of [B, K, R, ...]."""
    w, rows = size
    return lax.dynamic_slice(
        sums, starts(sums, *at, axis=2), (w, sums.shape[1], rows, *sums.shape[3:])
    )


def put_part(sums: jax.Array, new: jax.Array, at: tuple[Any, Any]) -> jax.Array:
    return lax.dynamic_update_slice(sums, new, starts(sums, *at, axis=2))


def add_part(sums: jax.Array, new: jax.Array, within: jax.Array, at: tuple[Any, Any]) -> jax.Array:
    """`sums` [B, K, S, ...] with `new` [W, K, keys, ...] added at `at` where `within` [W, keys]."""
    old = part_of(sums, at, (new.shape[0], new.shape[2]))
    return put_part(sums, old + jnp.where(within[:, None, :, None], new, 0), at)


def either(rows: Rows, new: jax.Array, old: jax.Array) -> jax.Array:
    """Parts [W, K, rows, G, ...]: `new` in the rows of this block, else `old`."""
    mine = rows.mine.reshape(rows.mine.shape[0], 1, -1, *(1,) * (new.ndim - 3))
    return jnp.where(mine, new, old)


def wide(mask: jax.Array, like: jax.Array) -> jax.Array:
    """A mask [W, rows] with as many dimensions as `like`."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - 2))
