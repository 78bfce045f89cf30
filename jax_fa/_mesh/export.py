"""Divided operations in exported programs.

custom_partitioning leaves in a program a reference to a Python object of its process, so that the
program cannot be serialised. In one that is lowered for export stands a custom call instead, which
names the operation and its static options. The process that compiles it, having imported jax_fa,
divides it by the same rule.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
from jax import lax
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, mlir
from jax.sharding import AbstractMesh, NamedSharding

from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.naming import name_by_content

TARGET = "jax_fa_divided"
"""The custom call's name, as jax.export's DisabledSafetyCheck.custom_call must be told."""


class Options(NamedTuple):
    """What an operation is, apart from its arrays."""

    name: str
    static: tuple[Any, ...]  # an AttentionSpec, then flags
    given: tuple[bool, ...] = ()  # operands that are not None


def exportable(function: Any, options: Options) -> Callable[..., Any]:
    """`function`, a custom_partitioning, that also lowers for export."""

    def call(*arrays):
        jaxpr = jax.make_jaxpr(function)(*arrays)
        params = {"call": function.fun, "rule": function.sharding_rule, "options": options}
        # The jaxpr stands within a tuple: JAX would want one that is a parameter itself simplified.
        return tuple(_divided_p.bind(*arrays, jaxprs=(jaxpr,), **params))

    return call


# --- The primitive --------------------------------------------------------------------------------

_divided_p = Primitive(TARGET)
_divided_p.multiple_results = True


@_divided_p.def_abstract_eval
def _types(*_: Any, jaxprs: tuple[ClosedJaxpr], **__: Any) -> list[Any]:
    return jaxprs[0].out_avals


@_divided_p.def_impl
def _evaluate(*arrays: Any, jaxprs: tuple[ClosedJaxpr], **_: Any) -> Any:
    return jaxpr_as_fun(jaxprs[0])(*arrays)


def refuse_derivatives(*_: Any, **__: Any) -> Any:
    """The derivative of what stands below custom_vjp."""
    raise NotImplementedError(
        "attention is differentiable once, by reverse mode; second derivatives are not served"
    )


ad.primitive_jvps[_divided_p] = refuse_derivatives


def _lower(
    ctx: Any,
    *values: Any,
    jaxprs: tuple[ClosedJaxpr],
    call: Any,
    rule: Any,
    options: Options,
) -> Any:
    module = ctx.module_context
    devices = module.axis_context.num_devices
    # One rule for all platforms: JAX finds an operation's inner functions again by their jaxprs
    # alone, so that rules for single platforms would get each other's code.
    if not module.lowering_parameters.for_export or devices == 1:
        results = mlir.lower_fun(jaxpr_as_fun(jaxprs[0]), multiple_results=True)(ctx, *values)
        if devices > 1:
            name_by_content(module, results[0].owner, f"{options} {jaxprs[0]}")
        return results
    sizes = [size for x in (*ctx.avals_in, *ctx.avals_out) for size in x.shape]
    if not all(isinstance(size, int) for size in sizes):
        # A rule cannot state symbolic sizes, so the compiler finds how the program divides.
        return mlir.lower_fun(call, multiple_results=True)(ctx, *values)
    if not _partitioners:
        raise NotImplementedError(
            f"exporting attention over several devices needs internals that JAX {jax.__version__}"
            " lacks; export a program for one device, or use jax.shard_map"
        )
    types = tuple(jaxprs[0].out_avals)

    def custom_call(platform: str) -> Callable[..., Any]:
        config = _encode(options, platform, devices)
        return functools.partial(_custom_call_p.bind, types=types, rule=rule, config=config)

    def by_platform(*arrays: Any) -> Any:
        return lax.platform_dependent(*arrays, **{p: custom_call(p) for p in module.platforms})

    return mlir.lower_fun(by_platform, multiple_results=True)(ctx, *values)


mlir.register_lowering(_divided_p, _lower)


# The custom call itself, for one platform. It is a primitive of its own because none of JAX's takes
# a partitioning rule for a custom call.
_custom_call_p = Primitive(f"{TARGET}_call")
_custom_call_p.multiple_results = True


@_custom_call_p.def_abstract_eval
def _custom_call_types(*_: Any, types: tuple[Any, ...], **__: Any) -> list[Any]:
    return list(types)


def _lower_custom_call(ctx: Any, *values: Any, types: Any, rule: Any, config: str) -> Any:
    del types
    from jax._src.custom_partitioning_sharding_rule import sdy_sharding_rule_to_mlir

    lower: Any = jax.ffi.ffi_lowering(
        TARGET, backend_config=config, api_version=2, skip_ffi_layout_processing=True
    )
    results = lower(ctx, *values)
    value_types = [x.type for x in values], [x.type for x in results]
    results[0].owner.attributes["sdy.sharding_rule"] = sdy_sharding_rule_to_mlir(rule, *value_types)
    return results


mlir.register_lowering(_custom_call_p, _lower_custom_call)


def _encode(options: Options, platform: str, devices: int) -> str:
    spec, *flags = options.static
    static = dataclasses.asdict(spec), *flags
    return json.dumps([options.name, static, options.given, platform, devices])


def _decode(text: bytes) -> tuple[Options, str, int]:
    name, (spec, *flags), given, platform, devices = json.loads(text)
    return Options(name, (AttentionSpec(**spec), *flags), tuple(given)), platform, devices


# --- Partitioning ---------------------------------------------------------------------------------


_partitioners: list[Callable[..., Any]] = []


def register(partition: Callable[..., Any]) -> None:
    """Has XLA divide the custom calls of exported programs.

    partition: function of Options and of what custom_partitioning gives, to what it takes.
    """
    # custom_partitioning itself is made of these. Where a JAX lacks them, only the division of
    # exported programs is missing.
    try:
        from jax._src import custom_partitioning, xla_bridge
        from jaxlib import xla_client

        internals: Any = custom_partitioning
        info_of, callbacks = internals._ShardingCallbackInfo, internals._sharding_callbacks
        run = internals._custom_partitioning_partition
        add = xla_client.register_custom_call_partitioner
        add_to_plugins = xla_bridge.register_plugin_callbacks
    except (ImportError, AttributeError):
        return

    def divide(arg_shapes, arg_shardings, result_shape, result_sharding, config):
        options, platform, devices = _decode(config)
        mesh = _finest_mesh(devices, arg_shardings)
        results = result_shape.tuple_shapes() if result_shape.is_tuple() else (result_shape,)
        trees = (jax.tree.structure((0,) * len(x)) for x in (arg_shapes, results))
        info = info_of(
            propagate_user_sharding=None,
            partition=functools.partial(partition, options),
            to_mesh_pspec_sharding=functools.partial(_named, mesh),
            in_tree=next(trees),
            out_tree=next(trees),
            infer_sharding_from_operands=None,
            module_context=types.SimpleNamespace(platforms=(platform,), backend=None),
            mesh=mesh,
            static_args=(),
        )
        key = f"{TARGET} {id(info)}"
        callbacks[key] = info
        return run(arg_shapes, arg_shardings, result_shape, result_sharding, key)

    def unchanged(sharding, *_):
        return sharding

    def infer(*_):
        raise NotImplementedError("the GSPMD partitioner is not supported; use Shardy")

    add_here = functools.partial(
        add, TARGET, unchanged, divide, infer, can_side_effecting_have_replicated_sharding=True
    )
    add_here()
    add_to_plugins(lambda c_api: add_here(c_api=c_api))
    _partitioners.append(divide)


def _finest_mesh(devices: int, shardings: Any) -> AbstractMesh:
    """A mesh of axes of prime size in whose terms the shardings can be said.

    The program's own mesh is not known here, nor need the caller's be the one of the export.
    """
    return max(
        _meshes(devices), key=lambda mesh: sum(_named(mesh, x) is not None for x in shardings)
    )


def _meshes(devices: int) -> Iterator[AbstractMesh]:
    for sizes in dict.fromkeys(itertools.permutations(_prime_factors(devices))):
        yield AbstractMesh(sizes, tuple(f"axis{i}" for i in range(len(sizes))))


def _prime_factors(number: int) -> list[int]:
    for factor in range(2, number + 1):
        if number % factor == 0:
            return [factor, *_prime_factors(number // factor)]
    return []


def _named(mesh: AbstractMesh, sharding: Any, ndim: int = 0) -> NamedSharding | None:
    """The sharding on this mesh; None where the mesh has no axes for it.

    An array without one is brought together first.
    """
    del ndim
    from jax._src.sharding_impls import parse_flatten_op_sharding

    try:
        (spec,) = parse_flatten_op_sharding(sharding, mesh)
    except (AssertionError, KeyError, NotImplementedError, StopIteration, ValueError):
        return None
    return NamedSharding(mesh, spec)
