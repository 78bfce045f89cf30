"""The oracle: attention in plain jnp that materialises the scores. Nothing clever.

Every implementation is tested against these functions. They take the arguments of the public
functions of the same name, without those that say how: ``implementation``, ``num_splits`` and the
hints ``max_seqlen_q`` and ``max_seqlen_k``.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import jax
import jax.numpy as jnp

from jax_fa._contract import shapes
from jax_fa._contract.operands import Integers, as_integers, optional_integers
from jax_fa._contract.spec import OPEN, AttentionSpec, DenseOptions


@overload
def flash_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    *,
    return_lse: Literal[False] = False,
    top_left: bool = False,
    **options: Unpack[DenseOptions],
) -> jax.Array: ...
@overload
def flash_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    *,
    return_lse: Literal[True],
    top_left: bool = False,
    **options: Unpack[DenseOptions],
) -> tuple[jax.Array, jax.Array]: ...
def flash_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    *,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    logits_soft_cap: float | None = None,
    query_lengths: Integers | None = None,
    key_lengths: Integers | None = None,
    query_segment_ids: Integers | None = None,
    key_segment_ids: Integers | None = None,
    return_lse: bool = False,
    top_left: bool = False,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """jax_fa.flash_attention; ``top_left`` counts the diagonal from key 0 as jax.nn does."""
    spec = AttentionSpec.make(
        head_dim=query.shape[-1],
        causal=causal,
        window=window,
        scale=scale,
        logits_soft_cap=logits_soft_cap,
        top_left=top_left,
    )
    query_lengths = optional_integers("query_lengths", query_lengths)
    key_lengths = optional_integers("key_lengths", key_lengths)
    query_segment_ids = optional_integers("query_segment_ids", query_segment_ids)
    key_segment_ids = optional_integers("key_segment_ids", key_segment_ids)
    out_type, lse_type = shapes.dense_attention(query, key, value, query_lengths, key_lengths)
    t, s = query.shape[-3], key.shape[-3]
    batch = query.shape[:-3]
    shapes.segment_ids(query, key, query_segment_ids, key_segment_ids)
    t_b = _lengths(query_lengths, batch, t)
    s_b = _lengths(key_lengths, batch, s)
    if query_segment_ids is not None and key_segment_ids is not None:
        ids_q = jnp.where(jnp.arange(t) < t_b[..., None], query_segment_ids, -1)
        ids_k = jnp.where(jnp.arange(s) < s_b[..., None], key_segment_ids, -1)
        seen = _visible_in_segments(spec, ids_q, ids_k)
        out, lse = _attend_by_row(spec, query, key, value, seen)
    else:
        seen = _visible(spec, jnp.arange(t), jnp.arange(s), t_b, s_b)
        within = jnp.arange(s) < s_b[..., None]
        out, lse = _attend(spec, query, key, value, seen, within)
    out, lse = out.astype(out_type.dtype), lse.astype(lse_type.dtype)
    return (out, lse) if return_lse else out


def flash_attention_varlen(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    *,
    cu_seqlens_q: Integers,
    cu_seqlens_k: Integers,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    logits_soft_cap: float | None = None,
    return_lse: bool = False,
) -> Any:
    """jax_fa.flash_attention_varlen."""
    spec = AttentionSpec.make(
        head_dim=query.shape[-1],
        causal=causal,
        window=window,
        scale=scale,
        logits_soft_cap=logits_soft_cap,
    )
    cu_seqlens_q = as_integers("cu_seqlens_q", cu_seqlens_q)
    cu_seqlens_k = as_integers("cu_seqlens_k", cu_seqlens_k)
    types = shapes.varlen_attention(query, key, value, cu_seqlens_q, cu_seqlens_k)
    # One sequence without rows is added behind all others, so that there always is one.
    cu_seqlens_q = jnp.append(cu_seqlens_q, cu_seqlens_q[-1])
    first_key, s_b = cu_seqlens_k, jnp.diff(cu_seqlens_k, append=cu_seqlens_k[-1:])
    seen = jax.vmap(
        lambda row: _visible_in_pack(spec, row, cu_seqlens_q, first_key, s_b, key.shape[0])[1]
    )(jnp.arange(query.shape[0]))
    out, lse = _attend_by_row(spec, query, key, value, seen)
    out, lse = out.astype(types[0].dtype), lse.astype(types[1].dtype)
    return (out, lse) if return_lse else out


def paged_attention(
    query: jax.Array,
    k_pages: jax.Array,
    v_pages: jax.Array,
    block_tables: jax.Array,
    key_lengths: jax.Array,
    *,
    query_lengths: jax.Array | None = None,
    cu_seqlens_q: jax.Array | None = None,
    causal: bool = True,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    logits_soft_cap: float | None = None,
    layout: str = "NHD",
    return_lse: bool = False,
) -> Any:
    """jax_fa.paged_attention: every sequence's pages laid out one after another, then dense."""
    if layout == "HND":
        k_pages, v_pages = jnp.swapaxes(k_pages, 1, 2), jnp.swapaxes(v_pages, 1, 2)
    block_tables = as_integers("block_tables", block_tables)
    key_lengths = as_integers("key_lengths", key_lengths)
    query_lengths = optional_integers("query_lengths", query_lengths)
    cu_seqlens_q = optional_integers("cu_seqlens_q", cu_seqlens_q)
    integers = block_tables, key_lengths, query_lengths, cu_seqlens_q
    types = shapes.paged_attention(query, k_pages, v_pages, *integers)
    page_size = k_pages.shape[1]
    s = block_tables.shape[1] * page_size
    used = jnp.arange(block_tables.shape[1]) * page_size < key_lengths[:, None]
    pages = jnp.where(used, block_tables, 0)
    key, value = (
        jnp.take(x, pages, 0, mode="clip").reshape(pages.shape[0], s, *x.shape[2:])
        for x in (k_pages, v_pages)
    )
    options: Any = {
        "causal": causal,
        "window": window,
        "scale": scale,
        "logits_soft_cap": logits_soft_cap,
    }
    if cu_seqlens_q is None:
        lengths: Any = {"query_lengths": query_lengths, "key_lengths": key_lengths}
        out, lse = flash_attention(query, key, value, return_lse=True, **lengths, **options)
        return (out, lse) if return_lse else out

    spec = AttentionSpec.make(head_dim=query.shape[-1], **options)
    starts, lengths = jnp.zeros_like(key_lengths), jnp.clip(key_lengths, 0, s)

    def one(x: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        row, number = x
        sequence, seen = _visible_in_pack(spec, number, cu_seqlens_q, starts, lengths, s)
        keys = key[sequence], value[sequence]
        out, lse = _attend(spec, row[None], *keys, seen[None], seen)
        return out[0], lse[0]

    out, lse = jax.lax.map(one, (query, jnp.arange(query.shape[0])))
    out, lse = out.astype(types[0].dtype), lse.astype(types[1].dtype)
    return (out, lse) if return_lse else out


def merge_attention(
    out_a: jax.Array, lse_a: jax.Array, out_b: jax.Array, lse_b: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """jax_fa.merge_attention."""
    lse = jnp.logaddexp(lse_a, lse_b)
    empty = jnp.isneginf(lse)
    shift = jnp.where(empty, 0, lse)
    weight_a, weight_b = jnp.exp(lse_a - shift)[..., None], jnp.exp(lse_b - shift)[..., None]
    part_a = jnp.where(weight_a == 0, 0, out_a.astype(lse.dtype) * weight_a)
    part_b = jnp.where(weight_b == 0, 0, out_b.astype(lse.dtype) * weight_b)
    return (part_a + part_b).astype(out_a.dtype), lse


def _lengths(lengths: jax.Array | None, batch: tuple[int, ...], limit: int) -> jax.Array:
    if lengths is None:
        return jnp.full(batch, limit, jnp.int32)
    return jnp.clip(lengths, 0, limit)


def _visible(
    spec: AttentionSpec, row: jax.Array, column: jax.Array, t_b: jax.Array, s_b: jax.Array
) -> jax.Array:
    """Which keys each row sees: bool [*B, T, S].

    row: [T] or [*B, T], index within the sequence, which has t_b [*B] rows; column: likewise of
    keys. Indices outside of the sequence are nobody's.
    """
    row, column = row[..., :, None], column[..., None, :]
    t_b, s_b = t_b[..., None, None], s_b[..., None, None]
    diagonal = row + (0 if spec.top_left else s_b - t_b)
    seen = (row >= 0) & (row < t_b) & (column >= 0) & (column < s_b)
    if spec.window_left != OPEN:
        seen &= column >= diagonal - spec.window_left
    if spec.window_right != OPEN:
        seen &= column <= diagonal + spec.window_right
    return seen


def _visible_in_segments(spec: AttentionSpec, ids_q: jax.Array, ids_k: jax.Array) -> jax.Array:
    """Which keys each row sees: bool [*B, T, S], of ids [*B, T] and [*B, S]."""

    def of_row(row: jax.Array, identity: jax.Array) -> jax.Array:
        """[*B, S], of row [] with id [*B]."""
        mine_q, mine_k = ids_q == identity[..., None], ids_k == identity[..., None]
        first_q, first_k = jnp.argmax(mine_q, -1), jnp.argmax(mine_k, -1)
        t_b, s_b = jnp.sum(mine_q, -1), jnp.sum(mine_k, -1)
        column = jnp.arange(ids_k.shape[-1]) - first_k[..., None]
        seen = _visible(spec, (row - first_q)[..., None], column, t_b, s_b)[..., 0, :]
        return seen & mine_k & (identity >= 0)[..., None]

    if 0 in (ids_q.shape[-1], ids_k.shape[-1]):
        return jnp.zeros((*ids_q.shape, ids_k.shape[-1]), bool)
    return jax.vmap(of_row, (0, -1), -2)(jnp.arange(ids_q.shape[-1]), ids_q)


def _visible_in_pack(
    spec: AttentionSpec,
    row: jax.Array,
    cu_seqlens_q: jax.Array,
    first_key: jax.Array,
    s_b: jax.Array,
    s: int,
) -> tuple[jax.Array, jax.Array]:
    """(the sequence of one row [], which of s keys it sees: bool [s], none if it is nobody's).

    first_key and s_b: [n], of each sequence.
    """
    mine = (row >= cu_seqlens_q[:-1]) & (row < cu_seqlens_q[1:])
    seen = jax.vmap(
        lambda start, end, first, length: _visible(
            spec, (row - start)[None], jnp.arange(s) - first, end - start, length
        )[0]
    )(cu_seqlens_q[:-1], cu_seqlens_q[1:], first_key, s_b)
    return jnp.argmax(mine), jnp.any(seen & mine[:, None], 0)


def _attend(
    spec: AttentionSpec,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    seen: jax.Array,
    within: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """(out, lse) in at least float32. seen: bool [*B, T, S]; within: bool [*B, S]."""
    dtype = shapes.lse_dtype(query.dtype)
    query, key, value = (x.astype(dtype) for x in (query, key, value))
    k_heads = key.shape[-2]
    group = query.shape[-2] // k_heads if k_heads else 1
    # Whatever lies outside of the sequence counts for nothing, NaN included.
    within = within[..., None, None]
    key, value = jnp.where(within, key, 0), jnp.where(within, value, 0)
    key, value = jnp.repeat(key, group, -2), jnp.repeat(value, group, -2)

    scores = jnp.einsum("...tnh,...snh->...nts", query, key, precision="highest")
    if spec.soft_cap:
        scores = spec.soft_cap * jnp.tanh(scores * spec.scale / spec.soft_cap)
        scale = 1.0
    elif spec.scale < 0:
        scores, scale = -scores, -spec.scale
    elif spec.scale == 0:
        scores, scale = 0 * scores, 1.0
    else:
        scale = spec.scale
    scores = jnp.where(seen[..., None, :, :], scores, -jnp.inf)
    # The raw maximum is subtracted before scaling: (s - m) scale, never s scale - m scale, whose
    # rounding (and contraction under jit) alone sends the weights of very large logits to 0.
    maximum = jnp.max(scores, axis=-1, keepdims=True, initial=-jnp.inf)
    maximum = jnp.where(jnp.isneginf(maximum), 0, maximum)
    weights = jnp.exp((scores - maximum) * scale)
    total = jnp.sum(weights, axis=-1, keepdims=True)
    empty = total == 0
    weights = weights / jnp.where(empty, 1, total)
    lse = jnp.where(empty, -jnp.inf, maximum * scale + jnp.log(jnp.where(empty, 1, total)))
    out = jnp.einsum("...nts,...snh->...tnh", weights, value, precision="highest")
    # Rows that see no key are 0 even where 0 * NaN stood in the product.
    out = jnp.where(jnp.swapaxes(empty[..., 0], -1, -2)[..., None], 0, out)
    return out, jnp.swapaxes(lse[..., 0], -1, -2)


def _attend_by_row(
    spec: AttentionSpec, query: jax.Array, key: jax.Array, value: jax.Array, seen: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """_attend, a row at a time: rows share no sequence, so each has keys of its own to ignore."""

    def one(x: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        row, sees = x
        out, lse = _attend(spec, row[..., None, :, :], key, value, sees[..., None, :], sees)
        return out[..., 0, :, :], lse[..., 0, :]

    out, lse = jax.lax.map(one, (jnp.moveaxis(query, -3, 0), jnp.moveaxis(seen, -2, 0)))
    return jnp.moveaxis(out, 0, -3), jnp.moveaxis(lse, 0, -2)
