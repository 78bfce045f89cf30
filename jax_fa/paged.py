"""paged_attention: queries on a cache of keys and values in pages."""

from __future__ import annotations

from typing import Literal, Unpack, overload

import jax
from jax.typing import ArrayLike

from jax_fa._contract import shapes
from jax_fa._contract.operands import Integers, as_array, as_integers, optional_integers
from jax_fa._contract.spec import AttentionSpec, PagedCall, parse_layout, require_bool
from jax_fa._mesh.sharding import refuse_divided_pages
from jax_fa._ops import paged
from jax_fa._ops.vjp import attention


@overload
def paged_attention(
    query: ArrayLike,
    k_pages: ArrayLike,
    v_pages: ArrayLike,
    block_tables: Integers,
    key_lengths: Integers,
    *,
    return_lse: Literal[False] = False,
    **options: Unpack[PagedCall],
) -> jax.Array: ...
@overload
def paged_attention(
    query: ArrayLike,
    k_pages: ArrayLike,
    v_pages: ArrayLike,
    block_tables: Integers,
    key_lengths: Integers,
    *,
    return_lse: Literal[True],
    **options: Unpack[PagedCall],
) -> tuple[jax.Array, jax.Array]: ...
def paged_attention(
    query: ArrayLike,
    k_pages: ArrayLike,
    v_pages: ArrayLike,
    block_tables: Integers,
    key_lengths: Integers,
    *,
    query_lengths: Integers | None = None,
    cu_seqlens_q: Integers | None = None,
    max_seqlen_q: int | None = None,
    causal: bool = True,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    logits_soft_cap: float | None = None,
    layout: str = "NHD",
    return_lse: bool = False,
    num_splits: int | None = None,
    implementation: str | None = None,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    r"""Attention on a paged cache: prefill, a chunk of one, decode, or a mixed batch.

    .. math:: out_t = \sum_s P_{ts} v_s, \quad P = softmax(mask(cap(scale \cdot q_t \cdot k_s)))

    Key s of sequence b stands in row s % page of page block_tables[b, s // page]. The rows of a
    query are the last ones of its sequence: append their keys first (append_to_pages), and let
    key_lengths count them.

    Legend: B sequences, T query length, tq rows of all sequences, N query heads, K key/value heads
    (N a multiple of K: query head h uses key head h // (N // K)), H head size, Hv value head size,
    P pages in the pool, page the rows of a page, M entries in a table. T_b and S_b are the lengths
    of one sequence.

    Integer operands are int32; known ones may be lists, or NumPy arrays of any integer type.

    Args:
      query: [B, T, N, H], or with cu_seqlens_q packed, [tq, N, H].
      k_pages: [P, page, K, H], same dtype; [P, K, page, H] with layout="HND". Any page size.
      v_pages: [P, page, K, Hv], likewise.
      block_tables: int32 [B, M], pages of each sequence, in order. Entries past a length are never
        read as an address.
      key_lengths: int32 [B], S_b. Whatever lies past it, NaN included, counts for nothing.
      query_lengths: int32 [B], T_b; rows from the length on are empty. All T by default.
      cu_seqlens_q: int32 [B + 1], 0 and then non-decreasing: offsets of packed rows, for batches
        of mixed lengths. Rows past the last are empty.
      max_seqlen_q: a hint for packed rows, the longest T_b. A wrong one may cost time, never rows.
      causal: row t sees keys s <= t + (S_b - T_b): aligned bottom-right.
      window: (left, right), counts of keys on either side of that diagonal, both ends inclusive;
        None on a side leaves it open. With causal, right is 0.
      scale: a Python number; 1 / sqrt(H) by default. To scale by an array, multiply the query.
      logits_soft_cap: c > 0 makes logits c tanh(logit / c), after the scale and before the mask.
      layout: "NHD" or "HND", the order of dimensions in a page.
      return_lse: also return the log-sum-exp.
      num_splits: parts in which kernels take the keys of a row, merged at the end; None is
        automatic. More keep a GPU busy when there are few rows and many keys.
      implementation: None (kernels on AMD GPUs that have them, else "xla"), "xla", or a target,
        "gfx950" or "gfx1201"; a target runs in the emulator on a CPU. As in flash_attention.

    Returns:
      out like query, with the last dimension Hv, and with return_lse also lse of shape
      query.shape[:-1], float32, natural logarithm (float64 for float64). A row that sees no key
      has out 0 and lse -inf, and gradient 0.

    Raises:
      TypeError: a dtype is wrong, or a static option is traced.
      ValueError: a shape or an option is wrong, an integer does not fit int32, or the pool is
        sharded over its pages. The text names the argument.
      NotImplementedError: the named target has no kernel for these operands (H > 256 or no
        multiple of 8, Hv != H, float32 or float64); "xla" serves them.

    Numerics: as flash_attention. Differentiable by reverse mode in the query and in both pools;
    gradients of a pool are as large as it is in float32, and are computed only if asked for.

    Under jit with sharded operands, sequences and key heads divide over the devices without
    communication, except that a pool's gradient is summed over the devices that divide sequences;
    a pool sharded over its pages is refused.

    Source: Kwon et al., PagedAttention (2023), arXiv:2309.06180.
    """
    operands = paged.Operands(
        as_array("query", query),
        as_array("k_pages", k_pages),
        as_array("v_pages", v_pages),
        as_integers("block_tables", block_tables),
        as_integers("key_lengths", key_lengths),
        optional_integers("query_lengths", query_lengths),
        optional_integers("cu_seqlens_q", cu_seqlens_q),
    )
    heads_first = parse_layout(layout)
    shapes.paged_attention(*operands, heads_first=heads_first)
    refuse_divided_pages("k_pages", operands.k_pages, heads_first)
    refuse_divided_pages("v_pages", operands.v_pages, heads_first)
    with_lse = require_bool("return_lse", return_lse)
    spec = AttentionSpec.make(
        head_dim=operands.query.shape[-1],
        causal=causal,
        window=window,
        scale=scale,
        logits_soft_cap=logits_soft_cap,
        implementation=implementation,
        num_splits=num_splits,
        max_seqlen_q=max_seqlen_q,
        heads_first=heads_first,
    )
    out, lse = attention(paged.OPERATION, spec, operands)
    return (out, lse) if with_lse else out
