"""dot_product_attention with jax.nn's signature, so that one import changes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax_fa._contract import shapes
from jax_fa._contract.operands import as_array, as_integers
from jax_fa._contract.spec import TARGETS, AttentionSpec, require_bool
from jax_fa._ops import dense
from jax_fa._ops.bias import attention as biased_attention
from jax_fa._ops.vjp import attention


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    r"""``jax.nn.dot_product_attention`` (JAX 0.10 to 0.12), its signature, meaning and defaults.

    .. math:: out_t = \sum_s P_{ts} v_s, \quad P = softmax(mask(scale \, q_t \cdot k_s + bias_{ts}))

    Legend: B batch, T query length, S key length, N query heads, K key/value heads (N a multiple of
    K), H head size. A leading B may be left out; it is then 1 in every other argument.

    Args:
      query: [B, T, N, H] or [T, N, H].
      key: [B, S, K, H], the query's dtype.
      value: like key.
      bias: added to the scaled scores; broadcasts to [B, N, T, S]. Differentiable. -inf hides.
      mask: bool, broadcasts to [B, N, T, S]; False hides.
      scale: a Python number, 1 / sqrt(H) by default.
      is_causal: query t sees keys s <= t: aligned top-left, unlike flash_attention.
      query_seq_lengths: int32 [B] or a list of integers; rows from the length on are 0.
      key_value_seq_lengths: likewise; keys from the length on count for nothing.
      local_window_size: (left, right), or one number for both: query t sees keys
        t - left <= s <= t + right.
      implementation: None, "xla", "gfx950" or "gfx1201", as in flash_attention. With bias or mask
        None is "xla".
      return_residual: also return the log-sum-exp. No gradient flows through it.

    Returns:
      out, like query, and with return_residual also the residual [B, T, N] or [T, N].

    Differs from jax.nn on purpose:
      - A row that sees no key has out 0 and residual -inf, and gradient 0 (jax.nn: the mean of all
        values, a large negative number). Rows past query_seq_lengths have residual -inf.
      - The residual is float32, float64 for float64 operands (jax.nn: the key's dtype).
      - scale is a Python number and may not be traced. Window sizes are not negative.
      - float64 is float64 throughout (jax.nn: a float32 softmax).
      - A length that does not fit int32 is an error (jax.nn: wraps around).
      - implementation="cudnn" is an error; the AMD targets take its place, without bias and mask.
      - Gradients by reverse mode only.

    Raises:
      ValueError, TypeError: naming the argument, what it must be and what it was.
      NotImplementedError: bias, mask, or operands that the named target has no kernel for.

    Numerics: as flash_attention, but products of float32 have JAX's default precision, as jax.nn's.
    """
    shape = jnp.shape(query)
    query, key, value = (
        _four_dimensional(name, operand, at_least=3)
        for name, operand in (("query", query), ("key", key), ("value", value))
    )
    (b, t, n, _), s = query.shape, key.shape[1]
    if len(shape) == 3 and key.shape[0] != 1:
        raise ValueError(
            f"query must have shape (B, T, N, H) with B={key.shape[0]} as in key; got shape {shape}"
            "; one row a sequence is T = 1, query[:, None]"
        )
    shapes.dense_attention(query, key, value)
    bias = _broadcasts("bias", bias, (b, n, t, s))
    mask = _broadcasts("mask", mask, (b, n, t, s))
    if mask is not None and mask.dtype != bool:
        raise TypeError(f"mask must be bool; got {mask.dtype}: pass an additive mask as bias")
    query_lengths = _lengths("query_seq_lengths", query_seq_lengths, b)
    key_lengths = _lengths("key_value_seq_lengths", key_value_seq_lengths, b)
    is_causal = require_bool("is_causal", is_causal)
    return_residual = require_bool("return_residual", return_residual)
    spec = AttentionSpec.make(
        head_dim=query.shape[-1],
        causal=is_causal,
        window=_window(local_window_size),
        scale=scale,
        implementation=_not_cudnn(implementation),
        top_left=True,
        exact=False,
    )
    if bias is None and mask is None:
        operands = dense.Operands(query, key, value, query_lengths, key_lengths)
        out, lse = attention(dense.OPERATION, spec, operands)
    else:
        if implementation in TARGETS:
            named = "bias" if bias is not None else "mask"
            raise NotImplementedError(
                f'implementation="{implementation}" has no kernel with {named}; '
                'implementation="xla" serves it'
            )
        out, lse = biased_attention(spec, query, key, value, bias, mask, query_lengths, key_lengths)
    out = out.reshape(*shape[:-1], out.shape[-1])
    return (out, lax.stop_gradient(lse).reshape(shape[:-1])) if return_residual else out


def _four_dimensional(name: str, operand: Any, at_least: int = 0) -> jax.Array:
    array = as_array(name, operand)
    if not at_least <= array.ndim <= 4:
        allowed = "at most 4" if at_least == 0 else f"{at_least} or 4"
        raise ValueError(f"{name} must have {allowed} dimensions; got shape {array.shape}")
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def _broadcasts(name: str, operand: Any, full: tuple[int, ...]) -> jax.Array | None:
    """Bias or mask with 4 dimensions, each 1 or that of `full`."""
    if operand is None:
        return None
    array = _four_dimensional(name, operand)
    if any(size not in (1, whole) for size, whole in zip(array.shape, full, strict=True)):
        raise ValueError(
            f"{name} must broadcast to (B, N, T, S) = {full}; got shape {jnp.shape(operand)}"
        )
    return array


def _lengths(name: str, lengths: Any, batch: int) -> jax.Array | None:
    if lengths is None:
        return None
    lengths = as_integers(name, lengths)
    if lengths.shape != (batch,):
        raise ValueError(f"{name} must have shape (B,) = ({batch},); got shape {lengths.shape}")
    return lengths


def _window(sizes: Any) -> tuple[int, int] | None:
    if sizes is None:
        return None
    pair = sizes if isinstance(sizes, (tuple, list)) else (sizes, sizes)
    whole = [isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in pair]
    if len(pair) != 2 or not all(whole):
        raise TypeError(
            f"local_window_size must be an integer or a pair (left, right) of them; got {sizes!r}"
        )
    if min(pair) < 0:
        raise ValueError(f"local_window_size must be >= 0 on both sides; got {sizes!r}")
    return pair[0], pair[1]


def _not_cudnn(implementation: Any) -> Any:
    if implementation == "cudnn":
        targets = " or ".join(f'"{target}"' for target in TARGETS)
        raise ValueError(
            'implementation must not be "cudnn", which drives NVIDIA GPUs; '
            f'leave it None, or name "xla" or {targets}; got "cudnn"'
        )
    return implementation
