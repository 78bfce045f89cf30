"""What each decision of gfx950's schedule is worth: kernels built without it, modelled."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import model
import model_runs
import numpy as np
from kernel_params import Params, Strides, WorkGrid
from model_cases import CASES, Case

from jax_fa import emulator
from jax_fa.emulator.listing import count, listing
from jax_fa.emulator.loops import find_hot_loops
from jax_fa.emulator.timing import Samples

NAME = "ablations"
HELP = "what each decision of gfx950's schedule is worth, modelled; compiles device code"

TARGET = "gfx950"
KERNEL = "flash_bfloat16_h128_plain"
CSRC = Path(__file__).parents[1] / "csrc"
# csrc/kernels/mainloop/gfx950/switches.h
SWITCHES = {
    "shipped": (),
    "all waves in phase": ("JAX_FA_TWO_GROUPS=0",),
    "no priority": ("JAX_FA_PRIORITY=0",),
    "rings of 3": ("JAX_FA_STAGES=3",),
    "3 operands ahead": ("JAX_FA_OPERANDS_AHEAD=3",),
    "sums by v_dot2": ("JAX_FA_MATRIX_SUMS=0",),
    "eager reference": ("JAX_FA_LAZY_REFERENCE=0",),
    "causal head by head": ("JAX_FA_CAUSAL_PASSES=0",),
}
DENSE, CAUSAL = (
    next(case for case in CASES if case.name == name) for name in ("mha-4k", "mha-causal-4k")
)
# Memory that answers late shows what rings are for.
LATE = {"l2_latency": 2000.0}


@dataclasses.dataclass(frozen=True)
class Row:
    """A build and its modelled figures; clk are of a SIMD per query row and tile of 64 keys."""

    name: str
    switches: tuple[str, ...]
    vgprs: int
    spills: int
    valu_slots: int
    clk: float
    late_clk: float
    dense_tflops: float
    causal_tflops: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", choices=(TARGET,), default=TARGET)
    parser.add_argument(
        "--only", action="append", choices=tuple(SWITCHES), help="these builds; several allowed"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")


def run(arguments: argparse.Namespace) -> int:
    print(f"{KERNEL} on {TARGET}, built without one decision each. Modelled: nothing ran on a GPU.")
    print("clk: clocks of a SIMD per query row and tile of 64 keys; late: with L2 at 2000 clk.")
    print(f"TFLOP/s: {DENSE.name} and {CAUSAL.name} at the clock of their matrix instructions.\n")
    print("| build | VGPR | spills | slots | clk | late clk | dense | causal |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only or SWITCHES:
            rows.append(row := measure(name, build(Path(folder), SWITCHES[name])))
            print(
                f"| {row.name} | {row.vgprs} | {row.spills} | {row.valu_slots} | {row.clk:.2f} "
                f"| {row.late_clk:.2f} | {row.dense_tflops:.0f} | {row.causal_tflops:.0f} |",
                flush=True,
            )
    if arguments.json:
        text = json.dumps([dataclasses.asdict(row) for row in rows], indent=1)
        arguments.json.write_text(text + "\n")
    return 0


def build(folder: Path, switches: tuple[str, ...]) -> emulator.CodeObject:
    """The one kernel, by the build's own compiler and options."""
    cmake = shutil.which("cmake")
    if cmake is None:
        raise RuntimeError("ablations need cmake, which knows the options of device code")
    script = [cmake, "-P", str(CSRC / "cmake" / "device_options.cmake")]
    options = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    variants = folder / "variants.def"
    variants.write_text(f"JAX_FA_FLASH({KERNEL}, bfloat16, 128, false, false)\n")
    zig = [sys.executable, "-m", "ziglang"]
    made, linked = folder / "kernel.o", folder / "kernel.co"
    subprocess.run(
        [
            *(*zig, "clang", *options.strip().split(";")),
            *(f"--offload-arch={TARGET}", f"-DJAX_FA_TARGET={TARGET}"),
            *(f'-DJAX_FA_VARIANTS="{variants}"', *(f"-D{switch}" for switch in switches)),
            *("-I", str(CSRC), str(CSRC / "kernels" / "flash.hip"), "-o", str(made)),
        ],
        check=True,
    )
    link = ("ld.lld", "-m", "elf64_amdgpu", "--no-undefined", "-shared")
    subprocess.run([*zig, *link, str(made), "-o", str(linked)], check=True)
    return emulator.CodeObject(linked.read_bytes())


def measure(name: str, code: emulator.CodeObject) -> Row:
    kernel = code.kernels[KERNEL]
    loops = [count(TARGET, loop) for loop in find_hot_loops(listing(code, KERNEL))]
    causal_in_passes = "JAX_FA_CAUSAL_PASSES=0" not in SWITCHES[name]
    return Row(
        name,
        SWITCHES[name],
        kernel.vgprs,
        kernel.vgpr_spills + kernel.sgpr_spills,
        max(loop["valu_slots"] for loop in loops),
        steady_clk(code, {}),
        steady_clk(code, LATE),
        model._tflops(DENSE, [whole_grid(code, DENSE, False)]),
        model._tflops(CAUSAL, [whole_grid(code, CAUSAL, causal_in_passes)]),
    )


def whole_grid(code: emulator.CodeObject, case: Case, in_passes: bool) -> dict[str, float]:
    """Modelled time of a case, by samples as benchmarks/model_runs.py takes them."""
    tiles = -(-case.t // block_q(code))
    launched, *_ = launch(code, *model_runs.operands(case), case.causal, model_runs.places(tiles))
    heads = case.batch * case.n
    order = model_runs._dispatched(tiles, heads, model_runs.DIES[TARGET], 1, in_passes)
    moved = float(sum(case.operand_bytes.values()))
    return Samples(launched.trace, tiles, order, moved, moved).grid()


def steady_clk(code: emulator.CodeObject, overrides: dict[str, float]) -> float:
    """Of one workgroup, two lengths of which are compared."""
    rows, clk = block_q(code), []
    lengths = (1024, 3072)
    for keys in lengths:
        case = dataclasses.replace(DENSE, t=rows, s=keys)
        launched, *_ = launch(code, *model_runs.operands(case), False, [0])
        clk.append(launched.trace.time(0, 1, overrides)[1])
    simds = 4
    return (clk[1] - clk[0]) / ((lengths[1] - lengths[0]) / 64 * rows / simds)


def block_q(code: emulator.CodeObject) -> int:
    """Rows of a workgroup: 48 a wave."""
    return code.kernels[KERNEL].max_workgroup_size // 64 * 48


def launch(
    code: emulator.CodeObject,
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    causal: bool,
    workgroups: list[int] | None,
    **options: Any,
) -> tuple[emulator.Launch, np.ndarray, np.ndarray]:
    """One head on [1, T, 1, H]; under the timing model where `workgroups` are named."""
    (_, t, _, h), s = query.shape, key.shape[1]
    out, lse = np.zeros_like(query), np.zeros((1, t, 1), np.float32)
    tiles = -(-t // block_q(code))
    by = [divisor_of(n) for n in (tiles, 1, 1, 1, 1)]
    open_window = 0x3FFFFFFF
    params = Params(
        *(x.ctypes.data for x in (query, key, value, out, lse)),
        query_stride=Strides(t * h, h, h),
        key_stride=Strides(s * h, h, h),
        out_stride=Strides(t * h, h, h),
        lse_stride=Strides(t, 1, 1),
        **{"batch": 1, "seqlen_q": t, "seqlen_k": s, "num_heads": 1, "num_kv_heads": 1, "group": 1},
        **{"head_dim": h, "num_splits": 1},
        grid=WorkGrid(tiles, tiles, 0, 1, tuple(by)),
        **{"window_left": open_window, "window_right": 0 if causal else open_window},
        scale=h**-0.5,
    )
    modelled = {"timing": True, "checks": False, "workgroups": workgroups} if workgroups else {}
    launched = code.launch(
        KERNEL,
        grid=tiles,
        block=code.kernels[KERNEL].max_workgroup_size,
        args=[bytes(params)],
        buffers=[query, key, value, out, lse],
        **modelled,
        **options,
    )
    return launched, out, lse


def divisor_of(divisor: int) -> tuple[int, int]:
    """(magic, shift) of MakeDivisor in csrc/kernels/params.h."""
    shift = (divisor - 1).bit_length()
    return (1 << (31 + shift)) // divisor + 1, shift
