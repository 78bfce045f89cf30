"""Triton's compiler on an attention kernel of our own writing (triton_kernel.py), with no GPU.

Needs the extra "peers". Of several configurations the best is taken.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

from jax_fa import emulator

# BLOCK_M, BLOCK_N, warps, stages.
Config = tuple[int, int, int, int]
CONFIGS: dict[str, tuple[Config, ...]] = {
    "gfx950": ((128, 64, 4, 2), (256, 64, 8, 2), (128, 64, 4, 3), (256, 64, 4, 2)),
    "gfx1201": ((128, 64, 8, 1), (128, 32, 8, 2), (64, 32, 4, 1)),
}
_WAVE_SIZE = {"gfx950": 64, "gfx1201": 32}
_LOG2_E = 1.4426950408889634
_DTYPES = {"bfloat16": "bf16", "float16": "fp16"}
_SCALARS = {"length": "i32", "heads": "i32", "group": "i32", "scale": "fp32"}


@functools.cache
def build(
    target: str, config: Config, head_dim: int, causal: bool, dtype: str = "bfloat16"
) -> tuple[emulator.CodeObject, int]:
    """The code object of a configuration and its bytes of LDS."""
    # Said explicitly, as it warns otherwise: the default of this version.
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    import triton  # pyright: ignore[reportMissingImports]
    import triton_kernel
    from triton.backends.compiler import GPUTarget  # pyright: ignore[reportMissingImports]
    from triton.compiler import ASTSource  # pyright: ignore[reportMissingImports]

    block_m, block_n, warps, stages = config
    constants = {"CAUSAL": causal, "BLOCK_M": block_m, "BLOCK_N": block_n, "HEAD_DIM": head_dim}
    aligned = {(place,): [["tt.divisibility", 16]] for place in range(5)}
    signature = dict.fromkeys(("query", "key", "value", "out"), f"*{_DTYPES[dtype]}") | _SCALARS
    signature |= dict.fromkeys(constants, "constexpr")
    source = ASTSource(triton_kernel.attention, signature, constants, aligned)
    compiled = triton.compile(
        source,
        target=GPUTarget("hip", target, _WAVE_SIZE[target]),
        options={"num_warps": warps, "num_stages": stages},
    )
    return emulator.CodeObject(compiled.asm["hsaco"]), compiled.metadata.shared


def fits(config: Config, t: int) -> bool:
    """The kernel has no tails."""
    return t % config[0] == 0 and t % config[1] == 0


def launch(
    target: str,
    config: Config,
    operands: tuple[np.ndarray, np.ndarray, np.ndarray],
    causal: bool,
    **options: Any,
) -> tuple[emulator.Launch, np.ndarray]:
    """Runs it on [B, T, N, H] and [B, T, K, H] of 16 bits; the launch and out."""
    query, key, value = operands
    batch, t, n, h = query.shape
    code, lds_bytes = build(target, config, h, causal, str(query.dtype))
    (kernel,) = code.kernels
    out = np.zeros_like(query)
    scale = np.float32(h**-0.5 * _LOG2_E)
    args = [query, key, value, out, t, n, n // key.shape[2], scale]
    args += [None] * (len(code.kernels[kernel].arguments) - len(args))  # scratch that is not used
    launched = code.launch(
        kernel,
        (t // config[0], n, batch),
        config[2] * _WAVE_SIZE[target],
        args=args,
        lds_bytes=lds_bytes,
        **options,
    )
    return launched, out
