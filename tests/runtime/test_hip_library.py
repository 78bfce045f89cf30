"""Which of the loaded files is taken for XLA's HIP library, in processes of their own.

The libraries are stubs that answer with one device, whose architecture tells the files apart. A
stub of JAX's plugin depends on one of them, as the plugin does on its own.
"""

import json
import os
import subprocess
import sys

import pytest
from compilers import build_library

from jax_fa import _native

FUNCTIONS = (
    *("hipGetDevice", "hipSetDevice", "hipModuleLoadData", "hipModuleGetFunction"),
    *("hipModuleLaunchKernel", "hipMemsetAsync", "hipMemsetD32Async", "hipGetLastError"),
    *("hipGetErrorName", "hipGetErrorString"),
)
LIBRARY = r"""
#include <cstring>
extern "C" {
int hipGetDeviceCount(int* count) { *count = 1; return 0; }
int hipGetDevicePropertiesR0600(char* p, int) { std::strcpy(p + 1160, ARCHITECTURE); return 0; }
"""
PLUGIN = 'extern "C" { int hipGetLastError(); int GetPjrtApi() { return hipGetLastError(); } }'

PROCESS = """
import ctypes, importlib.util, json, os, sys
opened = [ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW) for path in json.loads(sys.argv[1])]
spec = importlib.util.spec_from_file_location("_native", sys.argv[2])
_native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(_native)
def attempt(function, *arguments):
    try:
        return function(*arguments)
    except RuntimeError as error:
        return str(error)
answer = [attempt(_native.hip_library), attempt(_native.hip_devices)]
for library in opened if sys.argv[3:] else ():  # as a handler, called from each
    function = ctypes.cast(library.GetPjrtApi, ctypes.c_void_p).value
    answer.append(attempt(_native.hip_library, function))
print(json.dumps(answer))
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Builds and gives the path: build(name, source, *what it depends on)."""
    root = tmp_path_factory.mktemp("libraries")

    def build(name, source, *needed):
        return build_library(root / name, source, *needed)

    return build


@pytest.fixture(scope="module")
def hip(build):
    """Builds a HIP library: hip(name, architecture) -> path."""

    def hip(name, architecture, functions=FUNCTIONS):
        bodies = "".join(f"int {function}() {{ return 0; }}\n" for function in functions)
        source = f'#define ARCHITECTURE "{architecture}"\n{LIBRARY}{bodies}}}'
        return build(name, source)

    return hip


@pytest.fixture(scope="module")
def ask():
    """The library and the devices that a process finds after it has opened these files.

    from_each: and the library that each of the files is given for a call of its own.
    """

    def ask(*opened, from_each=False, **environment):
        command = [sys.executable, "-c", PROCESS, json.dumps(opened), str(_native.__file__)]
        command += ["from each"] * from_each
        environment = os.environ | environment
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask


def test_no_library(ask):
    for error in ask():
        assert "libamdhip64.so" in error
        assert "pip install 'jax_fa[rocm]'" in error


@pytest.mark.parametrize("major", [5, 7, 8, 12])
def test_the_only_library(hip, ask, major):
    library = hip(f"only/libamdhip64.so.{major}", "gfx950")
    assert ask(library) == [library, ["gfx950"]]


def test_the_plugins_library_whatever_else_is_loaded(hip, build, ask):
    other, own = hip("a/libamdhip64.so.7", "gfx942"), hip("b/libamdhip64.so.8", "gfx950")
    plugin = build("b/plugin_of_8.so", PLUGIN, own)
    assert ask(other, plugin) == [own, ["gfx950"]]
    assert ask(plugin, other) == [own, ["gfx950"]]


def test_the_plugins_of_two_files_of_one_name(hip, build, ask):
    own, other = hip("own/libamdhip64.so.7", "gfx950"), hip("other/libamdhip64.so.7", "gfx942")
    plugin = build("own/plugin_of_7.so", PLUGIN, own)
    assert ask(plugin, other) == [own, ["gfx950"]]
    # Opened first, the other file is the one that the loader gives the plugin too.
    assert ask(other, plugin) == [other, ["gfx942"]]
    assert ask(plugin, LD_PRELOAD=other) == [other, ["gfx942"]]


def test_a_library_by_any_name_through_the_plugin(hip, build, ask):
    own = hip("renamed/libhip-0a1b2c.so.7", "gfx1201")
    assert ask(build("renamed/plugin_of_other.so", PLUGIN, own)) == [own, ["gfx1201"]]


def test_two_libraries_without_a_plugin(hip, ask):
    files = hip("one/libamdhip64.so.7", "gfx950"), hip("two/libamdhip64.so.7", "gfx942")
    for error in ask(*files):
        assert all(file in error for file in files)
        assert "cannot be known" in error
        assert "LD_LIBRARY_PATH" in error


def test_two_plugins_of_two_libraries(hip, build, ask):
    files = hip("seven/libamdhip64.so.7", "gfx950"), hip("eight/libamdhip64.so.8", "gfx950")
    plugins = [build(f"p{i}/plugin.so", PLUGIN, file) for i, file in enumerate(files)]
    *errors, of_seven, of_eight = ask(*plugins, from_each=True)
    for error in errors:
        assert all(file in error for file in files)
    assert (of_seven, of_eight) == files  # the plugin that calls is known


def test_a_plugin_of_another_platform(hip, build, ask):
    library = hip("cuda/libamdhip64.so.7", "gfx950")
    other = build("cuda/plugin_of_cuda.so", PLUGIN.replace("return hipGetLastError()", "return 0"))
    assert ask(other, library) == [library, ["gfx950"]]


def test_a_library_too_old(hip, ask):
    library = hip("old/libamdhip64.so.4", "gfx900", FUNCTIONS[:-4])
    found, error = ask(library)
    assert found == library
    assert "has no function hipMemsetD32Async" in error
    assert "too old" in error
