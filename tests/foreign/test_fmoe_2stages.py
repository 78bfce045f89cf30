"""AITER's mixture of experts on narrow types, the first layer: py_itfs_cu/asm_moe_2stage.cu.

act(gate) * up of each token for each of its experts.
"""

import aiter
import aiter_gemm
import aiter_moe
import ml_dtypes
import numpy as np
import pytest

pytestmark = aiter.needs_folder
DTYPES = {"Fp8": ml_dtypes.float8_e4m3fn, "Int8": np.int8}
TOPK, EXPERTS = 2, 3

# What the checks find in these kernels.
FAULTS = [
    # Loads to LDS for steps past the last one are under way when results go through the same place.
    r"ds_(read|write)_b\d+ .* while a load to LDS of wave . into it is still under way",
    # The last step's operands are read there by slower waves.
    r"ds_write_b\d+ .* which wave . reads with no (barrier|wait before the barrier) in between",
    # It uses a scalar right behind the v_readlane that writes it; LLVM has two wait states between.
    r"v_mul_lo_u32 .*: reads s\d+ . wait states after v_readlane_b32 wrote it",
]
KERNELS = [
    # Type, whether results have the expert's weight in them, rows and columns of a tile
    ("Fp8", False, 16, 128),
    ("Fp8", False, 32, 128),
    ("Fp8", True, 32, 128),
    ("Int8", False, 16, 128),
    ("Int8", False, 64, 128),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_first_layer(kernel: tuple[str, bool, int, int]):
    kind, weighted, rows, columns = kernel
    name = f"pertoken{kind}" + ("_doweight" if weighted else "")
    table = f"fmoe_2stages/fmoe_stage1_bf16_{name}_g1u1.csv"
    row = aiter.find(table, tile_m=rows, tile_n=columns)
    tokens, dim, inter = 45, 512, 2 * columns
    rng = np.random.default_rng(rows)
    chosen = np.stack([rng.permutation(EXPERTS)[:TOPK] for _ in range(tokens)])
    weights = rng.uniform(0.1, 1, (tokens, TOPK)).astype(np.float32)
    x, x_scale = aiter.quantised(rng.standard_normal((tokens, dim), np.float32), DTYPES[kind])
    w1, w1_scale = aiter.quantised(
        rng.standard_normal((EXPERTS, 2 * inter, dim), np.float32) * dim**-0.5, DTYPES[kind]
    )
    ids, shares, experts = aiter_moe.sort(chosen, weights, EXPERTS, rows)
    valid = np.array([len(ids), tokens], np.int32)
    out = np.zeros((tokens, TOPK, inter), aiter.BF16)
    buffers = [out, x, aiter_gemm.shuffle(w1), valid, x_scale, w1_scale]
    arguments = [*buffers, None, ids, experts, dim, inter, tokens, EXPERTS, dim, dim]
    arguments += [out.strides[0], 2 * inter * dim, w1_scale.strides[0], 4 * inter, TOPK, 0, 0]
    arguments += [shares if weighted else None]
    launch = aiter.launch(
        f"fmoe_2stages/{row['co_name']}",
        (inter // columns, len(experts), 1),
        256,
        aiter.slots(arguments),
        [*buffers, ids, shares, experts],
        checks="collect",
        threads=1,
    )
    expected = np.zeros((tokens, TOPK, inter))
    for expert in range(EXPERTS):
        token, place = np.nonzero(chosen == expert)
        w = w1[expert].astype(np.float64) * w1_scale[expert]
        gate, up = np.split((x[token].astype(np.float64) * x_scale[token]) @ w.T, 2, -1)
        if weighted:
            gate, up = (y * weights[token, place][:, None] for y in (gate, up))
        expected[token, place] = gate / (1 + np.exp(-gate)) * up
    assert aiter.relative_error(out, expected) < 3e-3
    assert launch.findings
    assert not aiter.unexplained(launch.findings, *FAULTS)
