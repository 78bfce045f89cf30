"""Where the blockwise implementation reads keys and values: flat operands, or pages of a pool.

Both give a block of one sequence's keys at a time, with zeros where the block leaves the sequence,
and take the gradients of a block back.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from jax_fa._mesh.vary import full
from jax_fa._xla.rows import Items

Pair = tuple[jax.Array, jax.Array]


class Block(NamedTuple):
    """A slice of at most `size` rows that stays inside its operand, and where its rows stand."""

    start: jax.Array  # flat
    index: jax.Array  # [size], within the sequence; may lie outside of it
    mine: jax.Array  # bool [size]: not part of another block

    @classmethod
    def of(cls, total: int, size: int, sequence_start: Any, first: Any) -> Block:
        """Rows `first` and on of the sequence that starts at `sequence_start` of `total` rows."""
        wanted = sequence_start + first
        start = jnp.clip(wanted, 0, total - size)
        index = start - sequence_start + jnp.arange(size, dtype=jnp.int32)
        return cls(start, index, index >= first)


class KeyBlock(NamedTuple):
    """A block of keys of one sequence among those of others."""

    start: jax.Array  # flat
    index: jax.Array  # [size], within the sequence; may lie outside of it
    mine: jax.Array  # bool [size]: not part of another block
    within: jax.Array  # bool [size]: inside of the sequence


class PageBlock(NamedTuple):
    """A block of keys that lie in pages."""

    index: jax.Array  # [size], within the sequence
    mine: jax.Array  # bool [size]
    within: jax.Array  # bool [size]: inside of the sequence
    page: jax.Array  # [size], in the pool; 0 where the index leaves the sequence
    row: jax.Array  # [size], in the page


class Keys(Protocol):
    """Keys and values of all sequences."""

    @property
    def capacity(self) -> int:
        """The most keys that a sequence can have."""
        ...

    @property
    def heads(self) -> int:
        """K."""
        ...

    @property
    def value_head_dim(self) -> int:
        """Hv."""
        ...

    def load(self, item: Items, block_index: Any, size: int) -> tuple[Any, jax.Array, jax.Array]:
        """(block, K [size, K, H], V [size, K, Hv]), zeros outside of the sequence."""
        ...

    def zeros(self, dtype: Any, like: jax.Array) -> Pair:
        """Where gradients of keys and values are summed."""
        ...

    def add(self, sums: Pair, block: Any, d_key: jax.Array, d_value: jax.Array) -> Pair:
        """`sums` with the gradients [size, K, H] and [size, K, Hv] of a block added.

        Only rows inside of the sequence count: those of others are 0 times what may be NaN.
        """
        ...


def _where(within: jax.Array, rows: jax.Array) -> jax.Array:
    return jnp.where(within[:, None, None], rows, 0)


def take(flat: jax.Array, start: Any, size: int) -> jax.Array:
    """Rows [start, start + size)."""
    return lax.dynamic_slice_in_dim(flat, start, size)


class FlatKeys(NamedTuple):
    """Key [*C, K, H] and value [*C, K, Hv]: all sequences one after another.

    Dimensions *C are joined where a block is loaded: joined before a loop, an operand of the
    program is copied whole by XLA on CPUs.
    """

    key: jax.Array
    value: jax.Array

    @property
    def capacity(self) -> int:
        """The product of *C."""
        return math.prod(self.key.shape[:-2])

    @property
    def heads(self) -> int:
        """K."""
        return self.key.shape[-2]

    @property
    def value_head_dim(self) -> int:
        """Hv."""
        return self.value.shape[-1]

    def flat(self) -> Pair:
        """[C, K, H] and [C, K, Hv]."""
        key, value = (x.reshape(self.capacity, *x.shape[-2:]) for x in self)
        return key, value

    def load(
        self, item: Items, block_index: Any, size: int
    ) -> tuple[KeyBlock, jax.Array, jax.Array]:
        """See Keys."""
        block = Block.of(self.capacity, size, item.key_start, block_index * size)
        # Rows of other sequences and past the length: NaN there must not come through 0 * NaN.
        within = (block.index >= 0) & (block.index < item.key_length)
        key, value = (_where(within, take(x, block.start, size)) for x in self.flat())
        return KeyBlock(*block, within), key, value

    def zeros(self, dtype: Any, like: jax.Array) -> Pair:
        """See Keys."""
        shapes = ((self.capacity, *x.shape[-2:]) for x in self)
        key, value = (full(shape, 0, dtype, like) for shape in shapes)
        return key, value

    def add(self, sums: Pair, block: KeyBlock, d_key: jax.Array, d_value: jax.Array) -> Pair:
        """See Keys."""

        def onto(flat: jax.Array, rows: jax.Array) -> jax.Array:
            new = take(flat, block.start, rows.shape[0]) + _where(block.within, rows)
            return lax.dynamic_update_slice_in_dim(flat, new, block.start, 0)

        return onto(sums[0], d_key), onto(sums[1], d_value)


class PagedKeys(NamedTuple):
    """Pages [P, page, K, H] and [P, page, K, Hv] ([P, K, page, H] with heads_first), tables [B, M].

    An entry of the table past the length is never an address; one within it that is outside of the
    pool gives some page's numbers.
    """

    k_pages: jax.Array
    v_pages: jax.Array
    block_tables: jax.Array
    heads_first: bool

    @property
    def _page_size(self) -> int:
        return self.k_pages.shape[2 if self.heads_first else 1]

    @property
    def capacity(self) -> int:
        """Positions that a table has: M * page."""
        if math.prod(self.k_pages.shape) == 0:
            return 0
        return min(self.block_tables.shape[1] * self._page_size, 2**31 - 1)

    @property
    def heads(self) -> int:
        """K."""
        return self.k_pages.shape[1 if self.heads_first else 2]

    @property
    def value_head_dim(self) -> int:
        """Hv."""
        return self.v_pages.shape[-1]

    def load(
        self, item: Items, block_index: Any, size: int
    ) -> tuple[PageBlock, jax.Array, jax.Array]:
        """See Keys."""
        index = block_index * size + jnp.arange(size, dtype=jnp.int32)
        within = index < item.key_length
        logical = jnp.where(within, index // self._page_size, 0)
        page = jnp.where(within, self.block_tables[item.sequence, logical], 0)
        page = jnp.clip(page, 0, self.k_pages.shape[0] - 1)
        # XLA on CPUs gathers bfloat16 by way of float32, and would convert the whole pool, once,
        # before the loop; tied to the page, it converts what is gathered.
        (k_pages, v_pages), page = lax.optimization_barrier(((self.k_pages, self.v_pages), page))
        block = PageBlock(index, jnp.ones_like(within), within, page, index % self._page_size)

        def rows(pages: jax.Array) -> jax.Array:
            found = pages[page, :, block.row] if self.heads_first else pages[page, block.row]
            return _where(within, found)

        return block, rows(k_pages), rows(v_pages)

    def zeros(self, dtype: Any, like: jax.Array) -> Pair:
        """See Keys."""
        return full(self.k_pages.shape, 0, dtype, like), full(self.v_pages.shape, 0, dtype, like)

    def add(self, sums: Pair, block: PageBlock, d_key: jax.Array, d_value: jax.Array) -> Pair:
        """See Keys."""

        def onto(pages: jax.Array, rows: jax.Array) -> jax.Array:
            at = (
                pages.at[block.page, :, block.row]
                if self.heads_first
                else pages.at[block.page, block.row]
            )
            return at.add(_where(block.within, rows))

        return onto(sums[0], d_key), onto(sums[1], d_value)
