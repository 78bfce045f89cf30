"""Kernels built with other decisions of the schedule: right, and other code than the shipped."""

import dataclasses
import functools
import json
import sys

import ablations
import numpy as np
import pytest
import run as command
from kernel_runs import assert_near, attention
from model_runs import operands

from jax_fa import _native, emulator
from jax_fa.emulator.listing import count, listing
from jax_fa.emulator.loops import find_hot_loops

pytest.importorskip("ziglang", reason="compiles device code")

SLOW = [name for name in ablations.SWITCHES if name not in ("shipped", "no priority")]


@functools.cache
def built(folder, name):
    return ablations.build(folder, ablations.SWITCHES[name])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ablations")


def loops_of(code):
    loops = find_hot_loops(listing(code, ablations.KERNEL))
    return [count(ablations.TARGET, loop) for loop in loops]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "name",
    ["shipped", "no priority", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)],
)
def test_every_build_is_right(folder, name, causal):
    case = dataclasses.replace(ablations.DENSE, t=450, s=700)
    query, key, value = operands(case)
    launched, out, lse = ablations.launch(
        built(folder, name), query, key, value, causal, None, schedule="random", seed=3
    )
    assert launched.findings == []
    expected = attention(query[0], key[0], value[0], causal=causal)
    assert_near((out[0], lse[0]), expected, value, ablations.TARGET)


def test_without_switches_it_is_what_is_shipped(folder):
    shipped = emulator.CodeObject(_native.code_object(ablations.TARGET))
    code = built(folder, "shipped")
    assert loops_of(code) == loops_of(shipped)
    assert code.kernels[ablations.KERNEL].vgprs == shipped.kernels[ablations.KERNEL].vgprs


@pytest.mark.parametrize(
    "name", ["no priority", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_every_switch_changes_the_code(folder, name):
    texts = [
        [instruction.mnemonic for instruction in listing(built(folder, which), ablations.KERNEL)]
        for which in ("shipped", name)
    ]
    assert texts[0] != texts[1]


@pytest.mark.slow  # compiles and models each build
def test_report(monkeypatch, capsys, tmp_path):
    file = tmp_path / "report.json"
    words = ["run.py", "ablations", "--only", "shipped", "--only", "no priority"]
    monkeypatch.setattr(sys, "argv", [*words, "--json", str(file)])
    assert command.main() == 0
    shipped, other = json.loads(file.read_text())
    assert shipped["spills"] == other["spills"] == 0
    assert shipped["clk"] < other["clk"]
    assert shipped["causal_tflops"] > other["causal_tflops"]
    assert np.isfinite(list(map(float, (shipped["late_clk"], shipped["dense_tflops"])))).all()
    assert "| no priority |" in capsys.readouterr().out
