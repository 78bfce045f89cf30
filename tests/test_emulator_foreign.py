"""Kernels of others that are right on the chip come out right.

``JAX_FA_AITER`` names a folder with ROCm/aiter's ``hsa/gfx950/fmha_v3_fwd/*.co``; without it these
tests are skipped. The arguments are those of its launcher: slots of 16 bytes, strides in bytes of a
[B, T, N, H] layout, 512 lanes for 256 query rows (under a causal mask a workgroup takes a tile from
the front and one from the back).
"""

import os
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from jax_fa import emulator

FOLDER = os.environ.get("JAX_FA_AITER")
pytestmark = pytest.mark.skipif(not FOLDER, reason="JAX_FA_AITER names no folder")

H = 128
BLOCK_Q = 256
TOLERANCE = 2.5e-2  # bfloat16, unit-normal inputs


def _kernel(name: str) -> tuple[emulator.CodeObject, str]:
    code = emulator.CodeObject(Path(FOLDER or "", f"fwd_hd128_bf16{name}.co"))
    (kernel,) = code.kernels
    return code, kernel


def _segment(arrays, shape, strides, lengths) -> bytes:
    """The argument block; ``strides``: of query, key, value and out, each (row, head, batch)."""
    T, S, N, K, lse_head = shape
    query, key, value, out = strides
    slots = [struct.pack("<Q", array.ctypes.data) for array in arrays]
    slots.append(struct.pack("<f", H**-0.5))
    tuning = 5 if N % 8 == 0 else 3
    numbers = [T, query[0], BLOCK_Q * query[0], query[1], query[2], N // K, *key, tuning, 1, S]
    numbers += [H, H, N, *value, *out]
    slots += [struct.pack("<I", number) for number in numbers]
    pointers = [0 if array is None else array.ctypes.data for array in lengths]
    slots += [struct.pack("<Q", pointer) for pointer in pointers[:2]]
    slots.append(struct.pack("<I", lse_head))
    slots += [struct.pack("<Q", pointer) for pointer in pointers[2:]]
    return b"".join(slot.ljust(16, b"\0") for slot in slots)


def _strides(rows: int, heads: int) -> tuple[int, int, int]:
    return heads * H * 2, H * 2, rows * heads * H * 2


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)


def _softmax(query, key, value, causal):
    """[T, N, H] and lse [N, T] in float32."""
    query, key, value = (operand.astype(np.float32) for operand in (query, key, value))
    repeat = query.shape[1] // key.shape[1]
    key, value = np.repeat(key, repeat, 1), np.repeat(value, repeat, 1)
    scores = np.einsum("tnh,snh->nts", query, key) * np.float32(H**-0.5)
    if causal:
        t, s = np.indices(scores.shape[1:])
        scores = np.where(s <= t + len(key) - len(query), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(-1)
    out = np.einsum("nts,snh->tnh", weights / total[..., None], value)
    return out, np.log(total) + top[..., 0]


def _dense(T, S, N, K, causal, **options):
    rng = np.random.default_rng(T + S)
    query, key, value = _normal(rng, 1, T, N, H), _normal(rng, 1, S, K, H), _normal(rng, 1, S, K, H)
    out, lse = np.zeros_like(query), np.zeros((1, N, T), np.float32)
    code, kernel = _kernel("_causal" if causal else "")
    arrays = [out, query, key, value, lse]
    strides = [_strides(T, N), _strides(S, K), _strides(S, K), _strides(T, N)]
    kernarg = _segment(arrays, (T, S, N, K, 4 * T), strides, [None] * 4)
    tiles = -(-T // BLOCK_Q)
    grid = (-(-tiles // 2) if causal else tiles, N, 1)
    launch = code.launch(kernel, grid, 512, kernarg=kernarg, buffers=arrays, **options)
    expected, expected_lse = _softmax(query[0], key[0], value[0], causal)
    errors = (
        np.abs(out[0].astype(np.float32) - expected).max(),
        np.abs(lse[0] - expected_lse).max(),
    )
    return launch, errors


SHAPES = [
    # T, S, N, K, causal
    (256, 256, 1, 1, False),
    (300, 777, 1, 1, False),
    (2048, 2048, 2, 2, False),
    (300, 1000, 1, 1, True),
    (1024, 1024, 8, 2, True),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_dense_and_causal(shape):
    _, (error, lse_error) = _dense(*shape, checks=False)
    assert error < TOLERANCE
    assert lse_error < 1e-4


@pytest.mark.parametrize("schedule", ["round_robin", "run_to_barrier", "reverse", "random"])
def test_dense_kernel_has_no_finding(schedule):
    _, (error, lse_error) = _dense(300, 777, 1, 1, False, schedule=schedule)
    assert error < TOLERANCE
    assert lse_error < 1e-4


def test_race_between_query_tiles_of_the_causal_kernel():
    """Its second tile is loaded into LDS that slower waves still read for the first."""
    launch, _ = _dense(512, 512, 1, 1, True, schedule="run_to_barrier", checks="collect", threads=1)
    races = [text for text in launch.findings if "LDS" in text]
    assert any("with no barrier" in text for text in races)
    assert races == launch.findings


@pytest.mark.parametrize("causal", [False, True])
def test_groups(causal):
    """Sequences of different lengths, packed."""
    rng = np.random.default_rng(7)
    lengths_q, lengths_k, N, K = [100, 513, 256], [300, 513, 77 + 256], 2, 1
    starts_q = np.cumsum([0, *lengths_q]).astype(np.int32)
    starts_k = np.cumsum([0, *lengths_k]).astype(np.int32)
    query = _normal(rng, starts_q[-1], N, H)
    key, value = _normal(rng, starts_k[-1], K, H), _normal(rng, starts_k[-1], K, H)
    out, lse = np.zeros_like(query), np.zeros((N, starts_q[-1]), np.float32)
    code, kernel = _kernel("_causal_group" if causal else "_group")
    arrays = [out, query, key, value, lse]
    strides = [_strides(0, N), _strides(0, K), _strides(0, K), _strides(0, N)]
    shape = (max(lengths_q), max(lengths_k), N, K, 4 * int(starts_q[-1]))
    kernarg = _segment(arrays, shape, strides, [starts_q, starts_k, starts_q, starts_k])
    tiles = -(-max(lengths_q) // BLOCK_Q)
    grid = (N, len(lengths_q), -(-tiles // 2) if causal else tiles)
    code.launch(
        kernel, grid, 512, kernarg=kernarg, buffers=[*arrays, starts_q, starts_k], checks=False
    )
    for b in range(len(lengths_q)):
        rows, keys = slice(*starts_q[b : b + 2]), slice(*starts_k[b : b + 2])
        expected, expected_lse = _softmax(query[rows], key[keys], value[keys], causal)
        assert np.abs(out[rows].astype(np.float32) - expected).max() < TOLERANCE
        assert np.abs(lse[:, rows] - expected_lse).max() < 1e-4
