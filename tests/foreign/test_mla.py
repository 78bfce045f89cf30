"""AITER's latent attention, the first of two stages of a decode: csrc/py_itfs_cu/asm_mla.cu.

Keys have 576 elements, and values are the first 512 of them; all query heads share them. The first
stage leaves results and lse of splits of the keys, which are put together here.
"""

import re

import aiter
import ml_dtypes
import numpy as np
import pytest

pytestmark = aiter.needs_folder
TABLE = "mla/mla_asm.csv"
H, V = 576, 512
KERNELS = [
    # Dtype, heads, queries of a sequence, those that the table has the kernel under, rows of a tile
    ("bf16", 16, 1, 1, 16),
    ("bf16", 16, 4, 4, 128),
    ("bf16", 128, 1, 0, 128),
    ("bf16", 32, 1, 0, 64),
    ("bf16", 64, 1, 1, 64),
    ("bf16", 8, 1, 1, 8),
    ("fp8", 16, 1, 1, 128),
]
SPLITS = 2
# Results of the first stage are float32; weights are rounded to the dtype.
TOLERANCE = {"bf16": 2e-3, "fp8": 4e-2}

# What the checks find in these kernels. Kernel, finding.
FAULTS = [
    # Eight writes and then four reads are under way at s_waitcnt lgkmcnt(8), which proves half of
    # the writes before the barrier behind it.
    (r"subQ16_mqa16", r"ds_read_b128 .* which wave . wrote with no barrier \(and wait"),
    (r"qh8_qseqlen1", r"ds_read_b128 .* which wave . wrote with no barrier \(and wait"),
    # A tile has 16 rows, of which 8 heads write theirs.
    (r"qh8_qseqlen1", r"ds_read_b128 .* which was never written"),
    # A wait for addresses of pages that is missing where the loop is left.
    (r"(m16x4_n16x1|subQ128_mqa128)", r"v_mul_u32_u24 .* while its load is still under way"),
    # Newer kernels are scheduled by the time that LDS takes: 18 reads, a wait for 14 of them, and
    # products of all with nothing between but the products. Tiles follow each other likewise.
    (r"(m16x4_n32x1|qh64_qseqlen1|qh16_qseqlen1)", r"v_mfma_\w+ .*: reads a\d+ while its load is"),
    (r"(m16x4_n32x1|qh64_qseqlen1|qh16_qseqlen1)", r".* LDS byte"),
    (r"(m16x4_n32x1|qh64_qseqlen1)", r"v_mul_u32_u24 .* while its load is still under way"),
    # M0 and what uses it, and what crosses lanes, come one instruction too early.
    (r"(qh64|qh16)_qseqlen1", r"global_load_lds_dword\w* .*: uses m0 . wait states after"),
    (r"qh16_qseqlen1", r"v_permlane\d+_swap_b32 .* wait states after v_cvt_pk_fp8_f32 wrote it"),
]


def _run(kernel, **options):
    kind, heads, queries, column, rows = kernel
    row = aiter.find(
        TABLE, qType=kind, kvType=kind, Gqa=heads, ps=0, qSeqLen=column, prefill=0, causal=1, lse=0
    )
    rng = np.random.default_rng(heads + queries)
    lengths = np.array([300, 65], np.int32)
    dtype = aiter.BF16 if kind == "bf16" else ml_dtypes.float8_e4m3fn
    tokens = int(lengths.sum())
    query = aiter.normal(rng, len(lengths) * queries, heads, H, dtype=dtype)
    pool = aiter.normal(rng, tokens + 5, 1, 1, H, dtype=dtype)
    indices = rng.permutation(tokens + 5)[:tokens].astype(np.int32)
    starts = np.cumsum([0, *lengths]).astype(np.int32)
    last = np.ones(len(lengths), np.int32)
    starts_q = np.arange(len(lengths) + 1, dtype=np.int32) * queries
    starts_split = np.arange(len(lengths) + 1, dtype=np.int32) * SPLITS
    parts = np.zeros((len(query), SPLITS, heads, V), np.float32)
    part_lse = np.zeros((len(query), SPLITS, heads), np.float32)
    scales = [None, None] if kind == "bf16" else [np.full(1, x, np.float32) for x in (0.5, 1.25)]
    arguments = [parts, part_lse, query, pool, starts, indices, last, H**-0.5]
    arguments += [heads * queries, SPLITS, query.strides[0] * queries, pool.strides[0], 0]
    arguments += [starts_q, starts_split, None, *scales, 0, None, None, 1, 0]
    launch = aiter.launch(
        f"mla/{row['co_name']}",
        (-(-queries * heads // rows), len(lengths), SPLITS),
        256,
        aiter.slots(arguments),
        [parts, part_lse, query, pool, starts, indices, last, starts_q, starts_split, *scales],
        checks="collect",
        **options,
    )
    errors = []
    q_scale, k_scale = (1 if x is None else float(x[0]) for x in scales)
    for b, length in enumerate(lengths):
        keys = pool[indices[starts[b] : starts[b + 1]], 0, 0].astype(np.float64) * k_scale
        own = slice(b * queries, (b + 1) * queries)
        scores = query[own].astype(np.float64) * q_scale @ keys.T * H**-0.5
        q, _, s = np.indices(scores.shape)
        scores = np.where(s <= length - queries + q, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        expected = weights @ keys[:, :V] / weights.sum(-1, keepdims=True)
        lse = part_lse[own].astype(np.float64)
        share = np.exp(lse - lse.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        errors.append(aiter.relative_error((parts[own] * share[..., None]).sum(1), expected))
    return errors, launch.findings


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_decode(kernel):
    """Loads come early: these kernels do not wait for all of theirs."""
    errors, findings = _run(kernel, arrival="early")
    assert max(errors) < TOLERANCE[kernel[0]]
    assert not aiter.unexplained(findings, *(f"{name}.*: {found}" for name, found in FAULTS))


@pytest.mark.parametrize(("name", "found"), FAULTS)
def test_faults_are_found(name: str, found: str):
    """Each in a kernel that it is stated of."""
    kernels = {"subQ16": 0, "m16x4_n16x1": 1, "m16x4_n32x1": 3, "qh64": 4, "qh8": 5, "qh16_qseq": 6}
    place = next(place for part, place in kernels.items() if part in name)
    _, findings = _run(KERNELS[place], arrival="early")
    assert any(re.search(f"{name}.*: {found}", text) for text in findings)


@pytest.mark.parametrize("kernel", [KERNELS[1], KERNELS[3], KERNELS[4]], ids=str)
def test_waits_are_missing(kernel):
    """As late as the waits allow, the loads give wrong results."""
    errors, _ = _run(kernel, arrival="late")
    assert not max(errors) < 0.3
