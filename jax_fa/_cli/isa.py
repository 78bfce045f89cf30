"""The command jax-fa isa: what the kernels of a code object take and do, read from its text.

Nothing is run. A hot loop is an innermost loop that holds matrix instructions, counted once round
along the shortest path that holds them all (jax_fa/emulator/loops.py).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jax_fa import _native, emulator
from jax_fa._contract.spec import TARGETS
from jax_fa.emulator.listing import count, listing
from jax_fa.emulator.loops import find_hot_loops, reachable

HELP = "registers, LDS and instruction counts of the hot loops of a code object"

# A kernel's name states op, dtype, head size tile and what changes its loop, as in
# flash_bfloat16_h128_softcap. merge_bfloat16, which merges splits, serves any head size.
_NAME = re.compile(r"([a-z]+)_(bfloat16|float16)(?:_h(\d+)_([a-z0-9_]+))?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("file", nargs="?", type=Path, metavar="FILE.co", help="an ELF code object")
    which.add_argument(
        "--target",
        choices=TARGETS,
        help="the code object in this package (default: of each target)",
    )
    parser.add_argument(
        "--json", action="store_true", help="write one JSON object to stdout and nothing else"
    )


def run(arguments: argparse.Namespace) -> int:
    """Report; 1 when there is no such code object or it cannot be read, else 0."""
    try:
        codes = _code_objects(arguments.file, arguments.target)
        reports = [report(code) for code in codes]
    except (OSError, emulator.EmulatorError) as error:
        print(f"jax-fa: {error}", file=sys.stderr)
        return 1
    for code in codes:
        _complain(code)
    if arguments.json:
        print(json.dumps(reports[0] if len(reports) == 1 else reports))
    else:
        print("\n\n".join(_text(found) for found in reports))
    return 0


def _code_objects(file: Path | None, target: str | None) -> list[emulator.CodeObject]:
    if file is not None:
        return [emulator.CodeObject(file)]
    images = {name: _native.code_object(name) for name in ([target] if target else TARGETS)}
    found = [emulator.CodeObject(image) for image in images.values() if image]
    if not found:
        raise emulator.EmulatorError(f"this build has no code object of {' or '.join(images)}")
    return found


def _complain(code: emulator.CodeObject) -> None:
    """Says which kernels have instructions that the decoder does not know."""
    for name in code.kernels:
        unknown = sum(i.mnemonic == "(undecoded)" for i in reachable(listing(code, name)))
        if unknown:
            print(
                f"jax-fa: {name}: {unknown} instructions are not known here and count as nops",
                file=sys.stderr,
            )


def report(code: emulator.CodeObject) -> dict[str, Any]:
    """``{"target": ..., "kernels": [...]}`` of a code object, as jax-fa isa --json writes it."""
    return {
        "target": code.target,
        "kernels": [_kernel_report(code, name) for name in code.kernels],
    }


def describe_name(name: str) -> dict[str, Any]:
    """What a kernel's name says of it; None throughout for a name that is not of this package."""
    match = _NAME.fullmatch(name)
    if match is None:
        return dict.fromkeys(("op", "variant", "dtype", "head_dim"))
    op, dtype, head_dim, variant = match.groups()
    return {
        "op": op,
        "variant": (variant or "plain").replace("_", "+"),
        "dtype": dtype,
        "head_dim": int(head_dim) if head_dim else None,
    }


def _kernel_report(code: emulator.CodeObject, name: str) -> dict[str, Any]:
    kernel = code.kernels[name]
    occupancy = code._code.occupancy(name, kernel.max_workgroup_size, kernel.lds_bytes)
    return {
        "name": name,
        **describe_name(name),
        "vgprs": kernel.vgprs,
        "agprs": kernel.agprs,
        "sgprs": kernel.sgprs,
        "vgpr_spills": kernel.vgpr_spills,
        "sgpr_spills": kernel.sgpr_spills,
        "scratch_bytes": kernel.scratch_bytes,
        "lds_bytes": kernel.lds_bytes,
        "workgroup_size": kernel.max_workgroup_size,
        "waves_per_simd": occupancy["waves_per_simd"],
        "hot_loops": [count(code.target, loop) for loop in find_hot_loops(listing(code, name))],
    }


def _text(found: Mapping[str, Any]) -> str:
    lines = [f"{found['target']}: {len(found['kernels'])} kernels"]
    for kernel in found["kernels"]:
        lines.append(
            f"{kernel['name']}: {kernel['vgprs']} VGPRs ({kernel['agprs']} AGPRs), "
            f"{kernel['sgprs']} SGPRs, spills {kernel['vgpr_spills']}+{kernel['sgpr_spills']}, "
            f"scratch {kernel['scratch_bytes']} B, LDS {kernel['lds_bytes']} B, "
            f"{kernel['workgroup_size']} lanes, {kernel['waves_per_simd']} waves per SIMD"
        )
        for loop in kernel["hot_loops"]:
            counts = ", ".join(f"{number} {name}" for name, number in loop.items() if number)
            lines.append(f"    loop: {counts}")
    return "\n".join(lines)
