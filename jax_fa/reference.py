"""The oracle: attention in plain jnp that materialises the scores. Nothing clever.

Every implementation is tested against these functions. They take the arguments of the public
functions of the same name, without ``implementation``.
"""

from __future__ import annotations

from typing import Literal, Unpack, overload

import jax
import jax.numpy as jnp

from jax_fa import _shapes
from jax_fa._spec import OPEN, AttentionSpec, DenseOptions


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
    query_lengths: jax.typing.ArrayLike | None = None,
    key_lengths: jax.typing.ArrayLike | None = None,
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
    out_type, lse_type = _shapes.dense_attention(query, key, value, query_lengths, key_lengths)
    t, s = query.shape[-3], key.shape[-3]
    batch = query.shape[:-3]
    t_b = _lengths(query_lengths, batch, t)
    s_b = _lengths(key_lengths, batch, s)
    seen = _visible(spec, t, s, t_b, s_b)
    out, lse = _attend(spec, query, key, value, seen, s_b)
    out, lse = out.astype(out_type.dtype), lse.astype(lse_type.dtype)
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


def _lengths(lengths: jax.typing.ArrayLike | None, batch: tuple[int, ...], limit: int) -> jax.Array:
    if lengths is None:
        return jnp.full(batch, limit, jnp.int32)
    return jnp.clip(lengths, 0, limit)


def _visible(spec: AttentionSpec, t: int, s: int, t_b: jax.Array, s_b: jax.Array) -> jax.Array:
    """Which keys each row sees: bool [*B, T, S]."""
    row = jnp.arange(t)[:, None]
    column = jnp.arange(s)[None, :]
    t_b, s_b = t_b[..., None, None], s_b[..., None, None]
    diagonal = row + (0 if spec.top_left else s_b - t_b)
    seen = (row < t_b) & (column < s_b)
    if spec.window_left != OPEN:
        seen &= column >= diagonal - spec.window_left
    if spec.window_right != OPEN:
        seen &= column <= diagonal + spec.window_right
    return seen


def _attend(
    spec: AttentionSpec,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    seen: jax.Array,
    s_b: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """(out, lse) in at least float32. seen: bool [*B, T, S]; s_b: int [*B]."""
    dtype = _shapes.lse_dtype(query.dtype)
    query, key, value = (x.astype(dtype) for x in (query, key, value))
    k_heads = key.shape[-2]
    group = query.shape[-2] // k_heads if k_heads else 1
    # Whatever lies past a key length counts for nothing, NaN included.
    within = (jnp.arange(key.shape[-3]) < s_b[..., None])[..., None, None]
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
