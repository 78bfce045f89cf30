"""The custom calls of lowered and compiled programs, what devices send each other, and retraces."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from contract_cases import PROBLEMS, SHARDED, Problem, gradient
from jax.sharding import AxisType
from meshes import collectives_in, mesh_of, place

TARGETS = ("gfx950", "gfx1201")


def describe_calls() -> dict[str, Any]:
    return {
        "traced": {name: traced_calls(problem) for name, problem in PROBLEMS.items()},
        "lowered": {name: lowered_calls(problem) for name, problem in PROBLEMS.items()},
        "divided": {name: divided_calls(problem) for name, problem in SHARDED.items()},
        "compilations": {name: compilations(name) for name in ("dense", "varlen", "paged decode")},
    }


# --- Traced ---------------------------------------------------------------------------------------


def traced_calls(problem: Problem) -> dict[str, int]:
    """How many calls of each handler a jaxpr without a named target holds, in all branches."""
    jaxpr = jax.make_jaxpr(problem.on(None))(*problem.operands("bfloat16"))
    return dict(collections.Counter(_ffi_calls(jaxpr)))


def _ffi_calls(value: Any) -> Iterator[str]:
    value = getattr(value, "jaxpr", value)
    if isinstance(value, tuple | list):
        for item in value:
            yield from _ffi_calls(item)
    for equation in getattr(value, "eqns", ()):
        if equation.primitive.name == "ffi_call":
            yield equation.params["target_name"]
        for parameter in equation.params.values():
            yield from _ffi_calls(parameter)


# --- Lowered --------------------------------------------------------------------------------------


def lowered_calls(problem: Problem) -> list[dict[str, list[str]]]:
    """Our calls: lowered for ROCm and CPUs without a name, and for CPUs by the target's name.

    Places with the same calls stand together; TARGET is what each of them says of the target.
    """
    operands = problem.operands("bfloat16")
    found: dict[tuple[str, ...], list[str]] = {}
    for implementation, platform in ((None, "rocm"), (None, "cpu"), *((t, "cpu") for t in TARGETS)):
        try:
            traced = jax.jit(problem.on(implementation)).trace(*operands)
        except NotImplementedError:
            continue
        module: Any = traced.lower(lowering_platforms=(platform,)).compiler_ir("stablehlo")
        target = f'target = "{implementation or "any"}"'
        calls = (call.replace(target, "TARGET") for call in _custom_calls(module.operation))
        place = f"{implementation or 'unnamed'} on {platform}"
        found.setdefault(tuple(sorted(calls)), []).append(place)
    return [{"places": places, "calls": list(calls)} for calls, places in found.items()]


def _custom_calls(operation: Any) -> Iterator[str]:
    """name(operands) -> (results) {attributes} and all layouts that are not row-major."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                attributes = inner.operation.attributes
                if inner.operation.name == "stablehlo.custom_call":
                    name = str(attributes["call_target_name"]).strip('"')
                    if name.startswith("jax_fa"):
                        yield _describe_call(name, inner.operation)
                yield from _custom_calls(inner.operation)


def _describe_call(name: str, call: Any) -> str:
    operands, results = ([_short(x) for x in values] for values in (call.operands, call.results))
    words = [f"{name}({', '.join(operands)}) -> ({', '.join(results)})"]
    attributes = call.attributes
    key = "mhlo.backend_config" if "mhlo.backend_config" in attributes else "backend_config"
    words.append(str(attributes[key]))
    words.append(str(attributes["api_version"]).split(" ")[0] + " api")
    for side in ("operand_layouts", "result_layouts"):
        orders = [
            [int(n) for n in order.split(",") if n.strip()]
            for order in re.findall(r"dense<\[?([\d, ]*)\]?> : tensor", str(attributes[side]))
        ]
        straight = all(order == sorted(order, reverse=True) for order in orders)
        words.append(f"{side} {'row-major' if straight else orders}")
    if "output_operand_aliases" in attributes:
        aliases = str(attributes["output_operand_aliases"])
        words += re.findall(r"\[[\d, ]*\]|operand_index = \d+", aliases)
    return "; ".join(words)


def _short(value: Any) -> str:
    return str(value.type).removeprefix("tensor<").removesuffix(">")


# --- Compiled for four devices --------------------------------------------------------------------


def divided_calls(problem: Problem) -> dict[str, Any]:
    """Our calls in the program of a device with their results, and what devices exchange."""
    mesh, found = mesh_of(AxisType.Auto), {}
    for name, function, dtype in (
        ("gfx950", problem.on("gfx950"), "bfloat16"),
        ("gradient", gradient(problem.function), "float32"),
    ):
        placed = place(problem.operands(dtype), mesh, problem.specs)
        # The CPU's code itself is not looked at.
        quick: Any = {"xla_backend_optimization_level": 0}
        compiled: Any = jax.jit(function).lower(*placed).compile(compiler_options=quick)
        text = compiled.as_text()
        calls = re.findall(r"= (.*?) custom-call\(.*custom_call_target=\"(jax_fa\w+)\"", text)
        found[name] = {
            "calls": sorted(f"{target} -> {_without_layouts(types)}" for types, target in calls),
            "collectives": sorted(set(collectives_in(text))),
        }
    return found


def _without_layouts(types: str) -> str:
    return re.sub(r"\{[^}]*\}|/\*.*?\*/", "", types)


# --- Compilations ---------------------------------------------------------------------------------


def compilations(name: str) -> dict[str, int]:
    """Programs compiled by calls of an operation, one after another."""
    problem = PROBLEMS[name]
    operands = problem.operands("bfloat16")
    others = [x + 1 if jnp.issubdtype(x.dtype, jnp.floating) else x for x in operands]
    attend = problem.on("gfx950")  # XLA compiles its call faster than jnp code
    jitted = jax.jit(attend)

    def eager(scale: float, arrays: list[jax.Array]) -> Callable[[], Any]:
        return lambda: attend(*arrays, scale=scale)

    steps = {
        "eager": eager(0.3701, operands),
        "eager again": eager(0.3701, operands),
        "eager, other values": eager(0.3701, others),
        "eager, other scale": eager(0.3702, operands),
        "jit": lambda: jitted(*operands),
        "jit again": lambda: jitted(*others),
    }
    return {step: _count_compilations(call) for step, call in steps.items()}


def _count_compilations(call: Callable[[], Any]) -> int:
    events = []

    def listen(event: str, duration_secs: float, **_: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            events.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        jax.block_until_ready(call())
    finally:
        _forget(listen)
    return len(events)


def _forget(listener: Callable[..., Any]) -> None:
    from jax._src import monitoring

    monitoring.unregister_event_duration_listener(listener)
