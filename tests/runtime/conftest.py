"""The stand-in for the HIP library, and processes that have it loaded."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from compilers import cxx_command

from jax_fa import _native

SOURCE = Path(__file__).parent / "hip_stand_in" / "hip_stand_in.cc"

# Loads the stand-ins as the plugin does, with local scope, and runs the body of a case. Streams
# are numbered device * 256 + n; addresses are never followed by the stand-in.
PRELUDE = """
import ctypes, importlib.util, json, sys, threading
libraries = [ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL) for path in json.loads(sys.argv[1])]
MEMORY = 1 << 47  # of the devices, above all that a process can have mapped
if libraries:
    hip = libraries[0]
    hip.hip_stand_in_log.restype = ctypes.c_char_p
    hip.hipGetErrorName.restype = ctypes.c_char_p
    hip.hip_stand_in_memory(ctypes.c_void_p(MEMORY), ctypes.c_uint64(1 << 30))
# The extension alone, without JAX, which takes seconds to import.
spec = importlib.util.spec_from_file_location("_native", sys.argv[2])
_native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(_native)
SHAPE = (2, 100, 70, 4, 2, 64)  # B T S N K H
def flash(device=0, stream=None, shape=SHAPE, address=MEMORY):
    _native.hip_flash(device, 256 * device + 7 if stream is None else stream, shape, address)
def attempt(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except RuntimeError as error:
        return str(error)
def log():
    return hip.hip_stand_in_log().decode().splitlines()
def answer(value):
    print(json.dumps(value))
"""


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory):
    """Builds the stand-in of a HIP major version: stand_in(7) -> path."""
    folder = tmp_path_factory.mktemp("hip")
    built = {}

    def build(major):
        if major not in built:
            built[major] = folder / f"libamdhip64.so.{major}"
            subprocess.run(
                [
                    *cxx_command(),
                    *("-std=c++20", "-O1", "-shared", "-fPIC", f"-DHIP_STAND_IN_MAJOR={major}"),
                    f"-Wl,-soname,libamdhip64.so.{major}",
                    *(str(SOURCE), "-o", str(built[major])),
                ],
                check=True,
            )
        return str(built[major])

    return build


@pytest.fixture
def run(stand_in):
    """Runs Python code with stand-ins loaded and gives what it answered.

    prelude: more of what the code needs; files: their paths, from sys.argv[3] on.
    """

    def run_code(code, devices="gfx950:sramecc+:xnack-", majors=(7,), prelude="", files=()):
        result = subprocess.run(
            [
                *(sys.executable, "-c", PRELUDE + prelude + code),
                *(json.dumps([stand_in(m) for m in majors]), str(_native.__file__), *files),
            ],
            env={**os.environ, "HIP_STAND_IN_DEVICES": devices},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return run_code
