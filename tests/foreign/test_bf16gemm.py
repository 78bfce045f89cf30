"""AITER's bfloat16 matrix product: csrc/py_itfs_cu/asm_gemm_a16w16.cu."""

import aiter
import aiter_gemm
import numpy as np
import pytest

pytestmark = aiter.needs_folder
TABLE = "bf16gemm/bf16gemm_fp32bf16.csv"
KERNELS = [
    # Tile M, tile N, shuffled weights, workgroups along K, with a bias
    (256, 256, False, 1, False),
    (256, 256, True, 1, False),
    (32, 64, False, 1, True),
    (96, 64, False, 1, True),
    (64, 64, True, 1, True),
    (32, 64, False, 2, True),
    (48, 64, True, 3, False),
    (160, 64, True, 2, True),
]


@pytest.mark.parametrize("dtype", [np.float32, aiter.BF16])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_product(kernel, dtype):
    tile_m, tile_n, shuffled, splits, has_bias = kernel
    row = aiter.find(
        TABLE,
        tileM=tile_m,
        tileN=tile_n,
        bPreshuffle=int(shuffled),
        splitK=int(splits > 1),
    )
    m, n, k = tile_m + 5, 2 * tile_n, 192 * splits
    rng = np.random.default_rng(tile_m)
    a, b = aiter.normal(rng, m, k), aiter.normal(rng, n, k)
    bias = aiter.normal(rng, n) if has_bias else None
    weights = aiter_gemm.shuffle(b) if shuffled else b
    out = np.zeros((m, n), dtype)
    semaphore = np.zeros(1024, np.uint32) if splits > 1 else None
    step = out.itemsize
    arguments = [out, None, a, weights, 1.0, 0.0, n * step, 0, n * step, 0, 2 * k, 0, 2 * k, 0]
    arguments += [m, n, k, splits, int(dtype == aiter.BF16), bias, int(has_bias), semaphore]
    launch = aiter.launch(
        f"bf16gemm/{row['co_name']}",
        (n // tile_n, -(-m // tile_m), splits),
        256,
        aiter.slots(arguments),
        [out, a, weights, bias, semaphore],
        checks="collect",
        threads=1,
    )
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    if bias is not None:
        expected += bias.astype(np.float64)
    error = aiter.relative_error(out, expected)
    assert error < (1e-6 if dtype == np.float32 else 4e-3)
    assert not launch.findings
