"""implementation="xla" beside jax.nn.dot_product_attention on the CPU: time and memory ratios."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import jax
import jax.numpy as jnp
from timing import temporary_bytes, time_alternately

from jax_fa import flash_attention

NAME = "cpu"
HELP = "implementation='xla' against jax.nn.dot_product_attention on the CPU"

B, T, N, K, H = 1, 2048, 8, 2, 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--rounds", type=int, default=7)


def run(arguments: argparse.Namespace) -> int:
    cpu = jax.devices("cpu")[0]
    rows = []
    print(f"B{B} T=S={T} N{N} K{K} H{H} causal; ours over jax.nn (implementation='xla')")
    with jax.default_device(cpu):
        for dtype in ("float32", "bfloat16"):
            for what in ("forward", "gradient"):
                rows.append(_compare(dtype, what, arguments.rounds))
                print(
                    "{dtype:>9} {what:>9}: time {seconds:.3f} s / {peer_seconds:.3f} s = "
                    "{time_ratio:.2f}, temporaries {mib:.1f} MiB / {peer_mib:.1f} MiB = "
                    "{memory_ratio:.3f}".format(**rows[-1])
                )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def _compare(dtype: str, what: str, rounds: int) -> dict:
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = (B, T, N, H), (B, T, K, H), (B, T, K, H)
    operands = [jax.random.normal(k, s, dtype) for k, s in zip(keys, shapes, strict=True)]

    def ours(q, k, v):
        return flash_attention(q, k, v, causal=True, implementation="xla")

    def theirs(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="xla")

    def compile_(function):
        if what == "gradient":
            inner = function

            def total(*args):
                return jnp.sum(inner(*args).astype(jnp.float32) ** 2)

            function = jax.grad(total, argnums=(0, 1, 2))
        return jax.jit(function).lower(*operands).compile()

    compiled = [compile_(ours), compile_(theirs)]
    seconds = time_alternately(compiled, operands, rounds)
    bytes_ = [temporary_bytes(c) for c in compiled]
    return {
        "dtype": dtype,
        "what": what,
        "seconds": seconds[0],
        "peer_seconds": seconds[1],
        "time_ratio": seconds[0] / seconds[1],
        "mib": bytes_[0] / 2**20,
        "peer_mib": bytes_[1] / 2**20,
        "memory_ratio": bytes_[0] / bytes_[1],
    }
