"""AITER's v4 forward attention on narrow types: csrc/py_itfs_cu/asm_mha_v4_fwd.cu."""

import re

import aiter
import ml_dtypes
import numpy as np
import pytest

from jax_fa import emulator

pytestmark = aiter.needs_folder
TABLE = "fmha_v4_fwd/fmha_v4_fwd.csv"
H = 128
FP8 = ml_dtypes.float8_e4m3fn
FP8_ID, INT8_ID = 3, 10
PER_TENSOR, PER_32 = 1, 5
KERNELS = {
    # Format of query and key, and the granularity of their scales
    "fp8": (FP8_ID, PER_TENSOR),
    "int8": (INT8_ID, PER_TENSOR),
    "mxfp8": (FP8_ID, PER_32),
}
# Weights are rounded to 8 bits.
TOLERANCE = 4e-2

FAULTS = [
    # A tile of keys or values is loaded into LDS that slower waves still read for the one before.
    r"buffer_load_dwordx4 .* which wave . reads with no (barrier|wait before the barrier)",
    r"ds_read_b64_tr_b8 .* while a load to LDS of wave . into it is still under way",
    r"ds_read_b128 .* while a load to LDS of wave . into it is still under way",
    # The two groups of waves meet another number of times; what has ended waits for no one.
    r"s_endpgm.*: ends while others wait at a barrier that it has not reached",
    # The conversion of weights comes one instruction too close to their product.
    r"v_mfma_f32_\w+ .* wait states after v_cvt_pk_fp8_f32 wrote it",
]


def _strides(array: np.ndarray) -> tuple[int, int, int]:
    """Bytes to the next row, head and sequence of [B, S, N, H]."""
    return array.strides[1], array.strides[2], array.strides[0]


def _scale_strides(scale: np.ndarray) -> tuple[int, int]:
    return (scale.strides[0], scale.strides[2]) if scale.ndim == 4 else (0, 0)


def _run(name: str, shape: tuple[int, int, int, int], **options):
    """The relative error, and the launch."""
    form, scaling = KERNELS[name]
    kinds = {"q_format": form, "k_format": form, "v_format": FP8_ID}
    row = aiter.find(TABLE, **kinds, q_scale_mode=scaling, k_scale_mode=scaling)
    batch, t, s, n = shape
    rng = np.random.default_rng(t + s)
    query, key = (rng.standard_normal((batch, x, n, H), np.float32) for x in (t, s))
    if form == INT8_ID:
        query, key = (np.rint(x * 30).astype(np.int8) for x in (query, key))
        scales = [np.full(1, 1 / 30, np.float32) for _ in range(2)]
        factors = scales
    else:
        query, key = query.astype(FP8), key.astype(FP8)
        if scaling == PER_32:
            # The query comes with the scale of the scores and the logarithm's in it.
            scales = [
                rng.integers(low, low + 3, (batch, rows, n, H // 32)).astype(np.uint8)
                for low, rows in ((123, t), (126, s))
            ]
            factors = [np.repeat(2.0 ** (x.astype(np.float64) - 127), 32, -1) for x in scales]
        else:
            scales = factors = [np.full(1, x, np.float32) for x in (0.5, 1.25)]
    value = aiter.normal(rng, batch, s, n, H, dtype=FP8)
    value_scale = np.full(1, 2.0, np.float32)
    out = np.zeros((batch, t, n, H), aiter.BF16)
    tile = int(row["ts_qo"])
    q_row, q_head, q_sequence = _strides(query)
    arguments = [out, query, key, value, None, H**-0.5, t, q_row, tile * q_row, q_head, q_sequence]
    arguments += [1, *_strides(key), 5, 0, s, H, H, n, *_strides(value), *_strides(out)]
    arguments += [None, None, 0, None, None, *scales, value_scale]
    arguments += [*_scale_strides(scales[0]), *_scale_strides(scales[1]), 0, 0]
    launch = aiter.launch(
        f"fmha_v4_fwd/{row['co_name']}",
        (-(-t // tile), n, batch),
        512,
        aiter.slots(arguments),
        [out, query, key, value, *scales, value_scale],
        checks="collect",
        **options,
    )
    q, k = (x.astype(np.float64) * y for x, y in zip((query, key), factors, strict=True))
    scores = np.einsum("btnh,bsnh->bnts", q, k) * (np.log(2) if scaling == PER_32 else H**-0.5)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    expected = np.einsum("bnts,bsnh->btnh", weights, value.astype(np.float64) * value_scale)
    return aiter.relative_error(out, expected), launch


@pytest.mark.parametrize("name", KERNELS)
def test_dense(name: str):
    """Loads come late: what they overwrite in LDS is read no earlier than its waits say."""
    shape = (2, 512, 384, 2) if name == "mxfp8" else (2, 300, 640, 2)
    error, launch = _run(name, shape, arrival="late")
    assert error < TOLERANCE
    assert not aiter.unexplained(launch.findings, *FAULTS)
    sums = {"fp8", "mxfp8"}
    assert ("v_smfmac_f32_16x16x128_fp8_fp8" in launch.counts["mnemonic"]) == (name in sums)


def test_tiles_of_keys_follow_each_other_too_closely():
    """Where waves are far apart and loads come at once, the next tile is there too early."""
    error, launch = _run("fp8", (1, 256, 512, 1), schedule="run_to_barrier", arrival="early")
    assert error > 0.2
    assert any(re.search(FAULTS[0], text) for text in launch.findings)


def test_scales_past_the_last_query():
    with pytest.raises(emulator.EmulatorError, match=r"global_load_ubyte .* past the end"):
        _run("mxfp8", (1, 300, 256, 1))
