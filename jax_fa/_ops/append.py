"""New keys and values written into a paged cache, in place where XLA lets us."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import mlir

from jax_fa._mesh.sharding import in_auto_mode
from jax_fa._mesh.vary import vary_together
from jax_fa._ops import registry
from jax_fa._ops.batching import batched, join_leading, spread


class Operands(NamedTuple):
    """Pools of pages ([P, K, page, H] with heads_first), and what is written into them."""

    k_pages: jax.Array  # [P, page, K, H]
    v_pages: jax.Array  # [P, page, K, Hv]
    key: jax.Array  # [B, T, K, H]
    value: jax.Array  # [B, T, K, Hv]
    block_tables: jax.Array  # int32 [B, M]
    key_lengths: jax.Array  # int32 [B]
    new_lengths: jax.Array | None  # int32 [B]


@functools.partial(jax.jit, static_argnums=0)
def append(heads_first: bool, operands: Operands) -> tuple[jax.Array, jax.Array]:
    """The pools with the new tokens; operands have passed the shape rules."""
    write = functools.partial(_write, heads_first)
    return in_auto_mode(write, ("k_pages", 4), ("v_pages", 4))(operands)


def _write(heads_first: bool, operands: Operands) -> tuple[jax.Array, jax.Array]:
    k_pages, v_pages, key, value, block_tables, key_lengths, new_lengths = operands
    num_pages, page_size = k_pages.shape[0], k_pages.shape[2 if heads_first else 1]
    batch, tokens = key.shape[:2]
    keep = jnp.ones((batch, tokens), bool)
    if new_lengths is not None:
        keep = jnp.arange(tokens, dtype=jnp.int32)[None] < new_lengths[:, None]

    max_pages = block_tables.shape[1]
    position = key_lengths[:, None] + jnp.arange(tokens, dtype=jnp.int32)[None]
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

    def write(pages: jax.Array, new: jax.Array) -> jax.Array:
        new = new.astype(pages.dtype)
        scatter = _scatter_bfloat16 if pages.dtype == jnp.bfloat16 else _scatter
        return scatter(heads_first, pages, page, row, new)

    return write(k_pages, key), write(v_pages, value)


def _scatter(heads_first: bool, pages: Any, page: Any, row: Any, new: Any) -> jax.Array:
    """`pages` with new [B, T, K, H] in (page, row) [B, T] each; pages out of range are dropped."""
    target = pages.at[page, :, row] if heads_first else pages.at[page, row]
    return target.set(new, mode="drop")


# --- bfloat16 -------------------------------------------------------------------------------------

# XLA on CPUs makes a float32 copy of a bfloat16 pool to write into it.


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _scatter_bfloat16(heads_first: bool, pages: Any, page: Any, row: Any, new: Any) -> jax.Array:
    """_scatter, by a handler of our own on CPUs."""

    def call(*operands):
        # Within shard_map the pool is a device's own, and all of it is here.
        local = jax.sharding.get_abstract_mesh().are_all_axes_manual
        operands = vary_together(*operands)
        return tuple(_append_p.bind(*operands, heads_first=heads_first, local=local))

    (written,) = batched(call, _join_pools)(pages, page, row, new)
    return written


@_scatter_bfloat16.defjvp
def _scatter_bfloat16_jvp(heads_first: bool, primals: Any, tangents: Any) -> tuple[Any, Any]:
    pages, page, row, new = primals
    d_pages, _, _, d_new = tangents
    scatter = functools.partial(_scatter, heads_first)
    _, tangent = jax.jvp(lambda x, y: scatter(x, page, row, y), (pages, new), (d_pages, d_new))
    return _scatter_bfloat16(heads_first, *primals), tangent


def _join_pools(axis_size: int, mapped: Any, *operands: jax.Array) -> tuple[Any, Any]:
    """Under vmap the pools are one, of all their pages."""
    pages, page, row, new = spread(axis_size, tuple(mapped), operands)
    num_pages = pages.shape[1]
    first = jnp.arange(axis_size, dtype=page.dtype)[:, None, None] * num_pages
    page = jnp.where(page < num_pages, first + page, axis_size * num_pages)
    joined = [join_leading(x) for x in (pages, page, row, new)]
    return joined, lambda results: tuple(x.reshape(pages.shape) for x in results)


_append_p = Primitive(registry.APPEND)
_append_p.multiple_results = True


@_append_p.def_abstract_eval
def _types(pages: Any, *_: Any, **__: Any) -> list[Any]:
    return [pages]


@_append_p.def_impl
def _evaluate(*operands: jax.Array, heads_first: bool, local: bool) -> list[jax.Array]:
    del local
    return [_scatter(heads_first, *operands)]


def _scatter_bits(heads_first: bool, pages: Any, page: Any, row: Any, new: Any) -> list[jax.Array]:
    """The scatter on the bits, which XLA does with one copy of the pool, in its own size.

    It serves programs for export, which must not name a handler of ours.
    """
    pages, new = (lax.bitcast_convert_type(x, jnp.uint16) for x in (pages, new))
    written = _scatter(heads_first, pages, page, row, new)
    return [lax.bitcast_convert_type(written, jnp.bfloat16)]


def _lower(ctx: Any, *values: Any, heads_first: bool, local: bool) -> Any:
    def scatter(*operands):
        return [_scatter(heads_first, *operands)]

    return mlir.lower_fun(scatter, multiple_results=True)(ctx, *values)


def _lower_on_cpu(ctx: Any, *values: Any, heads_first: bool, local: bool) -> Any:
    module = ctx.module_context
    whole = local or getattr(module.axis_context, "num_devices", None) == 1
    if module.lowering_parameters.for_export or not whole:
        scatter = functools.partial(_scatter_bits, heads_first)
        return mlir.lower_fun(scatter, multiple_results=True)(ctx, *values)
    in_place: Any = jax.ffi.ffi_lowering(registry.APPEND, operand_output_aliases={0: 0})
    return in_place(ctx, *values, hnd=heads_first)


mlir.register_lowering(_append_p, _lower)
mlir.register_lowering(_append_p, _lower_on_cpu, platform="cpu")
