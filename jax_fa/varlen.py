"""flash_attention_varlen: packed sequences."""

from __future__ import annotations

from typing import Literal, Unpack, overload

import jax
from jax.typing import ArrayLike

from jax_fa._contract import shapes
from jax_fa._contract.operands import Integers, as_array, as_integers
from jax_fa._contract.spec import AttentionSpec, VarlenCall, require_bool
from jax_fa._ops import varlen
from jax_fa._ops.vjp import attention


@overload
def flash_attention_varlen(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    return_lse: Literal[False] = False,
    **options: Unpack[VarlenCall],
) -> jax.Array: ...
@overload
def flash_attention_varlen(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    return_lse: Literal[True],
    **options: Unpack[VarlenCall],
) -> tuple[jax.Array, jax.Array]: ...
def flash_attention_varlen(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    cu_seqlens_q: Integers,
    cu_seqlens_k: Integers,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    logits_soft_cap: float | None = None,
    return_lse: bool = False,
    num_splits: int | None = None,
    implementation: str | None = None,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    r"""Attention of sequences packed one after another, each on its own keys.

    .. math:: out_t = \sum_s P_{ts} v_s, \quad P = softmax(mask(cap(scale \cdot q_t \cdot k_s)))

    Legend: tq rows and tk keys of all n sequences, N query heads, K key/value heads (N a multiple
    of K: query head h uses key head h // (N // K)), H head size, Hv value head size. T_b and S_b
    are the lengths of one sequence, any of which may be 0.

    Integer operands are int32; known ones may be lists, or NumPy arrays of any integer type.

    Args:
      query: [tq, N, H], bfloat16, float16, float32 or float64.
      key: [tk, K, H], same dtype.
      value: [tk, K, Hv], same dtype.
      cu_seqlens_q: int32 [n + 1], 0 and then non-decreasing: rows
        cu_seqlens_q[b]:cu_seqlens_q[b + 1] are those of sequence b. Rows past the last are empty.
      cu_seqlens_k: int32 [n + 1], likewise of keys. Keys past the last, NaN included, count for
        nothing.
      max_seqlen_q: a hint, the longest T_b. A wrong one may cost time, never rows.
      max_seqlen_k: a hint, the longest S_b.
      causal: row t of a sequence sees its keys s <= t + (S_b - T_b): aligned bottom-right.
      window: (left, right), counts of keys on either side of that diagonal, both ends inclusive;
        None on a side leaves it open. With causal, right is 0.
      scale: a Python number; 1 / sqrt(H) by default. To scale by an array, multiply the query.
      logits_soft_cap: c > 0 makes logits c tanh(logit / c), after the scale and before the mask.
      return_lse: also return the log-sum-exp.
      num_splits: parts in which kernels take the keys of a row; None is automatic.
      implementation: None (kernels on AMD GPUs that have them, else "xla"), "xla", or a target,
        "gfx950" or "gfx1201"; a target runs in the emulator on a CPU. As in flash_attention.

    Returns:
      out [tq, N, Hv] in the query's dtype, and with return_lse also lse [tq, N], float32, natural
      logarithm (float64 for float64). An empty row, or one that sees no key, has out 0 and lse
      -inf, and gradient 0.

    Raises:
      TypeError: a dtype is wrong, or a static option is traced.
      ValueError: a shape or an option is wrong, or an integer does not fit int32. Both name the
        argument.
      NotImplementedError: the named target has no kernel for these operands; "xla" serves them.

    Numerics: as flash_attention. Offsets are read on the device, with no synchronisation. Those
    that decrease or leave the operands give some numbers for the sequences concerned; where the
    first is not 0, the rows before it are empty.

    Source: Dao, FlashAttention-2 (2023), arXiv:2307.08691.
    """
    operands = varlen.Operands(
        as_array("query", query),
        as_array("key", key),
        as_array("value", value),
        as_integers("cu_seqlens_q", cu_seqlens_q),
        as_integers("cu_seqlens_k", cu_seqlens_k),
    )
    shapes.varlen_attention(*operands)
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
        max_seqlen_k=max_seqlen_k,
    )
    out, lse = attention(varlen.OPERATION, spec, operands)
    return (out, lse) if with_lse else out
