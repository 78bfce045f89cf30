"""flash_attention: dense attention."""

from __future__ import annotations

from typing import Literal, Unpack, overload

import jax
from jax.typing import ArrayLike

from jax_fa._contract import shapes
from jax_fa._contract.operands import Integers, as_array, optional_integers
from jax_fa._contract.spec import AttentionSpec, DenseCall, require_bool
from jax_fa._ops import dense
from jax_fa._ops.vjp import attention


@overload
def flash_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    return_lse: Literal[False] = False,
    **options: Unpack[DenseCall],
) -> jax.Array: ...
@overload
def flash_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    return_lse: Literal[True],
    **options: Unpack[DenseCall],
) -> tuple[jax.Array, jax.Array]: ...
def flash_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
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
    num_splits: int | None = None,
    implementation: str | None = None,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    r"""Scaled dot-product attention without materialised scores.

    .. math:: out_t = \sum_s P_{ts} v_s, \quad P = softmax(mask(cap(scale \cdot q_t \cdot k_s)))

    Legend: \*B any leading batch dimensions, T query length, S key length, N query heads, K
    key/value heads (N a multiple of K: query head h uses key head h // (N // K)), H head size, Hv
    value head size. T_b and S_b are the lengths of one sequence.

    Integer operands are int32; known ones may be lists, or NumPy arrays of any integer type.

    Args:
      query: [\*B, T, N, H], bfloat16, float16, float32 or float64.
      key: [\*B, S, K, H], same dtype.
      value: [\*B, S, K, Hv], same dtype.
      causal: query t sees keys s <= t + (S_b - T_b): aligned bottom-right.
      window: (left, right), counts of keys on either side of that diagonal, both ends inclusive;
        None on a side leaves it open. With causal, right is 0.
      scale: a Python number; 1 / sqrt(H) by default. To scale by an array, multiply the query.
      logits_soft_cap: c > 0 makes logits c tanh(logit / c), after the scale and before the mask.
      query_lengths: int32 [\*B]; rows from the length on are empty.
      key_lengths: int32 [\*B]; whatever lies past the length, NaN included, counts for nothing.
      query_segment_ids: int32 [\*B, T], non-decreasing along T; negative is padding, a row that is
        empty. A row sees keys of its own id alone, and causal and window count within the segment,
        exactly as if it were unpacked.
      key_segment_ids: int32 [\*B, S], likewise; negative is a key that nobody sees.
      return_lse: also return the log-sum-exp.
      num_splits: parts in which kernels take the keys of a row, merged at the end; None is
        automatic. More keep a GPU busy when there are few rows and many keys.
      implementation: None (kernels on AMD GPUs that have them, else "xla"), "xla", or a target,
        "gfx950" or "gfx1201"; a target runs in the emulator on a CPU. None is chosen when the
        program is lowered, by its own devices: kernels where one target serves all of them. On
        other AMD GPUs, and over a mesh of unlike ones, it is "xla", and a warning says so once.

    Returns:
      out [\*B, T, N, Hv] in the query's dtype, and with return_lse also lse [\*B, T, N], float32,
      natural logarithm (float64 for float64). A row that sees no key has out 0 and lse -inf, and
      gradient 0.

    Raises:
      TypeError: a dtype is wrong, or a static option is traced.
      ValueError: a shape or an option is wrong, or an integer does not fit int32. Both name the
        argument.
      NotImplementedError: the named target has no kernel for these operands (H > 256, Hv != H,
        float32 or float64); "xla" serves them.

    Numerics: float32 accumulation. Same inputs, same bits. Kernels round P to the operands' dtype;
    lse is within 1e-3 (float16) or 4e-3 (bfloat16) of exact, 1e-5 on xla. Differentiable in
    query, key, value, once and by reverse mode, also through lse; the backward is blockwise jnp.
    For jax.checkpoint the results are named "jax_fa_out" and "jax_fa_lse": a policy that saves
    both spares a second forward call.

    Source: Dao, FlashAttention-2 (2023), arXiv:2307.08691.
    """
    operands = dense.Operands(
        as_array("query", query),
        as_array("key", key),
        as_array("value", value),
        optional_integers("query_lengths", query_lengths),
        optional_integers("key_lengths", key_lengths),
        optional_integers("query_segment_ids", query_segment_ids),
        optional_integers("key_segment_ids", key_segment_ids),
    )
    shapes.dense_attention(*operands[:5])
    shapes.segment_ids(operands.query, operands.key, *operands[5:])
    with_lse = require_bool("return_lse", return_lse)
    spec = AttentionSpec.make(
        head_dim=operands.query.shape[-1],
        causal=causal,
        window=window,
        scale=scale,
        logits_soft_cap=logits_soft_cap,
        implementation=implementation,
        num_splits=num_splits,
    )
    out, lse = attention(dense.OPERATION, spec, operands)
    return (out, lse) if with_lse else out
