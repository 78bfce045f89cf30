"""The command jax-fa demo: what is installed and found, and one layer on every target.

The layer is causal grouped-query attention under jax.jit, held against the reference. A kernel
target without its GPU runs in the emulator, which needs JAX's CPU backend.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax_fa import __version__, _native, emulator, reference
from jax_fa._cli import check
from jax_fa._contract import tolerance
from jax_fa._contract.spec import TARGETS
from jax_fa._machine.devices import architecture, rocm_devices, target_of
from jax_fa.attention import flash_attention

HELP = "what is installed and found, and one attention layer on every target"

_SHAPE = {"B": 1, "T": 512, "S": 512, "N": 4, "K": 2, "H": 128}
_DTYPES = ("bfloat16", "float16")


class _Place(NamedTuple):
    """Where an implementation runs: in the emulator when it is a kernel and no GPU of its own."""

    implementation: str
    device: Any | None  # jax.Device; None where that is a CPU and JAX has not started its backend
    emulated: bool

    def __str__(self) -> str:
        return f"{self.implementation} ({'emulated' if self.emulated else self.device})"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="write one JSON object to stdout and nothing else"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run every case; 1 when one is past a tolerance or fails, or JAX does not start, else 0."""
    found = check.examine()
    if not found.devices:  # JAX_PLATFORMS names what is not here
        for reason in check.reasons(found):
            _progress(reason)
        return 1
    if not arguments.json:
        print("\n".join(_describe(found)), end="\n\n", flush=True)
        print(_HEADINGS, flush=True)
    if found.gpus and not any(device.platform == "rocm" for device in found.devices):
        for reason in check.reasons(found):
            _progress(f"an AMD GPU is here ({', '.join(found.gpus)}) and not used: {reason}")
    cases, complaints = [], []
    for place in _places():
        if place.device is None:
            _progress(
                f"{place.implementation}: not run: the emulator needs JAX's CPU backend, which "
                f"JAX_PLATFORMS={found.platforms} leaves out; add cpu to it"
            )
            continue
        for dtype in _DTYPES:
            _progress(f"{place}, {dtype} ...")
            try:
                case = _run_case(place, dtype)
            except jax.errors.JaxRuntimeError as error:  # a kernel that stops: the others still run
                complaints.append(f"failed: {place}, {dtype}: {error}")
                continue
            cases.append(case)
            if not _within_tolerance(case):
                complaints.append(f"past its tolerance: {place}, {dtype}")
            if not arguments.json:
                print(_row(place, case), flush=True)
    if arguments.json:
        print(json.dumps({"version": __version__, "cases": cases}))
    for complaint in complaints:
        _progress(complaint)
    return 1 if complaints else 0


def _progress(message: str) -> None:
    print(f"jax-fa: {message}", file=sys.stderr, flush=True)


def _describe(found: check.Findings) -> Iterator[str]:
    yield ", ".join(f"{name} {version}" for name, version in found.versions.items())
    yield f"JAX devices   {', '.join(device.name for device in found.devices)}"
    architectures = [device.architecture for device in found.devices if device.architecture]
    none = "none found: kernels run in the emulator"
    yield f"HIP devices   {', '.join(architectures) or none}"
    for target, code in found.code_objects.items():
        yield f"{target:<13} code object of {code['bytes']:,} bytes, {code['kernels']} kernels"


def _places() -> Iterator[_Place]:
    try:
        cpu = jax.devices("cpu")[0]
    except RuntimeError:
        cpu = None
    for target in filter(_native.code_object, TARGETS):
        gpu = _find_gpu(target)
        yield _Place(target, gpu or cpu, emulated=gpu is None)
    yield _Place("xla", jax.devices()[0], emulated=False)


def _find_gpu(target: str) -> Any | None:
    try:
        return next((x for x in rocm_devices() if target_of(architecture(x)) == target), None)
    except RuntimeError:  # HIP does not answer
        return None


def _inputs(dtype: str) -> list[jax.Array]:
    b, t, s, n, k, h = _SHAPE.values()
    shapes = (b, t, n, h), (b, s, k, h), (b, s, k, h)
    keys = jax.random.split(jax.random.key(0), len(shapes))
    return [jax.random.normal(key, shape, dtype) for key, shape in zip(keys, shapes, strict=True)]


def _run_case(place: _Place, dtype: str) -> dict[str, Any]:
    operands = [jax.device_put(x, place.device) for x in _inputs(dtype)]
    layer = jax.jit(
        lambda q, k, v: flash_attention(
            q, k, v, causal=True, return_lse=True, implementation=place.implementation
        )
    )
    compiled = layer.lower(*operands).compile()
    with emulator.record() as launches:
        start = time.perf_counter()
        out, lse = jax.block_until_ready(compiled(*operands))
        seconds = time.perf_counter() - start
    exact_out, exact_lse = reference.flash_attention(
        *(x.astype(jnp.float32) for x in operands), causal=True, return_lse=True
    )
    lse_tolerance = tolerance.lse_tolerance(exact_lse, dtype, place.implementation)
    return {
        "target": place.implementation,
        "op": "flash_attention",
        "dtype": dtype,
        "shape": _SHAPE,
        "causal": True,
        "out_max_err": _max_error(out, exact_out),
        "out_tolerance": tolerance.out_tolerance(operands[2]),
        "lse_max_err": _max_error(lse, exact_lse),
        "lse_tolerance": float(lse_tolerance.min()),
        "wave_instructions": (
            sum(launch.wave_instructions for launch in launches) if place.emulated else None
        ),
        "seconds": seconds,
    }


def _max_error(actual: jax.Array, expected: jax.Array) -> float:
    difference = np.asarray(actual, np.float32) - np.asarray(expected, np.float32)
    return float(np.abs(difference).max())


def _within_tolerance(case: dict[str, Any]) -> bool:
    return all(case[f"{name}_max_err"] <= case[f"{name}_tolerance"] for name in ("out", "lse"))


_HEADINGS = (
    f"{'target':<20} {'dtype':<9} {'out error':>9} {'allowed':>8} {'lse error':>9} {'allowed':>8} "
    f"{'wave instructions':>17} {'seconds':>8}"
)


def _row(place: _Place, case: dict[str, Any]) -> str:
    instructions = case["wave_instructions"]
    return (
        f"{place!s:<20} {case['dtype']:<9} "
        f"{case['out_max_err']:>9.1e} {case['out_tolerance']:>8.1e} "
        f"{case['lse_max_err']:>9.1e} {case['lse_tolerance']:>8.1e} "
        f"{'-' if instructions is None else format(instructions, ',d'):>17} "
        f"{case['seconds']:>8.2f}"
    )
