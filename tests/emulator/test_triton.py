"""Triton's kernels for both targets, compiled without a GPU, come out right and have no finding.

They are those of the timing model's benchmark (benchmarks/peer_triton.py); skipped without the
extra "peers", which is large.
"""

from __future__ import annotations

import importlib.util
from typing import get_args

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import peer_triton
import pytest
from cases import KERNEL_TARGETS

from jax_fa import emulator, reference

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("triton") is None, reason="Triton is not installed"
    ),
    pytest.mark.filterwarnings("ignore"),  # Triton's own
]

T = 256
TYPES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def _operands(dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    query, key, value = (
        rng.standard_normal((1, T, heads, 128), np.float32).astype(TYPES[dtype])
        for heads in (2, 1, 1)
    )
    return query, key, value


def _error(out: np.ndarray, operands: tuple[np.ndarray, ...], causal: bool) -> float:
    single = (jnp.asarray(x, jnp.float32) for x in operands)
    expected = reference.flash_attention(*single, causal=causal)
    return float(np.abs(out.astype(np.float32) - np.asarray(expected)).max())


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "triton"))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_every_configuration(target, causal):
    operands = _operands("bfloat16")
    for config in peer_triton.CONFIGS[target]:
        _, out = peer_triton.launch(target, config, operands, causal)
        assert _error(out, operands, causal) < 2.5e-2, config


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_every_schedule(target, dtype):
    operands = _operands(dtype)
    config = peer_triton.CONFIGS[target][0]
    bits = set()
    for schedule in get_args(emulator.Schedule):
        launch, out = peer_triton.launch(target, config, operands, True, schedule=schedule)
        assert launch.findings == []
        assert _error(out, operands, True) < 1e-2
        bits.add(out.tobytes())
    assert len(bits) == 1
