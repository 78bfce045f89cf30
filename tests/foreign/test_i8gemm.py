"""AITER's product of bytes with a scale for each row: csrc/py_itfs_cu/asm_gemm_a8w8.cu."""

import aiter
import aiter_gemm
import numpy as np
import pytest

pytestmark = aiter.needs_folder
TABLE = "i8gemm/i8gemm_bf16_perTokenI8.csv"


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("tile_m", [16, 32, 80, 128])
def test_product(tile_m: int, splits: int):
    row = aiter.find(TABLE, tile_m=tile_m)
    tile_n = int(row["tile_n"])
    m, n, k = tile_m + 3, 2 * tile_n, 256 * splits
    rng = np.random.default_rng(tile_m + splits)
    a, b = (rng.integers(-128, 128, (rows, k), dtype=np.int8) for rows in (m, n))
    scale_a, scale_b = (rng.uniform(1e-3, 1e-2, rows).astype(np.float32) for rows in (m, n))
    bias = rng.standard_normal(n).astype(np.float32)
    weights, out = aiter_gemm.shuffle(b), np.zeros((m, n), aiter.BF16)
    buffers = [out, a, weights, scale_a, scale_b, bias]
    launch = aiter.launch(
        f"i8gemm/{row['co_name']}",
        (n // tile_n * splits, -(-m // tile_m), 1),
        256,
        aiter.slots([*buffers, m, n, k, k, k, 2 * n, splits]),
        buffers,
        checks="collect",
        threads=1,
    )
    expected = a.astype(np.int64) @ b.astype(np.int64).T * scale_a[:, None] * scale_b + bias
    # The kernel rounds toward zero; parts of a sum are rounded one by one.
    assert aiter.relative_error(out, expected) < 5e-3
    assert not launch.findings
