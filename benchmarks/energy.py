"""What kernels move and execute per useful FLOP by the emulator's counters; a clock at the cap.

The clock is a model of a model. The power-cap article (csrc/README.md, Sources) has five figures of
MI355X: the clocks that streams of both shapes of matrix instructions settle at under the cap, what
a cycle without work costs there, how much less power the small shape draws at a locked clock, and
the power of a stream on one SIMD of a CU at the top clock. A static part and a dynamic one that
grows with energy per clock and a power of the clock are fitted to the first four; the fifth is
predicted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import ablations
import model_runs
import peer_aiter
from model_cases import CASES, Case

from jax_fa import _native, emulator

NAME = "energy"
HELP = "bytes and instructions per useful FLOP on gfx950, and the clock at the power cap, modelled"

# --- The power-cap article's figures -------------------------------------------------------------
STREAM_POWER = 1320.0  # W, of a stream of matrix instructions at the cap
SHORT_HZ, LONG_HZ = 1893e6, 1699e6  # that streams of 16x16x32 and 32x32x16 settle at
IDLE_COST = 0.45  # % of time that 1% of idle cycles costs: 0.4 to 0.5
SHORT_SAVES = 0.14  # of power at a locked clock, the small shape: 0.12 to 0.16
ONE_SIMD_POWER, TOP_HZ = 710.0, 2400e6  # W, about; the top clock


@dataclasses.dataclass(frozen=True)
class Power:
    """P = static + dynamic e (f / SHORT_HZ)^exponent, e the energy per clock of the chip.

    e is 1 for a stream of 16x16x32 on all SIMDs.
    """

    static: float
    dynamic: float
    exponent: float
    long_energy: float  # e of a stream of 32x32x16

    def watts(self, energy: float, hz: float) -> float:
        return self.static + self.dynamic * energy * (hz / SHORT_HZ) ** self.exponent

    def clock(self, energy: float) -> float:
        """The clock at which so much energy per clock reaches the cap, or the top clock."""
        return min(TOP_HZ, SHORT_HZ * energy ** (-1 / self.exponent))


def fit() -> Power:
    # With energy fixed, time goes as cycles^(1 - 1 / exponent): idle cycles cost that share.
    exponent = 1 / (1 - IDLE_COST)
    long_energy = (SHORT_HZ / LONG_HZ) ** exponent
    # At a locked clock (static + dynamic) / (static + dynamic long) = 1 - SHORT_SAVES.
    share = (1 / (1 - SHORT_SAVES) - 1) / (long_energy - 1)
    dynamic = share * STREAM_POWER
    return Power(STREAM_POWER - dynamic, dynamic, exponent, long_energy)


# --- Counters ------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Counted:
    """Per 1000 useful FLOP: bytes, and instructions of a wave."""

    who: str
    accumulators: float
    operands: float
    lds: float
    l2: float
    memory: float
    valu: float
    exponentials: float

    @property
    def registers(self) -> float:
        """Bytes that matrix instructions move from and to registers."""
        return self.accumulators + self.operands


def matrix_bytes(mnemonics: dict[str, int]) -> tuple[int, int]:
    """Bytes of accumulators, read and written, and of operands."""
    accumulators = operands = 0
    for name, times in mnemonics.items():
        if name.startswith(("v_mfma_", "v_smfmac_")):
            elements = 32 * 32 if "_32x32x" in name else 16 * 16
            accumulators += times * 2 * 4 * elements
            # 64 lanes of four registers each; the dense operand of a sparse one has eight.
            operands += times * 64 * 16 * (3 if name.startswith("v_smfmac_") else 2)
    return accumulators, operands


def count(who: str, case: Case, launched: emulator.Launch) -> Counted:
    """Of one head of a case, all of whose workgroups were emulated under the timing model."""
    flops = case.flops / (case.batch * case.n) / 1000
    accumulators, operands = matrix_bytes(launched.counts["mnemonic"])
    l2 = sum(launched.trace.time(i, 1, {})[4] for i in range(launched.grid[0]))
    memory = sum(case.operand_bytes.values()) / (case.batch * case.n)
    classes = launched.counts["class"]
    valu = classes.get("valu", 0) + classes.get("valu_packed", 0)
    numbers = (accumulators, operands, launched.bytes["lds"]["read"], l2, memory, valu)
    return Counted(who, *(x / flops for x in (*numbers, classes["trans"])))


def count_ours(case: Case) -> Counted:
    code = emulator.CodeObject(_native.code_object(ablations.TARGET))
    workgroups = list(range(-(-case.t // ablations.block_q(code))))
    operands = model_runs.operands(case)
    launched, *_ = ablations.launch(code, *operands, case.causal, workgroups)
    return count("jax_fa", case, launched)


def by_long_instructions(ours: Counted) -> Counted:
    """The same products by 32x32x16, derived: twice the accumulators, half the operands."""
    changed = {"accumulators": 2 * ours.accumulators, "operands": ours.operands / 2}
    return dataclasses.replace(ours, who=f"{ours.who} by 32x32x16, derived", **changed)


def count_aiter(case: Case, folder: Path) -> Counted:
    loaded = peer_aiter.load(folder, "_causal" if case.causal else "")
    workgroups = list(range(peer_aiter.grid(case.t, 1, 1, case.causal)[0]))
    launched, *_ = peer_aiter.launch(
        loaded,
        model_runs.operands(case),
        case.causal,
        timing=True,
        checks=False,
        workgroups=workgroups,
    )
    return count("aiter", case, launched)


# --- The command ---------------------------------------------------------------------------------
def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = [case.name for case in CASES if case.target == ablations.TARGET and case.h == 128]
    parser.add_argument("--case", choices=names, default="mha-4k")
    parser.add_argument("--aiter", type=Path, metavar="DIR", help="hsa/gfx950/fmha_v3_fwd of it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")


def run(arguments: argparse.Namespace) -> int:
    case = next(case for case in CASES if case.name == arguments.case)
    power = fit()
    print("A model: no power was measured here. Fitted to four figures of the power-cap article:")
    print(
        f"  P = {power.static:.0f} + {power.dynamic:.0f} e (f / 1893 MHz)^{power.exponent:.2f} W, "
        f"e {power.long_energy:.3f} for a stream of 32x32x16"
    )
    predicted = power.watts(0.25, TOP_HZ)
    print(f"  the fifth, one SIMD at 2400 MHz: {predicted:.0f} W, where it measured about 710 W\n")
    counted = [count_ours(case)]
    counted.append(by_long_instructions(counted[0]))
    if arguments.aiter:
        counted.append(count_aiter(case, arguments.aiter))
    print(f"{case.name}, per 1000 useful FLOP: bytes, and instructions of a wave")
    print("| | accumulators | operands | LDS | L2 | memory | VALU | exponentials |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in counted:
        print(
            f"| {row.who} | {row.accumulators:.0f} | {row.operands:.0f} | {row.lds:.1f} "
            f"| {row.l2:.2f} | {row.memory:.3f} | {row.valu:.3f} | {row.exponentials:.3f} |"
        )
    report: dict[str, Any] = {"power": dataclasses.asdict(power), "one_simd_watts": predicted}
    report["counted"] = [dataclasses.asdict(row) for row in counted]
    if arguments.aiter:
        report["cap"] = at_the_cap(case, power, counted[0], counted[-1], arguments.aiter)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


def at_the_cap(
    case: Case, power: Power, ours: Counted, aiter: Counted, folder: Path
) -> dict[str, float]:
    """TFLOP/s of ours at the cap; AITER's published ones tell its energy beside the matrix core.

    That energy is taken to go as LDS, L2, vector instructions and exponentials do, each a quarter.
    """
    theirs = model_runs.run_aiter(folder)(case)
    assert theirs is not None
    busy = [figures(case, run) for run in (model_runs.run_ours(case), theirs)]
    useful, matrix, stream, peak = busy[1]
    hz = case.tflops["aiter"] * 1e12 / (peak * useful * stream)
    others = ((SHORT_HZ / hz) ** power.exponent - matrix * power.long_energy) / useful
    kinds = ("lds", "l2", "valu", "exponentials")
    ratio = sum(getattr(ours, kind) / getattr(aiter, kind) for kind in kinds) / len(kinds)
    useful, matrix, stream, peak = busy[0]
    published = case.tflops["aiter"]
    print(
        f"\nBeside the matrix core AITER's kernel takes {others:.2f} of a stream's energy per"
        f"\nuseful clock at its published {published:g} TFLOP/s, ours {ratio:.2f} of that."
        "\nAt the cap, modelled:"
    )
    report = {"others": others, "ratio": ratio}
    for name, shape in (("16x16x32", 1.0), ("32x32x16", power.long_energy)):
        energy = matrix * shape + others * ratio * useful
        hz = power.clock(energy)
        tflops = peak * useful * stream * hz / 1e12
        print(f"  {name}: e {energy:.2f}, {hz / 1e6:.0f} MHz, {tflops:.0f} TFLOP/s")
        report |= {f"{name} hz": hz, f"{name} tflops": tflops}
    return report


def figures(case: Case, ran: model_runs.Run) -> tuple[float, float, float, float]:
    """Useful and busy shares of the matrix core, what a stream reaches of it, FLOP a clock."""
    (grid,) = ran.grids()
    simd_clk = grid["simds"] * grid["clk"]
    useful = case.flops / grid["flops_per_clk"] / simd_clk
    peak = grid["flops_per_clk"] * grid["simds"]
    return useful, grid["matrix_clk"] / simd_clk, grid["stream"], peak
