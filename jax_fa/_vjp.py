"""The differentiable operation: custom_vjp from saved out and lse, through lse too."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

from jax_fa import _primitive, _shapes
from jax_fa._spec import AttentionSpec
from jax_fa._vary import vary_together

OUT_NAME = "jax_fa_out"
LSE_NAME = "jax_fa_lse"
"""Names for jax.checkpoint policies: saving both avoids a second forward call."""


@functools.partial(jax.jit, static_argnums=0)
def attention(
    spec: AttentionSpec,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    query_lengths: jax.Array | None,
    key_lengths: jax.Array | None,
) -> tuple[jax.Array, jax.Array]:
    """(out, lse); operands have passed the shape rules. Eager calls share this one jit."""
    # Outside custom_vjp, so that transposing the cast sums gradients over replicated axes.
    operands = vary_together(query, key, value, query_lengths, key_lengths)
    return _attention(spec, *operands)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attention(spec, query, key, value, query_lengths, key_lengths):
    return _primitive.forward(spec, query, key, value, query_lengths, key_lengths)


def _attention_fwd(spec, query, key, value, query_lengths, key_lengths):
    out, lse = _primitive.forward(spec, query, key, value, query_lengths, key_lengths)
    out, lse = checkpoint_name(out, OUT_NAME), checkpoint_name(lse, LSE_NAME)
    return (out, lse), (query, key, value, query_lengths, key_lengths, out, lse)


def _attention_bwd(spec, residuals, cotangents):
    query, key, value, query_lengths, key_lengths, out, lse = residuals
    d_out, d_lse = cotangents
    gradients = _primitive.backward(
        spec,
        query,
        key,
        value,
        query_lengths,
        key_lengths,
        out,
        lse,
        d_out,
        d_lse.astype(_shapes.lse_dtype(query.dtype)),
    )
    return *gradients, no_gradient(query_lengths), no_gradient(key_lengths)


def no_gradient(lengths):
    """The cotangent of an integer operand."""
    return None if lengths is None else np.zeros(jnp.shape(lengths), jax.dtypes.float0)


_attention.defvjp(_attention_fwd, _attention_bwd)
