"""The differentiable operation: custom_vjp from saved out and lse, through lse too.

The residuals are the operands, out in the query's dtype and lse in float32 (float64 for float64),
as they are returned, whichever implementation has made them. Where a lse is large, float32 has
rounded away the sum of weights that it holds beside the maximum; there the backward measures the
maximum and the sum again (_xla/softmax.py), so that its weights are as exact as the forward's.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jax.custom_derivatives import SymbolicZero

from jax_fa._contract.shapes import lse_dtype
from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.vary import full, vary_together
from jax_fa._ops.call import Pair
from jax_fa._ops.operation import Operation, Results, backward, forward

OUT_NAME = "jax_fa_out"
LSE_NAME = "jax_fa_lse"
"""Names for jax.checkpoint policies: saving both avoids a second forward call."""


@functools.partial(jax.jit, static_argnums=(0, 1))
def attention(operation: Operation, spec: AttentionSpec, operands: Any) -> Pair:
    """(out, lse); operands have passed the shape rules. Eager calls share this one jit."""
    # The cast stands outside of custom_vjp, so that its transpose sums gradients over axes on which
    # an operand was replicated.
    (operands,) = vary_together(operands)
    return _attention(operation, spec, operands)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _attention(operation, spec, operands):
    return forward(operation, spec, operands)


# Gradients of keys and values may be as large as a cache, and are not computed where the query's
# alone is wanted. The length of a residual tells the backward so. The structure of the residuals
# could not: JAX may call _attention_bwd with the structure of a later call of _attention_fwd than
# the one that its arrays come from.


def _attention_fwd(operation, spec, operands):
    with_d_keys = any(getattr(operands, name).perturbed for name in operation.keys)
    operands = operands._make(None if x is None else x.value for x in operands)
    out, lse = forward(operation, spec, operands)
    out, lse = checkpoint_name(out, OUT_NAME), checkpoint_name(lse, LSE_NAME)
    wanted = full((int(with_d_keys),), 0, jnp.int8, out)
    return (out, lse), (operands, out, lse, wanted)


def _attention_bwd(operation, spec, residuals, cotangents):
    operands, out, lse, wanted = residuals
    d_out, d_lse = (_instantiate(x, operands.query) for x in cotangents)
    results = Results(out, lse, d_out, d_lse.astype(lse_dtype(operands.query.dtype)))
    with_d_keys = wanted.shape[-1] == 1
    found = backward(operation, spec, with_d_keys, operands, results)
    none = {name: no_gradient(x) for name, x in operands._asdict().items()}
    gradients = dict(zip(operation.gradients(with_d_keys), found, strict=True))
    return (type(operands)(**{**none, **gradients}),)


def _instantiate(cotangent: Any, like: jax.Array) -> jax.Array:
    if not isinstance(cotangent, SymbolicZero):
        return cotangent
    zero: Any = cotangent
    return full(zero.shape, 0, zero.dtype, like)


def no_gradient(operand):
    """The cotangent of an integer operand, or of one whose gradient is not asked for."""
    if operand is None or jnp.issubdtype(operand.dtype, jnp.floating):
        return None
    return np.zeros(jnp.shape(operand), jax.dtypes.float0)


_attention.defvjp(_attention_fwd, _attention_bwd, symbolic_zeros=True)
