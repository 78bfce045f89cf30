"""The command python benchmarks/run.py model: its report, and its samples against a full run."""

import json
import os
import sys

import model_runs
import pytest
import run as command
from cases import KERNEL_TARGETS

from jax_fa.emulator.timing import constants_hash


@pytest.fixture
def run(monkeypatch):
    def main(*words):
        monkeypatch.setattr(sys, "argv", ["run.py", "model", *map(str, words)])
        return command.main()

    return main


@pytest.mark.parametrize(("target", "case"), [("gfx950", "mha-1k"), ("gfx1201", "h32-1536")])
def test_report(run, capsys, tmp_path, target, case):
    files = tmp_path / "report.json", tmp_path / "trace.json"
    words = ("--target", target, "--case", case, "--no-check")
    assert run(*words, "--json", files[0], "--trace", files[1]) == 0
    report = json.loads(files[0].read_text())
    assert report["modelled"] is True
    assert report["target"] == target
    (row,) = report["cases"]
    assert row["case"] == case
    assert row["who"] == "jax_fa"
    assert 0 < row["useful_busy"] <= 1
    assert 0 < row["matrix_busy"] <= 1
    assert row["to_floor"] >= 1
    assert row["waves_per_simd"] >= 1
    assert row["tflops"] > 0
    assert row["variants"]
    assert row["constants"] == constants_hash(target)
    for who, figure in row["published_tflops"].items():
        assert row["deviation"][who] == pytest.approx(row["tflops"] / figure - 1)
    assert report["kernels"][0]["sensitivity"]
    assert any(event["ph"] == "X" for event in json.loads(files[1].read_text())["traceEvents"])
    written = capsys.readouterr().out
    assert "Modelled throughout" in written
    assert f"{row['tflops']:.0f} TFLOP/s" in written
    assert f"constants {row['constants']}" in written


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_samples_against_a_full_run(monkeypatch, target):
    small = {"gfx950": (600, 5), "gfx1201": (300, 12)}[target]
    t, heads = small
    case = model_runs.Case("small", target, 1, t, heads, heads, 128, True, {})
    monkeypatch.setitem(model_runs._CHECKS, target, case)
    assert abs(model_runs.check_sampling(target)["difference"]) < 0.02


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--case", "none"), "no case none"),
        (("--peer", "someone=else"), "--peer must be"),
        (("--peer", "aiter=/nowhere"), "folder"),
    ],
)
def test_bad_words(run, capsys, words, said):
    assert run("--target", "gfx950", *words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.skipif("JAX_FA_AITER" not in os.environ, reason="JAX_FA_AITER names no folder")
def test_aiter_is_placed_where_it_was_measured(run, tmp_path):
    file = tmp_path / "report.json"
    words = ("--target", "gfx950", "--case", "mha-4k", "--no-check", "--json", file)
    assert run(*words, "--peer", f"aiter={os.environ['JAX_FA_AITER']}/fmha_v3_fwd") == 0
    report = json.loads(file.read_text())
    (row,) = (row for row in report["cases"] if row["who"] == "aiter")
    assert abs(row["deviation_of_calls"]) < 0.1
    (kernel,) = (kernel for kernel in report["kernels"] if kernel["name"].startswith("aiter"))
    # Two tiles of 64 keys and 32 rows a trip.
    for clk in kernel["slot_rule_clk"]:
        assert clk / 2 / 32 == pytest.approx(34.9, abs=0.5)
