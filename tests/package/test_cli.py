"""The console script: what it writes where, and its exit status."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import jax
import pytest
from cases import IMPLEMENTATIONS
from sweeps import swept

import jax_fa
from jax_fa import _cli
from jax_fa._cli import demo as _demo
from jax_fa._contract import tolerance as _tolerance
from jax_fa._machine import system as _machine

KEYS = ["target", "op", "dtype", "shape", "causal", "out_max_err", "out_tolerance", "lse_max_err"]
KEYS += ["lse_tolerance", "wave_instructions", "seconds"]


@pytest.fixture
def small(monkeypatch):
    """The demo with one tiny case per target."""
    monkeypatch.setattr(_demo, "_SHAPE", {"B": 1, "T": 8, "S": 8, "N": 2, "K": 1, "H": 16})
    monkeypatch.setattr(_demo, "_DTYPES", ("bfloat16",))


def test_json_is_all_that_goes_to_stdout(tmp_path):
    script = Path(sysconfig.get_path("scripts")) / "jax-fa"
    done = subprocess.run([script, "--json"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert list(report) == ["version", "cases"]
    assert report["version"] == jax_fa.__version__
    assert {case["target"] for case in report["cases"]} == set(IMPLEMENTATIONS)
    for case in report["cases"]:
        assert list(case) == KEYS
        assert case["op"] == "flash_attention"
        assert case["causal"] is True
        assert list(case["shape"]) == ["B", "T", "S", "N", "K", "H"]
        assert case["shape"]["N"] > case["shape"]["K"] > 1
        assert 0 < case["out_max_err"] <= case["out_tolerance"]
        assert 0 < case["lse_max_err"] <= case["lse_tolerance"]
        assert case["seconds"] > 0
        if case["target"] == "xla":
            assert case["wave_instructions"] is None
        else:
            assert case["wave_instructions"] > 1000
        assert case["target"] in done.stderr  # progress


def test_python_m_runs_the_same(tmp_path):
    command = [sys.executable, "-m", "jax_fa", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == jax_fa.__version__


@pytest.mark.usefixtures("small")
def test_report_for_people(capsys):
    assert _cli.main([]) == 0
    written = capsys.readouterr()
    assert f"jax_fa {jax_fa.__version__}" in written.out
    assert "HIP devices" in written.out
    for implementation in IMPLEMENTATIONS:
        assert implementation in written.out
        assert implementation in written.err


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("limit", [0.0, float("nan")])
@pytest.mark.parametrize("options", [[], ["--json"], ["demo"]])
def test_fails_past_a_tolerance(monkeypatch, capsys, options, limit):
    monkeypatch.setattr(_tolerance, "out_tolerance", lambda value: limit)
    assert _cli.main(options) == 1
    assert "past its tolerance: xla" in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_a_case_that_fails_does_not_stop_the_others(monkeypatch, capsys):
    def fail_on_xla(place, dtype):
        if place.implementation == "xla":
            raise jax.errors.JaxRuntimeError("no device")
        return run_case(place, dtype)

    run_case = _demo._run_case
    monkeypatch.setattr(_demo, "_run_case", fail_on_xla)
    assert _cli.main(["--json"]) == 1
    written = capsys.readouterr()
    targets = {case["target"] for case in json.loads(written.out)["cases"]}
    assert targets == set(IMPLEMENTATIONS) - {"xla"}
    assert "failed: xla" in written.err
    assert "no device" in written.err


# JAX's CPU client by the name of rocm: under JAX_PLATFORMS=rocm the only one that JAX may start.
NO_CPU_BACKEND = """
import sys
from jax._src import xla_bridge
xla_bridge.register_backend_factory("rocm", xla_bridge.make_cpu_client, priority=500)
from jax_fa import _cli
from jax_fa._cli import demo
demo._SHAPE = {"B": 1, "T": 8, "S": 8, "N": 2, "K": 1, "H": 16}
sys.exit(_cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("platforms", swept(["rocm", "rocm,cpu"], ["rocm"]))
def test_rows_that_need_the_cpu_backend_say_so(platforms, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", NO_CPU_BACKEND, "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"JAX_PLATFORMS": platforms},
    )
    assert done.returncode == 0, done.stderr
    run = {case["target"] for case in json.loads(done.stdout)["cases"]}
    missing = {"rocm": set(IMPLEMENTATIONS) - {"xla"}, "rocm,cpu": set()}[platforms]
    assert run == set(IMPLEMENTATIONS) - missing
    for target in missing:
        assert f"{target}: not run: the emulator needs JAX's CPU backend" in done.stderr
        assert "JAX_PLATFORMS=rocm leaves out" in done.stderr


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_gpu_that_jax_has_no_plugin_for(monkeypatch, capsys, options):
    monkeypatch.setattr(_machine, "gpu_architectures", lambda: ["gfx1201"])
    monkeypatch.setattr(_machine, "why_driver_is_closed", lambda: None)
    monkeypatch.setattr(_machine, "plugins", list)
    assert _cli.main(options) == 0
    told = "an AMD GPU is here (gfx1201) and not used: JAX's ROCm plugin is not installed"
    assert told in capsys.readouterr().err


def test_unknown_options_are_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        _cli.main(["--jsn"])
    assert stopped.value.code == 2
    assert "--jsn" in capsys.readouterr().err
