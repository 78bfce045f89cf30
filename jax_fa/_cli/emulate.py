"""The command jax-fa emulate: runs a kernel of any code object of the targets on a CPU."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jax_fa import emulator

HELP = "run a kernel of a code object in the emulator"

_DTYPES = {
    f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for bits in (8, 16, 32, 64) for kind in "iu"
}
_DTYPES |= {f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)}
_FORMS = f"""each is one of
  TYPE:NUMBER         by value, TYPE among {", ".join(_DTYPES)}
  FILE.npy            an array, by address; the file is left as it is
  zeros:TYPE:SHAPE    an array of zeros by address, SHAPE like 4x256
  bytes:HEX           a structure by value
  null                a null pointer"""
_SHOWN = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"arguments of the kernel: {_FORMS}"
    parser.add_argument("file", type=Path, metavar="FILE.co", help="an ELF code object")
    parser.add_argument("--kernel", help="which (default: list the kernels and their arguments)")
    parser.add_argument(
        "--args", nargs="*", default=[], metavar="ARG", help="one per argument of the kernel"
    )
    parser.add_argument(
        "--grid", type=_extent, default=(1,), metavar="X[,Y[,Z]]", help="workgroups (default: 1)"
    )
    parser.add_argument(
        "--block",
        type=_extent,
        metavar="X[,Y[,Z]]",
        help="lanes of a workgroup (default: a wave)",
    )
    parser.add_argument("--lds", type=int, default=0, metavar="BYTES", help="dynamic LDS")
    parser.add_argument("--schedule", default="round_robin", help="the order of the waves")
    parser.add_argument("--arrival", default="late", help="when results of loads land")
    parser.add_argument("--seed", type=int, default=0, help="of random schedules and arrivals")
    parser.add_argument("--no-checks", action="store_true", help="look for no findings")
    parser.add_argument("--timing", action="store_true", help="model the time on the chip")
    parser.add_argument(
        "--follow", type=_extent, metavar="WORKGROUP,WAVE", help="print what this wave did"
    )
    parser.add_argument(
        "--save",
        type=_destination,
        action="append",
        default=[],
        metavar="N=FILE.npy",
        help="write the array of argument N (from 0) to a file",
    )
    parser.add_argument(
        "--json", action="store_true", help="write one JSON object to stdout and nothing else"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the kernel, or list them all; 1 for an error or a finding, else 0."""
    try:
        code = emulator.CodeObject(arguments.file)
        if arguments.kernel is None:
            _list(code, arguments.json)
            return 0
        return _launch(code, arguments)
    except (OSError, TypeError, ValueError, emulator.EmulatorError) as error:
        print(f"jax-fa: {error}", file=sys.stderr)
        return 1


def _list(code: emulator.CodeObject, as_json: bool) -> None:
    found = {
        name: [
            {"name": argument, "kind": kind, "bytes": size}
            for argument, kind, _, size in kernel.arguments
        ]
        for name, kernel in code.kernels.items()
    }
    if as_json:
        print(json.dumps({"target": code.target, "kernels": found}))
        return
    print(f"{code.target}: {len(found)} kernels")
    for name, kernel in found.items():
        listed = (f"{a['name'] or '?'} ({a['kind']}, {a['bytes']} B)" for a in kernel)
        print(f"{name}: {', '.join(listed) or 'no arguments'}")


def _launch(code: emulator.CodeObject, arguments: argparse.Namespace) -> int:
    described = code.kernels.get(arguments.kernel)
    if described is None:
        raise ValueError(
            f"--kernel must be one of {', '.join(code.kernels)}; got {arguments.kernel}"
        )
    values = [_value(place, text) for place, text in enumerate(arguments.args)]
    for place, _ in arguments.save:
        if place >= len(values) or not isinstance(values[place], np.ndarray):
            raise ValueError(f"--save {place}=...: argument {place} is no array")
    launch = code.launch(
        arguments.kernel,
        arguments.grid,
        arguments.block or described.wave_size,
        values,
        lds_bytes=arguments.lds,
        schedule=arguments.schedule,
        arrival=arguments.arrival,
        seed=arguments.seed,
        checks=False if arguments.no_checks else "collect",
        timing=arguments.timing,
        follow=arguments.follow,
    )
    for place, path in arguments.save:
        np.save(path, values[place])
    if arguments.json:
        print(json.dumps(_report(launch)))
    else:
        _print(launch, values)
    return 1 if launch.findings else 0


def _report(launch: emulator.Launch) -> dict[str, Any]:
    names = ("target", "kernel", "grid", "block", "counts", "bytes", "bank_conflicts", "findings")
    report = {name: getattr(launch, name) for name in (*names, "wave_instructions", "loops")}
    report["modelled_cycles"] = launch.cycles
    if launch.steps is not None:
        report["steps"] = [
            {
                "pc": step.pc,
                "text": step.text,
                "modelled_clock": step.clock,
                "written": {name: values.tolist() for name, values in step.written.items()},
            }
            for step in launch.steps
        ]
    return report


def _print(launch: emulator.Launch, values: Sequence[Any]) -> None:
    if launch.steps is not None:
        print(launch.steps)
    counts = ", ".join(f"{number} {name}" for name, number in launch.counts["class"].items())
    print(f"{launch.wave_instructions} wave instructions: {counts}")
    moved, lds = launch.bytes["global"], launch.bytes["lds"]
    print(
        f"{moved['read']} B read, {moved['written']} B written; LDS {lds['read']} B read, "
        f"{lds['written']} B written, {launch.bank_conflicts} bank conflicts"
    )
    if launch.cycles is not None:
        print(f"{launch.cycles:.0f} clocks on the whole chip, modelled")
    for place, value in enumerate(values):
        if isinstance(value, np.ndarray):
            print(f"argument {place}: {value.dtype} {value.shape} {_start(value)}")
    for finding in launch.findings:
        print(f"finding: {finding}")


def _start(array: np.ndarray) -> str:
    shown = ", ".join(map(str, array.ravel()[:_SHOWN].tolist()))
    return f"[{shown}{', ...' if array.size > _SHOWN else ''}]"


def _value(place: int, text: str) -> Any:
    """What an argument stands for: an array, a number of NumPy's, bytes or None."""
    with contextlib.suppress(ValueError, KeyError, OverflowError):
        kind, _, rest = text.partition(":")
        if text == "null":
            return None
        if kind == "bytes":
            return bytes.fromhex(rest)
        if kind == "zeros":
            dtype, _, shape = rest.partition(":")
            return np.zeros(_shape(shape), _DTYPES[dtype])
        if kind in _DTYPES:
            return _number(rest, _DTYPES[kind])
    if text.endswith(".npy"):
        return np.load(text, allow_pickle=False)
    raise ValueError(f"argument {place}: {_FORMS}\ngot {text!r}")


def _number(text: str, dtype: np.dtype) -> np.generic:
    if dtype.kind == "f":
        return dtype.type(float(text))
    value = int(text, 0)
    limits = np.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise OverflowError
    return dtype.type(value)


def _shape(text: str) -> tuple[int, ...]:
    shape = tuple(int(part) for part in text.split("x"))
    if min(shape) < 0 or math.prod(shape) > 1 << 34:
        raise ValueError(shape)
    return shape


def _extent(text: str) -> tuple[int, ...]:
    return tuple(int(part, 0) for part in text.split(","))


def _destination(text: str) -> tuple[int, Path]:
    place, _, path = text.partition("=")
    if not path:
        raise ValueError(text)
    return int(place), Path(path)
