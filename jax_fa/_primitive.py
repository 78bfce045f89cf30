"""The custom call, its batching rule, and its place among the platforms.

The only ffi_call site. An operation is a function of arrays with any leading dimensions *B; under
vmap the mapped axis joins them.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from jax_fa import _blockwise, _registry, _rows, _select, _shapes
from jax_fa._spec import AttentionSpec
from jax_fa._vary import full, vary_together

Pair = tuple[jax.Array, jax.Array]


# --- Forward --------------------------------------------------------------------------------------


def forward(
    spec: AttentionSpec,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    query_lengths: jax.Array | None,
    key_lengths: jax.Array | None,
) -> Pair:
    """(out [*B, T, N, Hv], lse [*B, T, N]), by whichever implementation spec and platform give."""
    return _forward_op(spec)(query, key, value, query_lengths, key_lengths)


@functools.cache
def _forward_op(spec: AttentionSpec) -> Any:
    def call(query, key, value, query_lengths, key_lengths):
        operands = query, key, value, query_lengths, key_lengths
        choice = _select.choose(spec.implementation, query, key, value)
        xla = functools.partial(_xla_forward, spec)
        if choice == "xla":
            return xla(*operands)
        kernel = functools.partial(_flash_call, spec, choice)
        if choice == _select.ANY_TARGET:
            return lax.platform_dependent(*operands, rocm=kernel, default=xla)
        return lax.platform_dependent(
            *operands, cpu=kernel, rocm=kernel, default=functools.partial(_refuse, choice, xla)
        )

    return _batched(call, queries=1)


def _flash_call(
    spec: AttentionSpec,
    target: str,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    query_lengths: jax.Array | None,
    key_lengths: jax.Array | None,
) -> Pair:
    """The custom call: leading dimensions made one, head size padded to what kernels take."""
    query, key, value, query_lengths, key_lengths = vary_together(
        query, key, value, query_lengths, key_lengths
    )
    batch, head_dim = query.shape[:-3], query.shape[-1]
    padding = _select.padded_head_dim(head_dim) - head_dim

    def flat(operand: jax.Array) -> jax.Array:
        operand = _join_batch(operand, len(batch))
        if not padding:
            return operand
        return jnp.pad(operand, [(0, 0)] * 3 + [(0, padding)])

    def lengths(given: jax.Array | None) -> jax.Array:
        # [0] means absent.
        return full((0,), 0, jnp.int32, query) if given is None else given.reshape(-1)

    num_splits = spec.num_splits or 1
    workspace_bytes = _select.flash_workspace_bytes(num_splits)
    flat_query = flat(query)
    # Results made from the query's own type keep its varying axes.
    types = jax.eval_shape(
        lambda q: (q, q[..., 0].astype(jnp.float32), full((workspace_bytes,), 0, jnp.uint8, q)),
        flat_query,
    )
    out, lse, _ = jax.ffi.ffi_call(_registry.FLASH, types)(
        flat_query,
        flat(key),
        flat(value),
        lengths(query_lengths),
        lengths(key_lengths),
        target=target,
        # Attributes are cached by equality, so their types are always these.
        scale=np.float32(spec.scale),
        soft_cap=np.float32(spec.soft_cap),
        window_left=np.int64(spec.window_left),
        window_right=np.int64(spec.window_right),
        top_left=bool(spec.top_left),
        num_splits=np.int64(num_splits),
    )
    return out[..., :head_dim].reshape(query.shape), lse.reshape(query.shape[:-1])


def _refuse(target: str, xla: Any, *operands: Any) -> Pair:
    """Lowers to a custom call that no platform but ours has, hence a compile error that says so."""
    types = jax.eval_shape(xla, *operands)
    name = f"jax_fa_implementation_{target}_serves_cpu_and_rocm_only"
    return tuple(jax.ffi.ffi_call(name, types)(operands[0]))


def _xla_forward(
    spec: AttentionSpec,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    query_lengths: jax.Array | None,
    key_lengths: jax.Array | None,
) -> Pair:
    flat, items = _flat_problem(query, key, value, query_lengths, key_lengths)
    out, lse = _blockwise.forward(spec, *flat, items)
    out_type, lse_type = _shapes.dense_attention(query, key, value)
    return out.reshape(out_type.shape), lse.reshape(lse_type.shape)


# --- Backward -------------------------------------------------------------------------------------


def backward(
    spec: AttentionSpec,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    query_lengths: jax.Array | None,
    key_lengths: jax.Array | None,
    out: jax.Array,
    lse: jax.Array,
    d_out: jax.Array,
    d_lse: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Gradients of query, key and value; by the blockwise implementation on every platform."""
    return _backward_op(spec)(query, key, value, query_lengths, key_lengths, out, lse, d_out, d_lse)


@functools.cache
def _backward_op(spec: AttentionSpec) -> Any:
    def call(query, key, value, query_lengths, key_lengths, out, lse, d_out, d_lse):
        flat, items = _flat_problem(query, key, value, query_lengths, key_lengths)
        lead = query.ndim - 3
        _, *rows = vary_together(query, out, lse, d_out, d_lse)
        out, lse, d_out, d_lse = (_join_rows(x, lead) for x in rows)
        *gradients, _ = _blockwise.backward(spec, *flat, items, out, lse, d_out, d_lse)
        return tuple(
            g.reshape(x.shape) for g, x in zip(gradients, (query, key, value), strict=True)
        )

    return _batched(call)


def _flat_problem(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    query_lengths: jax.Array | None,
    key_lengths: jax.Array | None,
) -> tuple[tuple[jax.Array, jax.Array, jax.Array], _rows.Items]:
    query, key, value, query_lengths, key_lengths = vary_together(
        query, key, value, query_lengths, key_lengths
    )
    lead, t, s = query.ndim - 3, query.shape[-3], key.shape[-3]
    flat = _join_rows(query, lead), _join_rows(key, lead), _join_rows(value, lead)
    query_lengths, key_lengths = (
        None if x is None else x.reshape(-1) for x in (query_lengths, key_lengths)
    )
    batch = math.prod(query.shape[:lead])
    items = _rows.dense_items(batch, t, s, query_lengths, key_lengths, _blockwise.block_q(t))
    return flat, items


def _join_batch(array: jax.Array, lead: int) -> jax.Array:
    """[*B, ...] -> [B, ...]."""
    return array.reshape(math.prod(array.shape[:lead]), *array.shape[lead:])


def _join_rows(array: jax.Array, lead: int) -> jax.Array:
    """[*B, T, ...] -> [B T, ...]."""
    return array.reshape(math.prod(array.shape[: lead + 1]), *array.shape[lead + 1 :])


# --- Batching -------------------------------------------------------------------------------------


def _batched(call: Any, queries: int = 0) -> Any:
    """`call` with vmap's axis joining the leading dimensions.

    Where `queries` is 1 and only the query is mapped, the axis joins the query heads of each key
    head instead, so that keys and values are neither copied nor read again.
    """

    @custom_vmap
    def op(*operands):
        return call(*operands)

    @op.def_vmap
    def rule(axis_size, batched, *operands):
        flags = [flag is True for flag in batched]
        if queries and flags[0] and not any(flags[1:]):
            return _map_query_heads(op, axis_size, operands), (True, True)
        operands = [
            x if flag or x is None else jnp.broadcast_to(x, (axis_size, *x.shape))
            for x, flag in zip(operands, flags, strict=True)
        ]
        results = op(*operands)
        return results, tuple(True for _ in results)

    return op


def _map_query_heads(op: Any, axis_size: int, operands: Any) -> Pair:
    query, key, *rest = operands  # query [A, *B, T, N, H]
    n, k = query.shape[-2], key.shape[-2]
    split = query.reshape(*query.shape[:-2], k, n // max(k, 1), query.shape[-1])
    joined = jnp.moveaxis(split, 0, -3)  # [*B, T, K, A, G, H]
    shape = joined.shape
    out, lse = op(joined.reshape(*shape[:-4], axis_size * n, shape[-1]), key, *rest)

    def unjoin(array: jax.Array, tail: tuple[int, ...]) -> jax.Array:
        array = jnp.moveaxis(array.reshape(*shape[:-1], *tail), len(shape) - 3, 0)
        return array.reshape(axis_size, *query.shape[1:-1], *tail)

    return unjoin(out, out.shape[-1:]), unjoin(lse, ())
