"""AITER's paged attention, one query or a few of a sequence: csrc/py_itfs_cu/asm_pa.cu."""

import aiter
import ml_dtypes
import numpy as np
import pytest

pytestmark = aiter.needs_folder
TABLE = "pa/pa_asm.csv"
H, BLOCK = 128, 16
DTYPES = {
    "bf16": aiter.BF16,
    "fp16": np.float16,
    "fp8": ml_dtypes.float8_e4m3fn,
    "int8": np.int8,
}
KERNELS = [
    # Query, keys and values, query heads of a key head, queries of a sequence
    ("bf16", "bf16", 8, 1),
    ("bf16", "bf16", 16, 1),
    ("fp16", "fp16", 8, 1),
    ("bf16", "fp8", 8, 1),
    ("bf16", "fp8", 16, 1),
    ("fp16", "fp8", 8, 1),
    ("bf16", "int8", 8, 1),
    ("fp16", "int8", 16, 1),
    ("bf16", "bf16", 8, 2),
    ("bf16", "fp8", 8, 2),
    ("fp16", "int8", 8, 2),
]


# Weights are rounded to the type of the values.
TOLERANCE = {"bf16": 4e-3, "fp16": 1e-3, "fp8": 6e-2, "int8": 6e-2}
LENGTHS = (300, 17, 1024)

# What the checks find in these kernels. Kernel, finding.
FAULTS = [
    # A wait lets the last of the loads of V be under way that the instruction behind it reads.
    (r"noquant", r"v_mov_b32 v\d+, v\d+ dpp:\w+: reads v\d+ while its load is still under way"),
    (r"gqa16_2tg", r"v_mfma_\w+ .*: reads v\d+ while its load is still under way"),
    # One instruction between a result and the lanes that DPP reads of it; the ISA has two.
    (r"pertoken", r"v_mov_b32 v\d+, v\d+ dpp:\w+: reads v\d+ 1 wait states after v_cndmask_b32"),
]
_EXPLAINED = [f"{kernel}.*: {found}" for kernel, found in FAULTS]


def _run(kernel: tuple[str, str, int, int], lengths: tuple[int, ...] = LENGTHS, **options):
    """Runs it; the relative errors of the sequences, and the findings."""
    q_kind, kv_kind, group, queries = kernel
    mask = {"Mtp": int(queries > 1), "Msk": int(queries > 1)}
    kinds = {"qType": q_kind, "kvType": kv_kind, "Gqa": group}
    row = aiter.find(TABLE, **kinds, **mask, Hp=0, blkSz=BLOCK, ps=0)
    rng = np.random.default_rng(group + queries)
    heads, batch = 2, len(lengths)
    key_lengths = np.array(lengths, np.int32)
    pages = -(-key_lengths // BLOCK)
    tables = np.zeros((batch, pages.max() + 1), np.int32)
    order = rng.permutation(pages.sum() + 3)
    for b, start in enumerate(np.cumsum([0, *pages[:-1]])):
        tables[b, : pages[b]] = order[start : start + pages[b]]
    shape = (len(order), heads, BLOCK, H)
    key, value = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    scales = []
    if kv_kind in ("fp8", "int8"):
        (key, key_scale), (value, value_scale) = (
            aiter.quantised(x, DTYPES[kv_kind]) for x in (key, value)
        )
        scales = [key_scale, value_scale]
    key, value = (x.astype(DTYPES[kv_kind]) for x in (key, value))
    pack = 16 // key.itemsize
    pages_k = key.reshape(-1, heads, BLOCK, H // pack, pack).transpose(0, 1, 3, 2, 4)
    pages_v = value.reshape(-1, heads, BLOCK // pack, pack, H).transpose(0, 1, 2, 4, 3)
    pages_k, pages_v = np.ascontiguousarray(pages_k), np.ascontiguousarray(pages_v)
    query = aiter.normal(rng, batch * queries, heads * group, H, dtype=DTYPES[q_kind])
    out = np.zeros_like(query)
    starts = np.arange(batch + 1, dtype=np.int32) * queries if queries > 1 else None
    arguments = [out, query, pages_k, pages_v, tables, key_lengths, *(scales or [None, None])]
    arguments += [float(np.log2(np.e) * H**-0.5), tables.shape[1], heads, query.strides[0]]
    arguments += [pages_k.strides[0], pages_k.strides[1], queries - 1, group, starts]
    launch = aiter.launch(
        f"pa/{row['co_name']}",
        (heads, batch, 1),
        256,
        aiter.slots(arguments),
        [out, query, pages_k, pages_v, tables, key_lengths, *scales, starts],
        checks="collect",
        **options,
    )
    k, v = (x.astype(np.float64) for x in (key, value))
    if scales:
        k, v = k * scales[0], v * scales[1]
    errors = []
    for b, length in enumerate(lengths):
        keys, values = (
            np.repeat(
                x[tables[b, : pages[b]]].transpose(1, 0, 2, 3).reshape(heads, -1, H), group, 0
            )
            for x in (k, v)
        )
        rows = slice(b * queries, (b + 1) * queries)
        scores = np.einsum("qnh,nsh->nqs", query[rows].astype(np.float64), keys) * H**-0.5
        q, s = np.indices(scores.shape[1:])
        scores = np.where(s <= length - queries + q, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        expected = np.einsum("nqs,nsh->qnh", weights, values)
        errors.append(aiter.relative_error(out[rows], expected))
    return errors, launch.findings


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_decode(kernel: tuple[str, str, int, int]):
    """Loads come early: some of these kernels do not wait for all of theirs."""
    errors, findings = _run(kernel, arrival="early")
    assert max(errors) < TOLERANCE[kernel[1]]
    assert not aiter.unexplained(findings, *_EXPLAINED)


@pytest.mark.parametrize("kernel", [("bf16", "bf16", 8, 1), ("bf16", "fp8", 16, 1)], ids=str)
def test_waits_are_missing(kernel: tuple[str, str, int, int]):
    """As late as the waits allow, the loads give wrong results."""
    errors, findings = _run(kernel, arrival="late")
    assert max(errors) > 0.5
    assert any("while its load is still under way" in text for text in findings)


def test_lanes_are_read_too_early():
    _, findings = _run(("fp16", "int8", 8, 2))
    assert any("1 wait states after v_cndmask_b32 wrote it" in text for text in findings)


@pytest.mark.parametrize("length", [240, 241, 255, 256])
def test_one_tile_with_part_of_its_last_page(length: int):
    """s_cmp_lt_u32 at pc 0x2e18 asks whether fewer than 16 pages are used, where 16 of which the
    last is not full are no whole tile either: it is taken unmasked, and then once more as the
    rest."""
    (error,), _ = _run(("bf16", "bf16", 8, 1), (length,), arrival="early")
    if length in (240, 256):
        assert error < TOLERANCE["bf16"]
    else:
        assert error > 0.02
