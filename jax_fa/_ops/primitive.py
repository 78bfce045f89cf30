"""The custom call, its place among the platforms, and vmap: what every operation shares.

The only ffi_call site of attention.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.vary import full, vary_together
from jax_fa._ops import select as _select

Pair = tuple[jax.Array, jax.Array]


class Operation(NamedTuple):
    """Attention of one kind of operands: query, key, value and integer arrays or None.

    forward(spec, *operands) -> (out, lse)
    backward(spec, with_d_keys, *operands, out, lse, d_out, d_lse)
      -> (d_query, d_key, d_value), or (d_query,) without with_d_keys
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]


# --- The call -------------------------------------------------------------------------------------


def kernel_call(
    name: str,
    spec: AttentionSpec,
    target: str,
    num_splits: int,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    *integers: jax.Array | None,
    **attributes: Any,
) -> Pair:
    """(out, lse) like query and query.shape[:-1], by the handler `name`.

    The head size is padded to what kernels take. Integer operands that are None become [0].
    """
    query, key, value, *given = vary_together(query, key, value, *integers)
    head_dim = query.shape[-1]
    padding = _select.padded_head_dim(head_dim) - head_dim

    def pad(operand: jax.Array) -> jax.Array:
        if not padding:
            return operand
        return jnp.pad(operand, [(0, 0)] * (operand.ndim - 1) + [(0, padding)])

    query, key, value = pad(query), pad(key), pad(value)
    given = [full((0,), 0, jnp.int32, query) if x is None else x for x in given]
    workspace_bytes = _select.workspace_bytes(num_splits, query.shape)
    # Results made from the query's own type keep its varying axes.
    types = jax.eval_shape(
        lambda q: (q, q[..., 0].astype(jnp.float32), full((workspace_bytes,), 0, jnp.uint8, q)),
        query,
    )
    out, lse, _ = jax.ffi.ffi_call(name, types)(
        query,
        key,
        value,
        *given,
        target=target,
        # Attributes are cached by equality, so their types are always these.
        scale=np.float32(spec.scale),
        soft_cap=np.float32(spec.soft_cap),
        window_left=np.int64(spec.window_left),
        window_right=np.int64(spec.window_right),
        top_left=bool(spec.top_left),
        num_splits=np.int64(num_splits),
        **attributes,
    )
    return out[..., :head_dim], lse


def by_platform(choice: str, kernel: Any, xla: Any, *operands: Any) -> Pair:
    """`kernel` or `xla`, as chosen by _select, where the platform has them.

    kernel: function of a target and the operands.
    """
    if choice == "xla":
        return xla(*operands)
    kernel = functools.partial(kernel, choice)
    if choice == _select.ANY_TARGET:
        return lax.platform_dependent(*operands, rocm=kernel, default=xla)
    return lax.platform_dependent(
        *operands, cpu=kernel, rocm=kernel, default=functools.partial(_refuse, choice, xla)
    )


def _refuse(target: str, xla: Any, *operands: Any) -> Pair:
    """Lowers to a custom call that no platform but ours has, hence a compile error that says so."""
    types = jax.eval_shape(xla, *operands)
    name = f"jax_fa_implementation_{target}_serves_cpu_and_rocm_only"
    return tuple(jax.ffi.ffi_call(name, types)(operands[0]))


# --- vmap -----------------------------------------------------------------------------------------


def batched(call: Any, join: Any, heads_axis: int | None = None) -> Any:
    """`call` under vmap: one call of what `join` makes of the mapped operands.

    join: (axis size, which operands have a mapped axis in front, operands) -> (operands for
      `call`, a function from its results to mapped results).
    heads_axis: of the key. Where it is given and only the query is mapped, the axis joins the
      query heads of each key head instead, so that keys and values are neither copied nor read
      again.
    """

    @custom_vmap
    def op(*operands):
        return call(*operands)

    @op.def_vmap
    def rule(axis_size, mapped, *operands):
        flags = [flag is True for flag in mapped]
        if axis_size == 0:
            return _of_no_example(op, flags, operands)
        if heads_axis is not None and flags[0] and not any(flags[1:]):
            k_heads = operands[1].shape[heads_axis]
            return _map_query_heads(op, axis_size, k_heads, *operands), (True, True)
        joined, split = join(axis_size, flags, operands)
        results = split(op(*joined))
        return results, tuple(True for _ in results)

    return op


def _of_no_example(op: Any, flags: Sequence[bool], operands: Sequence[Any]) -> tuple[Any, Any]:
    one = [
        None if x is None else jax.ShapeDtypeStruct(x.shape[1:] if flag else x.shape, x.dtype)
        for x, flag in zip(operands, flags, strict=True)
    ]
    types = jax.eval_shape(op, *one)
    return tuple(jnp.zeros((0, *x.shape), x.dtype) for x in types), tuple(True for _ in types)


def spread(axis_size: int, flags: Sequence[bool], operands: Sequence[Any]) -> list:
    """The operands, each with a mapped axis in front; None stays None."""
    return [
        x if flag or x is None else jnp.broadcast_to(x, (axis_size, *x.shape))
        for x, flag in zip(operands, flags, strict=True)
    ]


def join_leading(array: jax.Array, count: int = 2) -> jax.Array:
    """[A, B, ...] -> [A B, ...], for the `count` leading dimensions."""
    return array.reshape(math.prod(array.shape[:count]), *array.shape[count:])


def _map_query_heads(op: Any, axis_size: int, k: int, query: jax.Array, *rest: Any) -> Pair:
    *_, n, h = query.shape  # [A, ..., T, N, H]
    split = query.reshape(*query.shape[:-2], k, n // max(k, 1), h)
    joined = jnp.moveaxis(split, 0, -3)  # [..., T, K, A, G, H]
    shape = joined.shape
    out, lse = op(joined.reshape(*shape[:-4], axis_size * n, h), *rest)

    def unjoin(array: jax.Array, tail: tuple[int, ...]) -> jax.Array:
        array = jnp.moveaxis(array.reshape(*shape[:-1], *tail), len(shape) - 3, 0)
        return array.reshape(axis_size, *query.shape[1:-1], *tail)

    return unjoin(out, out.shape[-1:]), unjoin(lse, ())
