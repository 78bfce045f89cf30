"""Errors of every implementation and head size against float64: largest, and relative RMS."""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jax_fa import flash_attention, reference
from jax_fa._contract.spec import TARGETS

NAME = "errors"
HELP = "errors against float64 per implementation, dtype and head size"

B, T, N, K = 1, 512, 4, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--implementations", nargs="+", default=(*TARGETS, "xla"), metavar="NAME")
    parser.add_argument("--dtypes", nargs="+", default=("bfloat16", "float16"), metavar="DTYPE")
    parser.add_argument("--head-dims", nargs="+", type=int, default=(64, 128, 256), metavar="H")


def run(arguments: argparse.Namespace) -> int:
    print(f"B{B} T=S={T} N{N} K{K}, unit-normal; kernels emulated where there is no such GPU")
    print(f"{'':>8} {'':>9} {'H':>4} {'':>6} {'out max':>10} {'out relRMS':>11} {'lse max':>10}")
    rows = []
    for implementation in arguments.implementations:
        for dtype in arguments.dtypes:
            for h in arguments.head_dims:
                for mask in ("full", "causal"):
                    rows.append(_errors(implementation, dtype, h, mask))
                    print(
                        "{implementation:>8} {dtype:>9} {head_dim:>4} {mask:>6} {out_max:>10.2e} "
                        "{out_rel_rms:>11.2e} {lse_max:>10.2e}".format(**rows[-1]),
                        flush=True,
                    )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def _errors(implementation: str, dtype: str, h: int, mask: str) -> dict:
    operands = _operands(dtype, h)
    options = {"causal": mask == "causal", "return_lse": True}
    function = jax.jit(functools.partial(flash_attention, **options, implementation=implementation))
    results = [np.asarray(x, np.float64) for x in function(*operands)]
    with jax.enable_x64(True):
        wide = (jnp.asarray(np.asarray(x, np.float64)) for x in operands)
        exact = [np.asarray(x) for x in reference.flash_attention(*wide, **options)]
    out_error, lse_error = (a - b for a, b in zip(results, exact, strict=True))
    return {
        "implementation": implementation,
        "dtype": dtype,
        "head_dim": h,
        "mask": mask,
        "out_max": float(np.abs(out_error).max()),
        "out_rel_rms": float(np.sqrt(np.mean(out_error**2) / np.mean(exact[0] ** 2))),
        "lse_max": float(np.abs(lse_error).max()),
    }


def _operands(dtype: str, h: int) -> Sequence[jax.Array]:
    rng = np.random.default_rng(h)
    shapes = (B, T, N, h), (B, T, K, h), (B, T, K, h)
    return [jnp.asarray(rng.standard_normal(shape, np.float32), dtype) for shape in shapes]
