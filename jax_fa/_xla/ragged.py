"""Tiles of sequences of any lengths, which only the device knows.

The list of tiles that are seen, all of a block of rows in turn, is cut into as many lanes of equal
length as a step has tiles. No block of rows has more tiles than a lane, so that no step meets it
twice. Blocks are smaller than those of sequences of one length: less of them lies past an end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.vary import full
from jax_fa._xla.keys import FlatKeys, KeyBlock, Keys, Pair
from jax_fa._xla.rows import Items, Sequences, Work, row_interval
from jax_fa._xla.tiles import FEW, KeyTile, Rows, add_part, even, wide

BLOCK = 512
"""Rows and keys of a tile, where there are so many."""

KEYS_OF_FEW_ROWS = 4096
_LOADED = 2**25  # elements of keys that a step gathers


class _Blocks(NamedTuple):
    """Blocks of rows, int32 [blocks] each, as Items has them."""

    sequence: jax.Array
    query_start: jax.Array
    key_start: jax.Array
    query_length: jax.Array
    key_length: jax.Array
    first_row: jax.Array
    start: jax.Array  # flat, of the slice of rows
    first_keys: jax.Array  # the first block of keys that its rows see


class Ragged(NamedTuple):
    """`width` tiles a step."""

    spec: AttentionSpec
    sequences: Sequences
    total_rows: int
    block: tuple[int, int]  # rows, keys
    width: int
    flat_keys: bool
    blocks: jax.Array  # _Blocks, as int32 [blocks, 8]
    block_ends: jax.Array  # [sequences]: blocks of rows of this sequence and all before it
    tile_ends: jax.Array  # [blocks]: tiles of this block of rows and all before it
    steps: Any  # traced: the length of a lane

    @classmethod
    def of(
        cls, spec: AttentionSpec, work: Work, total: int, keys: Keys, heads: int, scores: int
    ) -> Ragged:
        """For work on `total` rows."""
        sequences = work.sequences
        n = sequences.query_start.shape[0]
        t, s = _lengths(work, total, keys.capacity, n)
        rows = min(even(t, BLOCK), total)
        size = even(s, max(BLOCK, min(KEYS_OF_FEW_ROWS, BLOCK * BLOCK // rows)))
        slots = n * -(-work.batch[1] // rows) if work.batch else -(-total // rows) + min(n, total)
        width = min(
            scores // (heads * rows * size),
            _LOADED // max(1, size * keys.heads * keys.value_head_dim),
            slots if t <= rows else slots // 2,  # a triangle of tiles has lanes for half its rows
        )
        width = max(1, width)
        number = -(-sequences.query_length // rows)
        number = jnp.where(sequences.key_length > 0, number, 0)
        block_ends = jnp.cumsum(number, dtype=jnp.int32)
        index = jnp.arange(slots, dtype=jnp.int32)
        sequence = jnp.repeat(jnp.arange(n, dtype=jnp.int32), number, total_repeat_length=slots)
        row = (index - _before(block_ends, sequence)) * rows
        fields = (x[sequence] for x in sequences)
        blocks = _Blocks._make((sequence, *fields, row, row, row))
        last = jnp.minimum(row + rows, blocks.query_length) - 1
        begin, _ = row_interval(spec, blocks.query_length, blocks.key_length, row)
        _, end = row_interval(spec, blocks.query_length, blocks.key_length, last)
        begin = jnp.maximum(begin, 0)
        seen = (index < block_ends[-1]) & (begin < end)
        blocks = blocks._replace(
            start=jnp.clip(blocks.query_start + row, 0, total - rows), first_keys=begin // size
        )
        counts = jnp.where(seen, -(-end // size) - blocks.first_keys, 0)
        tile_ends = jnp.cumsum(counts, dtype=jnp.int32)
        steps = jnp.maximum(-(-tile_ends[-1] // width), jnp.max(counts))
        return cls(
            *(spec, sequences, total, (rows, size), width, isinstance(keys, FlatKeys)),
            *(jnp.stack(blocks, 1), block_ends, tile_ends, steps),
        )

    def tile(self, step: Any) -> Any:
        """(number of the block of rows, its fields, block of keys) of each lane, [W].

        A lane without a tile has a number past all blocks.
        """
        index = jnp.arange(self.width, dtype=jnp.int32) * self.steps + step
        number = jnp.sum(self.tile_ends[None] <= index[:, None], axis=1, dtype=jnp.int32)
        found = jnp.minimum(number, self.tile_ends.shape[0] - 1)
        blocks = _Blocks(*jnp.moveaxis(self.blocks[found], 1, 0))
        keys = blocks.first_keys + index - _before(self.tile_ends, found)
        # Past all, each lane to a place of its own.
        nowhere = self.tile_ends.shape[0] + jnp.arange(self.width, dtype=jnp.int32)
        return jnp.where(number == found, number, nowhere), blocks, keys

    def rows(self, tile: Any) -> Rows:
        """The rows of a step."""
        number, blocks, _ = tile
        index = jnp.arange(self.block[0], dtype=jnp.int32)[None]
        index = (blocks.start - blocks.query_start)[:, None] + index
        lengths = (x[:, None] for x in (blocks.query_length, blocks.key_length))
        valid = number < self.tile_ends.shape[0]
        mine = (index >= blocks.first_row[:, None]) & valid[:, None]
        return Rows((number, blocks.start), index, mine, *lengths)

    def take(self, flat: jax.Array, rows: Rows) -> jax.Array:
        """[W, rows, ...] of [R, ...]."""
        return self._rows(flat, rows.start[1], self.block[0])

    def _rows(self, flat: jax.Array, start: jax.Array, size: int) -> jax.Array:
        if self.width == 1:
            return lax.dynamic_slice_in_dim(flat, start[0], size)[None]
        return flat[start[:, None] + jnp.arange(size, dtype=jnp.int32)[None]]

    def sums(self, heads: tuple[int, int], tail: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what rows have in sum: by blocks."""
        return self.tile_ends.shape[0], heads[0], self.block[0], heads[1], *tail

    def part(self, sums: jax.Array, rows: Rows) -> jax.Array:
        """A step's part of sums, [W, K, rows, G, ...]."""
        number, _ = rows.start
        if self.width == 1:
            return lax.dynamic_slice_in_dim(sums, number[0], 1)
        return sums[jnp.minimum(number, sums.shape[0] - 1)]

    def put(self, sums: jax.Array, rows: Rows, new: jax.Array, old: jax.Array) -> jax.Array:
        """`sums` with `new` in place of the part `old`."""
        number, _ = rows.start
        if self.width == 1:
            # There is no step without a tile.
            return lax.dynamic_update_slice_in_dim(sums, new, number[0], 0)
        del old
        return sums.at[number].set(new, mode="drop", unique_indices=True)

    def flat(self, sums: jax.Array, fill: float = 0) -> jax.Array:
        """[R, N, ...] of sums, `fill` in the rows of no block."""
        row = jnp.arange(self.total_rows, dtype=jnp.int32)
        starts, lengths = self.sequences.query_start, self.sequences.query_length
        # Sequences stand in turn: a row's is the last that begins at or before it and is not empty.
        marks = jnp.zeros(self.total_rows + 1, jnp.int32)
        marks = marks.at[jnp.where(lengths > 0, starts, self.total_rows)].max(
            jnp.arange(starts.shape[0], dtype=jnp.int32)
        )
        sequence = lax.cummax(marks[:-1])
        place = row - starts[sequence]
        number = _before(self.block_ends, sequence) + place // self.block[0]
        known = (place >= 0) & (place < lengths[sequence])
        known &= self.sequences.key_length[sequence] > 0
        number = jnp.where(known, number, 0)
        found = sums[number, :, row - self.blocks[number, _Blocks._fields.index("start")]]
        found = found.reshape(self.total_rows, sums.shape[1] * sums.shape[3], *sums.shape[4:])
        return jnp.where(known.reshape(-1, *(1,) * (found.ndim - 1)), found, fill)

    def keys(self, keys: Keys, tile: Any) -> KeyTile:
        """The keys of a step."""
        _, blocks, block = tile
        size = self.block[1]
        if isinstance(keys, FlatKeys):
            start = jnp.clip(blocks.key_start + block * size, 0, keys.capacity - size)
            index = (start - blocks.key_start)[:, None] + jnp.arange(size, dtype=jnp.int32)[None]
            within = (index >= 0) & (index < blocks.key_length[:, None])
            at = KeyBlock(start, index, index >= (block * size)[:, None], within)
            key, value = (self._rows(x, start, size) for x in keys.flat())
            key, value = (jnp.where(wide(within, x), x, 0) for x in (key, value))
            return KeyTile(at, key, value, at.index, at.mine)
        items = Items(*blocks[:6])
        at, key, value = jax.vmap(lambda item, j: keys.load(item, j, size))(items, block)
        return KeyTile(at, key, value, at.index, at.mine)

    def key_sums(self, keys: Keys, dtype: Any, like: jax.Array) -> Pair:
        """Where gradients of keys and values are summed: in pages, or heads first."""
        if not isinstance(keys, FlatKeys):
            return keys.zeros(dtype, like)
        k, v = (full((1, x.shape[1], x.shape[0], x.shape[2]), 0, dtype, like) for x in keys.flat())
        return k, v

    def add(self, keys: Keys, sums: Pair, block: Any, *gradients: jax.Array) -> Pair:
        """`sums` with gradients [W, K, keys, ...] of the block added, inside of the sequences."""
        # One after another: lanes may share keys, and the order of a sum is its bits.
        for lane in range(self.width):
            at, *new = jax.tree.map(lambda x, i=lane: x[i], (block, *gradients))
            if isinstance(keys, FlatKeys):
                within, start = at.within[None], (0, at.start)
                k, v = (add_part(x, y[None], within, start) for x, y in zip(sums, new, strict=True))
                sums = k, v
            else:
                sums = keys.add(sums, at, *(jnp.swapaxes(x, 0, 1) for x in new))
        return sums

    def key_gradients(self, sums: Pair) -> Pair:
        """Sums as the operands are."""
        if not self.flat_keys:
            return sums
        k, v = (jnp.swapaxes(x[0], 0, 1) for x in sums)
        return k, v


def _lengths(work: Work, total: int, capacity: int, n: int) -> tuple[int, int]:
    """Rows and keys that a sequence may be expected to have."""
    if work.batch is not None:
        return work.batch[1], capacity

    def mean(rows: int) -> int:
        return min(rows, max(FEW, 1 << (-(-rows // max(n, 1)) - 1).bit_length()))

    keys = max(mean(capacity), min(capacity, work.expected or 0))
    return min(total, work.expected or mean(total)), keys


def _before(ends: jax.Array, part: jax.Array) -> jax.Array:
    """Where a part begins, of those that end at `ends`."""
    return jnp.where(part > 0, ends[jnp.maximum(part - 1, 0)], 0)
