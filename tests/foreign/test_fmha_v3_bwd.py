"""AITER's v3 backward attention: atomics of 16 and of 32 bits, head sizes 64, 128 and 192."""

import re

import aiter
import aiter_backward
import numpy as np
import pytest
from aiter_backward import BOTTOM_RIGHT, NO_MASK, TOP_LEFT

from jax_fa import emulator

pytestmark = aiter.needs_folder

MASKS = {"dense": NO_MASK, "causal": TOP_LEFT, "causal_br": BOTTOM_RIGHT}
# Kernels and results round to the dtype: weights, their gradients, what is added by atomics. Some
# of the kernels on fp16 do it toward zero.
TOLERANCE = {"bf16": 4e-3, "fp16": 1e-3}
DTYPES = {"bf16": aiter.BF16, "fp16": np.float16}

# What the checks find in these kernels, and what it is. Kernel, finding.
FAULTS = [
    # Four waves read a block of dS in LDS and meet at a barrier without a wait for their reads; the
    # next block is written behind it. It is right as long as LDS works in the order of issue.
    (r"hd64_\w+_a16", r"ds_write_b32 .* which wave . reads with no wait before the barrier"),
    # NUM_RECORDS of a resource that is never used: one of the two that s_cselect chooses from is
    # never written.
    (
        r"(hd128|hd192_128)_\w+16_a(16|32)_pssk",
        r"s_cselect_b32 s26, s26, s30: reads s26, which was",
    ),
    # One instruction between the swap and the product that reads its result, where LLVM has two.
    (r"hd128_\w+_a16", r"v_mfma_f32_32x32x16_\w+ .* after v_permlane16_swap_b32 wrote it"),
    # A workgroup does two tiles of keys. It writes the second one's to LDS while slower waves still
    # read the first one's.
    (r"hd128_\w+_causal", r"ds_write_b128 .* which wave . reads with no barrier in between"),
    (r"hd128_\w+_causal", r"ds_read_b64 .* which wave . wrote with no barrier"),
]


def _kernels() -> list:
    """Those that the launcher can choose."""
    kernels = []
    for h, v in ((64, 64), (128, 128), (192, 128), (192, 192)):
        for bits in (16, 32):
            for mask in MASKS:
                if bits == 16 and ((h, v) == (192, 192) or (h == 64 and mask == "causal_br")):
                    continue
                kernels.append(pytest.param(h, v, bits, mask, id=f"{h}-{v}-a{bits}-{mask}"))
    return kernels


def _run(shape, h, v, bits, mask, dtype="bf16", **options):
    """Runs it; the relative errors of delta, dq, dk and dv, and the findings."""
    batch, t, s, n, k = shape
    rng = np.random.default_rng(t + s)
    sizes = (batch, t, n, h), (batch, s, k, h), (batch, s, k, v), (batch, t, n, v)
    query, key, value, dout = (aiter.normal(rng, *size, dtype=DTYPES[dtype]) for size in sizes)
    wanted = aiter_backward.expected(query, key, value, dout, MASKS[mask])
    out, lse = wanted[0].astype(query.dtype), wanted[1].astype(np.float32)
    made = aiter_backward.backward(
        *(query, key, value, out, lse, dout), mask=MASKS[mask], atomic32=bits == 32, **options
    )
    results = made.delta, made.dq, made.dk, made.dv
    errors = [aiter.relative_error(x, y) for x, y in zip(results, wanted[2:], strict=True)]
    return errors, [text for launch in made.launches for text in launch.findings]


def _unexplained(findings: list[str]) -> list[str]:
    return [
        text
        for text in findings
        if not any(re.search(f"{kernel}.*: {found}", text) for kernel, found in FAULTS)
    ]


def _shapes(h: int, bits: int) -> list[tuple[int, int, int, int, int]]:
    """B, T, S, N, K."""
    if h == 64 and bits == 16:  # lengths must be the same multiple of 64
        return [(2, 192, 192, 2, 1), (1, 448, 448, 1, 1)]
    return [(2, 200, 512, 2, 1), (1, 320, 130, 2, 2)]


@pytest.mark.parametrize(("h", "v", "bits", "mask"), _kernels())
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients(h: int, v: int, bits: int, mask: str, dtype: str):
    for shape in _shapes(h, bits):
        errors, findings = _run(shape, h, v, bits, mask, dtype, checks="collect")
        assert max(errors) < TOLERANCE[dtype], (shape, errors)
        assert not _unexplained(findings)


@pytest.mark.parametrize("schedule", ["run_to_barrier", "reverse", "random"])
@pytest.mark.parametrize(("h", "v", "bits", "mask"), _kernels())
def test_other_orders_of_waves(h: int, v: int, bits: int, mask: str, schedule: emulator.Schedule):
    errors, findings = _run(
        (1, 256, 256, 1, 1), h, v, bits, mask, schedule=schedule, checks="collect"
    )
    assert max(errors) < TOLERANCE["bf16"]
    assert not _unexplained(findings)


@pytest.mark.parametrize(("kernel", "found"), FAULTS)
def test_faults_are_found(kernel: str, found: str):
    """Each in one kernel of those that it is stated of."""
    bits, h = (16 if "16" in kernel and "32" not in kernel else 32), 64 if "hd64" in kernel else 128
    mask = "causal" if "causal" in kernel else "dense"
    findings = []
    for schedule in ("round_robin", "run_to_barrier"):
        findings += _run(
            (1, 512, 512, 1, 1), h, h, bits, mask, checks="collect", schedule=schedule
        )[1]
    assert any(re.search(f"{kernel}.*: {found}", text) for text in findings)


def test_a_store_past_the_last_key():
    """Bottom-right causal, sums of 32 bits, keys no multiple of 256: dk of the rows past the last
    is stored by an index that NUM_RECORDS does not exclude."""
    with pytest.raises(
        emulator.EmulatorError, match=r"buffer_store_dwordx4 .* idxen.* past the end"
    ):
        _run((1, 200, 300, 1, 1), 128, 128, 32, "causal_br", checks="collect")
