"""AITER's v3 forward attention on bfloat16; benchmarks/peer_aiter.py gives it its arguments."""

import aiter
import ml_dtypes
import numpy as np
import peer_aiter
import pytest

pytestmark = aiter.needs_folder
FOLDER = aiter.FOLDER / "fmha_v3_fwd"

H = 128
TOLERANCE = 2.5e-2  # bfloat16, unit-normal inputs


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
    loaded = peer_aiter.load(FOLDER, "_causal" if causal else "")
    launch, out, lse = peer_aiter.launch(loaded, (query, key, value), causal, **options)
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
    code, kernel = peer_aiter.load(FOLDER, "_causal_group" if causal else "_group")
    arrays = [out, query, key, value, lse]
    strides = [
        peer_aiter.strides(0, N),
        peer_aiter.strides(0, K),
        peer_aiter.strides(0, K),
        peer_aiter.strides(0, N),
    ]
    shape = (max(lengths_q), max(lengths_k), N, K)
    starts = [starts_q, starts_k, starts_q, starts_k]
    kernarg = peer_aiter.segment(arrays, shape, strides, 4 * int(starts_q[-1]), starts)
    tiles = -(-max(lengths_q) // peer_aiter.BLOCK_Q)
    grid = (N, len(lengths_q), -(-tiles // 2) if causal else tiles)
    code.launch(
        kernel, grid, 512, kernarg=kernarg, buffers=[*arrays, starts_q, starts_k], checks=False
    )
    for b in range(len(lengths_q)):
        rows, keys = slice(*starts_q[b : b + 2]), slice(*starts_k[b : b + 2])
        expected, expected_lse = _softmax(query[rows], key[keys], value[keys], causal)
        assert np.abs(out[rows].astype(np.float32) - expected).max() < TOLERANCE
        assert np.abs(lse[:, rows] - expected_lse).max() < 1e-4
