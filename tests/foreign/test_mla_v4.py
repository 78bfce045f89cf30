"""AITER's v4 latent attention, the first of two stages of a decode: csrc/py_itfs_cu/asm_mla_v4.cu.

A token is 448 floats of 8 bits, with a power of two for each 64 of them, and 64 bfloat16; keys are
values too. A sink takes part in each head's sum.
"""

import aiter
import ml_dtypes
import numpy as np
import pytest

pytestmark = aiter.needs_folder
NARROW, WIDE, BLOCK, PACKED = 448, 64, 64, 512
HEADS, SPLITS = 64, 2


def _token(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bytes of the narrow part with their scales, each of them twice; the wide part; values."""
    codes = rng.standard_normal((count, NARROW), np.float32).astype(ml_dtypes.float8_e4m3fn)
    exponents = rng.integers(126, 129, (count, NARROW // BLOCK)).astype(np.uint8)
    packed = np.zeros((count, PACKED), np.uint8)
    packed[:, :NARROW] = codes.view(np.uint8)
    packed[:, NARROW : NARROW + 14] = np.repeat(exponents, 2, 1)
    wide = aiter.normal(rng, count, WIDE)
    narrow = codes.astype(np.float64) * np.repeat(2.0 ** (exponents.astype(int) - 127), BLOCK, 1)
    return packed, wide, np.concatenate([narrow, wide.astype(np.float64)], 1)


@pytest.mark.parametrize("arrival", ["early", "late"])
def test_decode(arrival):
    rng = np.random.default_rng(0)
    lengths = np.array([300, 65], np.int32)
    tokens = int(lengths.sum())
    query, query_wide, queries = _token(rng, 2 * HEADS)
    pool, pool_wide, keys = _token(rng, tokens + 5)
    indices = rng.permutation(tokens + 5)[:tokens].astype(np.int32)
    starts = np.cumsum([0, *lengths]).astype(np.int32)
    starts_q = np.arange(3, dtype=np.int32)
    starts_split = starts_q * SPLITS
    sink = rng.standard_normal(HEADS).astype(np.float32)
    parts = np.zeros((2, SPLITS, HEADS, PACKED), np.float32)
    part_lse = np.zeros((2, SPLITS, HEADS), np.float32)
    row = aiter.find("mla_v4/mla_v4_asm.csv", Gqa=HEADS, qSeqLen=1)
    arguments = [parts, part_lse, query, pool, starts, indices, None, PACKED**-0.5]
    arguments += [HEADS, SPLITS, 0, PACKED, 0, starts_q, starts_split, 0, query_wide, pool_wide]
    arguments += [sink, None, 0]
    launch = aiter.launch(
        f"mla_v4/{row['co_name']}",
        (1, 2, SPLITS),
        256,
        aiter.slots(arguments),
        [
            *(parts, part_lse, query, pool, starts, indices, starts_q, starts_split),
            *(query_wide, pool_wide, sink),
        ],
        checks="collect",
        arrival=arrival,
    )
    for b in range(2):
        own = keys[indices[starts[b] : starts[b + 1]]]
        scores = queries.reshape(2, HEADS, PACKED)[b] @ own.T * PACKED**-0.5
        weights = np.exp(scores)
        expected = weights @ own / (weights.sum(1) + np.exp(sink))[:, None]
        share = np.exp(part_lse[b].astype(np.float64))
        share /= share.sum(0)
        assert aiter.relative_error((parts[b] * share[..., None]).sum(0), expected) < 2e-3
    # The ISA has one instruction between what writes M0 and what uses it.
    assert launch.findings
    fault = (
        r"global_load_lds_dword .*: uses m0 0 wait states after s_(add_i32|add_u32|mov_b32) wrote"
    )
    assert not aiter.unexplained(launch.findings, fault)
