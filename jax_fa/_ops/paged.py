"""Attention on a paged cache: of sequences padded to one length, or packed."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.sharding import Rule
from jax_fa._ops import registry, select
from jax_fa._ops.batching import join_leading, spread
from jax_fa._ops.call import Pair, forward_call
from jax_fa._ops.operation import Operation
from jax_fa._xla.keys import PagedKeys
from jax_fa._xla.rows import Work, dense_work, joined_packs, monotone, packed_work


class Operands(NamedTuple):
    """Queries and a pool of pages, [P, K, page, H] with spec.heads_first."""

    query: jax.Array  # [B, T, N, H], or packed [tq, N, H]
    k_pages: jax.Array  # [P, page, K, H]
    v_pages: jax.Array  # [P, page, K, Hv]
    block_tables: jax.Array  # int32 [B, M]
    key_lengths: jax.Array  # int32 [B]
    query_lengths: jax.Array | None = None  # int32 [B]
    cu_seqlens_q: jax.Array | None = None  # int32 [B + 1], where the query is packed


def _rule(spec: AttentionSpec, operands: Operands) -> Rule:
    """Divides by sequences, unless they are packed, and by key heads."""
    packed = operands.cu_seqlens_q is not None
    rows, sequences = ("r K", "c") if packed else ("b t K", "b")
    pages = "p k s" if spec.heads_first else "p s k"
    dims_of = {
        "query": f"{rows} h",
        "k_pages": f"{pages} h",
        "v_pages": f"{pages} v",
        "block_tables": f"{sequences} m",
        "key_lengths": sequences,
        "query_lengths": sequences,
        "cu_seqlens_q": "e",
    }
    return Rule(
        dims_of,
        results=(f"{rows} v", rows),
        free=("k",) if packed else ("b", "k"),
        undivided=("p", "s"),
    )


def _keys(spec: AttentionSpec, operands: Operands) -> PagedKeys:
    return PagedKeys(operands.k_pages, operands.v_pages, operands.block_tables, spec.heads_first)


def _kernel(spec: AttentionSpec, target: str, operands: Operands) -> Pair:
    keys = _keys(spec, operands)
    num_splits = select.useful_splits(spec.num_splits, keys.capacity)
    num_splits = num_splits or select.paged_splits(
        target, operands.query.shape, keys.heads, operands.block_tables.shape[0], keys.capacity
    )
    hnd = bool(spec.heads_first)  # the handler's name for it
    return forward_call(registry.PAGED, spec, target, num_splits, operands, hnd=hnd)


def _problem(spec: AttentionSpec, operands: Operands) -> tuple[jax.Array, PagedKeys, Work]:
    query, keys = operands.query, _keys(spec, operands)
    if operands.cu_seqlens_q is None:
        batch, t, _, _ = query.shape
        lengths = operands.query_lengths, operands.key_lengths
        work = dense_work(batch, t, keys.capacity, *lengths)
        return join_leading(query), keys, work
    key_lengths = jnp.clip(operands.key_lengths, 0, keys.capacity)
    total = query.shape[0]
    offsets = monotone(operands.cu_seqlens_q, total)
    starts = jnp.zeros_like(key_lengths)
    work = packed_work(offsets, starts, key_lengths, total, spec.max_seqlen_q)
    return query, keys, work


def _join(axis_size: int, mapped: Any, operands: Operands, with_d_keys: bool) -> Operands:
    """Batches one after another; pools too where they are mapped, or their gradients are asked for.

    A pool that is not mapped serves all batches as it is.
    """
    own_pools = with_d_keys or mapped.k_pages or mapped.v_pages
    k_pages, v_pages = operands.k_pages, operands.v_pages
    if not own_pools:
        mapped = mapped._replace(k_pages=True, v_pages=True)  # so that they are left alone
    queries, *pools, tables, lengths, query_lengths, offsets = spread(axis_size, mapped, operands)
    if own_pools:
        pages = pools[0].shape[1]
        first_page = jnp.arange(axis_size, dtype=jnp.int32) * pages
        tables = _moved(tables, first_page, pages)
        k_pages, v_pages = map(join_leading, pools)
    if offsets is not None:
        # Rows that no sequence owns stand between the packs, as one more sequence without keys.
        offsets = joined_packs(offsets, queries.shape[1]).reshape(-1)
        tables = jnp.pad(tables, ((0, 0), (0, 1), (0, 0)))
        lengths = jnp.pad(lengths, ((0, 0), (0, 1)))
        tables, lengths = join_leading(tables)[:-1], join_leading(lengths)[:-1]
    else:
        tables, lengths = join_leading(tables), join_leading(lengths)
        query_lengths = None if query_lengths is None else join_leading(query_lengths)
    query = join_leading(queries)
    return Operands(query, k_pages, v_pages, tables, lengths, query_lengths, offsets)


def _moved(tables: jax.Array, first_page: jax.Array, pages: int) -> jax.Array:
    """Tables [A, B, M] whose pages are those of pool a of a joined one; nonsense stays nonsense."""
    known = (tables >= 0) & (tables < pages)
    return jnp.where(known, tables + first_page[:, None, None], -1)


OPERATION = Operation(
    "paged",
    Operands,
    rule=_rule,
    kernel=_kernel,
    problem=_problem,
    join=_join,
    keys=("k_pages", "v_pages"),
    paged=True,
)
