"""Attention on a paged cache: the kernel's call, its xla twin, vmap and partitioning.

Operands are query [B, T, N, H] or packed [tq, N, H], k_pages and v_pages [P, page, K, H] (with
spec.heads_first [P, K, page, H]), block_tables int32 [B, M], key_lengths int32 [B], query_lengths
int32 [B] or None, cu_seqlens_q int32 [B + 1] where the query is packed, else None.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh import sharding as _sharding
from jax_fa._mesh.vary import vary_together
from jax_fa._ops import registry as _registry
from jax_fa._ops import select as _select
from jax_fa._ops.primitive import (
    Operation,
    Pair,
    batched,
    by_platform,
    join_leading,
    kernel_call,
    spread,
)
from jax_fa._xla import blockwise as _blockwise
from jax_fa._xla import rows as _rows
from jax_fa._xla.keys import PagedKeys


def forward(spec: AttentionSpec, *operands: jax.Array | None) -> Pair:
    """(out, lse) like query and query.shape[:-1], by whichever implementation is chosen."""
    return _forward_op(spec)(*operands)


@functools.cache
def _forward_op(spec: AttentionSpec) -> Any:
    heads_axis = -3 if spec.heads_first else -2
    return batched(_forward_call(spec), _join, heads_axis)


@_sharding.divides("paged_forward")
def _forward_call(spec: AttentionSpec) -> _sharding.Call:
    def call(*operands):
        choice = _select.choose(spec.implementation, *operands[:3], paged=True)
        kernel, xla = functools.partial(_kernel, spec), functools.partial(_xla, spec)
        return by_platform(choice, kernel, xla, *operands)

    return _sharding.Call(call, functools.partial(_rule, spec.heads_first, 0))


def _rule(heads_first: bool, gradients: int, *operands: Any) -> _sharding.Rule:
    """By sequences, unless they are packed, and by key heads; to so many gradients, if backward."""
    query, k_pages, _, _, _, query_lengths, cu_seqlens_q, *_ = operands
    pages = "p k s" if heads_first else "p s k"
    heads = k_pages.shape[1 if heads_first else 2]
    if cu_seqlens_q is None:
        rows, integers = "b t K", ("b m", "b", *(() if query_lengths is None else ("b",)))
    else:
        rows, integers = "r K", ("c m", "c", "e")

    def refuse(arrays: Any, shardings: Any) -> None:
        for i, name in ((1, "k_pages"), (2, "v_pages")):
            _sharding.refuse_divided(name, arrays[i], shardings[i], heads_first)

    operands, results = (f"{rows} h", f"{pages} h", f"{pages} v"), (f"{rows} v", rows)
    return _sharding.Rule(
        operands=(*operands, *integers, *(2 * results if gradients else ())),
        results=operands[:gradients] or results,
        free=("b", "k") if cu_seqlens_q is None else ("k",),
        group=query.shape[-2] // max(heads, 1),
        gradients=bool(gradients),
        refuse=refuse,
    )


def _kernel(
    spec: AttentionSpec,
    target: str,
    query: jax.Array,
    k_pages: jax.Array,
    v_pages: jax.Array,
    block_tables: jax.Array,
    *rest: Any,
) -> Pair:
    keys = PagedKeys(k_pages, v_pages, block_tables, spec.heads_first)
    num_splits = _select.useful_splits(spec.num_splits, keys.capacity)
    num_splits = num_splits or _select.paged_splits(
        target, query.shape, keys.heads, block_tables.shape[0], keys.capacity
    )
    operands = query, k_pages, v_pages, block_tables, *rest
    hnd = bool(spec.heads_first)
    return kernel_call(_registry.PAGED, spec, target, num_splits, *operands, hnd=hnd)


def _xla(spec: AttentionSpec, query: jax.Array, *rest: Any) -> Pair:
    rows, keys, work = _problem(spec, query, *rest)
    out, lse = _blockwise.forward(spec, rows, keys, work)
    *shape, _ = query.shape
    return out.reshape(*shape, out.shape[-1]), lse.reshape(*shape)


def backward(
    spec: AttentionSpec, with_d_keys: bool, *operands: jax.Array | None
) -> tuple[jax.Array, ...]:
    """Gradients of query and of both pools; by the blockwise implementation on every platform."""
    return _backward_op(spec, with_d_keys)(*operands)


@functools.cache
def _backward_op(spec: AttentionSpec, with_d_keys: bool) -> Any:
    join = functools.partial(_join, per_pool=with_d_keys)
    return batched(_backward_call(spec, with_d_keys), join)


@_sharding.divides("paged_backward")
def _backward_call(spec: AttentionSpec, with_d_keys: bool) -> _sharding.Call:
    def call(*operands):
        *operands, out, lse, d_out, d_lse = operands
        query = operands[0]
        _, *results = vary_together(query, out, lse, d_out, d_lse)
        results = (join_leading(x, query.ndim - 2) for x in results)
        rows, keys, work = _problem(spec, *operands)
        d_query, d_keys, _ = _blockwise.backward(
            spec, rows, keys, work, *results, with_d_keys=with_d_keys
        )
        return d_query.reshape(query.shape), *(d_keys or ())

    rule_of = functools.partial(_rule, spec.heads_first, 3 if with_d_keys else 1)
    return _sharding.Call(call, rule_of)


def _problem(spec: AttentionSpec, *operands: Any) -> tuple[jax.Array, PagedKeys, _rows.Work]:
    """The operands as the blockwise implementation takes them."""
    query, k_pages, v_pages, tables, key_lengths, query_lengths, cu_seqlens_q = vary_together(
        *operands
    )
    keys = PagedKeys(k_pages, v_pages, tables, spec.heads_first)
    if cu_seqlens_q is None:
        batch, t, _, _ = query.shape
        work = _rows.dense_work(batch, t, keys.capacity, query_lengths, key_lengths)
        return join_leading(query), keys, work
    lengths = jnp.clip(key_lengths, 0, keys.capacity)
    total = query.shape[0]
    offsets = _rows.monotone(cu_seqlens_q, total)
    starts = jnp.zeros_like(lengths)
    work = _rows.packed_work(offsets, starts, lengths, total, spec.max_seqlen_q)
    return query, keys, work


def _join(axis_size: int, flags: Any, operands: Any, per_pool: bool = False) -> tuple[Any, Any]:
    """Batches one after another; pools too where they are mapped, or their gradients are asked for.

    A pool that is not mapped serves all batches as it is.
    """
    pools_mapped = per_pool or flags[1] or flags[2]
    _, k_pages, v_pages, *_ = operands
    flags = [True if i in (1, 2) and not pools_mapped else flag for i, flag in enumerate(flags)]
    query, k_pages, v_pages, tables, lengths, q_lengths, cu_q, *results = spread(
        axis_size, flags, operands
    )
    if pools_mapped:
        pool = jnp.arange(axis_size, dtype=jnp.int32) * k_pages.shape[1]
        tables = _moved(tables, pool, k_pages.shape[1])
        k_pages, v_pages = join_leading(k_pages), join_leading(v_pages)
    if cu_q is not None:
        # Between the packs stand the rows that are nobody's, as a sequence of no keys.
        offsets = _rows.joined_packs(cu_q, query.shape[1]).reshape(-1)
        tables = jnp.pad(tables, ((0, 0), (0, 1), (0, 0)))
        lengths = jnp.pad(lengths, ((0, 0), (0, 1)))
        tables, lengths = join_leading(tables)[:-1], join_leading(lengths)[:-1]
    else:
        offsets = None
        tables, lengths = join_leading(tables), join_leading(lengths)
        q_lengths = None if q_lengths is None else join_leading(q_lengths)
    joined = join_leading(query), k_pages, v_pages, tables, lengths, q_lengths, offsets

    def split(found: Any) -> tuple:
        return tuple(x.reshape(axis_size, -1, *x.shape[1:]) for x in found)

    return (*joined, *map(join_leading, results)), split


def _moved(tables: jax.Array, first_page: jax.Array, pages: int) -> jax.Array:
    """Tables [A, B, M] whose pages are those of pool a of a joined one; nonsense stays nonsense."""
    known = (tables >= 0) & (tables < pages)
    return jnp.where(known, tables + first_page[:, None, None], -1)


OPERATION = Operation(forward, backward)
