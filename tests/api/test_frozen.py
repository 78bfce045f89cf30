"""The package against what was stored of an earlier one: names, calls, kernels, exported programs.

A difference from contract.json is either a mistake or a change that users must be told of;
support/freeze.py says what to do about the latter. Stored programs must load for ever.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import contract
import contract_calls
import jax
import numpy as np
import pytest
from contract_cases import PROBLEMS, SHARDED
from contract_programs import PROGRAMS, digest, run_program

FROZEN = Path(__file__).parent / "frozen"
CONTRACT = json.loads((FROZEN / "contract.json").read_text())
PROGRAM_FILES = sorted(FROZEN.glob("*/*.bin"))


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize(
    ("part", "describe"),
    [
        ("names", contract.describe_names),
        ("ffi_targets", contract.describe_ffi_targets),
        ("kernels", contract.describe_kernels),
        ("command_line", contract.describe_command_line),
        ("environment", lambda: contract.environment_variables(contract.ROOT)),
        ("cmake_options", lambda: contract.cmake_options(contract.ROOT)),
    ],
)
def test_names_and_options(part, describe):
    assert as_json(describe()) == CONTRACT[part]


def test_every_problem_is_stored():
    assert list(CONTRACT["calls"]["lowered"]) == list(PROBLEMS)
    assert list(CONTRACT["calls"]["traced"]) == list(PROBLEMS)
    assert list(CONTRACT["calls"]["divided"]) == list(SHARDED)


@pytest.mark.parametrize("name", PROBLEMS)
def test_calls(name):
    """Handlers, operands in their order, results, attributes, layouts and aliases."""
    stored = CONTRACT["calls"]
    assert contract_calls.traced_calls(PROBLEMS[name]) == stored["traced"][name]
    assert contract_calls.lowered_calls(PROBLEMS[name]) == stored["lowered"][name]


@pytest.mark.parametrize("name", SHARDED)
def test_calls_of_four_devices(name):
    assert contract_calls.divided_calls(SHARDED[name]) == CONTRACT["calls"]["divided"][name]


@pytest.mark.parametrize("name", CONTRACT["calls"]["compilations"])
def test_compilations(name):
    assert contract_calls.compilations(name) == CONTRACT["calls"]["compilations"][name]


@pytest.mark.parametrize("path", PROGRAM_FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_stored_programs(path):
    program = PROGRAMS[path.stem]
    found = run_program(path.read_bytes(), program)
    if program.same_bits():
        expected = json.loads((path.parent / "digests.json").read_text())[path.stem]
        assert [digest(x) for x in found] == expected
        # So that a call and its handler do not change the order of operands together.
        problem = program.problem
        called = problem.on(program.implementation)(*problem.operands(program.dtype))
        assert [digest(np.asarray(x)) for x in jax.tree.leaves(called)] == expected
        return
    stored = np.load(path.parent / "results.npz")
    for i, array in enumerate(found):
        expected = stored[f"{path.stem}.{i}"]
        assert array.shape == expected.shape
        allowed = 2e-2 if array.dtype == "bfloat16" else 2e-3  # they are stored as float16
        np.testing.assert_allclose(
            np.asarray(array, np.float32), np.asarray(expected, np.float32), allowed, allowed
        )


def test_every_program_is_stored():
    assert {path.stem for path in PROGRAM_FILES} >= set(PROGRAMS)
