"""The bytes that a device is given to load: a stub of the HIP library keeps or refuses them."""

import subprocess
import sys

import pytest
from compilers import build_library

from jax_fa import _native

MACHINE_AT = 48  # in an ELF file's header: the low byte of e_flags
MACHINES = {"gfx950": 0x4F, "gfx1201": 0x4E, "gfx1200": 0x48}

STUB = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
extern "C" {
int hipGetDeviceCount(int* count) { *count = 1; return 0; }
int hipGetDevicePropertiesR0600(char* properties, int) {
  std::strcpy(properties + 1160, std::getenv("STUB_ARCHITECTURE"));
  return 0;
}
int hipModuleLoadData(void** module, const void* image) {
  if (const char* error = std::getenv("STUB_ERROR")) return std::atoi(error);
  std::FILE* file = std::fopen(std::getenv("STUB_IMAGE"), "wb");
  std::fwrite(image, 1, std::atol(std::getenv("STUB_BYTES")), file);
  std::fclose(file);
  *module = file;
  return 0;
}
int hipModuleGetFunction(void** function, void* module, const char*) {
  *function = module;
  return 0;
}
int hipGetDevice(int* device) { *device = 0; return 0; }
int hipSetDevice(int) { return 0; }
int hipModuleLaunchKernel() { return 0; }
int hipMemsetAsync() { return 0; }
int hipMemsetD32Async() { return 0; }
int hipGetLastError() { return 0; }
const char* hipGetErrorName(int) { return ""; }
const char* hipGetErrorString(int) { return ""; }
}
"""

PROCESS = """
import ctypes, importlib.util, sys
library = ctypes.CDLL(sys.argv[1])
spec = importlib.util.spec_from_file_location("_native", sys.argv[2])
_native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(_native)
_native.hip_flash(0, 7, (1, 1, 1, 1, 1, 64), 4096)
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    return build_library(tmp_path_factory.mktemp("hip") / "libamdhip64.so.7", STUB)


def test_every_architecture_has_a_target():
    served = {"gfx950": "gfx950", "gfx1201": "gfx1201", "gfx1200": "gfx1201"}
    assert served.items() <= _native.architectures().items()
    assert set(_native.architectures().values()) == set(_native.targets())


@pytest.mark.parametrize(
    "architecture", ["gfx950:sramecc+:xnack-", "gfx950:sramecc-:xnack+", "gfx1201", "gfx1200"]
)
def test_a_device_gets_its_targets_bytes_under_its_own_machine(stub, tmp_path, architecture):
    name = architecture.split(":")[0]
    expected = bytearray(_native.code_object(_native.architectures()[name]))
    image = tmp_path / "image"
    environment = {
        "STUB_ARCHITECTURE": architecture,
        "STUB_IMAGE": str(image),
        "STUB_BYTES": str(len(expected)),
    }
    command = [sys.executable, "-c", PROCESS, stub, str(_native.__file__)]
    subprocess.run(command, env=environment, check=True)
    expected[MACHINE_AT] = MACHINES[name]
    assert image.read_bytes() == expected


@pytest.mark.parametrize("error", ["200", "209", "218"])
def test_a_rocm_too_old_for_the_bytes(stub, error):
    environment = {"STUB_ARCHITECTURE": "gfx950:sramecc+:xnack-", "STUB_ERROR": error}
    command = [sys.executable, "-c", PROCESS, stub, str(_native.__file__)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"through {stub}" in done.stderr
    assert "gfx950 needs ROCm 7.0 or later" in done.stderr
    assert 'implementation="xla" needs no kernels' in done.stderr
    assert f" {error} (" in done.stderr
