"""The differentiable operation: custom_vjp from saved out and lse, through lse too."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jax.custom_derivatives import SymbolicZero

from jax_fa._contract import shapes as _shapes
from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.vary import full, vary_together
from jax_fa._ops.primitive import Operation, Pair

OUT_NAME = "jax_fa_out"
LSE_NAME = "jax_fa_lse"
"""Names for jax.checkpoint policies: saving both avoids a second forward call."""


@functools.partial(jax.jit, static_argnums=(0, 1))
def attention(operation: Operation, spec: AttentionSpec, *operands: jax.Array | None) -> Pair:
    """(out, lse); operands have passed the shape rules. Eager calls share this one jit.

    operands: query, key and value, or pages of them, then integer arrays or None.
    """
    # Outside custom_vjp, so that transposing the cast sums gradients over replicated axes.
    return _attention(operation, spec, *vary_together(*operands))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _attention(operation, spec, *operands):
    return operation.forward(spec, *operands)


# Of the operands only the query may be wanted: then the others' gradients, which may be as large as
# a cache, are not computed. A residual's length says so: their tree would not do, since JAX may
# give _attention_bwd that of a later call of _attention_fwd than the one whose arrays it gives.


def _attention_fwd(operation, spec, *operands):
    with_d_keys = any(x.perturbed for x in operands[1:3])
    operands = tuple(None if x is None else x.value for x in operands)
    out, lse = operation.forward(spec, *operands)
    out, lse = checkpoint_name(out, OUT_NAME), checkpoint_name(lse, LSE_NAME)
    wanted = full((int(with_d_keys),), 0, jnp.int8, out)
    return (out, lse), (operands, out, lse, wanted)


def _attention_bwd(operation, spec, residuals, cotangents):
    operands, out, lse, wanted = residuals
    query = operands[0]
    d_out, d_lse = (_instantiate(x, query) for x in cotangents)
    d_lse = d_lse.astype(_shapes.lse_dtype(query.dtype))
    with_d_keys = wanted.shape[-1] == 1
    gradients = operation.backward(spec, with_d_keys, *operands, out, lse, d_out, d_lse)
    if not with_d_keys:
        gradients = *gradients, None, None
    return *gradients, *map(no_gradient, operands[3:])


def _instantiate(cotangent: Any, like: jax.Array) -> jax.Array:
    if not isinstance(cotangent, SymbolicZero):
        return cotangent
    zero: Any = cotangent
    return full(zero.shape, 0, zero.dtype, like)


def no_gradient(integers):
    """The cotangent of an integer operand."""
    return None if integers is None else np.zeros(jnp.shape(integers), jax.dtypes.float0)


_attention.defvjp(_attention_fwd, _attention_bwd, symbolic_zeros=True)
