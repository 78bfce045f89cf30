"""AITER's product of floats of 4 bits, a scale for each 32: csrc/py_itfs_cu/asm_gemm_a4w4.cu."""

import aiter
import aiter_gemm
import ml_dtypes
import numpy as np
import pytest

pytestmark = aiter.needs_folder
TABLE = "f4gemm/f4gemm_bf16_per1x32Fp4.csv"
FP4 = ml_dtypes.float4_e2m1fn
KERNELS = [
    # Tile M, tile N
    (256, 256),
    (128, 512),
    (32, 128),
    (96, 256),
]


def _shuffled_scales(scales: np.ndarray) -> np.ndarray:
    """[M, K] in blocks of 32 rows and 8 columns (shuffle_scale of aiter.ops)."""
    m, k = scales.shape
    blocks = scales.reshape(m // 32, 2, 16, k // 8, 2, 4)
    return np.ascontiguousarray(blocks.transpose(0, 3, 5, 2, 4, 1)).reshape(m, k)


def _packed(codes: np.ndarray) -> np.ndarray:
    return codes[:, ::2] | codes[:, 1::2] << 4


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_product(kernel: tuple[int, int]):
    tile_m, tile_n = kernel
    row = aiter.find(TABLE, tile_M=tile_m, tile_N=tile_n, bpreshuffle=1)
    m, n, k = 256 + tile_m, 2 * tile_n, 512
    rng = np.random.default_rng(tile_m + tile_n)
    a, b = (rng.integers(0, 16, (rows, k)).astype(np.uint8) for rows in (m, n))
    scale_a, scale_b = (rng.integers(120, 132, (x, k // 32)).astype(np.uint8) for x in (m, n))
    weights = aiter_gemm.shuffle(_packed(b))
    out = np.zeros((m, n), aiter.BF16)
    buffers = [out, None, _packed(a), weights]
    scales = [_shuffled_scales(x) for x in (scale_a, scale_b)]
    arguments = [*buffers, 1.0, 0.0, 0, 0, n, 0, k, 0, k, 0, m, n, k, *scales]
    arguments += [k // 32, 0, k // 32, 0, 0]
    launch = aiter.launch(
        f"f4gemm/{row['co_name']}",
        (-(-n // tile_n), -(-m // tile_m), 1),
        256,
        aiter.slots(arguments),
        [*buffers, *scales],
        checks="collect",
        threads=1,
    )
    x, y = (
        codes.view(FP4).astype(np.float64) * np.repeat(2.0 ** (scale.astype(int) - 127), 32, 1)
        for codes, scale in ((a, scale_a), (b, scale_b))
    )
    assert aiter.relative_error(out, x @ y.T) < 3e-3
    assert not launch.findings
