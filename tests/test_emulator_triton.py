"""Triton's kernels for both targets, compiled without a GPU, come out right and have no finding.

Skipped without Triton (``pip install triton``; it is in no extra, being large).
"""

from __future__ import annotations

import importlib.util

import ml_dtypes
import numpy as np
import pytest

from jax_fa import emulator

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed"
)

H, BLOCK_Q, WAVES = 128, 64, 4
LANES = {"gfx950": 64, "gfx1201": 32}
TYPES = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16}


def _compile(target: str, dtype: str) -> tuple[emulator.CodeObject, int]:
    """The kernel's code object, and the dynamic LDS that its launch takes."""
    import triton  # pyright: ignore[reportMissingImports]
    from triton.backends.compiler import GPUTarget  # pyright: ignore[reportMissingImports]
    from triton.compiler import ASTSource  # pyright: ignore[reportMissingImports]
    from triton_attention import attend

    constants = {"H": H, "BLOCK_Q": BLOCK_Q, "BLOCK_KV": 64}
    signature = dict.fromkeys(("query", "key", "value", "out"), f"*{dtype}")
    signature |= {"scale": "fp32", "rows": "i32", "keys": "i32"}
    signature |= dict.fromkeys(constants, "constexpr")
    compiled = triton.compile(
        ASTSource(attend, signature, constants),
        target=GPUTarget("hip", target, LANES[target]),
        options={"num_warps": WAVES},
    )
    return emulator.CodeObject(compiled.asm["hsaco"]), compiled.metadata.shared


@pytest.mark.filterwarnings("ignore")  # Triton's own
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("target", LANES)
def test_attention(target, dtype, monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    code, lds_bytes = _compile(target, dtype)
    rng = np.random.default_rng(0)
    rows, keys = 100, 230
    query, key, value = (
        rng.standard_normal((n, H), np.float32).astype(TYPES[dtype]) for n in (rows, keys, keys)
    )
    single = [operand.astype(np.float32) for operand in (query, key, value)]
    scores = single[0] @ single[1].T * np.float32(H**-0.5)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ single[2]
    bits = set()
    schedules: tuple[emulator.Schedule, ...] = (
        "round_robin",
        "run_to_barrier",
        "reverse",
        "random",
    )
    for schedule in schedules:
        out = np.zeros_like(query)
        args = [query, key, value, out, np.float32(H**-0.5), rows, keys]
        # Further arguments are scratch memory that this kernel does not use.
        args += [None] * (len(code.kernels["attend"].arguments) - len(args))
        launch = code.launch(
            "attend",
            -(-rows // BLOCK_Q),
            WAVES * LANES[target],
            args=args,
            lds_bytes=lds_bytes,
            schedule=schedule,
        )
        assert launch.findings == []
        assert np.abs(out.astype(np.float32) - expected).max() < 1e-2
        bits.add(out.tobytes())
    assert len(bits) == 1
