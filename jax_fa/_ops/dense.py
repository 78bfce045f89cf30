"""Dense attention: the kernel's call, its xla twin, and their vmap rule.

Operands are query [*B, T, N, H], key [*B, S, K, H], value [*B, S, K, Hv], query_lengths and
key_lengths [*B] or None, query and key segment ids [*B, T] and [*B, S] or None. The mapped axis of
vmap joins the leading dimensions.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp

from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh import sharding as _sharding
from jax_fa._mesh.vary import vary_together
from jax_fa._ops import registry as _registry
from jax_fa._ops import segments as _segments
from jax_fa._ops import select as _select
from jax_fa._ops import varlen as _op_varlen
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


def forward(spec: AttentionSpec, *operands: jax.Array | None) -> Pair:
    """(out [*B, T, N, Hv], lse [*B, T, N]), by whichever implementation spec and platform give."""
    return _forward_op(spec)(*operands)


@functools.cache
def _forward_op(spec: AttentionSpec) -> Any:
    return batched(_forward_call(spec), _join, heads_axis=-2)


@_sharding.divides("dense_forward")
def _forward_call(spec: AttentionSpec) -> _sharding.Call:
    def call(query, key, value, *rest):
        choice = _select.choose(spec.implementation, query, key, value)
        kernel, xla = functools.partial(_kernel, spec), functools.partial(_xla, spec)
        return by_platform(choice, kernel, xla, query, key, value, *rest)

    return _sharding.Call(call, _rule)


def _rule(query: Any, key: Any, *rest: Any, gradients: int = 0) -> _sharding.Rule:
    """By all leading dimensions and by key heads, forward or backward to so many gradients."""
    batch = [f"b{i}" for i in range(query.ndim - 3)]
    rows, keys, lengths = (" ".join([*batch, *x]) for x in (["t", "K"], ["s", "k"], []))
    segments = " ".join([*batch, "t"]), " ".join([*batch, "s"])
    operands = f"{rows} h", f"{keys} h", f"{keys} v"
    _, *integers = rest
    named = zip((lengths, lengths, *segments), integers[:4], strict=True)
    results = f"{rows} v", rows
    return _sharding.Rule(
        operands=(
            *operands,
            *(name for name, x in named if x is not None),
            *(2 * results if gradients else ()),
        ),
        results=operands[:gradients] or results,
        free=(*batch, "k"),
        group=query.shape[-2] // max(key.shape[-2], 1),
        gradients=bool(gradients),
    )


# Segments are few: the launch of a batch has room for so many and an eighth for each row. More make
# its workgroups go round.
_GRID_SEQUENCES = 64


def _kernel(
    spec: AttentionSpec,
    target: str,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    query_lengths: jax.Array | None,
    key_lengths: jax.Array | None,
    query_segment_ids: jax.Array | None,
    key_segment_ids: jax.Array | None,
) -> Pair:
    lead, shape = query.ndim - 3, query.shape
    if query_segment_ids is not None:
        query, key, value = (join_leading(x, lead + 1) for x in (query, key, value))
        cu_q, cu_k, count = _offsets(query_lengths, key_lengths, query_segment_ids, key_segment_ids)
        # How many segments there are, only the device knows.
        room = _GRID_SEQUENCES + _GRID_SEQUENCES // 8 * math.prod(shape[:lead])
        out, lse = _op_varlen.kernel(spec, target, query, key, value, cu_q, cu_k, count, room)
    else:
        query, key, value = (join_leading(x, lead) for x in (query, key, value))
        num_splits = _select.useful_splits(spec.num_splits, key.shape[1])
        num_splits = num_splits or _select.dense_splits(target, query.shape, key.shape)
        lengths = (None if x is None else x.reshape(-1) for x in (query_lengths, key_lengths))
        out, lse = kernel_call(
            _registry.FLASH, spec, target, num_splits, query, key, value, *lengths
        )
    return out.reshape(shape), lse.reshape(shape[:-1])


def _xla(spec: AttentionSpec, query: jax.Array, *rest: Any) -> Pair:
    rows, keys, work = _problem(query, *rest)
    out, lse = _blockwise.forward(spec, rows, keys, work)
    *shape, _ = query.shape
    return out.reshape(*shape, out.shape[-1]), lse.reshape(*shape)


def backward(
    spec: AttentionSpec, with_d_keys: bool, *operands: jax.Array | None
) -> tuple[jax.Array, ...]:
    """Gradients of query, key and value; by the blockwise implementation on every platform."""
    return _backward_op(spec, with_d_keys)(*operands)


@functools.cache
def _backward_op(spec: AttentionSpec, with_d_keys: bool) -> Any:
    return batched(_backward_call(spec, with_d_keys), _join)


@_sharding.divides("dense_backward")
def _backward_call(spec: AttentionSpec, with_d_keys: bool) -> _sharding.Call:
    def call(query, key, value, *rest):
        *integers, out, lse, d_out, d_lse = rest
        _, *results = vary_together(query, out, lse, d_out, d_lse)
        results = (join_leading(x, query.ndim - 2) for x in results)
        rows, keys, work = _problem(query, key, value, *integers)
        d_query, d_keys, _ = _blockwise.backward(
            spec, rows, keys, work, *results, with_d_keys=with_d_keys
        )
        gradients = d_query, *(d_keys or ())
        return tuple(
            g.reshape(x.shape) for g, x in zip(gradients, (query, key, value), strict=False)
        )

    return _sharding.Call(call, functools.partial(_rule, gradients=3 if with_d_keys else 1))


def _problem(*operands: Any) -> tuple[jax.Array, FlatKeys, _rows.Work]:
    """The operands as the blockwise implementation takes them."""
    query, key, value, query_lengths, key_lengths, *ids = vary_together(*operands)
    *batch, t, _, _ = query.shape
    lead, s = len(batch), key.shape[-3]
    rows, *keys = (join_leading(x, lead + 1) for x in (query, key, value))
    if ids[0] is None:
        lengths = (None if x is None else x.reshape(-1) for x in (query_lengths, key_lengths))
        work = _rows.dense_work(math.prod(batch), t, s, *lengths)
    else:
        cu_q, cu_k, _ = _offsets(query_lengths, key_lengths, *ids)
        work = _op_varlen.work(cu_q, cu_k, rows.shape[0], keys[0].shape[0], longest=t)
    return rows, FlatKeys(*keys), work


def _offsets(
    query_lengths: jax.Array | None,
    key_lengths: jax.Array | None,
    query_segment_ids: Any,
    key_segment_ids: Any,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The segments as packed sequences of flat rows and keys, and their number.

    Lengths end segments early.
    """

    def flat(ids: jax.Array, lengths: jax.Array | None) -> jax.Array:
        if lengths is not None:
            ids = jnp.where(jnp.arange(ids.shape[-1]) < lengths[..., None], ids, -1)
        return join_leading(ids, ids.ndim - 1)

    return _segments.packed_offsets(
        flat(query_segment_ids, query_lengths), flat(key_segment_ids, key_lengths)
    )


def _join(axis_size: int, flags: Any, operands: Any) -> tuple[Any, Any]:
    return spread(axis_size, flags, operands), lambda results: results


OPERATION = Operation(forward, backward)
