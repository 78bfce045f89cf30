"""Divided operations in JAX's persistent cache: one process finds what another has compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from meshes import mesh_of, place

from jax_fa import nn

SUPPORT = Path(__file__).parents[1] / "support"


def compiled_in_a_process(directory: Path, seed: str) -> dict[str, int]:
    """Names of programs, and how many entries each has added to the cache."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [*sys.path, str(SUPPORT)]))
    command = [sys.executable, SUPPORT / "cached_programs.py", directory]
    text = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    pairs = (line.rsplit(": ", 1) for line in text.stdout.splitlines())
    return {name: int(count) for name, count in pairs}


def test_a_second_process_compiles_nothing(tmp_path):
    first = compiled_in_a_process(tmp_path, "1")
    assert len(first) == 8
    assert min(first.values()) > 0
    assert compiled_in_a_process(tmp_path, "2") == dict.fromkeys(first, 0)


def test_programs_that_compute_otherwise_have_other_names():
    """The text is all that a cache sees of a divided operation."""
    x = jnp.ones((4, 6, 4, 16))
    placed = place([x], mesh_of(AxisType.Auto), [P("b")])

    def text(**options):
        attend = jax.jit(lambda x: nn.dot_product_attention(x, x, x, **options))
        return attend.lower(*placed).as_text()

    assert text() == text()
    with jax.default_matmul_precision("highest"):
        exact = text()
    others = [exact, text(scale=0.5), text(local_window_size=1)]
    assert len({text(), *others}) == 4


def test_programs_of_one_name_compile_in_any_order():
    """They share a rule, which lives until the last is compiled."""
    x = jnp.ones((4, 6, 4, 16))
    placed = place([x], mesh_of(AxisType.Auto), [P("b")])
    lowered = [jax.jit(lambda x: nn.dot_product_attention(x, x, x)).lower(*placed) for _ in "ab"]
    assert lowered[0].as_text() == lowered[1].as_text()
    del lowered[0]
    jax.clear_caches()
    out = lowered[0].compile()(*placed)
    assert jnp.allclose(out, 1)
