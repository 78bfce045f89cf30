"""merge_attention: attention over the union of two sets of keys, from the parts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from jax_fa._contract import shapes
from jax_fa._contract.operands import as_array


@jax.jit
def _merge(out_a, lse_a, out_b, lse_b):
    # Any shift gives the same result; a constant one keeps gradients simple.
    shift = lax.stop_gradient(jnp.maximum(lse_a, lse_b))
    shift = jnp.where(jnp.isneginf(shift), 0, shift)
    empty_a, empty_b = jnp.isneginf(lse_a), jnp.isneginf(lse_b)
    weight_a = jnp.where(empty_a, 0, jnp.exp(jnp.where(empty_a, 0, lse_a - shift)))
    weight_b = jnp.where(empty_b, 0, jnp.exp(jnp.where(empty_b, 0, lse_b - shift)))
    total = weight_a + weight_b
    empty = total == 0
    total = jnp.where(empty, 1, total)

    def part(out, weight):
        # Select, not multiply: an empty part's values count for nothing.
        weight = weight[..., None]
        return jnp.where(weight == 0, 0, out.astype(weight.dtype)) * weight

    out = (part(out_a, weight_a) + part(out_b, weight_b)) / total[..., None]
    lse = jnp.where(empty, -jnp.inf, shift + jnp.log(total))
    return out.astype(out_a.dtype), lse


def merge_attention(
    out_a: jax.Array, lse_a: jax.Array, out_b: jax.Array, lse_b: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Attention over the union of two disjoint sets of keys.

    ``lse = log(exp(lse_a) + exp(lse_b))`` and
    ``out = exp(lse_a - lse) out_a + exp(lse_b - lse) out_b``.

    Args:
      out_a: [..., N, Hv], normalised output over the first set.
      lse_a: float32 [..., N], its log-sum-exp (natural).
      out_b: like out_a, over the second set; also bfloat16 or float16 where out_a is float32.
      lse_b: like lse_a.

    Returns:
      (out, lse) with the shapes and dtypes of the first part. An empty part (lse -inf) gives the
      other part; two empty parts give (0, -inf). Differentiable in all four operands.

    Raises:
      TypeError, ValueError: a dtype or a shape is wrong; the text names the argument.

    Numerics: float32, rounded to out_a's dtype at the end. So that many parts in half precision are
    rounded once, not at every merge, begin with ``out_a.astype(jnp.float32)`` and convert the last
    result back.
    """
    out_a = as_array("out_a", out_a)
    lse_a = as_array("lse_a", lse_a)
    out_b = as_array("out_b", out_b)
    lse_b = as_array("lse_b", lse_b)
    shapes.merge_attention(out_a, lse_a, out_b, lse_b)
    return _merge(out_a, lse_a, out_b, lse_b)
