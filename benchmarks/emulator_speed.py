"""How fast the emulator runs a dense kernel of head size 128: wave instructions per second."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp

from jax_fa import _native, emulator, flash_attention

NAME = "emulator"
HELP = "wave instructions per second and core of the emulator, checks off and on"

B, S, H = 1, 1024, 128
TARGETS = ("gfx950", "gfx1201")
# Wave instructions per second and core that the emulator is meant to reach.
GOALS = {False: 5e6, True: 1e6}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")


def run(arguments: argparse.Namespace) -> int:
    cores = len(os.sched_getaffinity(0))
    heads = 2 * cores  # several workgroups a core, so that the last ones do not set the time
    print(
        f"dense bfloat16 B{B} N{heads} T=S={S} H{H}, code object loaded, "
        f"best of {arguments.rounds}; million wave instructions per second\n"
        f"compiled by {_native.host_compiler}, loops of the level {_native.simd_level()}"
    )
    rows = []
    for target in TARGETS:
        for checks in (False, True):
            row = _measure(target, checks, heads, cores, arguments.rounds)
            rows.append(row)
            print(
                "{target:>8} checks {checks!s:>5}: {one:6.2f} on one core ({per_cpu_second:.2f} "
                "per CPU second; goal {goal:.0f}), {all:6.2f} on {cores} ({scaling:.2f} of "
                "linear); {instructions} instructions in {workgroups} workgroups".format(**row)
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def _measure(target: str, checks: bool, heads: int, cores: int, rounds: int) -> dict:
    keys = jax.random.split(jax.random.key(0), 3)
    operands = [jax.random.normal(key, (B, S, heads, H), jnp.bfloat16) for key in keys]
    best, launch = {}, None
    for threads in (1, cores):
        wall, cpu = float("inf"), float("inf")
        for _ in range(rounds):
            with (
                emulator.configure(threads=threads, checks=checks),
                emulator.record() as launches,
            ):
                start = time.process_time()
                jax.block_until_ready(flash_attention(*operands, implementation=target))
                cpu = min(cpu, time.process_time() - start)
            (launch,) = launches
            wall = min(wall, launch.seconds or wall)
        best[threads] = wall, cpu
    assert launch is not None
    million = launch.wave_instructions / 1e6
    return {
        "compiler": _native.host_compiler,
        "level": _native.simd_level(),
        "target": target,
        "checks": checks,
        "one": million / best[1][0],
        "per_cpu_second": million / best[1][1],
        "all": million / best[cores][0],
        "cores": cores,
        "scaling": best[1][0] / best[cores][0] / cores,
        "goal": GOALS[checks] / 1e6,
        "instructions": launch.wave_instructions,
        "workgroups": launch.grid[0],
    }
