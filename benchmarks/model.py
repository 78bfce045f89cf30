"""The timing model: modelled cycles and TFLOP/s of the kernels on published shapes."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import model_runs
from public_figures import CASES, Case

from jax_fa import _timing
from jax_fa._chrome_trace import chrome_trace
from jax_fa._isa import listing
from jax_fa._loops import find_hot_loops
from jax_fa._spec import TARGETS

NAME = "model"
HELP = "modelled time of the kernels beside published figures; nothing here ran on a GPU"

# Variants of a constant that are always shown.
VARIANTS = {
    "gfx950": {"LDS at 128 B/clk": {"lds_pass": 2}},
    "gfx1201": {"exponential at 0 clk": {"trans_hold": 0}},
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
        metavar="aiter=DIR",
        help="also a foreign kernel: aiter=DIR, the folder hsa/gfx950/fmha_v3_fwd of ROCm/aiter",
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
    runs: dict[str, model_runs.Run] = {}
    for case in cases:
        for runner in runners:
            ran = runner(case)
            if ran is None:
                continue
            runs.setdefault(f"{ran.who} {ran.launch.kernel}", ran)
            report["cases"].append(_row(case, ran))
            print(_text(case, report["cases"][-1]), flush=True)
    report["calibration"] = _calibration(report["cases"])
    for line in report["calibration"].values():
        print(
            "{who}, modelled against its own published figures: {cases} cases, mean deviation "
            "{mean:+.1%}, from {least:+.1%} to {most:+.1%}".format(**line)
        )
    report["kernels"] = [_kernel(name, ran) for name, ran in runs.items()]
    for kernel in report["kernels"]:
        print("\n" + _kernel_text(kernel))
    if arguments.trace and runs:
        ran = next(iter(runs.values()))
        first = ran.samples.trace.groups[0]
        title = f"{ran.launch.kernel}, workgroup {first}"
        arguments.trace.write_text(json.dumps(chrome_trace(ran.samples.trace, first, title)))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


def _peer(option: str):
    name, _, folder = option.partition("=")
    if name != "aiter" or not folder:
        raise ValueError(f"--peer must be aiter=DIR; got {option}")
    if not any(Path(folder).glob("fwd_hd128_bf16*.co")):
        raise ValueError(
            f"--peer aiter=DIR must name a folder with fwd_hd128_bf16*.co; got {folder}"
        )
    return model_runs.run_aiter(Path(folder))


def _row(case: Case, ran: model_runs.Run) -> dict[str, Any]:
    grid = ran.samples.grid()
    simd_clk = grid["simds"] * grid["clk"]
    launch = ran.launch
    row = {
        "case": case.name,
        "who": ran.who,
        "kernel": launch.kernel,
        "flops": case.flops,
        "clk": grid["clk"],
        "bound": max(("dispatch", "l2", "fabric", "memory"), key=lambda b: grid[f"{b}_clk"]),
        "matrix_busy": grid["matrix_clk"] / simd_clk,
        "useful_busy": case.flops / grid["flops_per_clk"] / simd_clk,
        "clock_hz": grid["clock_hz"],
        "stream": grid["stream"],
        "tflops": _tflops(case, grid),
        "resident_workgroups": ran.samples.resident,
        "sampled_workgroups": ran.samples.trace.groups,
        "sampled_of": ran.samples.count,
        "counts": launch.counts["class"],
        "bytes": launch.bytes,
        "bank_conflicts": launch.bank_conflicts,
        "published_tflops": case.tflops,
    }
    row["to_floor"] = 1 / row["useful_busy"]
    row["variants"] = {
        name: _tflops(case, ran.samples.grid(changed))
        for name, changed in VARIANTS[case.target].items()
    }
    row["deviation"] = {who: row["tflops"] / figure - 1 for who, figure in case.tflops.items()}
    return row


def _calibration(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """How far the model is off where the very kernel that it ran has been published."""
    found = {}
    for who in {row["who"] for row in rows}:
        off = [row["deviation"][who] for row in rows if row["who"] == who in row["deviation"]]
        if off:
            found[who] = {"who": who, "cases": len(off), "mean": sum(off) / len(off)}
            found[who] |= {"least": min(off), "most": max(off)}
    return found


def _tflops(case: Case, grid: dict[str, float]) -> float:
    """At the clock that a stream of these matrix instructions holds, and as much of it."""
    return case.flops / (grid["clk"] / grid["clock_hz"] / grid["stream"]) / 1e12


def _text(case: Case, row: dict[str, Any]) -> str:
    published = ", ".join(
        f"{who} {figure:g} ({row['deviation'][who]:+.0%})" for who, figure in case.tflops.items()
    )
    variants = ", ".join(f"{name} {tflops:.0f}" for name, tflops in row["variants"].items())
    return (
        f"{row['case']:<16} {row['who']:<7} modelled {row['clk'] / 1e6:8.3f} Mclk "
        f"({row['to_floor']:.2f} x floor, {row['bound']}), matrix busy {row['matrix_busy']:.1%}, "
        f"useful {row['useful_busy']:.1%}, {row['tflops']:.0f} TFLOP/s at "
        f"{row['clock_hz'] / 1e6:.0f} MHz x {row['stream']:.3f} [{variants}]; "
        f"published: {published}"
    )


def _kernel(name: str, ran: model_runs.Run) -> dict[str, Any]:
    """Of a kernel: its hot loops by rules of thumb, and what its time depends on."""
    loops = find_hot_loops(listing(ran.code, ran.launch.kernel))
    found = _timing.sensitivity(ran.samples.trace, ran.samples.resident)
    return {
        "name": name,
        "slot_rule_clk": [_timing.slot_rule_clk(ran.code.target, loop) for loop in loops],
        "matrix": [sum(i.is_matrix for i in loop) for loop in loops],
        "sensitivity": [
            {"constant": row.name, "value": row.value, "halved": halved, "doubled": doubled}
            for row, halved, doubled in found
        ],
    }


def _kernel_text(kernel: dict[str, Any]) -> str:
    lines = [kernel["name"]]
    for clk, matrix in zip(kernel["slot_rule_clk"], kernel["matrix"], strict=True):
        lines.append(
            f"  hot loop of {matrix} matrix instructions: {clk:.0f} clk by issue slots alone"
        )
    lines.append("  time of a workgroup with a constant halved and doubled:")
    for row in kernel["sensitivity"]:
        lines.append(
            f"    {row['constant']:<22} {row['value']:>10g}  {row['halved']:+7.1%} "
            f"{row['doubled']:+7.1%}"
        )
    return "\n".join(lines)
