"""AITER's v3 forward kernels for gfx950, from its folder hsa/gfx950/fmha_v3_fwd.

They are foreign and not part of this repository. The arguments are those of its launcher,
csrc/cpp_itfs/mha_fwd.cu.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from jax_fa import emulator

TARGET = "gfx950"
HEAD_DIM, BLOCK_Q, THREADS = 128, 256, 512
_SLOT = 16  # bytes of each argument


def find(folder: Path, causal: bool) -> tuple[emulator.CodeObject, str] | None:
    """The bfloat16 kernel of head size 128, or None where the folder has none."""
    path = folder / f"fwd_hd128_bf16{'_causal' if causal else ''}.co"
    if not path.exists():
        return None
    code = emulator.CodeObject(path)
    return code, next(iter(code.kernels))


def grid(t: int, n: int, batch: int, causal: bool) -> tuple[int, int, int]:
    """A causal workgroup does a tile of the head and one of the tail of the sequence."""
    tiles = -(-t // BLOCK_Q)
    return (-(-tiles // 2) if causal else tiles, n, batch)


def launch(
    found: tuple[emulator.CodeObject, str],
    operands: tuple[np.ndarray, np.ndarray, np.ndarray],
    causal: bool,
    **options: Any,
) -> tuple[emulator.Launch, np.ndarray, np.ndarray]:
    """Runs it on [B, T, N, 128] and [B, S, K, 128] bfloat16; the launch, out and lse [B, N, T]."""
    code, kernel = found
    query, key, value = operands
    batch, t, n, h = query.shape
    out, lse = np.zeros_like(query), np.zeros((batch, n, t), np.float32)
    # Byte strides of a row, a head and a sequence.
    q, k = ((x.strides[1], x.strides[2], x.strides[0]) for x in (query, key))
    words = [
        *(x.ctypes.data for x in (out, query, key, value, lse)),
        h**-0.5,
        *(t, q[0], BLOCK_Q * q[0], q[1], q[2]),
        *(n // key.shape[2], *k),
        5 if not causal or (n % 8 == 0 and t <= 16384) else 3,  # tuning option
        *(1, key.shape[1], h, h, n),
        *k,
        *q,
        *(0, 0),  # sequence starts, in group mode
        t * 4,
        *(0, 0),
    ]
    kernarg = b"".join(
        struct.pack("<f" if isinstance(word, float) else "<Q", word).ljust(_SLOT, b"\0")
        for word in words
    )
    launched = code.launch(
        kernel,
        grid(t, n, batch, causal),
        THREADS,
        kernarg=kernarg,
        buffers=[out, query, key, value, lse],
        **options,
    )
    return launched, out, lse
