"""How operations divide over the devices of a mesh: by sequences and by key heads.

Under jit with sharded operands every device runs the operation on its own sequences and heads,
with no collective. What is divided otherwise (rows, keys, the size of a head) is brought together
first. A pool of pages divided by pages would have to be, since any sequence may use any page; that
is refused, at trace where it can be seen, else when the program is partitioned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
from jax import lax
from jax.core import Tracer
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from jax_fa._mesh.export import Options, exportable

QUERY_HEADS, KEY_HEADS = "K", "k"
_REFUSAL = (
    "{name} must not be sharded over its pages: any sequence may use any page, so every device "
    "needs all of them; shard the dimension of heads, or give each device a pool of its own with "
    "jax.shard_map; got {spec} of shape {shape}"
)


class Rule(NamedTuple):
    """Names of the dimensions of an operation's arrays.

    k is a dimension of key heads and K one of query heads, of which each key head has several.
    """

    operands: Mapping[str, str]  # by name, as "b t K h"; in order, without those that are None
    results: tuple[str, ...]
    free: tuple[str, ...]  # dimensions that may be divided
    undivided: tuple[str, ...] = ()  # dimensions that are refused where they come in divided
    gradients: tuple[str, ...] = ()  # operands whose gradients the results are, if they are any

    def without_sums(self) -> Rule:
        """This, dividing no dimension over which a result would be a sum."""
        results = (set(x.replace(QUERY_HEADS, KEY_HEADS).split()) for x in self.results)
        shared = set.intersection(*results)
        return self._replace(free=tuple(x for x in self.free if x in shared))

    def size(self, dimension: str, shapes: Mapping[str, Sequence[int]]) -> int:
        """The size of a dimension, from the operands' shapes by name.

        Counted from the end, so that shapes may have a mapped axis in front.
        """
        name, dims = next(
            (n, x.split()) for n, x in self.operands.items() if dimension in x.split()
        )
        return shapes[name][dims.index(dimension) - len(dims)]


class Call(NamedTuple):
    """An operation of arrays or None, and the rule by which it divides, a function of these."""

    function: Callable[..., Any]
    rule_of: Callable[..., Rule]


def divided(call: Call, options: Options) -> Callable[..., Any]:
    """The call's function, divided over the mesh that it meets.

    options: what the call is in exported programs.
    """

    def partitioned(*operands):
        given = tuple(x is not None for x in operands)
        arrays = [x for x in operands if x is not None]
        mesh = _mesh_of(arrays)
        # Inside of shard_map the operands are a device's own, with nothing to divide. An array
        # without dimensions has none that a rule could name.
        if mesh.manual_axes or any(x.ndim == 0 for x in arrays):
            return call.function(*operands)
        function, rule = _of_arrays(call.function, given), call.rule_of(*operands)
        if mesh.explicit_axes and not mesh.auto_axes:
            with jax.sharding.use_abstract_mesh(mesh):
                return _explicit(function, rule, mesh, arrays)
        if mesh.explicit_axes:
            # JAX 0.12 annotates a sum's own function with the mesh, and XLA does not compile it.
            rule = rule.without_sums()
        automatic = exportable(_with_rule(function, rule, arrays), options._replace(given=given))
        if mesh.explicit_axes:
            results = _result_specs(rule, mesh, arrays)
            with jax.sharding.use_abstract_mesh(mesh):
                return jax.sharding.auto_axes(automatic, out_sharding=results)(*arrays)
        return automatic(*arrays)

    return partitioned


def _mesh_of(arrays: Iterable[Any]) -> Any:
    """The context's mesh, or where it has none the one of the arrays' types.

    Arrays placed over Explicit axes say so in their types, whether or not jax.set_mesh was called.
    """
    context = jax.sharding.get_abstract_mesh()
    if not context.empty:
        return context
    meshes = (jax.typeof(x).sharding.mesh for x in arrays)
    return next((mesh for mesh in meshes if mesh.explicit_axes), context)


def _explicit(function: Any, rule: Rule, mesh: Any, arrays: Sequence[Any]) -> Any:
    """`function` on a mesh whose axes are all Explicit: how the arrays divide is known here."""
    operands, results, sums = _specs(rule, mesh, arrays, [jax.typeof(x).sharding for x in arrays])
    local = jax.shard_map(_summed(function, sums), mesh=mesh, in_specs=operands, out_specs=results)
    found = local(*map(jax.sharding.reshard, arrays, operands))
    return tuple(map(jax.sharding.reshard, found, _result_specs(rule, mesh, arrays)))


def _result_specs(rule: Rule, mesh: Any, arrays: Sequence[Any]) -> tuple[PartitionSpec, ...]:
    """How results divide over Explicit axes; a gradient has the sharding of its operand."""
    shardings = [jax.typeof(x).sharding for x in arrays]
    if rule.gradients:
        named = dict(zip(rule.operands, shardings, strict=True))
        return tuple(named[name].spec for name in rule.gradients)
    return _specs(rule, mesh, arrays, shardings)[1]


def in_auto_mode(call: Any, *results: tuple[str, int]) -> Any:
    """`call`, for which the compiler finds how it divides, on mesh axes of any type.

    It is a function of a NamedTuple of operands.

    results: for each the name of an operand, and of how many leading dimensions it has the
      sharding; `call` gives a tuple of several, one alone as it is.
    """

    def automatic(operands):
        mesh = _mesh_of(jax.tree.leaves(operands))
        if mesh.manual_axes or not mesh.explicit_axes:
            return call(operands)
        specs = [jax.typeof(getattr(operands, x)).sharding.spec[:dims] for x, dims in results]
        specs = [PartitionSpec(*spec) for spec in specs]
        specs = specs[0] if len(specs) == 1 else tuple(specs)  # as the results are
        with jax.sharding.use_abstract_mesh(mesh):
            return jax.sharding.auto_axes(call, out_sharding=specs)(operands)

    return automatic


def _of_arrays(function: Any, given: Sequence[bool]) -> Any:
    """`function` of those operands alone that are given; the others are None."""

    def restored(*arrays):
        rest = iter(arrays)
        return function(*(next(rest) if x else None for x in given))

    return restored


def _with_rule(call: Any, rule: Rule, arrays: Sequence[Any]) -> Any:
    shapes = dict(zip(rule.operands, (x.shape for x in arrays), strict=True))
    group = rule.size(QUERY_HEADS, shapes) // max(rule.size(KEY_HEADS, shapes), 1)
    grouped = group > 1
    heads = f"({KEY_HEADS} g)" if grouped else KEY_HEADS
    dims = tuple(rule.operands.values()), rule.results
    sides = (", ".join(side).replace(QUERY_HEADS, heads) for side in dims)
    names = " ".join(dims[0] + dims[1]).split()
    whole = [name for name in names if name not in (*rule.free, QUERY_HEADS)]
    sizes: dict[str, Any] = {"g": group} if grouped else {}
    # custom_partitioning takes no function that closes over constants; within jit they are jit's.
    call = jax.jit(call)
    function = custom_partitioning(call)
    function.def_partition(
        _partition(call, rule),
        sharding_rule=" -> ".join(sides),
        need_replication_factors=tuple(dict.fromkeys(whole)),
        **sizes,
    )
    return function


def _partition(call: Any, rule: Rule) -> Any:
    """What custom_partitioning calls when it partitions `call`, and an exported program."""

    def partition(mesh, arguments, results):
        del results
        shardings = [x.sharding for x in arguments]
        for (name, dims), array, sharding in zip(
            rule.operands.items(), arguments, shardings, strict=True
        ):
            numbers = [i for i, dim in enumerate(dims.split()) if dim in rule.undivided]
            _refuse_divided(name, array, sharding, numbers)
        # Dimensions that must be whole may come in divided, and operands may disagree.
        *specs, sums = _specs(rule, mesh, arguments, shardings)
        operands, results = (tuple(NamedSharding(mesh, x) for x in side) for side in specs)
        return mesh, _summed(_without_mesh(call), sums), results, operands

    return partition


def partition_call(call: Call, given: Sequence[bool], mesh: Any, arguments: Any) -> Any:
    """What an exported program's partitioner takes of a call with these operands given."""
    operands = _of_arrays(lambda *x: x, given)(*arguments)
    function = _of_arrays(call.function, given)
    return _partition(jax.jit(function), call.rule_of(*operands))(mesh, arguments, None)


def _summed(call: Any, sums: Sequence[tuple[str, ...]]) -> Any:
    """`call`, each of its results summed over these mesh axes."""

    def local(*arrays):
        found = call(*arrays)
        return tuple(lax.psum(x, axes) if axes else x for x, axes in zip(found, sums, strict=True))

    return local


def _without_mesh(call: Any) -> Any:
    """`call` traced as on one device: a device's own arrays have no axes to be annotated with."""

    def local(*arrays):
        with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())):
            return call(*arrays)

    return local


def _specs(
    rule: Rule, mesh: Any, arrays: Sequence[Any], shardings: Sequence[Any]
) -> tuple[tuple[PartitionSpec, ...], tuple[PartitionSpec, ...], tuple[tuple[str, ...], ...]]:
    """What the rule makes of the operands' shardings.

    Returns:
      specs of the operands, of the results, and for each result the axes over which to sum it.
    """
    candidates: dict[str, list[tuple[str, ...]]] = {name: [] for name in rule.free}
    sizes: dict[str, int] = {}
    for array, sharding, dims in zip(arrays, shardings, rule.operands.values(), strict=True):
        axes = _axis_names(array, sharding)
        for name, size, found in zip(dims.split(), array.shape, axes, strict=True):
            candidates.get(_key_dimension(name), []).append(found)
            sizes[name] = size
    chosen: dict[str, tuple[str, ...]] = {}
    for name in rule.free:
        used = [axis for axes in chosen.values() for axis in axes]
        chosen[name] = _widest(mesh, candidates[name], sizes[name], used)
    chosen[QUERY_HEADS] = chosen.get(KEY_HEADS, ())

    def spec(dims: str) -> PartitionSpec:
        return PartitionSpec(*(chosen.get(name) or None for name in dims.split()))

    def missing(dims: str) -> tuple[str, ...]:
        present = {_key_dimension(name) for name in dims.split()}
        return tuple(x for name in rule.free if name not in present for x in chosen[name])

    sums = map(missing, rule.results)
    operands = tuple(map(spec, rule.operands.values()))
    return operands, tuple(map(spec, rule.results)), tuple(sums)


def _key_dimension(name: str) -> str:
    """Query heads divide as key heads do."""
    return KEY_HEADS if name == QUERY_HEADS else name


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

    Shardings are known of concrete arrays, and of traced ones over mesh axes of type Explicit.
    """
    concrete = isinstance(pages, jax.Array) and not isinstance(pages, Tracer)
    sharding = pages.sharding if concrete else jax.typeof(pages).sharding
    _refuse_divided(name, pages, sharding, (0, 2 if heads_first else 1))


def _refuse_divided(name: str, pages: Any, sharding: Any, dims: Iterable[int]) -> None:
    """Raises ValueError where one of these dimensions is divided."""
    axes = _axis_names(pages, sharding)
    divided = [axis for dim in dims for axis in axes[dim]]
    if divided and _devices(sharding.mesh, divided) > 1:
        raise ValueError(_REFUSAL.format(name=name, spec=sharding.spec, shape=tuple(pages.shape)))
