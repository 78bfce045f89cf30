"""Attention with a bias on the logits, or a mask: blockwise jnp, differentiable in the bias too.

A mask is a bias of -inf where it hides. The bias keeps the form in which it broadcasts to
[B, N, T, S], and so does its gradient. On a CPU sequences are taken one after another.
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
from jax_fa._ops.batching import join_leading
from jax_fa._ops.vjp import no_gradient
from jax_fa._xla import batched, blockwise
from jax_fa._xla.keys import FlatKeys
from jax_fa._xla.rows import Work, dense_work
from jax_fa._xla.schedule import by_platform


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
    one_by_one, together = (
        functools.partial(f, spec) for f in (_forward_one_by_one, _forward_together)
    )
    return by_platform(one_by_one, together, operands, pairs=_pairs(operands))


def _forward_together(spec: AttentionSpec, operands: Operands) -> tuple[jax.Array, jax.Array]:
    found = batched.forward(spec, *_joined(operands), operands.bias)
    shape = operands.query.shape
    out, lse = (x.reshape(*shape[:3], *x.shape[2:]) for x in found)
    return out, lse


def _forward_one_by_one(spec: AttentionSpec, operands: Operands) -> tuple[jax.Array, jax.Array]:
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
    results = out, lse, d_out, d_lse.astype(lse_dtype(operands.query.dtype))
    one_by_one, together = (
        functools.partial(f, spec, with_d_bias) for f in (_backward_one_by_one, _backward_together)
    )
    *gradients, d_bias = by_platform(
        one_by_one, together, operands, results, pairs=_pairs(operands)
    )
    if d_bias is not None:
        d_bias = d_bias.astype(operands.bias.dtype)
    lengths = no_gradient(operands.query_lengths), no_gradient(operands.key_lengths)
    return (Operands._make((*gradients, d_bias, *lengths)),)


def _backward_together(
    spec: AttentionSpec, with_d_bias: bool, operands: Operands, results: Any
) -> tuple[jax.Array | None, ...]:
    """Gradients of query, key, value and bias."""
    d_query, d_keys, d_bias = batched.backward(
        spec,
        *_joined(operands),
        *map(join_leading, results),
        bias=operands.bias,
        with_d_bias=with_d_bias,
    )
    assert d_keys is not None
    found = zip((d_query, *d_keys), operands[:3], strict=True)
    return *(d.reshape(x.shape) for d, x in found), d_bias


def _backward_one_by_one(
    spec: AttentionSpec, with_d_bias: bool, operands: Operands, results: Any
) -> tuple[jax.Array | None, ...]:
    """Gradients of query, key, value and bias."""
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

    d_shared = None
    if with_d_bias and shared is not None:
        d_shared = full(shared.shape, 0, lse_dtype(operands.query.dtype), operands.query)
    inputs = operands._replace(bias=own), results
    d_shared, (*gradients, d_own) = lax.scan(one, d_shared, inputs)
    return *gradients, d_own if d_shared is None else d_shared[None]


_attention.defvjp(_attention_fwd, _attention_bwd)


def _split(bias: jax.Array) -> tuple[jax.Array | None, jax.Array | None]:
    """(the bias that all sequences share [Tb, Nb, Sb], each sequence's own [B, Tb, Nb, Sb])."""
    return (bias[0], None) if bias.shape[0] == 1 else (None, bias)


def _pairs(operands: Operands) -> Any:
    return operands.query.shape[1] * operands.key.shape[1]


def _joined(operands: Operands) -> tuple[jax.Array, FlatKeys, Work]:
    """All sequences, as the batched implementation takes them."""
    query, key, value, _, *lengths = operands
    work = dense_work(query.shape[0], query.shape[1], key.shape[1], *lengths)
    return join_leading(query), FlatKeys(join_leading(key), join_leading(value)), work


def _problem(sequence: Operands) -> tuple[jax.Array, FlatKeys, Work]:
    """One sequence, of operands without B, as the blockwise implementation takes it."""
    query, key, value, _, *lengths = sequence
    lengths = (None if x is None else x[None] for x in lengths)
    work = dense_work(1, query.shape[0], key.shape[0], *lengths)
    return query, FlatKeys(key, value), work
