"""One computation as two programs: that of CPUs, and that of every other platform.

Each is traced only where it is lowered, but the one of CPUs always, for the results' types: both
are loops of many operations, and tracing takes a good part of the time that compiling takes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import batching, mlir


def by_platform(cpu: Callable[..., Any], other: Callable[..., Any], *operands: Any) -> Any:
    """The results of `cpu` or of `other`, which have the same types.

    operands: trees of arrays and of static Python objects.
    """
    leaves, tree = jax.tree.flatten(operands)
    traced = [isinstance(x, (jax.Array, np.ndarray)) for x in leaves]
    static = [None if is_array else x for x, is_array in zip(leaves, traced, strict=True)]

    def flat(function: Callable[..., Any], *arrays: Any) -> Any:
        rest = iter(arrays)
        given = [next(rest) if is_array else x for x, is_array in zip(static, traced, strict=True)]
        return function(*jax.tree.unflatten(tree, given))

    arrays = [x for x, is_array in zip(leaves, traced, strict=True) if is_array]
    jaxpr, types = jax.make_jaxpr(functools.partial(flat, cpu), return_shape=True)(*arrays)
    found = _deferred_p.bind(*arrays, jaxprs=(jaxpr,), other=_leaves_of(flat, other))
    return jax.tree.unflatten(jax.tree.structure(types), found)


def _leaves_of(flat: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arrays: jax.tree.leaves(flat(function, *arrays))


# --- The primitive --------------------------------------------------------------------------------

_deferred_p = Primitive("jax_fa_deferred")
_deferred_p.multiple_results = True


@_deferred_p.def_abstract_eval
def _types(*_: Any, jaxprs: tuple[ClosedJaxpr], **__: Any) -> list[Any]:
    return jaxprs[0].out_avals


@_deferred_p.def_impl
def _evaluate(*arrays: Any, **params: Any) -> Any:
    with jax.disable_jit(False):  # what is chosen at lowering must be lowered
        return jax.jit(functools.partial(_deferred_p.bind, **params))(*arrays)


def _lower(ctx: Any, *values: Any, jaxprs: tuple[ClosedJaxpr], other: Any) -> Any:
    cpu = jaxpr_as_fun(jaxprs[0])
    platforms = ctx.platforms or ctx.module_context.platforms
    # One rule for all platforms: JAX finds an operation's inner functions again by their jaxprs
    # alone, so that rules for single platforms would get each other's code.
    if "cpu" not in platforms:
        chosen = other
    elif len(platforms) == 1:
        chosen = cpu
    else:
        chosen = functools.partial(lax.platform_dependent, cpu=cpu, default=other)
    return mlir.lower_fun(chosen, multiple_results=True)(ctx, *values)


mlir.register_lowering(_deferred_p, _lower)


def _batch(arrays: Any, axes: Any, *, jaxprs: tuple[ClosedJaxpr], other: Any) -> Any:
    cpu, other = (jax.vmap(f, axes) for f in (jaxpr_as_fun(jaxprs[0]), other))
    found = _deferred_p.bind(*arrays, jaxprs=(jax.make_jaxpr(cpu)(*arrays),), other=other)
    return found, (0,) * len(found)


batching.primitive_batchers[_deferred_p] = _batch
