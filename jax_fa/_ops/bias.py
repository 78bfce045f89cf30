"""Attention with a bias on the logits, or a mask: blockwise jnp, differentiable in the bias too.

A mask is a bias of -inf where it hides. The bias keeps the form in which it broadcasts to
[B, N, T, S], and so does its gradient; sequences are taken one after another.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jax_fa._contract import shapes as _shapes
from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh import sharding as _sharding
from jax_fa._mesh.vary import full, vary_together
from jax_fa._ops.vjp import no_gradient
from jax_fa._xla import blockwise as _blockwise
from jax_fa._xla import rows as _rows
from jax_fa._xla.keys import FlatKeys


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
    bias = jnp.swapaxes(bias, 1, 2)  # rows first, as in everything else
    operands = vary_together(query, key, value, bias, query_lengths, key_lengths)
    attend = functools.partial(_attention, spec, with_d_bias)
    return _sharding.in_auto_mode(attend, (0, 4), (0, 3))(*operands)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _attention(spec, with_d_bias, *operands):
    del with_d_bias
    return _forward(spec, *operands)


def _forward(
    spec: AttentionSpec,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: jax.Array,
    query_lengths: jax.Array | None,
    key_lengths: jax.Array | None,
) -> tuple[jax.Array, jax.Array]:
    shared, own = _split(bias)

    def one(sequence: Any) -> tuple[jax.Array, jax.Array]:
        query, key, value, own, *lengths = sequence
        bias = shared if own is None else own
        work = _work(query, key, *lengths)
        return _blockwise.forward(spec, query, FlatKeys(key, value), work, bias)

    return lax.map(one, (query, key, value, own, query_lengths, key_lengths))


def _attention_fwd(spec, with_d_bias, *operands):
    del with_d_bias
    out, lse = _forward(spec, *operands)
    return (out, lse), (*operands, out, lse)


def _attention_bwd(spec, with_d_bias, residuals, cotangents):
    query, key, value, bias, query_lengths, key_lengths, out, lse = residuals
    d_out, d_lse = cotangents
    shared, own = _split(bias)

    def one(d_shared: Any, sequence: Any) -> Any:
        (query, key, value, own, *lengths), results = sequence[:6], sequence[6:]
        d_query, d_keys, d_bias = _blockwise.backward(
            spec,
            query,
            FlatKeys(key, value),
            _work(query, key, *lengths),
            *results,
            bias=shared if own is None else own,
            with_d_bias=with_d_bias,
        )
        assert d_keys is not None
        if d_shared is None:
            return None, (d_query, *d_keys, d_bias)
        return d_shared + d_bias, (d_query, *d_keys, None)

    wide = _shapes.lse_dtype(query.dtype)
    sequences = query, key, value, own, query_lengths, key_lengths
    results = out, lse, d_out, d_lse.astype(wide)
    d_shared = None
    if with_d_bias and shared is not None:
        d_shared = full(shared.shape, 0, wide, query)
    d_shared, (*gradients, d_own) = lax.scan(one, d_shared, (*sequences, *results))
    d_bias = d_own if d_shared is None else d_shared[None]
    if d_bias is not None:
        d_bias = d_bias.astype(bias.dtype)
    return *gradients, d_bias, *map(no_gradient, (query_lengths, key_lengths))


_attention.defvjp(_attention_fwd, _attention_bwd)


def _split(bias: jax.Array) -> tuple[jax.Array | None, jax.Array | None]:
    """(the bias that all sequences share [Tb, Nb, Sb], each sequence's own [B, Tb, Nb, Sb])."""
    return (bias[0], None) if bias.shape[0] == 1 else (None, bias)


def _work(query: jax.Array, key: jax.Array, query_length: Any, key_length: Any) -> _rows.Work:
    """Items of one sequence: query [T, N, H], key [S, K, H]; lengths are int32 [] or None."""
    query_lengths, key_lengths = (
        None if length is None else length[None] for length in (query_length, key_length)
    )
    return _rows.dense_work(1, query.shape[0], key.shape[0], query_lengths, key_lengths)
