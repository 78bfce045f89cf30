"""Writing new keys and values into a paged cache."""

import jax
import jax.numpy as jnp

LAYOUTS = ("NHD", "HND")


def _check(name: str, array, shape: tuple, letters: str) -> None:
    if tuple(array.shape) != tuple(shape):
        raise ValueError(
            f"{name} must have shape {letters} = {tuple(shape)}; got {tuple(array.shape)}"
        )


def _check_int32(name: str, array) -> None:
    if array.dtype != jnp.int32:
        raise TypeError(f"{name} must have dtype int32; got {array.dtype}")


def append_to_pages(
    k_pages: jax.Array,
    v_pages: jax.Array,
    key: jax.Array,
    value: jax.Array,
    block_tables: jax.Array,
    key_lengths: jax.Array,
    *,
    new_lengths: jax.Array | None = None,
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
      new_lengths: int32 [B], how many of the T tokens count; all by default.
      layout: "NHD" or "HND".

    Returns:
      (k_pages, v_pages) with the new tokens.

    Raises:
      ValueError: a shape or the layout is wrong.
      TypeError: an integer operand is not int32.
    """
    if layout not in LAYOUTS:
        raise ValueError(f'layout must be "NHD" or "HND"; got {layout!r}')
    k_pages, v_pages = jnp.asarray(k_pages), jnp.asarray(v_pages)
    key, value = jnp.asarray(key), jnp.asarray(value)
    block_tables, key_lengths = jnp.asarray(block_tables), jnp.asarray(key_lengths)
    if k_pages.ndim != 4:
        raise ValueError(f"k_pages must have 4 dimensions; got shape {tuple(k_pages.shape)}")
    if key.ndim != 4:
        raise ValueError(f"key must have shape (B, T, K, H); got {tuple(key.shape)}")
    if value.ndim != 4:
        raise ValueError(f"value must have shape (B, T, K, Hv); got {tuple(value.shape)}")
    row_axis, head_axis = (1, 2) if layout == "NHD" else (2, 1)
    num_pages, page_size = k_pages.shape[0], k_pages.shape[row_axis]
    heads, head_dim = k_pages.shape[head_axis], k_pages.shape[3]
    batch, tokens = key.shape[:2]
    if page_size < 1:
        raise ValueError(f"k_pages must have a page size >= 1; got shape {tuple(k_pages.shape)}")
    _check("key", key, (batch, tokens, heads, head_dim), "(B, T, K, H)")
    _check("value", value, (batch, tokens, heads, value.shape[3]), "(B, T, K, Hv)")
    pages_shape = (*k_pages.shape[:3], value.shape[3])
    letters = "(P, page, K, Hv)" if layout == "NHD" else "(P, K, page, Hv)"
    _check("v_pages", v_pages, pages_shape, letters)
    if block_tables.ndim != 2 or block_tables.shape[0] != batch:
        raise ValueError(
            f"block_tables must have shape (B, M) with B={batch}; got {tuple(block_tables.shape)}"
        )
    _check("key_lengths", key_lengths, (batch,), "(B,)")
    _check_int32("block_tables", block_tables)
    _check_int32("key_lengths", key_lengths)
    keep = jnp.ones((batch, tokens), bool)
    if new_lengths is not None:
        new_lengths = jnp.asarray(new_lengths)
        _check("new_lengths", new_lengths, (batch,), "(B,)")
        _check_int32("new_lengths", new_lengths)
        keep = jnp.arange(tokens) < new_lengths[:, None]

    max_pages = block_tables.shape[1]
    position = key_lengths[:, None] + jnp.arange(tokens, dtype=jnp.int32)
    logical = position // page_size
    keep &= (position >= 0) & (logical < max_pages)
    if max_pages:
        physical = jnp.take_along_axis(
            block_tables, jnp.clip(logical, 0, max_pages - 1), axis=1, mode="clip"
        )
    else:
        physical = jnp.zeros_like(logical)
    keep &= (physical >= 0) & (physical < num_pages)
    # A negative index would wrap around; one past the end is dropped.
    page = jnp.where(keep, physical, num_pages)
    row = position % page_size

    def write(pages, new):
        target = pages.at[page, row] if layout == "NHD" else pages.at[page, :, row]
        return target.set(new.astype(pages.dtype), mode="drop")

    return write(k_pages, key), write(v_pages, value)
