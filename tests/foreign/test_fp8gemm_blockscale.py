"""AITER's product of floats of 8 bits with a scale for each 128 of them, and for each block of
128 x 128 of the weights: csrc/py_itfs_cu/asm_a8w8_blockscale_bpreshuffle.cu."""

import aiter
import aiter_gemm
import ml_dtypes
import numpy as np
import pytest

pytestmark = aiter.needs_folder
TABLE = "fp8gemm_blockscale/fp8gemm_bf16_blockscale.csv"
BLOCK = 128


@pytest.mark.parametrize("splits", [1, 2])
@pytest.mark.parametrize("tile_m", [32, 48, 64, 80, 96, 128])
def test_product(tile_m: int, splits: int):
    row = aiter.find(TABLE, tile_m=tile_m)
    tile_n = int(row["tile_n"])
    m, n, k = tile_m + 3, 2 * tile_n, 2 * BLOCK * splits
    rng = np.random.default_rng(tile_m + splits)
    a, b = (aiter.normal(rng, rows, k, dtype=ml_dtypes.float8_e4m3fn) for rows in (m, n))
    scale_a, scale_b = (
        rng.uniform(0.5, 2, (rows, k // BLOCK)).astype(np.float32) for rows in (m, n // BLOCK)
    )
    bias = np.zeros(n, np.float32)
    weights, out = aiter_gemm.shuffle(b), np.zeros((m, n), aiter.BF16)
    buffers = [out, a, weights, np.ascontiguousarray(scale_a.T), scale_b, bias]
    numbers = [m, n, k, k, k, 2 * n, splits, m, n // BLOCK, k // BLOCK]
    launch = aiter.launch(
        f"fp8gemm_blockscale/{row['co_name']}",
        (n // tile_n * splits, -(-m // tile_m), 1),
        256,
        aiter.slots([*buffers, *numbers]),
        buffers,
        checks="collect",
        threads=1,
    )
    x = a.astype(np.float64) * np.repeat(scale_a, BLOCK, 1)
    y = b.astype(np.float64) * np.repeat(np.repeat(scale_b, BLOCK, 0), BLOCK, 1)
    # The kernel rounds toward zero; parts of a sum are rounded one by one.
    assert aiter.relative_error(out, x @ y.T) < 5e-3
    assert not launch.findings
