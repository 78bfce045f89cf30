"""jax-fa check: its answer for every situation that a machine may be in, each faked.

What is faked is what the command looks at: the kernel driver's files, the installed distributions,
JAX's devices, HIP's devices and the files that this process has mapped.
"""

import json
import logging
import os
import subprocess
import sys
import types

import jax
import pytest

from jax_fa import _cli, _native
from jax_fa._cli import check as _check
from jax_fa._machine import system as _machine

CPU = types.SimpleNamespace(platform="cpu", local_hardware_id=0, name="cpu:0")


class Device:
    """A ROCm device of JAX, which calls it a GPU's."""

    platform = "gpu"
    client = types.SimpleNamespace(platform="rocm", _raw_platform="rocm")

    def __init__(self, ordinal):
        self.local_hardware_id = ordinal

    def __str__(self):
        return f"rocm:{self.local_hardware_id}"


class Machine:
    """A machine with an AMD GPU and nothing wrong; a test changes it, then asks."""

    def __init__(self, monkeypatch, folder):
        self.nodes = folder / "nodes"
        self.kfd = folder / "kfd"
        self.maps = folder / "maps"
        self.plugins = [("jax-rocm7-pjrt", jax.__version__), ("jax-rocm7-plugin", jax.__version__)]
        self.rocm = [Device(0)]
        self.hip = ["gfx1201"]
        self.says = None
        self.kfd.touch()
        self.maps.write_text("")
        self.gpus(120001)
        monkeypatch.setattr(_machine, "_NODES", self.nodes)
        monkeypatch.setattr(_machine, "_DEVICE", self.kfd)
        monkeypatch.setattr(_machine, "_MAPS", self.maps)
        monkeypatch.setattr("importlib.metadata.distributions", self._distributions)
        monkeypatch.setattr(jax, "local_devices", self._local_devices)
        monkeypatch.setattr(_native, "hip_devices", self._hip_devices)

    def gpus(self, *versions):
        """What the driver knows: node 0 is the CPU's."""
        for index, version in enumerate([0, *versions]):
            node = self.nodes / str(index)
            node.mkdir(parents=True, exist_ok=True)
            (node / "properties").write_text(
                f"cpu_cores_count 16\ngfx_target_version {version}\nvendor_id 4098\n"
            )

    def no_gpu(self):
        for node in self.nodes.iterdir():
            (node / "properties").unlink()
        self.rocm = []

    def _distributions(self):
        return [
            types.SimpleNamespace(metadata={"Name": name}, version=version)
            for name, version in [("jax", jax.__version__), (None, "0"), *self.plugins]
        ]

    def _local_devices(self, backend=None):
        if self.says is not None and backend is None:
            self.says()
        devices = {None: self.rocm or [CPU], "rocm": self.rocm, "cpu": [CPU]}[backend]
        if not devices:
            raise RuntimeError(f"Unknown backend {backend}")
        return devices

    def _hip_devices(self):
        if isinstance(self.hip, Exception):
            raise self.hip
        return self.hip


@pytest.fixture
def machine(monkeypatch, tmp_path):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    return Machine(monkeypatch, tmp_path)


@pytest.fixture
def ask(capsys):
    """The exit status and the report of jax-fa check --json."""

    def ask():
        status = _cli.main(["check", "--json"])
        written = capsys.readouterr()
        assert not written.err
        report = json.loads(written.out)
        assert status == (0 if report["kernels"] else 1)
        assert bool(report["because"]) != report["kernels"]
        return report

    return ask


def test_kernels_are_used(machine, ask):
    report = ask()
    assert report["kernels"]
    assert report["notes"] == []
    assert report["gpus"] == ["gfx1201"]
    assert [plugin["name"] for plugin in report["plugins"]] == [
        "jax-rocm7-pjrt",
        "jax-rocm7-plugin",
    ]
    assert report["devices"][0] == {
        "name": "rocm:0",
        "platform": "rocm",
        "architecture": "gfx1201",
        "implementation": "gfx1201",
    }
    assert report["devices"][1]["implementation"] == "xla"
    assert report["versions"]["jax"] == jax.__version__
    assert report["code_objects"]["gfx950"]["bytes"] == len(_native.code_object("gfx950"))


def test_report_for_people(machine, capsys):
    assert _cli.main(["check"]) == 0
    written = capsys.readouterr().out
    assert "Kernels will be used on rocm:0 (gfx1201)." in written
    machine.no_gpu()
    assert _cli.main(["check"]) == 1
    written = capsys.readouterr().out
    assert "Kernels will not be used: the kernel driver, amdgpu, knows no AMD GPU" in written


def test_no_gpu_leaves_hip_alone(machine, ask):
    machine.no_gpu()
    machine.hip = AssertionError("HIP was asked")
    report = ask()
    assert report["gpus"] == []
    assert len(report["because"]) == 1
    assert "no AMD GPU" in report["because"][0]


@pytest.mark.parametrize(
    ("version", "architecture"),
    {
        90500: "gfx950",
        90402: "gfx942",
        90010: "gfx90a",
        120001: "gfx1201",
        120000: "gfx1200",
        110000: "gfx1100",
        100306: "gfx1036",
    }.items(),
)
def test_the_driver_names_architectures(machine, version, architecture):
    machine.gpus(version)
    assert _machine.gpu_architectures() == [architecture]


def test_gpus_keep_the_order_of_their_nodes(machine):
    machine.gpus(*[90500] * 9, 120001)  # node 10 comes after node 9, not after 1
    assert _machine.gpu_architectures() == ["gfx950"] * 9 + ["gfx1201"]


def no_devices(machine):
    machine.rocm = []


def test_a_container_without_the_device(machine, ask):
    no_devices(machine)
    machine.kfd.unlink()
    assert "--device=/dev/kfd" in ask()["because"][0]


def test_a_user_outside_the_group(machine, ask, monkeypatch):
    no_devices(machine)
    monkeypatch.setattr(os, "access", lambda path, mode: path != machine.kfd)
    assert "group" in ask()["because"][0]


@pytest.mark.parametrize("version", ["3.11.7", "3.12.1", "3.14.0"])
def test_no_plugin(machine, ask, monkeypatch, version):
    no_devices(machine)
    machine.plugins = []
    monkeypatch.setattr("platform.python_version", lambda: version)
    (reason,) = ask()["because"]
    assert "plugin is not installed; pip install 'jax_fa[rocm]'" in reason
    assert ("Python 3.11.7 gets JAX 0.10" in reason) == (version == "3.11.7")


@pytest.mark.parametrize("part", ["plugin", "pjrt"])
def test_half_a_plugin(machine, ask, part):
    no_devices(machine)
    machine.plugins = [(f"jax_rocm10_{part}", jax.__version__)]
    other = {"plugin": "pjrt", "pjrt": "plugin"}[part]
    (reason,) = ask()["because"]
    assert f"jax-rocm10-{part} is installed without jax-rocm10-{other}" in reason


def test_platforms_that_leave_rocm_out(machine, ask, monkeypatch):
    no_devices(machine)
    for platforms, left_out in [("cpu", True), ("cuda,cpu", True), ("cpu,rocm", False)]:
        monkeypatch.setattr(_check, "_platforms", lambda platforms=platforms: platforms)
        machine.says = lambda: logging.getLogger("jax._src.xla_bridge").warning("something")
        told = any(f'JAX_PLATFORMS is "{platforms}"' in reason for reason in ask()["because"])
        assert told == left_out


def test_a_plugin_that_fails_at_its_start(machine, ask):
    def fail():
        try:
            raise ValueError("xla_rocm_plugin.so: libamdhip64.so.7: cannot open shared object file")
        except ValueError:
            logging.getLogger("jax._src.xla_bridge").exception("Jax plugin configuration error:")

    no_devices(machine)
    machine.says = fail
    (reason,) = ask()["because"]
    assert reason.startswith("JAX says: Jax plugin configuration error: xla_rocm_plugin.so")
    assert "libamdhip64.so.7 is ROCm's own" in reason
    assert "LD_LIBRARY_PATH" in reason


def test_jax_that_does_not_start(machine, ask):
    def fail():
        raise RuntimeError("Unable to initialize backend 'rocm': out of memory.")

    no_devices(machine)
    machine.says = fail
    assert ask()["because"] == ["JAX says: Unable to initialize backend 'rocm': out of memory"]


def test_a_plugin_that_says_nothing(machine, ask):
    no_devices(machine)
    (reason,) = ask()["because"]
    assert "does not say why; JAX_PLATFORMS=rocm,cpu" in reason


def test_two_gpus_of_which_one_is_ours(machine, ask):
    machine.gpus(100306, 120001)
    machine.rocm, machine.hip = [Device(0), Device(1)], ["gfx1036", "gfx1201"]
    report = ask()
    assert report["kernels"]
    assert [device["implementation"] for device in report["devices"]] == ["xla", "gfx1201", "xla"]
    (note,) = report["notes"]
    assert "rocm:0 is a gfx1036" in note


def test_architectures_go_by_the_hardware_id(machine, ask):
    machine.rocm, machine.hip = [Device(1)], ["gfx1036", "gfx1201"]  # HIP's first is not JAX's
    assert ask()["devices"][0]["architecture"] == "gfx1201"


@pytest.mark.parametrize("with_plugin", [False, True])
def test_a_gpu_that_anothers_kernels_serve(machine, ask, with_plugin):
    machine.gpus(120000)
    machine.hip = ["gfx1200"]
    if with_plugin:
        report = ask()
        assert report["kernels"]
        assert report["devices"][0]["architecture"] == "gfx1200"
        assert report["devices"][0]["implementation"] == "gfx1201"
    else:
        no_devices(machine)
        machine.plugins = []
        (reason,) = ask()["because"]
        assert "plugin is not installed" in reason


def test_jax_says_what_its_devices_are(machine, ask):
    machine.rocm[0].compute_capability = "gfx950"
    machine.hip = AssertionError("HIP was asked")
    assert ask()["devices"][0]["architecture"] == "gfx950"


@pytest.mark.parametrize("with_plugin", [False, True])
def test_a_gpu_without_kernels(machine, ask, with_plugin):
    machine.gpus(90402)
    machine.hip = ["gfx942"]
    if not with_plugin:
        no_devices(machine)
        machine.plugins = []
    because = " ".join(ask()["because"])
    assert "there are kernels for gfx950 and gfx1201" in because
    assert "gfx942" in because


@pytest.mark.parametrize("hip", [RuntimeError("hipGetDeviceCount: hipErrorUnknown 999"), []])
def test_hip_does_not_answer(machine, ask, hip):
    machine.hip = hip
    (reason,) = ask()["because"]
    assert "rocm:0" in reason
    assert "hipErrorUnknown" in reason or "HIP has 0 devices" in reason


@pytest.mark.parametrize(
    ("of_jax", "of_plugin", "agree"),
    [("0.12.0.1", "0.12.0", True), ("0.10.0", "0.10.0.post1", True), ("0.10.2", "0.12.0", False)],
)
def test_versions_that_do_not_agree(machine, ask, monkeypatch, of_jax, of_plugin, agree):
    monkeypatch.setattr(jax, "__version__", of_jax)
    machine.plugins = [("jax-rocm7-pjrt", of_plugin), ("jax-rocm7-plugin", of_plugin)]
    told = [note for note in ask()["notes"] if f"{of_plugin} is not of JAX {of_jax}" in note]
    assert len(told) == (0 if agree else 2)


def test_two_plugins(machine, ask):
    machine.plugins += [(f"jax-rocm10-{part}", jax.__version__) for part in ("plugin", "pjrt")]
    assert any("more than one ROCm" in note for note in ask()["notes"])


def test_two_hip_libraries(machine, ask):
    files = ["/opt/rocm/lib/libamdhip64.so.7.1", "/venv/with space/libamdhip64.so.7"]
    lines = [f"7f0-7f1 r-xp 00000000 fe:00 12    {file}\n" for file in files * 2]
    machine.maps.write_text("".join(lines) + "7f2-7f3 rw-p 00000000 00:00 0\n")
    report = ask()
    assert report["hip_libraries"] == sorted(files)
    assert any(" and ".join(sorted(files)) in note for note in report["notes"])


def test_a_build_without_code_objects(machine, ask, monkeypatch):
    monkeypatch.setattr(_native, "code_object", lambda target: b"")
    assert any("no code objects" in reason for reason in ask()["because"])


@pytest.mark.parametrize("command", ["check", "demo"])
def test_a_platform_that_is_not_here(command, tmp_path):
    environment = os.environ | {"JAX_PLATFORMS": "rocm"}
    done = subprocess.run(
        [sys.executable, "-m", "jax_fa", command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert (done.stdout + done.stderr).count("Unable to initialize backend 'rocm'") == 1
