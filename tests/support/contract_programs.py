"""Exported programs that were stored once, with what they gave then."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from contract_cases import PROBLEMS, SHARDED, Problem, gradient
from jax import export
from jax.sharding import AxisType, NamedSharding
from meshes import mesh_of

CALLS = ("jax_fa_divided", "jax_fa_flash", "jax_fa_varlen", "jax_fa_paged")


class Program(NamedTuple):
    """A problem, where it was exported for, and whether its bits are the same on every host."""

    problem: Problem
    implementation: str | None
    dtype: str
    platforms: tuple[str, ...] = ("cpu",)
    takes_gradient: bool = False

    def same_bits(self) -> bool:
        """The emulator's are; XLA adds in an order of the host's own."""
        return self.implementation is not None and not self.takes_gradient


PROGRAMS = {
    "dense_gfx950": Program(PROBLEMS["causal, window, soft cap"], "gfx950", "bfloat16"),
    "dense_gfx1201": Program(PROBLEMS["head size 40"], "gfx1201", "float16"),
    "dense_unnamed": Program(PROBLEMS["lengths"], None, "bfloat16", ("cpu", "rocm")),
    "lengths_gfx950": Program(PROBLEMS["lengths"], "gfx950", "bfloat16"),
    "dense_gradient": Program(PROBLEMS["head size 40"], "gfx950", "bfloat16", takes_gradient=True),
    "splits_gfx950": Program(PROBLEMS["splits"], "gfx950", "bfloat16"),
    "varlen_gfx950": Program(PROBLEMS["varlen"], "gfx950", "bfloat16"),
    "paged_gfx1201": Program(PROBLEMS["layout HND"], "gfx1201", "bfloat16"),
    "packed_gfx950": Program(PROBLEMS["paged packed prefill"], "gfx950", "bfloat16"),
    "divided_dense_gfx950": Program(SHARDED["dense"], "gfx950", "bfloat16"),
    "divided_varlen": Program(SHARDED["varlen"], None, "float32", ("cpu", "rocm")),
    "divided_paged_gfx1201": Program(SHARDED["paged"], "gfx1201", "bfloat16"),
    "divided_paged_gradient": Program(SHARDED["paged"], None, "float32", takes_gradient=True),
}


def write_programs(folder: Path) -> None:
    """Fails where the folder exists: what users have kept does not change."""
    folder.mkdir()
    digests: dict[str, Any] = {"jax": jax.__version__}
    results: dict[str, np.ndarray] = {}
    for name, program in PROGRAMS.items():
        stored = _export(program)
        (folder / f"{name}.bin").write_bytes(stored)
        found = run_program(stored, program)
        if program.same_bits():
            digests[name] = [digest(x) for x in found]
        else:
            for i, x in enumerate(found):
                results[f"{name}.{i}"] = x.astype(np.float16)
    (folder / "digests.json").write_text(json.dumps(digests, indent=1) + "\n")
    arrays: Any = results
    np.savez_compressed(folder / "results.npz", **arrays)


def _export(program: Program) -> bytes:
    problem = program.problem
    function = gradient(problem.on(program.implementation)) if program.takes_gradient else None
    function = function or problem.on(program.implementation)
    mesh = mesh_of(AxisType.Auto)
    placed: Any = {"in_shardings": tuple(NamedSharding(mesh, spec) for spec in problem.specs)}
    jitted = jax.jit(function, **(placed if problem.specs else {}))
    allowed = [export.DisabledSafetyCheck.custom_call(name) for name in CALLS]
    exported = export.export(jitted, platforms=program.platforms, disabled_checks=allowed)
    return bytes(exported(*problem.operands(program.dtype)).serialize())


def run_program(stored: bytes, program: Program) -> list[np.ndarray]:
    """Results of a stored program on the operands of its problem."""
    loaded = jax.jit(export.deserialize(bytearray(stored)).call)
    operands, specs = program.problem.operands(program.dtype), program.problem.specs
    if not specs:
        return [np.asarray(x) for x in jax.tree.leaves(loaded(*operands))]
    mesh = mesh_of(AxisType.Auto)
    with jax.set_mesh(mesh):
        results = loaded(
            *(
                jax.device_put(x, NamedSharding(mesh, s))
                for x, s in zip(operands, specs, strict=True)
            )
        )
    return [np.asarray(x) for x in jax.tree.leaves(results)]


def digest(array: np.ndarray) -> str:
    return f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"
