"""AITER's v3 forward kernels for gfx950, from its folder hsa/gfx950/fmha_v3_fwd.

They are foreign and not part of this repository. Bfloat16, head size 128, 512 lanes for 256 query
rows; under a causal mask a workgroup takes a tile from the front and one from the back. The
arguments are those of its launcher, csrc/cpp_itfs/mha_fwd.cu.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jax_fa import emulator

TARGET = "gfx950"
HEAD_DIM, BLOCK_Q, THREADS = 128, 256, 512
_SLOT_BYTES = 16  # of each argument

Kernel = tuple[emulator.CodeObject, str]


def load(folder: str | Path, suffix: str) -> Kernel:
    """The kernel of a suffix: "", "_causal", "_group" or "_causal_group"."""
    code = emulator.CodeObject(Path(folder, f"fwd_hd128_bf16{suffix}.co"))
    (kernel,) = code.kernels
    return code, kernel


def strides(rows: int, heads: int) -> tuple[int, int, int]:
    """Bytes from a row, a head and a sequence to the next of a [B, rows, heads, 128] operand."""
    row = heads * HEAD_DIM * 2
    return row, HEAD_DIM * 2, rows * row


def segment(
    arrays: Sequence[np.ndarray],
    shape: tuple[int, int, int, int],
    steps: Sequence[tuple[int, int, int]],
    lse_head_bytes: int,
    starts: Sequence[np.ndarray | None] = (None,) * 4,
) -> bytes:
    """The argument block.

    ``arrays``: out, query, key, value, lse; ``shape``: T, S, N, K; ``steps``: strides of query,
    key, value and out; ``starts``: of query and key sequences, without and with padding.
    """
    t, s, n, k = shape
    query, key, value, out = steps
    slots = [struct.pack("<Q", array.ctypes.data) for array in arrays]
    slots.append(struct.pack("<f", HEAD_DIM**-0.5))
    tuning = 5 if n % 8 == 0 and t <= 16384 else 3
    numbers = [t, query[0], BLOCK_Q * query[0], query[1], query[2], n // k, *key, tuning, 1, s]
    numbers += [HEAD_DIM, HEAD_DIM, n, *value, *out]
    slots += [struct.pack("<I", number) for number in numbers]
    pointers = [0 if array is None else array.ctypes.data for array in starts]
    slots += [struct.pack("<Q", pointer) for pointer in pointers[:2]]
    slots.append(struct.pack("<I", lse_head_bytes))
    slots += [struct.pack("<Q", pointer) for pointer in pointers[2:]]
    return b"".join(slot.ljust(_SLOT_BYTES, b"\0") for slot in slots)


def grid(t: int, n: int, batch: int, causal: bool) -> tuple[int, int, int]:
    """Workgroups of a launch."""
    tiles = -(-t // BLOCK_Q)
    return (-(-tiles // 2) if causal else tiles, n, batch)


def launch(
    loaded: Kernel,
    operands: tuple[np.ndarray, np.ndarray, np.ndarray],
    causal: bool,
    **options: Any,
) -> tuple[emulator.Launch, np.ndarray, np.ndarray]:
    """Runs it on [B, T, N, 128] and [B, S, K, 128] bfloat16; the launch, out and lse [B, N, T]."""
    code, kernel = loaded
    query, key, value = operands
    (batch, t, n, _), (_, s, k, _) = query.shape, key.shape
    out, lse = np.zeros_like(query), np.zeros((batch, n, t), np.float32)
    arrays = [out, query, key, value, lse]
    steps = [strides(t, n), strides(s, k), strides(s, k), strides(t, n)]
    kernarg = segment(arrays, (t, s, n, k), steps, 4 * t)
    launched = code.launch(
        kernel, grid(t, n, batch, causal), THREADS, kernarg=kernarg, buffers=arrays, **options
    )
    return launched, out, lse
