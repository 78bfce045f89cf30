"""Attention of packed sequences: the kernel's call, its xla twin, and their vmap rule.

Operands are query [tq, N, H], key [tk, K, H], value [tk, K, Hv], cu_seqlens_q and cu_seqlens_k
int32 [n + 1]. Under vmap the packs become one.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh import sharding as _sharding
from jax_fa._mesh.vary import vary_together
from jax_fa._ops import registry as _registry
from jax_fa._ops import select as _select
from jax_fa._ops.primitive import (
    Operation,
    Pair,
    batched,
    by_platform,
    join_leading,
    kernel_call,
    spread,
)
from jax_fa._xla import blockwise as _blockwise
from jax_fa._xla import rows as _rows
from jax_fa._xla.keys import FlatKeys


def forward(spec: AttentionSpec, *operands: jax.Array) -> Pair:
    """(out [tq, N, Hv], lse [tq, N]), by whichever implementation spec and platform give."""
    return _forward_op(spec)(*operands)


@functools.cache
def _forward_op(spec: AttentionSpec) -> Any:
    return batched(_forward_call(spec), _join, heads_axis=-2)


@_sharding.divides("varlen_forward")
def _forward_call(spec: AttentionSpec) -> _sharding.Call:
    def call(query, key, value, cu_seqlens_q, cu_seqlens_k):
        choice = _select.choose(spec.implementation, query, key, value)
        operands = query, key, value, cu_seqlens_q, cu_seqlens_k
        return by_platform(
            choice, functools.partial(kernel, spec), functools.partial(_xla, spec), *operands
        )

    return _sharding.Call(call, _rule)


def _rule(query: Any, key: Any, *rest: Any, gradients: int = 0) -> _sharding.Rule:
    """By key heads, forward or backward to so many gradients."""
    del rest
    operands, results = ("t K h", "s k h", "s k v"), ("t K v", "t K")
    return _sharding.Rule(
        operands=(*operands, "n", "n", *(2 * results if gradients else ())),
        results=operands[:gradients] or results,
        free=("k",),
        group=query.shape[-2] // max(key.shape[-2], 1),
        gradients=bool(gradients),
    )


def kernel(
    spec: AttentionSpec,
    target: str,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    cu_seqlens_q: jax.Array,
    cu_seqlens_k: jax.Array,
    num_sequences: jax.Array | None = None,
    grid_sequences: int | None = None,
) -> Pair:
    """The custom call.

    num_sequences: int32 [], the sequences past which all are empty; None: all that the offsets
      have room for. The launch is made for grid_sequences; with more its workgroups go round.
    """
    room = cu_seqlens_q.shape[0] - 1
    sequences = room if grid_sequences is None else min(grid_sequences, room)
    num_splits = _select.useful_splits(spec.num_splits, key.shape[0])
    num_splits = num_splits or _select.varlen_splits(
        target, query.shape, key.shape, sequences, spec.max_seqlen_k
    )
    if num_sequences is not None:
        num_sequences = num_sequences.reshape(1)
    operands = query, key, value, cu_seqlens_q, cu_seqlens_k, num_sequences
    return kernel_call(
        *(_registry.VARLEN, spec, target, num_splits, *operands), grid_sequences=np.int64(sequences)
    )


def _xla(spec: AttentionSpec, *operands: jax.Array) -> Pair:
    rows, keys, items = _problem(spec, *operands)
    return _blockwise.forward(spec, rows, keys, items)


def backward(spec: AttentionSpec, with_d_keys: bool, *operands: jax.Array) -> tuple[jax.Array, ...]:
    """Gradients of query, key and value; by the blockwise implementation on every platform."""
    return _backward_op(spec, with_d_keys)(*operands)


@functools.cache
def _backward_op(spec: AttentionSpec, with_d_keys: bool) -> Any:
    return batched(_backward_call(spec, with_d_keys), _join)


@_sharding.divides("varlen_backward")
def _backward_call(spec: AttentionSpec, with_d_keys: bool) -> _sharding.Call:
    def call(query, key, value, cu_seqlens_q, cu_seqlens_k, *results):
        _, *results = vary_together(query, *results)
        d_query, d_keys, _ = _blockwise.backward(
            spec,
            *_problem(spec, query, key, value, cu_seqlens_q, cu_seqlens_k),
            *results,
            with_d_keys=with_d_keys,
        )
        return d_query, *(d_keys or ())

    return _sharding.Call(call, functools.partial(_rule, gradients=3 if with_d_keys else 1))


def _problem(spec: AttentionSpec, *operands: Any) -> tuple[jax.Array, FlatKeys, _rows.Work]:
    query, key, value, cu_seqlens_q, cu_seqlens_k = vary_together(*operands)
    total_q, total_k = query.shape[0], key.shape[0]
    items = work(cu_seqlens_q, cu_seqlens_k, total_q, total_k, spec.max_seqlen_q)
    return query, FlatKeys(key, value), items


def work(
    cu_seqlens_q: jax.Array,
    cu_seqlens_k: jax.Array,
    total_q: int,
    total_k: int,
    longest: int | None,
) -> _rows.Work:
    """Items of packed sequences; `longest` as in _rows.packed_work."""
    ends = _rows.monotone(cu_seqlens_k, total_k)
    return _rows.packed_work(
        _rows.monotone(cu_seqlens_q, total_q), ends[:-1], jnp.diff(ends), total_q, longest
    )


def _join(axis_size: int, flags: Any, operands: Any) -> tuple[Any, Any]:
    query, key, value, cu_q, cu_k, *results = spread(axis_size, flags, operands)
    offsets = _joined_offsets(cu_q, cu_k, query.shape[1], key.shape[1])
    rows = (join_leading(x) for x in (query, key, value))

    def split(joined: Any) -> tuple:
        return tuple(x.reshape(axis_size, -1, *x.shape[1:]) for x in joined)

    return (*rows, *offsets, *map(join_leading, results)), split


def _joined_offsets(
    cu_q: jax.Array, cu_k: jax.Array, total_q: int, total_k: int
) -> tuple[jax.Array, jax.Array]:
    """Offsets [A, n + 1] of packs, as those of one pack.

    Between the last sequence of a pack and the first of the next stand two more: the rows that are
    nobody's, on no keys, and the keys that are nobody's, with no rows.
    """
    ends = _rows.joined_packs(cu_q, total_q), _rows.joined_packs(cu_k, total_k)
    next_q = jnp.append(ends[0][1:, 0], cu_q.shape[0] * total_q)
    joined_q = jnp.concatenate([ends[0], next_q[:, None]], 1)
    joined_k = jnp.concatenate([ends[1], ends[1][:, -1:]], 1)
    return joined_q.reshape(-1), joined_k.reshape(-1)


OPERATION = Operation(forward, backward)
