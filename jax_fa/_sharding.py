"""How operations divide over the devices of a mesh: by sequences and by key heads.

Under jit with sharded operands every device runs the operation on its own sequences and heads,
with no collective. What is divided otherwise (rows, keys, the size of a head) is brought together
first. A pool of pages divided by pages would have to be, since any sequence may use any page; that
is refused, at trace where it can be seen, else when the program is partitioned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
from jax.core import Tracer
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

QUERY_HEADS = "K"
_REFUSAL = (
    "{name} must not be sharded over its pages: any sequence may use any page, so every device "
    "needs all of them; shard the dimension of heads, or give each device a pool of its own with "
    "jax.shard_map; got {spec} of shape {shape}"
)


class Rule(NamedTuple):
    """Names of the dimensions of an operation's arrays.

    k is a dimension of key heads and K one of query heads, of which each key head has several.
    """

    operands: tuple[str, ...]  # as "b t K h"
    results: tuple[str, ...]
    free: tuple[str, ...]  # dimensions that may be divided
    group: int  # query heads of a key head
    refuse: Callable[[Sequence[Any], Sequence[Any]], None] | None = None  # arrays, shardings


def divided(call: Any, rule_of: Callable[..., Rule]) -> Any:
    """`call`, partitioned by the rule that `rule_of` gives for its operands.

    rule_of: function of the operands that are not None; those that are stay so.
    """

    def partitioned(*operands):
        mesh = jax.sharding.get_abstract_mesh()
        present = [i for i, x in enumerate(operands) if x is not None]
        arrays = [operands[i] for i in present]
        # Inside of shard_map the operands are a device's own. A rule has no name for no dimension.
        if mesh.manual_axes or any(x.ndim == 0 for x in arrays):
            return call(*operands)

        def restored(*arrays):
            filled = dict(zip(present, arrays, strict=True))
            return call(*(filled.get(i) for i in range(len(operands))))

        rule = rule_of(*operands)
        function = _with_rule(restored, rule)
        if mesh.explicit_axes:
            shardings = [jax.typeof(x).sharding for x in arrays]
            _, results = _specs(rule, mesh, arrays, shardings)
            return jax.sharding.auto_axes(function, out_sharding=results)(*arrays)
        return function(*arrays)

    return partitioned


def in_auto_mode(call: Any, like: Sequence[int]) -> Any:
    """`call` of operands whose mesh axes may be Explicit, with the compiler's own partitioning.

    like: for each result the number of the operand whose sharding it has.
    """

    def automatic(*operands):
        mesh = jax.sharding.get_abstract_mesh()
        if mesh.manual_axes or not mesh.explicit_axes:
            return call(*operands)
        specs = tuple(jax.typeof(operands[i]).sharding.spec for i in like)
        return jax.sharding.auto_axes(call, out_sharding=specs)(*operands)

    return automatic


def _with_rule(call: Any, rule: Rule) -> Any:
    def partition(mesh, arguments, results):
        del results
        shardings = [x.sharding for x in arguments]
        if rule.refuse is not None:
            rule.refuse(arguments, shardings)
        # Dimensions that must be whole may come in divided, and operands may disagree.
        specs = _specs(rule, mesh, arguments, shardings)
        operands, results = (tuple(NamedSharding(mesh, x) for x in side) for side in specs)
        return mesh, _without_mesh(call), results, operands

    grouped = rule.group > 1
    heads = "(k g)" if grouped else "k"
    sides = (", ".join(side).replace(QUERY_HEADS, heads) for side in (rule.operands, rule.results))
    names = " ".join(rule.operands + rule.results).split()
    whole = [name for name in names if name not in (*rule.free, QUERY_HEADS)]
    sizes: dict[str, Any] = {"g": rule.group} if grouped else {}
    # custom_partitioning takes no function with constants of its own; within jit they are jit's.
    call = jax.jit(call)
    function = custom_partitioning(call)
    function.def_partition(
        partition,
        sharding_rule=" -> ".join(sides),
        need_replication_factors=tuple(dict.fromkeys(whole)),
        **sizes,
    )
    return function


def _without_mesh(call: Any) -> Any:
    """`call` traced as on one device: a device's own arrays have no axes to be annotated with."""

    def local(*arrays):
        with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())):
            return call(*arrays)

    return local


def _specs(
    rule: Rule, mesh: Any, arrays: Sequence[Any], shardings: Sequence[Any]
) -> tuple[tuple[PartitionSpec, ...], tuple[PartitionSpec, ...]]:
    """(of the operands, of the results): what the rule makes of the operands' shardings."""
    candidates: dict[str, list[tuple[str, ...]]] = {name: [] for name in rule.free}
    sizes: dict[str, int] = {}
    for array, sharding, dims in zip(arrays, shardings, rule.operands, strict=True):
        axes = _axis_names(array, sharding)
        for name, size, found in zip(dims.split(), array.shape, axes, strict=True):
            candidates.get("k" if name == QUERY_HEADS else name, []).append(found)
            sizes[name] = size
    chosen: dict[str, tuple[str, ...]] = {}
    for name in rule.free:
        used = [axis for axes in chosen.values() for axis in axes]
        chosen[name] = _widest(mesh, candidates[name], sizes[name], used)
    chosen[QUERY_HEADS] = chosen.get("k", ())

    def spec(dims: str) -> PartitionSpec:
        return PartitionSpec(*(chosen.get(name) or None for name in dims.split()))

    return tuple(map(spec, rule.operands)), tuple(map(spec, rule.results))


def _widest(
    mesh: Any, candidates: Iterable[tuple[str, ...]], size: int, used: Sequence[str]
) -> tuple[str, ...]:
    """The candidate over most devices, shortened until it divides `size`."""
    free = [tuple(n for n in names if n not in used) for names in candidates]
    names = max(free, key=lambda names: _devices(mesh, names))
    while names and size % _devices(mesh, names):
        names = names[:-1]
    return names


def _devices(mesh: Any, names: Iterable[str]) -> int:
    return math.prod(mesh.shape[name] for name in names)


def _axis_names(array: Any, sharding: Any) -> list[tuple[str, ...]]:
    """Mesh axes of each dimension, as far as they are named."""
    spec = tuple(sharding.spec) if isinstance(sharding, NamedSharding) else ()
    entries = [*spec, *[None] * (len(array.shape) - len(spec))]
    return [() if x is None else x if isinstance(x, tuple) else (x,) for x in entries]


# --- Pages ----------------------------------------------------------------------------------------


def refuse_divided_pages(name: str, pages: Any, heads_first: bool) -> None:
    """Raises ValueError where it can be seen that a pool is divided by pages or rows of a page.

    It can be for concrete arrays, and for traced ones over mesh axes of type Explicit.
    """
    concrete = isinstance(pages, jax.Array) and not isinstance(pages, Tracer)
    sharding = pages.sharding if concrete else jax.typeof(pages).sharding
    refuse_divided(name, pages, sharding, heads_first)


def refuse_divided(name: str, pages: Any, sharding: Any, heads_first: bool) -> None:
    """Likewise, of a given sharding."""
    axes = _axis_names(pages, sharding)
    divided = axes[0] + axes[2 if heads_first else 1]
    if divided and _devices(sharding.mesh, divided) > 1:
        raise ValueError(_REFUSAL.format(name=name, spec=sharding.spec, shape=tuple(pages.shape)))
