"""Small C++ libraries that tests build."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest


def cxx_command() -> list[str]:
    """A C++ compiler: the system's, else the build requirement ziglang's where installed."""
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    pytest.importorskip("ziglang", reason="no C++ compiler to build a library with")
    return [sys.executable, "-m", "ziglang", "c++"]


def build_library(path: Path, source: str, *needed: str, include: Sequence[str] = ()) -> str:
    """Builds the shared library `path`, whose SONAME is its name, and gives the path.

    needed: libraries that it depends on, and finds where they are now.
    include: folders of headers.
    """
    path.parent.mkdir(exist_ok=True)
    code = path.parent / f"{path.name}.cc"
    code.write_text(source)
    flags = ["-std=c++20", "-shared", "-fPIC", f"-Wl,-soname,{path.name}"]
    flags += [f"-I{folder}" for folder in include]
    linked = [flag for x in needed for flag in (x, f"-Wl,-rpath,{os.path.dirname(x)}")]
    subprocess.run([*cxx_command(), *flags, str(code), "-o", str(path), *linked], check=True)
    return str(path)
