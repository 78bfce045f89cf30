"""append_to_pages: new keys and values into a paged cache."""

from __future__ import annotations

import jax
from jax.typing import ArrayLike

from jax_fa._contract import shapes
from jax_fa._contract.operands import Integers, as_array, as_integers, optional_integers
from jax_fa._contract.spec import parse_layout
from jax_fa._ops.append import Operands, append


def append_to_pages(
    k_pages: ArrayLike,
    v_pages: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    block_tables: Integers,
    key_lengths: Integers,
    *,
    new_lengths: Integers | None = None,
    layout: str = "NHD",
) -> tuple[jax.Array, jax.Array]:
    """Writes new tokens into a paged cache; donate the pages to update them in place.

    Token t < new_lengths[b] of sequence b goes to position key_lengths[b] + t: page
    ``block_tables[b, position // page]``, row ``position % page``. Positions outside the table,
    and pages outside the pool, are dropped.

    Args:
      k_pages: [P, page, K, H], or [P, K, page, H] with ``layout="HND"``.
      v_pages: [P, page, K, Hv], likewise.
      key: [B, T, K, H], cast to the dtype of the pages.
      value: [B, T, K, Hv], likewise.
      block_tables: int32 [B, M], logical page -> physical page.
      key_lengths: int32 [B], tokens in the cache before the append.
      new_lengths: int32 [B], how many of the T tokens count; all by default. These three may be
        lists or NumPy arrays of any integer type.
      layout: "NHD" or "HND".

    Returns:
      (k_pages, v_pages) with the new tokens. In place where the pages are donated or carried by a
      loop; bfloat16 pages on CPUs are copied where jit divides them over devices, and in programs
      for export.

    Raises:
      ValueError: a shape or the layout is wrong, or a number does not fit int32.
      TypeError: a dtype is wrong.
    """
    heads_first = parse_layout(layout)
    operands = Operands(
        as_array("k_pages", k_pages),
        as_array("v_pages", v_pages),
        as_array("key", key),
        as_array("value", value),
        as_integers("block_tables", block_tables),
        as_integers("key_lengths", key_lengths),
        optional_integers("new_lengths", new_lengths),
    )
    shapes.append_to_pages(*operands, heads_first)
    return append(heads_first, operands)
