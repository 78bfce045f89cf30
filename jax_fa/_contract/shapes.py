"""Shape and dtype rules: pure functions of shapes and dtypes, to result types or an error.

Legend: *B leading batch dimensions, T query length, S key length, N query heads, K key/value heads,
H head size, Hv value head size; n packed sequences of tq rows and tk keys in all; P pages in a
pool, M entries in a table of pages.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jax_fa._contract import layouts
from jax_fa._contract.operands import require_int32

Struct = jax.ShapeDtypeStruct

_DTYPES = ("bfloat16", "float16", "float32", "float64")


def dense_attention(
    query: Any, key: Any, value: Any, query_lengths: Any = None, key_lengths: Any = None
) -> tuple[Struct, Struct]:
    """(out [*B, T, N, Hv], lse float32 [*B, T, N]) of dense operands.

    Raises:
      ValueError: a shape is wrong. The text names the argument, what it must be, what it was.
      TypeError: a dtype is wrong, likewise.
    """
    require_float("query", query)
    if query.ndim < 3:
        raise ValueError(
            f"query must have shape (*B, T, N, H), at least 3 dimensions; got {_show(query)}"
        )
    *batch, t, n, h = query.shape
    for name, operand in (("key", key), ("value", value)):
        require_same_dtype(name, operand, query)
        if operand.ndim != query.ndim:
            hint = "; one row a sequence is T = 1, query[..., None, :, :]"
            raise ValueError(
                f"{name} must have {query.ndim} dimensions like query {_show(query)}; "
                f"got {_show(operand)}{hint if operand.ndim == query.ndim + 1 else ''}"
            )
        if list(operand.shape[:-3]) != batch:
            raise ValueError(
                f"{name} must have the leading dimensions {tuple(batch)} of query; "
                f"got {_show(operand)}"
            )
    k = _require_keys(query, key, value, "(*B, S, K, {})")
    if not _grouped(n, k):
        _refuse_heads(n, k, layouts.rows_and_heads(query, key, "(*B, T, N, H)", "(*B, S, K, H)"))
    require_head_sizes(h, value.shape[-1])
    for name, lengths in (("query_lengths", query_lengths), ("key_lengths", key_lengths)):
        if lengths is not None:
            require_int32(name, lengths)
            if list(lengths.shape) != batch:
                raise ValueError(
                    f"{name} must have shape (*B) = {tuple(batch)}; got {_show(lengths)}"
                )
    return (
        Struct((*batch, t, n, value.shape[-1]), query.dtype),
        Struct((*batch, t, n), lse_dtype(query.dtype)),
    )


def segment_ids(query: Any, key: Any, query_segment_ids: Any, key_segment_ids: Any) -> None:
    """Checks ids [*B, T] and [*B, S] against dense operands that have passed their own rule."""
    for name, ids, other, operand, letters in (
        ("query_segment_ids", query_segment_ids, key_segment_ids, query, "(*B, T)"),
        ("key_segment_ids", key_segment_ids, query_segment_ids, key, "(*B, S)"),
    ):
        if ids is None:
            if other is not None:
                raise ValueError(
                    f"{name} must be given together with the other's segment ids; got None"
                )
            continue
        require_int32(name, ids)
        _require_shape(name, ids, operand.shape[:-2], f"shape {letters}")


def varlen_attention(
    query: Any, key: Any, value: Any, cu_seqlens_q: Any, cu_seqlens_k: Any
) -> tuple[Struct, Struct]:
    """(out [tq, N, Hv], lse [tq, N]) of packed operands. Raises as dense_attention."""
    require_float("query", query)
    _require_rank("query", query, 3, "(tq, N, H)")
    for name, operand in (("key", key), ("value", value)):
        require_same_dtype(name, operand, query)
    _require_rank("key", key, 3, "(tk, K, H)")
    _require_rank("value", value, 3, "(tk, K, Hv)")
    total, n, h = query.shape
    k = _require_keys(query, key, value, "(tk, K, {})")
    if not _grouped(n, k):
        _refuse_heads(n, k, layouts.rows_and_heads(query, key, "(tq, N, H)", "(tk, K, H)"))
    require_head_sizes(h, value.shape[-1])
    for name, offsets in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        require_int32(name, offsets)
        if offsets.ndim != 1 or offsets.shape[0] < 1:
            raise ValueError(f"{name} must have shape (n + 1,) with n >= 0; got {_show(offsets)}")
    _require_shape("cu_seqlens_k", cu_seqlens_k, cu_seqlens_q.shape, "the shape of cu_seqlens_q")
    return (
        Struct((total, n, value.shape[-1]), query.dtype),
        Struct((total, n), lse_dtype(query.dtype)),
    )


def paged_attention(
    query: Any,
    k_pages: Any,
    v_pages: Any,
    block_tables: Any,
    key_lengths: Any,
    query_lengths: Any = None,
    cu_seqlens_q: Any = None,
    heads_first: bool = False,
) -> tuple[Struct, Struct]:
    """(out, lse) like query [B, T, N, H], or [tq, N, H] with cu_seqlens_q.

    Raises as dense_attention does.
    """
    require_float("query", query)
    if cu_seqlens_q is None:
        hint = "; one row a sequence is T = 1, query[:, None]; packed queries need cu_seqlens_q"
        _require_rank("query", query, 4, "(B, T, N, H)", hint if query.ndim == 3 else "")
        sequences = query.shape[0]
    else:
        _require_rank("query", query, 3, "(tq, N, H) with cu_seqlens_q")
        require_int32("cu_seqlens_q", cu_seqlens_q)
        if cu_seqlens_q.ndim != 1 or cu_seqlens_q.shape[0] < 1:
            raise ValueError(
                f"cu_seqlens_q must have shape (B + 1,) with B >= 0; got {_show(cu_seqlens_q)}"
            )
        sequences = cu_seqlens_q.shape[0] - 1
    for name, pages in (("k_pages", k_pages), ("v_pages", v_pages)):
        require_same_dtype(name, pages, query)
    k, h, hv = page_pools(k_pages, v_pages, heads_first)
    if h != query.shape[-1]:
        raise ValueError(
            f"k_pages must have the head size H={query.shape[-1]} of query; got {_show(k_pages)}"
        )
    if not _grouped(query.shape[-2], k):
        rows = "(B, T, N, H)" if cu_seqlens_q is None else "(tq, N, H)"
        hint = layouts.query_or_pages(query, k_pages, heads_first, rows)
        _refuse_heads(query.shape[-2], k, hint, "k_pages")
    require_head_sizes(h, hv)
    tables(block_tables, key_lengths, sequences)
    if query_lengths is not None:
        if cu_seqlens_q is not None:
            raise ValueError(
                "query_lengths must be None where cu_seqlens_q gives the lengths; got both"
            )
        require_int32("query_lengths", query_lengths)
        _require_shape("query_lengths", query_lengths, (sequences,), "shape (B,)")
    return (
        Struct((*query.shape[:-1], hv), query.dtype),
        Struct(query.shape[:-1], lse_dtype(query.dtype)),
    )


def page_pools(k_pages: Any, v_pages: Any, heads_first: bool) -> tuple[int, int, int]:
    """(K, H, Hv) of two pools of pages. Raises ValueError."""
    letters = "(P, K, page, {})" if heads_first else "(P, page, K, {})"
    _require_rank("k_pages", k_pages, 4, letters.format("H"))
    _require_rank("v_pages", v_pages, 4, letters.format("Hv"))
    if k_pages.shape[2 if heads_first else 1] < 1:
        raise ValueError(f"k_pages must have a page size >= 1; got {_show(k_pages)}")
    hv = v_pages.shape[3]
    what = f"shape {letters.format('Hv')} as in k_pages"
    _require_shape("v_pages", v_pages, (*k_pages.shape[:3], hv), what)
    return k_pages.shape[1 if heads_first else 2], k_pages.shape[3], hv


def tables(block_tables: Any, key_lengths: Any, sequences: int) -> None:
    """Checks tables [B, M] and lengths [B] of B sequences. Raises ValueError, TypeError."""
    require_int32("block_tables", block_tables)
    if block_tables.ndim != 2 or block_tables.shape[0] != sequences:
        raise ValueError(
            f"block_tables must have shape (B, M) with B={sequences}; got {_show(block_tables)}"
        )
    require_int32("key_lengths", key_lengths)
    _require_shape("key_lengths", key_lengths, (sequences,), "shape (B,)")


def append_to_pages(
    k_pages: Any,
    v_pages: Any,
    key: Any,
    value: Any,
    block_tables: Any,
    key_lengths: Any,
    new_lengths: Any,
    heads_first: bool,
) -> None:
    """Checks key [B, T, K, H] and value [B, T, K, Hv] to be written into pages."""
    names = "k_pages", "v_pages", "key", "value"
    for name, operand in zip(names, (k_pages, v_pages, key, value), strict=True):
        require_float(name, operand)
    k, h, hv = page_pools(k_pages, v_pages, heads_first)
    _require_rank("key", key, 4, "(B, T, K, H)")
    _require_rank("value", value, 4, "(B, T, K, Hv)")
    batch, tokens = key.shape[:2]
    for name, new, pages, size, letters in (
        ("key", key, k_pages, h, "H"),
        ("value", value, v_pages, hv, "Hv"),
    ):
        what = f"shape (B, T, K, {letters}) as in {name[0]}_pages"
        hint = layouts.new_keys(name, new, pages, heads_first)
        _require_shape(name, new, (batch, tokens, k, size), what, hint)
    tables(block_tables, key_lengths, batch)
    if new_lengths is not None:
        require_int32("new_lengths", new_lengths)
        _require_shape("new_lengths", new_lengths, (batch,), "shape (B,)")


def merge_attention(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> tuple[Struct, Struct]:
    """(out [..., N, Hv], lse [..., N]) of two parts."""
    require_float("out_a", out_a)
    require_float("out_b", out_b)
    if out_a.dtype != jnp.float32 or out_b.dtype == jnp.float64:  # float32 takes halves in
        require_same_dtype("out_b", out_b, out_a, like="out_a")
    if out_a.ndim < 1:
        raise ValueError(f"out_a must have shape (..., Hv); got {_show(out_a)}")
    _require_shape("out_b", out_b, out_a.shape, "the shape of out_a")
    for name, lse in (("lse_a", lse_a), ("lse_b", lse_b)):
        if lse.dtype not in (jnp.float32, jnp.float64):
            raise TypeError(f"{name} must have dtype float32; got {lse.dtype}")
        if lse.dtype != lse_a.dtype:
            raise TypeError(f"{name} must have the dtype {lse_a.dtype} of lse_a; got {lse.dtype}")
        what, shape = "the shape of out_a without its last dimension", out_a.shape[:-1]
        _require_shape(name, lse, shape, what, layouts.lse(name, lse, shape))
    return Struct(out_a.shape, out_a.dtype), Struct(lse_a.shape, lse_a.dtype)


def lse_dtype(dtype: Any) -> Any:
    """float32, but float64 for float64 operands."""
    return jnp.float64 if dtype == jnp.float64 else jnp.float32


def require_float(name: str, operand: Any) -> None:
    """Raises TypeError unless `operand` has one of the floating-point types served."""
    if str(operand.dtype) not in _DTYPES:
        raise TypeError(
            f"{name} must have one of the dtypes {', '.join(_DTYPES)}; got {operand.dtype}"
        )


def require_same_dtype(name: str, operand: Any, other: Any, like: str = "query") -> None:
    """Raises TypeError unless the dtypes agree."""
    if operand.dtype != other.dtype:
        raise TypeError(f"{name} must have the dtype {other.dtype} of {like}; got {operand.dtype}")


def _grouped(n: int, k: int) -> bool:
    return n % k == 0 if k else n == 0


def _refuse_heads(n: int, k: int, hint: str, name: str = "key") -> None:
    raise ValueError(
        f"query must have a number of heads N that is a multiple of {name}'s K={k}; got N={n}{hint}"
    )


def require_head_sizes(h: int, hv: int) -> None:
    """Raises ValueError when a head is empty."""
    if h < 1:
        raise ValueError(f"query must have a head size H >= 1; got {h}")
    if hv < 1:
        raise ValueError(f"value must have a head size Hv >= 1; got {hv}")


def _require_keys(query: Any, key: Any, value: Any, letters: str) -> int:
    """K, after checking that key and value fit each other and the query's head size."""
    h, (s, k) = query.shape[-1], key.shape[-3:-1]
    if key.shape[-1] != h:
        raise ValueError(
            f"key must have shape {letters.format('H')} with H={h} as in query; got {_show(key)}"
        )
    if value.shape[-3:-1] != (s, k):
        keys = "S" if "S" in letters else "tk"
        raise ValueError(
            f"value must have shape {letters.format('Hv')} with {keys}={s} and K={k} as in key; "
            f"got {_show(value)}"
        )
    return k


def _require_rank(name: str, operand: Any, rank: int, letters: str, hint: str = "") -> None:
    if operand.ndim != rank:
        raise ValueError(f"{name} must have shape {letters}; got {_show(operand)}{hint}")


def _require_shape(name: str, operand: Any, shape: Any, what: str, hint: str = "") -> None:
    if tuple(operand.shape) != tuple(shape):
        raise ValueError(f"{name} must have {what}, {tuple(shape)}; got {_show(operand)}{hint}")


def _show(operand: Any) -> str:
    return f"shape {tuple(operand.shape)}"
