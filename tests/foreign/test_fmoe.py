"""AITER's mixture of experts on narrow types, both layers in a kernel: py_itfs_cu/asm_fmoe.cu.

Tokens are sorted by expert in blocks. A workgroup computes some columns of the first layer's gate
and up for a block, act(gate) * up, and adds its share of the second layer by atomics.
"""

import re

import aiter
import aiter_gemm
import aiter_moe
import ml_dtypes
import numpy as np
import pytest

pytestmark = aiter.needs_folder
DTYPES = {"Fp8": ml_dtypes.float8_e4m3fn, "Int8": np.int8}
TOPK, EXPERTS = 2, 3
# What lies between the layers is rounded to the type of the weights.
TOLERANCE = 4e-2

# What the checks find in these kernels. Kernel, finding.
FAULTS = [
    # Results of a step are read from LDS while the next one is computed, and added without a wait.
    (r"pertokenFp8", r"global_atomic_pk_add_\w+ .*: reads v\d+ while its load is still under way"),
    # A load that comes too much, whose register serves as another before it is there.
    (r"32x192", r"v_(lshrrev_b32|and_b32) .*: overwrites v\d+ while a load into it is"),
    (r"32x192", r"v_mul_i32_i24 .*: reads v\d+ while its load is still under way"),
]


def _run(kind: str, out_kind: str, columns: int, **options):
    """The relative error, and the findings."""
    table = f"fmoe/silu/fmoe_{out_kind}_pertoken{kind}_g1u1_silu.csv"
    row = aiter.find(table, vskip=1, smf=0, ps=0, subGU_n=columns, subGU_m=32, atm=0)
    tokens, dim, inter = 45, 512, 2 * columns
    rng = np.random.default_rng(columns)
    chosen = np.stack([rng.permutation(EXPERTS)[:TOPK] for _ in range(tokens)])
    weights = rng.uniform(0.1, 1, (tokens, TOPK)).astype(np.float32)
    x, x_scale = aiter.quantised(rng.standard_normal((tokens, dim), np.float32), DTYPES[kind])
    w1, w1_scale = aiter.quantised(
        rng.standard_normal((EXPERTS, 2 * inter, dim), np.float32) * dim**-0.5, DTYPES[kind]
    )
    w2, w2_scale = aiter.quantised(
        rng.standard_normal((EXPERTS, dim, inter), np.float32) * inter**-0.5, DTYPES[kind]
    )
    ids, shares, experts = aiter_moe.sort(chosen, weights, EXPERTS, 32)
    valid = np.array([len(ids), tokens], np.int32)
    out = np.zeros((tokens, dim), aiter.BF16 if out_kind == "bf16" else np.float16)
    first, second = aiter_gemm.shuffle(w1), aiter_gemm.shuffle(w2)
    buffers = [out, x, first, valid, second, x_scale, w1_scale, w2_scale]
    arguments = [*buffers, None, ids, shares, experts, dim, inter, tokens, EXPERTS]
    arguments += [dim, dim, inter, dim * out.itemsize, 2 * inter * dim, inter * dim]
    arguments += [w1_scale.strides[0], w2_scale.strides[0], 4 * inter, TOPK, 0, inter // columns]
    launch = aiter.launch(
        f"fmoe/silu/{row['co_name']}",
        (inter // columns, len(experts), 1),
        256,
        aiter.slots(arguments),
        [*buffers, ids, shares, experts],
        checks="collect",
        threads=1,
        **options,
    )
    expected = np.zeros((tokens, dim))
    x = x.astype(np.float64) * x_scale
    w1, w2 = w1.astype(np.float64) * w1_scale, w2.astype(np.float64) * w2_scale
    for expert in range(EXPERTS):
        gate, up = np.split(x @ w1[expert].T, 2, -1)
        hidden = gate / (1 + np.exp(-gate)) * up
        share = np.where(chosen == expert, weights, 0).sum(-1, keepdims=True)
        expected += share * (hidden @ w2[expert].T)
    return aiter.relative_error(out, expected), launch.findings


KERNELS = [("Fp8", 192), ("Fp8", 256), ("Fp8", 320), ("Int8", 128), ("Int8", 192), ("Int8", 320)]


@pytest.mark.parametrize("out_kind", ["bf16", "fp16"])
@pytest.mark.parametrize(("kind", "columns"), KERNELS)
def test_two_layers(kind: str, columns: int, out_kind: str):
    """Loads come early: some of these kernels do not wait for all of theirs."""
    error, findings = _run(kind, out_kind, columns, arrival="early")
    assert error < TOLERANCE
    assert not aiter.unexplained(findings, *(f"{name}.*: {found}" for name, found in FAULTS))


def test_lds_that_nothing_wrote():
    """The kernel for 128 columns adds what it reads there; here that is not a number."""
    error, findings = _run("Fp8", "bf16", 128, arrival="early")
    assert np.isnan(error)
    assert any(re.search(r"ds_read_b32 .* which was never written", text) for text in findings)


def test_a_wait_is_missing():
    """As late as the waits allow, the loads give wrong results."""
    error, findings = _run("Fp8", "bf16", 256, arrival="late")
    assert not error < 0.3
    assert any("global_atomic_pk_add_bf16" in text for text in findings)
