"""vmap of an operation: one call of it, on operands that hold the mapped axis too."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap


def batched(call: Any, join: Any, key_heads: Callable[..., int] | None = None) -> Any:
    """`call` under vmap: one call of what `join` makes of the mapped operands.

    Operands are arrays, None, or tuples of these.

    join: (axis size, which operands have a mapped axis in front, *operands) -> (operands for
      `call`, a function from its results to mapped results).
    key_heads: gives K of operands, the first of which is a tuple with a query. With it, where the
      query alone is mapped, the axis joins the query heads of each key head instead, so that keys
      and values are neither copied nor read again.
    """

    @custom_vmap
    def op(*operands):
        return call(*operands)

    @op.def_vmap
    def rule(axis_size, mapped, *operands):
        if axis_size == 0:
            results = _of_no_example(op, mapped, operands)
        elif key_heads is not None and _query_alone(mapped[0]):
            results = _map_query_heads(op, axis_size, key_heads(*operands), *operands)
        else:
            joined, split = join(axis_size, mapped, *operands)
            results = split(op(*joined))
        return results, jax.tree.map(lambda _: True, results)

    return op


def _query_alone(mapped: Any) -> bool:
    return mapped.query and not any(mapped._replace(query=False))


def _of_no_example(op: Any, mapped: Any, operands: Any) -> Any:
    def one(is_mapped: bool, x: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(x.shape[1:] if is_mapped else x.shape, x.dtype)

    types = jax.eval_shape(op, *jax.tree.map(one, tuple(mapped), operands))
    return jax.tree.map(lambda x: jnp.zeros((0, *x.shape), x.dtype), types)


def spread(axis_size: int, mapped: Any, operands: Any) -> Any:
    """The operands, each with a mapped axis in front; None stays None."""
    return jax.tree.map(
        lambda flag, x: x if flag else jnp.broadcast_to(x, (axis_size, *x.shape)), mapped, operands
    )


def join_leading(array: jax.Array, count: int = 2) -> jax.Array:
    """[A, B, ...] -> [A B, ...], for the `count` leading dimensions."""
    return array.reshape(math.prod(array.shape[:count]), *array.shape[count:])


def split_leading(axis_size: int, array: jax.Array) -> jax.Array:
    """[A B, ...] -> [A, B, ...]."""
    return array.reshape(axis_size, -1, *array.shape[1:])


def _map_query_heads(op: Any, axis_size: int, k: int, operands: Any) -> Any:
    query = operands.query
    *_, n, h = query.shape  # [A, ..., T, N, H]
    split = query.reshape(*query.shape[:-2], k, n // max(k, 1), h)
    joined = jnp.moveaxis(split, 0, -3)  # [..., T, K, A, G, H]
    shape = joined.shape
    out, lse = op(operands._replace(query=joined.reshape(*shape[:-4], axis_size * n, h)))

    def unjoin(array: jax.Array, tail: tuple[int, ...]) -> jax.Array:
        array = jnp.moveaxis(array.reshape(*shape[:-1], *tail), len(shape) - 3, 0)
        return array.reshape(axis_size, *query.shape[1:-1], *tail)

    return unjoin(out, out.shape[-1:]), unjoin(lse, ())
