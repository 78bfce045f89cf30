"""Kernels or xla where no implementation is named: chosen at lowering, by the program's devices.

No AMD GPU is here: JAX's CPU devices are given architectures, and programs are lowered for ROCm.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import types
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compilers import build_library
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from packs import Cache, Pack

from jax_fa import _native, flash_attention, flash_attention_varlen, paged_attention
from jax_fa._contract.spec import AttentionSpec
from jax_fa._machine import devices as _devices
from jax_fa._machine import system as _system
from jax_fa._ops import choice as _choice
from jax_fa._ops import dense
from jax_fa._ops.operation import make_forward

ROWS = P("x")


@pytest.fixture(autouse=True)
def warned():
    """The warnings of the test, none of which any other has had."""
    caches = _choice._warn_once, _choice._warn_of_an_idle_gpu
    for cache in caches:
        cache.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def gpus(monkeypatch):
    """Has JAX's devices be GPUs of these architectures, in order."""

    def gpus(*architectures):
        by_id = dict(enumerate(architectures))
        monkeypatch.setattr(_devices, "architecture", lambda device: by_id.get(device.id))

    return gpus


def operand(sharding=None):
    x = jnp.zeros((4, 8, 2, 64), jnp.bfloat16)
    return x if sharding is None else jax.device_put(x, sharding)


def attend(x):
    return flash_attention(x, x, x, causal=True)


def lowered(f, *operands, platforms=("rocm",)):
    """The program of a function that nothing else has lowered."""
    return jax.jit(lambda *x: f(*x)).trace(*operands).lower(lowering_platforms=platforms).as_text()


def has_kernels(text):
    calls, products = "@jax_fa_" in text, "dot_general" in text
    assert calls != products
    return calls


def mesh_of(*numbers, kind=AxisType.Explicit):
    return Mesh(np.array([jax.devices()[i] for i in numbers]), ("x",), axis_types=(kind,))


# --- One device -----------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["gfx950", "gfx1201", "gfx1200"])
def test_kernels(gpus, warned, architecture):
    gpus(architecture)
    assert has_kernels(lowered(attend, operand()))
    assert not warned


@pytest.mark.parametrize("architecture", ["gfx942", "gfx1100", "gfx9999"])
def test_another_architecture_gets_xla_and_one_warning(gpus, warned, architecture):
    gpus(architecture)
    for _ in range(3):
        assert not has_kernels(lowered(attend, operand()))
    (warning,) = warned
    text = str(warning.message)
    assert f'implementation="xla" on {architecture}' in text
    assert "kernels for gfx950 and gfx1201 alone" in text


def test_xla_by_name_warns_of_nothing(gpus, warned):
    gpus("gfx942")
    assert not has_kernels(
        lowered(lambda x: flash_attention(x, x, x, implementation="xla"), operand())
    )
    assert not warned


def test_an_integrated_gpu_beside_disables_nothing(gpus, warned):
    gpus("gfx1036", "gfx1201")
    integrated, own = jax.devices()[:2]
    assert has_kernels(lowered(attend, operand(own)))
    assert not warned
    assert not has_kernels(lowered(attend, operand(integrated)))
    assert len(warned) == 1
    # One function of both, whose lowered program for the one is not taken for the other.
    f = jax.jit(attend)
    for device, expected in ((integrated, False), (own, True), (integrated, False)):
        text = f.trace(operand(device)).lower(lowering_platforms=("rocm",)).as_text()
        assert has_kernels(text) == expected


def test_lengths_of_one_sequence(gpus):
    """An operand without dimensions is divided by no rule, which makes for another way down."""
    gpus("gfx1036", "gfx1201")

    def attend(x, length):
        return flash_attention(x, x, x, key_lengths=length)

    for device, expected in zip(jax.devices()[:2], (False, True), strict=True):
        x = jax.device_put(jnp.zeros((8, 2, 64), jnp.bfloat16), device)
        assert has_kernels(lowered(attend, x, jax.device_put(jnp.int32(3), device))) == expected


@pytest.mark.parametrize("architecture", ["gfx950", "gfx942"])
def test_packed_and_paged(gpus, architecture):
    gpus(architecture)
    pack, cache = Pack("", ((3, 5), (7, 9)), h=16), Cache("", ((3, 5), (1, 9)), h=16, page_size=4)

    def packed(q, k, v, cu_q, cu_k):
        return flash_attention_varlen(q, k, v, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k)

    operands = *pack.operands("bfloat16"), *pack.offsets().values()
    assert has_kernels(lowered(packed, *operands)) == (architecture == "gfx950")
    text = lowered(paged_attention, *cache.operands("bfloat16"))
    assert has_kernels(text) == (architecture == "gfx950")


# --- Several platforms and export -----------------------------------------------------------------


def test_other_platforms_do_not_look(monkeypatch, warned):
    monkeypatch.setattr(_devices, "architecture", None)
    for platform in ("cpu", "cuda"):
        assert not has_kernels(lowered(attend, operand(), platforms=(platform,)))
    assert not warned


def test_each_platforms_own_code(gpus, warned):
    gpus("gfx942")
    assert "@jax_fa_" not in lowered(attend, operand(), platforms=("cuda", "rocm"))
    assert len(warned) == 1
    gpus("gfx950")
    text = lowered(attend, operand(), platforms=("cuda", "rocm"))
    assert "@jax_fa_" in text
    assert "dot_general" in text


def test_a_program_for_export_does_not_look(gpus, warned):
    gpus("gfx942")
    allowed = [jax.export.DisabledSafetyCheck.custom_call("jax_fa_flash")]
    program = jax.export.export(jax.jit(attend), platforms=("rocm",), disabled_checks=allowed)
    assert has_kernels(program(operand()).mlir_module())
    assert not warned


# --- Meshes ---------------------------------------------------------------------------------------

PLACES = ["gfx1036", "gfx1201", "gfx1200", "gfx950"]


def _lowered_over_a_mesh_in_context(mesh):
    with jax.set_mesh(mesh):
        return lowered(attend, operand(NamedSharding(mesh, ROWS)))


def _lowered_in_shard_map(mesh):
    f = jax.shard_map(attend, mesh=mesh, in_specs=ROWS, out_specs=ROWS)
    return lowered(f, operand(NamedSharding(mesh, ROWS)))


def _lowered_by_the_partitioner(mesh):
    """A device's own part, as custom_partitioning lowers it while a program is compiled."""
    return _lowered_part(Mesh(mesh.devices, ("x",), axis_types=(AxisType.Auto,)))


def _lowered_part(mesh):
    from jax._src.interpreters import mlir
    from jax.interpreters.mlir import SPMDAxisContext

    spec = AttentionSpec.make(head_dim=64)
    part = make_forward(dense.OPERATION, spec).function
    jaxpr = jax.make_jaxpr(lambda x: part(x, x, x, None, None, None, None))(operand())
    context = SPMDAxisContext(mesh, frozenset(mesh.axis_names))
    options: Any = {"platforms": ("rocm",), "backend": None, "axis_context": context}
    return mlir.module_to_string(mlir.build_mlir_module_helper(jaxpr, name="part", **options))


@pytest.mark.parametrize(
    "lower",
    [_lowered_over_a_mesh_in_context, _lowered_in_shard_map, _lowered_by_the_partitioner],
    ids=["context", "shard_map", "partitioner"],
)
@pytest.mark.parametrize(
    ("numbers", "expected"),
    [((1, 1), True), ((1, 2), True), ((0, 1), False), ((1, 0), False), ((1, 3), False)],
)
def test_a_mesh_of_gpus_that_one_target_serves(gpus, warned, lower, numbers, expected):
    """Whatever else is in the machine: the first device, an integrated GPU, is in no mesh."""
    gpus("gfx1036", *(PLACES[i] for i in numbers))
    assert has_kernels(lower(mesh_of(1, 2))) == expected
    assert len(warned) == (0 if expected else 1)
    if warned:
        assert "over unlike GPUs" in str(warned[0].message)
        assert "mesh of GPUs that are alike" in str(warned[0].message)


@pytest.fixture
def here(monkeypatch):
    """Has these be JAX's AMD GPUs: (kind, architecture) of each."""

    def here(*found):
        devices = [types.SimpleNamespace(device_kind=x, architecture=y) for x, y in found]

        def local_devices(backend):
            if not devices:
                raise RuntimeError(f"Unknown backend {backend}")
            return devices

        monkeypatch.setattr(jax, "local_devices", local_devices)
        monkeypatch.setattr(_devices, "architecture", lambda device: device.architecture)

    return here


@pytest.mark.parametrize(
    ("found", "expected"),
    [(["gfx1201"], True), (["gfx1036", "gfx1201"], True), (["gfx942"], False), ([], True)],
)
def test_a_part_of_an_exported_program(here, warned, found, expected):
    """Its mesh has no devices; it is compiled for some of those that are here."""
    here(*((f"kind of {x}", x) for x in found))
    assert has_kernels(_lowered_part(jax.sharding.AbstractMesh((2,), ("x",)))) == expected
    assert len(warned) == (not expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([("cpu", "gfx1201"), ("other", "gfx1036")], True),
        ([("cpu", "gfx1036"), ("other", "gfx1201")], False),
        ([("cpu", "gfx942")], False),
        ([], True),
    ],
)
def test_explicit_axes_of_a_mesh_that_is_not_set(here, warned, found, expected):
    """Of its devices, which are CPUs in truth, JAX keeps the kind of the first alone."""
    x = operand(NamedSharding(mesh_of(0, 1), ROWS))
    here(*found)
    assert has_kernels(lowered(attend, x)) == expected
    assert len(warned) == (not expected)


def test_an_abstract_mesh_can_still_be_exported_for():
    mesh = jax.sharding.AbstractMesh((2,), ("x",), axis_types=(AxisType.Explicit,))
    x = jax.ShapeDtypeStruct((4, 8, 2, 64), jnp.bfloat16, sharding=NamedSharding(mesh, ROWS))
    allowed = [jax.export.DisabledSafetyCheck.custom_call("jax_fa_flash")]
    with jax.sharding.use_abstract_mesh(mesh):
        program = jax.export.export(jax.jit(attend), platforms=("rocm",), disabled_checks=allowed)(
            x
        )
    assert has_kernels(program.mlir_module())


# --- What JAX and HIP say of a device -------------------------------------------------------------


class Device:
    """An AMD GPU of JAX, which calls it so."""

    platform = "gpu"
    client = types.SimpleNamespace(_raw_platform="rocm")
    local_hardware_id = 1

    def __init__(self, **attributes):
        vars(self).update(attributes)


@pytest.fixture
def machine(monkeypatch):
    """Has these be JAX's AMD GPUs, and HIP answer so."""

    def machine(devices, hip):
        def answer():
            if isinstance(hip, Exception):
                raise hip
            return hip

        monkeypatch.setattr(_native, "hip_devices", answer)
        monkeypatch.setattr(jax, "local_devices", lambda backend: devices)

    return machine


def test_jax_says_without_hip(machine):
    device = Device(compute_capability="gfx942:sramecc+:xnack-")
    machine([device], AssertionError("HIP was asked"))
    assert _devices.architecture(device) == "gfx942"


def test_devices_that_jax_leaves_out_count(machine):
    """jax_rocm_visible_devices=1: JAX's only device is HIP's second."""
    device = Device()
    machine([device], ["gfx1036", "gfx1201"])
    assert _devices.architecture(device) == "gfx1201"


def test_a_device_that_nobody_here_knows(machine):
    machine([Device()], AssertionError("HIP was asked"))
    assert _devices.architecture(Device()) is None
    assert _devices.architecture(jax.devices("cpu")[0]) is None
    other = Device(client=types.SimpleNamespace(_raw_platform="cuda"), compute_capability="9.0")
    assert _devices.architecture(other) is None


@pytest.mark.parametrize("hip", [RuntimeError("more than one HIP library is loaded"), []])
def test_hip_does_not_answer(machine, monkeypatch, warned, hip):
    device = Device()
    machine([device], hip)
    monkeypatch.setattr(_choice, "_devices_of", lambda context: (device,))
    assert not has_kernels(lowered(attend, operand()))
    (warning,) = warned
    assert "architecture is not known, so attention runs xla" in str(warning.message)
    assert "HIP library" in str(warning.message) or "HIP has 0 devices" in str(warning.message)


# --- A GPU that JAX does not use ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("architectures", "told", "warns"),
    [
        (["gfx1201"], False, True),
        (["gfx1036", "gfx1200"], False, True),
        (["gfx1201"], True, False),
        (["gfx1036"], False, False),
        ([], False, False),
    ],
)
def test_an_idle_gpu(monkeypatch, warned, architectures, told, warns):
    """The plugin is not installed, or is broken: JAX goes to the CPU and may not say so."""
    monkeypatch.setattr(_system, "gpu_architectures", lambda: architectures)
    monkeypatch.setattr(_system, "is_told_to_leave_gpus", lambda: told)
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    for _ in range(2):
        lowered(attend, operand(), platforms=("cpu",))
    assert len(warned) == warns
    if warned:
        assert "jax-fa check says what is missing" in str(warned[0].message)
        assert architectures[-1] in str(warned[0].message)


def test_what_tells_a_process_to_leave_gpus(monkeypatch):
    for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_system, "_jax_platforms", lambda: None)
    assert not _system.is_told_to_leave_gpus()
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "0")
    assert not _system.is_told_to_leave_gpus()
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "")
    assert _system.is_told_to_leave_gpus()
    monkeypatch.delenv("HIP_VISIBLE_DEVICES")
    monkeypatch.setattr(_system, "_jax_platforms", lambda: "cpu")
    assert _system.is_told_to_leave_gpus()


# --- Processes ------------------------------------------------------------------------------------

# A HIP library every function of which ends the process: one that is loaded, as the plugin's import
# loads it, and must not be called.
TOUCH_ME_NOT = "#include <cstdlib>\n" + "".join(
    f'extern "C" void {name}() {{ std::abort(); }}\n'
    for name in (
        *("hipInit", "hipGetDeviceCount", "hipGetDevice", "hipSetDevice", "hipModuleLoadData"),
        *("hipModuleGetFunction", "hipModuleLaunchKernel", "hipMemsetAsync", "hipMemsetD32Async"),
        *("hipGetLastError", "hipGetErrorName", "hipGetErrorString", "hipGetDeviceProperties"),
        "hipGetDevicePropertiesR0600",
    )
)


def run(code, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}


def test_a_process_of_the_cpu_leaves_hip_alone(tmp_path):
    library = build_library(tmp_path / "libamdhip64.so.7", TOUCH_ME_NOT)
    code = """
        import ctypes, sys
        hip = ctypes.CDLL(sys.argv[1])
        import jax, jax.numpy as jnp
        import jax_fa
        from jax_fa import _cli
        x = jnp.ones((1, 8, 1, 64), jnp.bfloat16)
        jax.grad(lambda x: jax_fa.flash_attention(x, x, x).astype("float32").sum())(x)
        _cli.main(["check"])
    """
    assert library in run(code, library)  # check lists it


def test_a_trace_before_jax_has_its_backends():
    code = """
        import jax, ml_dtypes, numpy as np
        from jax._src import xla_bridge
        from jax_fa import _native, flash_attention
        from jax_fa._ops import select
        _native.hip_devices = None
        choose, started = select.choose, []
        def look(*arguments):
            started.append(xla_bridge.backends_are_initialized())
            return choose(*arguments)
        select.choose = look
        x = np.ones((1, 8, 1, 64), ml_dtypes.bfloat16)
        f = jax.jit(lambda x: flash_attention(x, x, x))
        traced = f.trace(x)
        print(started, "@jax_fa_flash" in traced.lower(lowering_platforms=("rocm",)).as_text())
        print(float(f(x)[0, 0, 0, 0]))
    """
    assert run(code).splitlines() == ["[False] True", "1.0"]


def test_without_jit():
    with jax.disable_jit():
        out = attend(operand())
    np.testing.assert_array_equal(np.asarray(out, "f4"), 0)
