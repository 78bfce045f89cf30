"""Compiles divided operations with JAX's persistent cache, and prints what it wrote there.

    python cached_programs.py DIRECTORY

For a process of its own, of which test_sharding_cached.py starts two.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax

jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_disable_most_optimizations", True)
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

from contract_cases import SHARDED, gradient  # noqa: E402
from jax.sharding import AxisType  # noqa: E402
from meshes import mesh_of, place  # noqa: E402
from operations import OPERATIONS  # noqa: E402


def main(directory: Path) -> None:
    mesh = mesh_of(AxisType.Auto)
    for name, problem in SHARDED.items():
        placed = place(problem.operands("float32"), mesh, problem.specs)
        for direction, f in (
            ("forward", problem.on(None)),
            ("gradient", gradient(problem.on(None))),
        ):
            run(directory, f"{name} {direction}", f, placed)
    for name in ("nn, mask", "append to pages"):
        operation = OPERATIONS[name]
        operands = operation.problem.operands("bfloat16")
        placed = place(operands, mesh, operation.specs("b", None))
        run(directory, name, operation.problem.on(None), placed)


def run(directory, name, f, operands):
    before = set(directory.iterdir())
    jax.block_until_ready(jax.jit(f)(*operands))
    print(f"{name}: {len(set(directory.iterdir()) - before)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
