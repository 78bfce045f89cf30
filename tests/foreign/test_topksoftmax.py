"""AITER's topk-softmax, the gate of a mixture of experts: csrc/py_itfs_cu/asm_topksoftmax.cu."""

import aiter
import numpy as np
import pytest

pytestmark = aiter.needs_folder
# It uses a scalar right behind the v_readlane that writes it; LLVM has two wait states between.
READLANE = r"v_(mov|writelane)_b32 .*: reads s\d+ . wait states after v_readlane_b32 wrote it"
TABLE = "topksoftmax/topksoftmax.csv"
KERNELS = [
    # Rows of a workgroup, experts, the number that is chosen, dtype of the logits
    (4, 128, 4, "fp32"),
    (4, 128, 8, "fp32"),
    (4, 256, 6, "fp32"),
    (12, 128, 4, "fp32"),
    (4, 128, 6, "bf16"),
    (12, 256, 8, "bf16"),
]


@pytest.mark.parametrize("renormalize", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gate(kernel: tuple[int, int, int, str], renormalize: bool):
    rows, experts, topk, dtype = kernel
    row = aiter.find(TABLE, subm=rows, num_experts=experts, topk=topk, dtype=dtype)
    tokens = 2 * rows + 1  # the last workgroup has one
    rng = np.random.default_rng(experts + topk)
    logits = rng.permutation(tokens * experts).reshape(tokens, experts) / experts  # no two alike
    logits = logits.astype(np.float32 if dtype == "fp32" else aiter.BF16)
    weights, indices = np.zeros((tokens, topk), np.float32), np.zeros((tokens, topk), np.int32)
    arguments = [indices, weights, logits, tokens, experts, topk, int(renormalize), 4 * topk]
    launch = aiter.launch(
        f"topksoftmax/{row['co_name']}",
        (-(-tokens // rows), 1, 1),
        256,
        aiter.slots(arguments),
        [indices, weights, logits],
        checks="collect",
    )
    assert launch.findings
    assert not aiter.unexplained(launch.findings, READLANE)
    x = logits.astype(np.float64)
    p = np.exp(x - x.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    chosen = np.take_along_axis(p, indices, -1)
    expected = np.sort(p, -1)[:, : -topk - 1 : -1]
    np.testing.assert_allclose(chosen, expected, rtol=1e-6)
    if renormalize:
        chosen = chosen / chosen.sum(-1, keepdims=True)
    np.testing.assert_allclose(weights, chosen, rtol=1e-5, atol=1e-30)
