"""The custom call of a kernel, and its place among the platforms.

This is the only ffi_call site of attention.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.vary import full, vary_together
from jax_fa._ops import select
from jax_fa._ops.choice import kernel_or_xla

Pair = tuple[jax.Array, jax.Array]


def kernel_call(
    handler: str,
    results: Sequence[Any],
    spec: AttentionSpec,
    target: str,
    num_splits: int,
    operands: Sequence[jax.Array | None],
    **attributes: Any,
) -> Sequence[jax.Array]:
    """The results of a handler, of these types.

    operands: in the handler's order; one that is None is int32 [0] there.
    attributes: beside those of the options, which every handler of attention has.
    """
    like = next(x for x in operands if x is not None)
    given = [full((0,), 0, jnp.int32, like) if x is None else x for x in operands]
    return jax.ffi.ffi_call(handler, results)(
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


def forward_call(
    handler: str,
    spec: AttentionSpec,
    target: str,
    num_splits: int,
    operands: Sequence[jax.Array | None],
    **attributes: Any,
) -> Pair:
    """(out, lse) like query and query.shape[:-1], by a handler of the forward.

    operands: query, key and value, whose head size is padded to what kernels take, then integers.
    """
    query, key, value, *integers = vary_together(*operands)
    head_dim = query.shape[-1]
    padding = select.padded_head_dim(head_dim) - head_dim

    def pad(operand: jax.Array) -> jax.Array:
        if not padding:
            return operand
        return jnp.pad(operand, [(0, 0)] * (operand.ndim - 1) + [(0, padding)])

    query, key, value = pad(query), pad(key), pad(value)
    workspace_bytes = select.workspace_bytes(num_splits, query.shape)
    # Results made from the query's own type keep its varying axes.
    types = jax.eval_shape(
        lambda q: (q, q[..., 0].astype(jnp.float32), full((workspace_bytes,), 0, jnp.uint8, q)),
        query,
    )
    operands = query, key, value, *integers
    out, lse, _ = kernel_call(handler, types, spec, target, num_splits, operands, **attributes)
    return out[..., :head_dim], lse


def by_platform(choice: str, kernel: Any, xla: Any, *operands: Any) -> Any:
    """`kernel` or `xla`, as select.choose says, where the platform has them.

    kernel: function of a target and the operands.
    """
    if choice == "xla":
        return xla(*operands)
    kernel = functools.partial(kernel, choice)
    if choice == select.ANY_TARGET:
        return kernel_or_xla(kernel, xla, *operands)
    return lax.platform_dependent(
        *operands, cpu=kernel, rocm=kernel, default=functools.partial(_refuse, choice, xla)
    )


def _refuse(target: str, xla: Any, *operands: Any) -> Any:
    """Lowers to a custom call that no platform but ours has, hence a compile error that says so."""
    types = jax.eval_shape(xla, *operands)
    name = f"jax_fa_implementation_{target}_serves_cpu_and_rocm_only"
    return tuple(jax.ffi.ffi_call(name, types)(jax.tree.leaves(operands)[0]))
