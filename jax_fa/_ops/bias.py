"""Attention with a bias on the logits, or a mask: blockwise jnp, differentiable in the bias too.

A mask is a bias of -inf where it hides. The bias keeps the form in which it broadcasts to
[B, N, T, S], and so does its gradient; sequences are taken one after another.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jax_fa._contract.shapes import lse_dtype
from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.sharding import in_auto_mode
from jax_fa._mesh.vary import full, vary_together
from jax_fa._ops.vjp import no_gradient
from jax_fa._xla import blockwise
from jax_fa._xla.keys import FlatKeys
from jax_fa._xla.rows import Work, dense_work


class Operands(NamedTuple):
    """Padded sequences, or one of them without B."""

    query: jax.Array  # [B, T, N, H]
    key: jax.Array  # [B, S, K, H]
    value: jax.Array  # [B, S, K, Hv]
    bias: jax.Array  # [B, T, N, S], each of which may be 1: rows first, as in everything else
    query_lengths: jax.Array | None  # int32 [B]
    key_lengths: jax.Array | None  # int32 [B]


@functools.partial(jax.jit, static_argnums=0)
def attention(
    spec: AttentionSpec,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: jax.Array | None,
    mask: jax.Array | None,
    query_lengths: jax.Array | None,
    key_lengths: jax.Array | None,
) -> tuple[jax.Array, jax.Array]:
    """(out [B, T, N, Hv], lse [B, T, N]); operands have passed the shape rules.

    bias and mask: 4 dimensions, each 1 or that of [B, N, T, S]; one of them may be None.
    """
    with_d_bias = bias is not None
    if bias is None:
        bias = jnp.zeros((), query.dtype)
    elif not jnp.issubdtype(bias.dtype, jnp.floating):
        bias = bias.astype(jnp.float32)
    if mask is not None:
        bias = jnp.where(mask, bias, jnp.asarray(-jnp.inf, bias.dtype))
    bias = jnp.swapaxes(bias, 1, 2)
    (operands,) = vary_together(Operands(query, key, value, bias, query_lengths, key_lengths))
    attend = functools.partial(_attention, spec, with_d_bias)
    return in_auto_mode(attend, ("query", 4), ("query", 3))(operands)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _attention(spec, with_d_bias, operands):
    del with_d_bias
    return _forward(spec, operands)


def _forward(spec: AttentionSpec, operands: Operands) -> tuple[jax.Array, jax.Array]:
    shared, own = _split(operands.bias)

    def one(sequence: Any) -> tuple[jax.Array, jax.Array]:
        bias = shared if sequence.bias is None else sequence.bias
        return blockwise.forward(spec, *_problem(sequence), bias)

    return lax.map(one, operands._replace(bias=own))


def _attention_fwd(spec, with_d_bias, operands):
    del with_d_bias
    out, lse = _forward(spec, operands)
    return (out, lse), (operands, out, lse)


def _attention_bwd(spec, with_d_bias, residuals, cotangents):
    operands, out, lse = residuals
    d_out, d_lse = cotangents
    shared, own = _split(operands.bias)

    def one(d_shared: Any, inputs: Any) -> Any:
        sequence, results = inputs
        d_query, d_keys, d_bias = blockwise.backward(
            spec,
            *_problem(sequence),
            *results,
            bias=shared if sequence.bias is None else sequence.bias,
            with_d_bias=with_d_bias,
        )
        assert d_keys is not None
        if d_shared is None:
            return None, (d_query, *d_keys, d_bias)
        return d_shared + d_bias, (d_query, *d_keys, None)

    query, bias = operands.query, operands.bias
    wide = lse_dtype(query.dtype)
    results = out, lse, d_out, d_lse.astype(wide)
    d_shared = None
    if with_d_bias and shared is not None:
        d_shared = full(shared.shape, 0, wide, query)
    inputs = operands._replace(bias=own), results
    d_shared, (d_query, d_key, d_value, d_own) = lax.scan(one, d_shared, inputs)
    d_bias = d_own if d_shared is None else d_shared[None]
    if d_bias is not None:
        d_bias = d_bias.astype(bias.dtype)
    lengths = no_gradient(operands.query_lengths), no_gradient(operands.key_lengths)
    return (Operands(d_query, d_key, d_value, d_bias, *lengths),)


_attention.defvjp(_attention_fwd, _attention_bwd)


def _split(bias: jax.Array) -> tuple[jax.Array | None, jax.Array | None]:
    """(the bias that all sequences share [Tb, Nb, Sb], each sequence's own [B, Tb, Nb, Sb])."""
    return (bias[0], None) if bias.shape[0] == 1 else (None, bias)


def _problem(sequence: Operands) -> tuple[jax.Array, FlatKeys, Work]:
    """One sequence, of operands without B, as the blockwise implementation takes it."""
    query, key, value, _, *lengths = sequence
    lengths = (None if x is None else x[None] for x in lengths)
    work = dense_work(1, query.shape[0], key.shape[0], *lengths)
    return query, FlatKeys(key, value), work
