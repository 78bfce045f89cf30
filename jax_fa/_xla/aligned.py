"""Tiles of sequences of one length: the same tile of several of them a step, in slices.

Which tiles are seen is known when the program is traced. Lengths hide rows and keys, but save work
only by way of the diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax_fa._contract.spec import OPEN, AttentionSpec
from jax_fa._mesh.vary import full
from jax_fa._xla.keys import FlatKeys, Keys, Pair
from jax_fa._xla.rows import Sequences, Work
from jax_fa._xla.tiles import (
    KeyTile,
    Rows,
    add_part,
    block_sizes,
    either,
    part_of,
    put_part,
    starts,
    wide,
)


class Aligned(NamedTuple):
    """Tiles of `batch` sequences of T rows on S keys each, `width` sequences a step."""

    spec: AttentionSpec
    sequences: Sequences
    sizes: tuple[int, int, int]  # B, T, S
    block: tuple[int, int]  # rows, keys
    width: int
    table: np.ndarray  # int32 [steps, 3]: first sequence, first row, block of keys

    @classmethod
    def of(cls, spec: AttentionSpec, work: Work, s: int, heads: int, scores: int) -> Aligned:
        """For dense `work`; lengths hide, but do not save work below the diagonal."""
        assert work.batch is not None
        batch, t = work.batch
        rows, keys = block_sizes(t, s, heads, scores)
        fitting = max(1, scores // (heads * rows * keys))
        width = max(x for x in range(1, batch + 1) if batch % x == 0 and x <= fitting)
        pairs = list(_seen(spec, t, s, rows, keys, known=spec.top_left or not work.lengths))
        table = [(b, *pair) for b in range(0, batch, width) for pair in pairs]
        table = np.asarray(table, np.int32).reshape(-1, 3)
        return cls(spec, work.sequences, (batch, t, s), (rows, keys), width, table)

    @property
    def steps(self) -> int:
        """Of the loop."""
        return len(self.table)

    def tile(self, step: Any) -> Any:
        """Of a step: a number, or traced."""
        if isinstance(step, int):
            return tuple(int(x) for x in self.table[step])
        return tuple(jnp.asarray(self.table)[step])

    def rows(self, tile: Any) -> Rows:
        """The rows of a step."""
        first_sequence, first, _ = tile
        start = _clip(first, self.sizes[1] - self.block[0])
        index = start + jnp.arange(self.block[0], dtype=jnp.int32)[None]
        lengths = (self._of(x, first_sequence) for x in self.sequences[2:4])
        return Rows((first_sequence, start), index, index >= first, *lengths)

    def _of(self, lengths: jax.Array, first_sequence: Any) -> jax.Array:
        return lax.dynamic_slice_in_dim(lengths, first_sequence, self.width)[:, None]

    def take(self, flat: jax.Array, rows: Rows) -> jax.Array:
        """[W, rows, ...] of [R, ...]."""
        shaped = self._shaped(flat, 1)
        size = self.width, self.block[0], *shaped.shape[2:]
        return lax.dynamic_slice(shaped, starts(shaped, *rows.start), size)

    def sums(self, heads: tuple[int, int], tail: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what rows have in sum: heads first, so that a step's part is in place."""
        return self.sizes[0], heads[0], self.sizes[1], heads[1], *tail

    def part(self, sums: jax.Array, rows: Rows) -> jax.Array:
        """A step's part of sums, [W, K, rows, G, ...]."""
        return part_of(sums, rows.start, (self.width, self.block[0]))

    def put(self, sums: jax.Array, rows: Rows, new: jax.Array, old: jax.Array) -> jax.Array:
        """`sums` with `new` in place of the part `old`, in the rows of this block."""
        return put_part(sums, either(rows, new, old), rows.start)

    def flat(self, sums: jax.Array, fill: float = 0) -> jax.Array:
        """[R, N, ...] of sums."""
        del fill  # no row is without a block
        b, k_heads, t, group, *tail = sums.shape
        return jnp.swapaxes(sums, 1, 2).reshape(b * t, k_heads * group, *tail)

    def _shaped(self, flat: jax.Array, side: int) -> jax.Array:
        return flat.reshape(self.sizes[0], self.sizes[side], *flat.shape[1:])

    def keys(self, keys: Keys, tile: Any) -> KeyTile:
        """The keys of a step."""
        assert isinstance(keys, FlatKeys)
        first_sequence, _, block = tile
        size = self.block[1]
        start = _clip(block * size, self.sizes[2] - size)
        index = start + jnp.arange(size, dtype=jnp.int32)[None]
        within = index < self._of(self.sequences.key_length, first_sequence)
        at = first_sequence, start
        shaped = [self._shaped(x, 2) for x in keys.flat()]
        key, value = (
            lax.dynamic_slice(x, starts(x, *at), (self.width, size, *x.shape[2:])) for x in shaped
        )
        key, value = (jnp.where(wide(within, x), x, 0) for x in (key, value))
        return KeyTile((at, within), key, value, index, index >= block * size)

    def key_sums(self, keys: Keys, dtype: Any, like: jax.Array) -> Pair:
        """Where gradients of keys and values are summed: heads first."""
        (b, _, s), k_heads = self.sizes, keys.heads
        sizes = like.shape[-1], keys.value_head_dim
        k, v = (full((b, k_heads, s, size), 0, dtype, like) for size in sizes)
        return k, v

    def add(self, keys: Keys, sums: Pair, block: Any, *gradients: jax.Array) -> Pair:
        """`sums` with gradients [W, K, keys, ...] of the block added, inside of the sequences."""
        del keys
        at, within = block
        k, v = (add_part(x, new, within, at) for x, new in zip(sums, gradients, strict=True))
        return k, v

    def key_gradients(self, sums: Pair) -> Pair:
        """[C, K, ...] of sums."""
        k, v = (jnp.swapaxes(x, 1, 2).reshape(-1, x.shape[1], x.shape[3]) for x in sums)
        return k, v

    def bias(self, bias: jax.Array, tile: Any, rows: Rows, keys: KeyTile) -> tuple[Any, Any]:
        """(starts, the part [W, rows, Nb, keys] of [Bb, Tb, Nb, Sb]); a 1 stands for all."""
        del tile
        (sequence, row), ((_, key), _) = rows.start, keys.block
        wanted = (sequence, self.width), (row, self.block[0]), (0, 0), (key, self.block[1])
        shared = [size == 1 or axis == 2 for axis, size in enumerate(bias.shape)]
        starts = [0 if x else want[0] for x, want in zip(shared, wanted, strict=True)]
        sizes = [
            have if x else want[1] for x, have, want in zip(shared, bias.shape, wanted, strict=True)
        ]
        starts = [jnp.int32(x) for x in starts]
        return starts, lax.dynamic_slice(bias, starts, sizes)


def _seen(
    spec: AttentionSpec, t: int, s: int, rows: int, keys: int, known: bool
) -> Iterator[tuple[int, int]]:
    """(first row, block of keys) of each tile with a pair that is seen, as far as is known."""
    for first in range(0, t, rows):
        last = min(first + rows, t) - 1
        shift = 0 if spec.top_left else s - t
        begin, end = 0, s
        if known and spec.window_left != OPEN:
            begin = max(0, first + shift - spec.window_left)
        if known and spec.window_right != OPEN:
            end = min(s, last + shift + spec.window_right + 1)
        for block in range(begin // keys, -(-max(end, begin) // keys)):
            yield first, block


def _clip(start: Any, limit: int) -> Any:
    return min(start, limit) if isinstance(start, int) else jnp.minimum(start, limit)
