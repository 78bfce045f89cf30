"""What one kind of attention is, and its forward and backward, made of that in one way for all.

A call goes down through vmap (batching.py), the division over a mesh (_mesh/sharding.py) and the
choice of an implementation (select.py, call.py), to a kernel's custom call or to blockwise jnp.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.export import Options
from jax_fa._mesh.sharding import KEY_HEADS, Call, Rule, divided
from jax_fa._mesh.vary import vary_together
from jax_fa._ops import select
from jax_fa._ops.batching import batched, join_leading, split_leading, spread
from jax_fa._ops.call import Pair, by_platform
from jax_fa._xla import schedule


@dataclasses.dataclass(frozen=True, eq=False)
class Operation:
    """Attention on one kind of operands.

    Attributes:
      name: in exported programs.
      operands: the NamedTuple of its operands, arrays or None. Its first field is query.
      rule: (spec, operands) -> how the forward divides over a mesh; every operand has its
        dimensions there, those that are None too.
      kernel: (spec, target, operands) -> (out, lse) like query and query.shape[:-1], by a custom
        call.
      problem: (spec, operands) -> the flat rows, the keys and the work that blockwise.py takes.
      join: (axis size, which operands are mapped, operands, with_d_keys) -> operands that hold all
        examples one after another. Without it a mapped axis is one more leading dimension.
      keys: names of the keys and values. Their gradients may be as large as a cache, and are made
        only where they are asked for.
      paged: whether the keys lie in pages.
    """

    name: str
    operands: type
    rule: Callable[[AttentionSpec, Any], Rule]
    kernel: Callable[[AttentionSpec, str, Any], Pair]
    problem: Callable[[AttentionSpec, Any], tuple[jax.Array, Any, Any]]
    join: Callable[[int, Any, Any, bool], Any] | None = None
    keys: tuple[str, str] = ("key", "value")
    paged: bool = False

    def gradients(self, with_d_keys: bool) -> tuple[str, ...]:
        """Names of the operands whose gradients the backward gives, in order."""
        return ("query", *self.keys) if with_d_keys else ("query",)


class Results(NamedTuple):
    """What the backward takes beside the operands: the forward's results and their cotangents."""

    out: jax.Array
    lse: jax.Array
    d_out: jax.Array
    d_lse: jax.Array


def forward(operation: Operation, spec: AttentionSpec, operands: Any) -> Pair:
    """(out, lse) like query and query.shape[:-1], by whichever implementation is chosen."""
    return _forward_op(operation, spec)(operands)


def backward(
    operation: Operation, spec: AttentionSpec, with_d_keys: bool, operands: Any, results: Results
) -> tuple[jax.Array, ...]:
    """Gradients of operation.gradients(with_d_keys), blockwise on every platform."""
    return _backward_op(operation, spec, with_d_keys)(operands, results)


# --- vmap -----------------------------------------------------------------------------------------


@functools.cache
def _forward_op(operation: Operation, spec: AttentionSpec) -> Any:
    options = Options(f"{operation.name}_forward", (spec,))
    function = divided(make_forward(operation, spec), options)

    def key_heads(operands: Any) -> int:
        shapes = {name: jnp.shape(x) for name, x in operands._asdict().items() if x is not None}
        return operation.rule(spec, operands).size(KEY_HEADS, shapes)

    join = functools.partial(_join, operation, False)
    return batched(lambda operands: function(*operands), join, key_heads)


@functools.cache
def _backward_op(operation: Operation, spec: AttentionSpec, with_d_keys: bool) -> Any:
    options = Options(f"{operation.name}_backward", (spec, with_d_keys))
    function = divided(make_backward(operation, spec, with_d_keys), options)
    join = functools.partial(_join, operation, with_d_keys)
    return batched(lambda operands, results: function(*operands, *results), join)


def _join(
    operation: Operation,
    with_d_keys: bool,
    axis_size: int,
    mapped: Any,
    operands: Any,
    results: Results | None = None,
) -> tuple[Any, Any]:
    """The operands of one call, and how its results part again."""
    if operation.join is None:
        joined = [spread(axis_size, mapped[0], operands)]
        if results is not None:
            joined.append(spread(axis_size, mapped[1], results))
        return joined, lambda found: found

    joined = [operation.join(axis_size, mapped[0], operands, with_d_keys)]
    if results is not None:
        joined.append(jax.tree.map(join_leading, spread(axis_size, mapped[1], results)))

    def split(found: Any) -> Any:
        return jax.tree.map(functools.partial(split_leading, axis_size), found)

    return joined, split


# --- One call, on one device or divided over a mesh -----------------------------------------------


def make_forward(operation: Operation, spec: AttentionSpec) -> Call:
    """The forward as sharding.divided takes it, a function of the operands in order."""

    def call(*arrays):
        operands = operation.operands(*arrays)
        query, key, value = (getattr(operands, name) for name in operation.gradients(True))
        choice = select.choose(spec.implementation, query, key, value, operation.paged)
        kernel = functools.partial(operation.kernel, spec)
        return by_platform(choice, kernel, functools.partial(_xla, operation, spec), operands)

    def rule_of(*arrays):
        operands = operation.operands(*arrays)
        return _of_given(operation.rule(spec, operands), operands._asdict())

    return Call(call, rule_of)


def make_backward(operation: Operation, spec: AttentionSpec, with_d_keys: bool) -> Call:
    """The backward likewise, a function of the operands and of Results in order."""
    names = operation.gradients(with_d_keys)

    def parted(arrays: Any) -> tuple[Any, Results]:
        *operands, out, lse, d_out, d_lse = arrays
        return operation.operands(*operands), Results(out, lse, d_out, d_lse)

    def call(*arrays):
        operands, results = vary_together(*parted(arrays))
        query = operands.query
        rows, keys, work = operation.problem(spec, operands)
        flat = (join_leading(x, query.ndim - 2) for x in results)
        d_query, d_keys, _ = schedule.backward(
            spec, rows, keys, work, *flat, with_d_keys=with_d_keys
        )
        found = d_query, *(d_keys or ())
        return tuple(
            d.reshape(getattr(operands, name).shape) for name, d in zip(names, found, strict=True)
        )

    def rule_of(*arrays):
        operands, results = parted(arrays)
        rule = operation.rule(spec, operands)
        out, lse = rule.results
        dims = {**rule.operands, **dict(zip(Results._fields, (out, lse, out, lse), strict=True))}
        rule = rule._replace(
            operands=dims, results=tuple(dims[name] for name in names), gradients=names
        )
        return _of_given(rule, {**operands._asdict(), **results._asdict()})

    return Call(call, rule_of)


def _xla(operation: Operation, spec: AttentionSpec, operands: Any) -> Pair:
    (operands,) = vary_together(operands)
    rows, keys, work = operation.problem(spec, operands)
    out, lse = schedule.forward(spec, rows, keys, work)
    *shape, _ = operands.query.shape
    return out.reshape(*shape, out.shape[-1]), lse.reshape(*shape)


def _of_given(rule: Rule, arrays: dict[str, Any]) -> Rule:
    """The rule without the operands that are None."""
    dims = {name: dims for name, dims in rule.operands.items() if arrays[name] is not None}
    return rule._replace(operands=dims)
