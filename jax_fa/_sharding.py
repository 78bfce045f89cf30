"""How operations divide over the devices of a mesh: by sequences and by key heads, never by pages.

Under jit with sharded operands every device runs the operation on its own sequences and heads,
with no collective. A pool divided by pages cannot be served so, since any sequence may use any
page: it is refused, at trace where that can be seen, else when the program is partitioned.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax
from jax.core import Tracer
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

_REFUSAL = (
    "{name} must not be sharded over its pages: any sequence may use any page, so every device "
    "needs all of them; shard the dimension of heads, or give each device a pool of its own with "
    "jax.shard_map; got {spec} of shape {shape}"
)


def refuse_divided_pages(name: str, pages: Any, heads_first: bool) -> None:
    """Raises ValueError where it can be seen that a pool is divided by pages or rows of a page.

    It can be for concrete arrays, and for traced ones over mesh axes of type Explicit.
    """
    concrete = isinstance(pages, jax.Array) and not isinstance(pages, Tracer)
    sharding = pages.sharding if concrete else jax.typeof(pages).sharding
    _refuse_divided(name, pages, sharding, heads_first)


def _refuse_divided(name: str, pages: Any, sharding: Any, heads_first: bool) -> None:
    axes = _axis_names(pages, sharding)
    divided = axes[0] + axes[2 if heads_first else 1]
    if divided and _devices(sharding.mesh, divided) > 1:
        raise ValueError(_REFUSAL.format(name=name, spec=sharding.spec, shape=tuple(pages.shape)))


def paged(call: Any, heads_first: bool) -> Any:
    """`call` of _op_paged's operands, partitioned by sequences (unless packed) and key heads."""

    def divided(*operands):
        mesh = jax.sharding.get_abstract_mesh()
        if mesh.manual_axes:  # inside of shard_map the operands are a device's own
            return call(*operands)
        present = [i for i, x in enumerate(operands) if x is not None]

        def restored(*arrays):
            filled = dict(zip(present, arrays, strict=True))
            return call(*(filled.get(i) for i in range(len(operands))))

        arrays = [operands[i] for i in present]
        rule = _PagedRule(arrays, heads_first)
        partitioned = rule.partitioned(restored)
        if mesh.explicit_axes:
            shardings = [jax.typeof(x).sharding for x in arrays]
            _, results = rule.specs(mesh, arrays, shardings)
            return jax.sharding.auto_axes(partitioned, out_sharding=results)(*arrays)
        return partitioned(*arrays)

    return divided


def _without_mesh(call: Any) -> Any:
    """`call` traced as on one device: a device's own arrays have no axes to be annotated with."""

    def local(*arrays):
        with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())):
            return call(*arrays)

    return local


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


class _PagedRule:
    """The rule for operands of given shapes: query, k_pages, v_pages, then integers by sequence."""

    def __init__(self, arrays: Sequence[Any], heads_first: bool):
        query, k_pages, *_ = arrays
        self._packed = query.ndim == 3
        self._heads_first = heads_first
        self._head_axis = 1 if heads_first else 2
        self._k_heads = k_pages.shape[self._head_axis]
        self._group = query.shape[-2] // max(self._k_heads, 1)
        self._integers = len(arrays) - 3

    def partitioned(self, call: Any) -> Any:
        """`call` as a function that the compiler divides by this rule."""

        def partition(mesh, arguments, results):
            del results
            shardings = [x.sharding for x in arguments]
            for i, name in ((1, "k_pages"), (2, "v_pages")):
                _refuse_divided(name, arguments[i], shardings[i], self._heads_first)
            # Dimensions that must be whole may come in divided, and operands may disagree.
            specs = self.specs(mesh, arguments, shardings)
            operands, results = (tuple(NamedSharding(mesh, x) for x in side) for side in specs)
            return mesh, _without_mesh(call), results, operands

        sizes = {"g": self._group} if self._group > 1 else {}
        function = custom_partitioning(call)
        whole = ("r", "h", "p", "s", "v", "c", "m", "e") if self._packed else ("t", "h", "p", "s")
        whole = whole if self._packed else (*whole, "v", "m")
        function.def_partition(
            partition, sharding_rule=self._einsum(), need_replication_factors=whole, **sizes
        )
        return function

    def _einsum(self) -> str:
        heads = "(k g)" if self._group > 1 else "k"
        rows = f"r {heads}" if self._packed else f"b t {heads}"
        pages = "p k s" if self._heads_first else "p s k"
        integers = ["c m", "c", "e"] if self._packed else ["b m", *["b"] * (self._integers - 1)]
        operands = [f"{rows} h", f"{pages} h", f"{pages} v", *integers]
        return f"{', '.join(operands)} -> {rows} v, {rows}"

    def specs(
        self, mesh: Any, arrays: Sequence[Any], shardings: Sequence[Any]
    ) -> tuple[tuple[PartitionSpec, ...], tuple[PartitionSpec, ...]]:
        """(of the operands, of the results): what this rule makes of the operands' shardings."""
        names = [_axis_names(x, s) for x, s in zip(arrays, shardings, strict=True)]
        query, k_pages, v_pages, *integers = names
        sequences: tuple[str, ...] = ()
        if not self._packed:
            candidates = (query[0], *(x[0] for x in integers))
            sequences = _widest(mesh, candidates, arrays[0].shape[0])
        candidates = (query[-2], k_pages[self._head_axis], v_pages[self._head_axis])
        heads = _widest(mesh, candidates, self._k_heads, used=sequences)
        by_sequence = sequences or None
        by_head = heads or None
        rows = (None,) if self._packed else (by_sequence, None)
        pages = (None, by_head, None) if self._heads_first else (None, None, by_head)
        lead = PartitionSpec(*rows, by_head)
        tables = [PartitionSpec(by_sequence) for _ in integers]
        return (lead, PartitionSpec(*pages), PartitionSpec(*pages), *tables), (lead, lead)


def _devices(mesh: Any, names: Iterable[str]) -> int:
    return math.prod(mesh.shape[name] for name in names)


def _axis_names(array: Any, sharding: Any) -> list[tuple[str, ...]]:
    """Mesh axes of each dimension, as far as they are named."""
    spec = tuple(sharding.spec) if isinstance(sharding, NamedSharding) else ()
    entries = [*spec, *[None] * (len(array.shape) - len(spec))]
    return [() if x is None else x if isinstance(x, tuple) else (x,) for x in entries]


def _widest(
    mesh: Any, candidates: Iterable[tuple[str, ...]], size: int, used: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The candidate over most devices, shortened until it divides `size`."""
    free = [tuple(n for n in names if n not in used) for names in candidates]
    names = max(free, key=lambda names: _devices(mesh, names))
    while names and size % _devices(mesh, names):
        names = names[:-1]
    return names
