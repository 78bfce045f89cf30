"""The timing model: modelled cycles and TFLOP/s of the kernels on published shapes."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import model_runs
from model_cases import CALL_CASES, CALL_SECONDS, CASES, Case

from jax_fa import emulator
from jax_fa._contract.spec import TARGETS
from jax_fa.emulator import timing as _timing
from jax_fa.emulator.listing import listing
from jax_fa.emulator.loops import find_hot_loops

NAME = "model"
HELP = "modelled time of the kernels beside published figures; nothing here ran on a GPU"

# Variants of a constant that are always shown.
VARIANTS: dict[str, dict[str, dict[str, float]]] = {
    "gfx950": {
        "LDS at 128 B/clk": {"lds_pass": 2},
        "barrier at 20 clk": {"barrier": 20},
        "oldest wave first": {"oldest_first": 1},
        "clock by matrix energy": {"clock_by_energy": 1},
    },
    "gfx1201": {
        "exponential at 0 clk": {"trans_hold": 0},
        "longest waiting wave first": {"oldest_first": 0},
    },
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", choices=TARGETS, required=True)
    parser.add_argument(
        "--case", action="append", metavar="NAME", help="only these (all without); several allowed"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="aiter=DIR|triton",
        help="also a foreign kernel: aiter=DIR, the folder hsa/gfx950/fmha_v3_fwd of ROCm/aiter; "
        "triton, an attention kernel in Triton, compiled here (needs the extra 'peers')",
    )
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="Chrome trace of a workgroup of the first case"
    )
    parser.add_argument("--no-check", action="store_true", help="leave out the full run")


def run(arguments: argparse.Namespace) -> int:
    target = arguments.target
    cases = [case for case in CASES if case.target == target]
    if arguments.case:
        unknown = set(arguments.case) - {case.name for case in cases}
        if unknown:
            names = ", ".join(case.name for case in cases)
            print(f"no case {', '.join(unknown)} of {target}; there are {names}", file=sys.stderr)
            return 2
        cases = [case for case in cases if case.name in arguments.case]
    try:
        runners = [model_runs.run_ours, *map(_peer, arguments.peer)]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2

    print(f"{target}, bfloat16. Modelled throughout: nothing here ran on a GPU. Constants:")
    for row in _timing.constants(target):
        print(f"  {row.name:<22} {row.value:>12g} {row.unit:<9} {row.confidence}  {row.source}")
    report: dict[str, Any] = {"target": target, "modelled": True, "cases": []}
    report["constants"] = [row._asdict() for row in _timing.constants(target)]
    if not arguments.no_check:
        report["sampling"] = checked = model_runs.check_sampling(target)
        print(
            "Sampling against a full run of {workgroups} causal workgroups: {sampled_clk:.0f} / "
            "{full_clk:.0f} clk, {difference:+.2%}".format(**checked)
        )
    print(
        "Each case: up to five workgroups of one head are emulated, those between are "
        "interpolated, other heads and sequences repeat them."
    )
    kernels: dict[str, tuple[emulator.CodeObject, emulator.Launch, _timing.Samples]] = {}
    for case in cases:
        for runner in runners:
            ran = runner(case)
            if ran is None:
                continue
            for launch, samples in ran.parts:
                kernels.setdefault(f"{ran.who} {launch.kernel}", (ran.code, launch, samples))
            report["cases"].append(_row(case, ran))
            print(_text(case, report["cases"][-1]), flush=True)
    report["calibration"] = _calibration(report["cases"])
    for line in report["calibration"].values():
        print(
            "{who}: modelled against its own published figures, {cases} cases, mean deviation "
            "{mean:+.1%}, from {least:+.1%} to {most:+.1%}".format(**line)
        )
    report["kernels"] = [_kernel(name, *found) for name, found in kernels.items()]
    for kernel in report["kernels"]:
        print("\n" + _kernel_text(kernel))
    if arguments.trace and kernels:
        _, launch, _ = next(iter(kernels.values()))
        arguments.trace.write_text(json.dumps(emulator.chrome_trace(launch)))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


def _peer(option: str):
    if option == "triton":
        if importlib.util.find_spec("triton") is None:
            raise ValueError("--peer triton needs the package triton: pip install '.[peers]'")
        return model_runs.run_triton
    name, _, folder = option.partition("=")
    if name != "aiter" or not folder:
        raise ValueError(f"--peer must be aiter=DIR or triton; got {option}")
    if not any(Path(folder).glob("fwd_hd128_bf16*.co")):
        raise ValueError(
            f"--peer aiter=DIR must name a folder with fwd_hd128_bf16*.co; got {folder}"
        )
    return model_runs.run_aiter(Path(folder))


def _row(case: Case, ran: model_runs.Run) -> dict[str, Any]:
    grids = ran.grids()
    first, (launch, samples) = grids[0], ran.parts[0]
    clk = sum(grid["clk"] for grid in grids)
    simd_clk = first["simds"] * clk
    row = {
        "case": case.name,
        "who": ran.who,
        "kernels": [launched.kernel for launched, _ in ran.parts],
        "flops": case.flops,
        "clk": clk,
        "bound": max(("memory", "fabric", "l2", "dispatch"), key=lambda b: first[f"{b}_clk"]),
        "matrix_busy": sum(grid["matrix_clk"] for grid in grids) / simd_clk,
        "useful_busy": case.flops / first["flops_per_clk"] / simd_clk,
        "clock_hz": first["clock_hz"],
        "stream": first["stream"],
        "tflops": _tflops(case, grids),
        "bytes_per_s": sum(case.operand_bytes.values()) / _seconds(grids),
        "resident_workgroups": samples.resident,
        "waves_per_simd": _waves_per_simd(ran.code, launch, samples),
        "sampled_workgroups": samples.trace.groups,
        "sampled_of": samples.count,
        "counts": launch.counts["class"],
        "bytes": launch.bytes,
        "bank_conflicts": launch.bank_conflicts,
        "published_tflops": case.tflops,
        "constants": _timing.constants_hash(case.target),
    }
    floor_clk = max(row["useful_busy"] * clk, first["memory_clk"])
    row["to_floor"] = clk / floor_clk
    row["variants"] = {
        name: _tflops(case, ran.grids(changed)) for name, changed in VARIANTS[case.target].items()
    }
    row["deviation"] = {who: row["tflops"] / figure - 1 for who, figure in case.tflops.items()}
    if ran.who in CALL_SECONDS and ran.who in case.tflops:
        seconds = _seconds(grids) + CALL_SECONDS[ran.who]
        row["call_seconds"] = CALL_SECONDS[ran.who]
        row["deviation_of_calls"] = case.flops / seconds / 1e12 / case.tflops[ran.who] - 1
    return row


def _waves_per_simd(
    code: emulator.CodeObject, launch: emulator.Launch, samples: _timing.Samples
) -> float:
    lanes = launch.block[0] * launch.block[1] * launch.block[2]
    waves = -(-lanes // code.kernels[launch.kernel].wave_size)
    return samples.resident * waves / samples.trace.simds


def _calibration(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """How far the model is off where the very kernel that it ran has been published.

    Cases that the cost of a call was taken from, and others, apart.
    """
    found = {}
    for who in {row["who"] for row in rows}:
        own = [row for row in rows if row["who"] == who in row["deviation"]]
        for name, chosen in ((who, False), (f"{who}, where calls were taken from", True)):
            of = [row for row in own if (row["case"] in CALL_CASES) == chosen]
            off = [row.get("deviation_of_calls", row["deviation"][who]) for row in of]
            if off:
                found[name] = {"who": name, "cases": len(off), "mean": sum(off) / len(off)}
                found[name] |= {"least": min(off), "most": max(off)}
    return found


def _seconds(grids: list[dict[str, float]]) -> float:
    """At the clock that a stream of the first kernel's matrix instructions holds, as it holds it.

    What is bound by memory does not depend on the clock.
    """
    clk = sum(grid["clk"] for grid in grids)
    sustained = grids[0]["clk"] > grids[0]["memory_clk"]
    return clk / grids[0]["clock_hz"] / (grids[0]["stream"] if sustained else 1)


def _tflops(case: Case, grids: list[dict[str, float]]) -> float:
    return case.flops / _seconds(grids) / 1e12


def _text(case: Case, row: dict[str, Any]) -> str:
    published = ", ".join(
        f"{who} {figure:g} ({row['deviation'][who]:+.0%})" for who, figure in case.tflops.items()
    )
    variants = ", ".join(f"{name} {tflops:.0f}" for name, tflops in row["variants"].items())
    speed = f"{row['tflops']:.0f} TFLOP/s"
    if row["bound"] == "memory":
        speed = f"{row['bytes_per_s'] / 1e12:.2f} TB/s, " + speed
    return (
        f"{row['case']:<16} {row['who']:<7} modelled {row['clk'] / 1e6:8.3f} Mclk "
        f"({row['to_floor']:.2f} x floor, {row['bound']}), matrix busy {row['matrix_busy']:.1%}, "
        f"useful {row['useful_busy']:.1%}, {speed} at "
        f"{row['clock_hz'] / 1e6:.0f} MHz x {row['stream']:.3f} [{variants}]"
        + (f"; published: {published}" if published else "")
        + (
            f", with {1e6 * row['call_seconds']:.0f} us a call {row['deviation_of_calls']:+.0%}"
            if "call_seconds" in row
            else ""
        )
        + f"; constants {row['constants']}"
    )


def _kernel(
    name: str, code: emulator.CodeObject, launch: emulator.Launch, samples: _timing.Samples
) -> dict[str, Any]:
    """A kernel's hot loops by rules of thumb, and what its time depends on."""
    loops = find_hot_loops(listing(code, launch.kernel))
    return {
        "name": name,
        "slot_rule_clk": [_timing.slot_rule_clk(code.target, loop) for loop in loops],
        "matrix": [sum(i.is_matrix for i in loop) for loop in loops],
        "sensitivity": [
            {"constant": row.name, "value": row.value, "halved": halved, "doubled": doubled}
            | {"confidence": row.confidence}
            for row, halved, doubled in _timing.sensitivity(samples.trace, samples.resident)
        ],
    }


def _kernel_text(kernel: dict[str, Any]) -> str:
    lines = [kernel["name"]]
    for clk, matrix in zip(kernel["slot_rule_clk"], kernel["matrix"], strict=True):
        lines.append(
            f"  hot loop of {matrix} matrix instructions: {clk:.0f} clk by issue slots alone"
        )
    # What rests on no measurement comes first.
    for inferred in (True, False):
        what = "inferred" if inferred else "sourced"
        lines.append(f"  time of a workgroup with {what} constants halved and doubled:")
        for row in kernel["sensitivity"]:
            if (row["confidence"] == "C") == inferred:
                lines.append(
                    f"    {row['constant']:<22} {row['value']:>10g} {row['confidence']} "
                    f"{row['halved']:+7.1%} {row['doubled']:+7.1%}"
                )
    return "\n".join(lines)
