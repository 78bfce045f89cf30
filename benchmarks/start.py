"""What the package costs before it computes: import time beside that of jax, and its size."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

from jax_fa import _native

NAME = "start"
HELP = "import time over that of jax alone, and size of the installed package"

_TIMED = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--rounds", type=int, default=5)


def run(arguments: argparse.Namespace) -> int:
    best = {"jax": float("inf"), "jax_fa": float("inf")}
    for _ in range(arguments.rounds):
        for module in best:  # in turn, so that drift hits both alike
            best[module] = min(best[module], _import_seconds(module))
    figures = {
        "jax_seconds": best["jax"],
        "jax_fa_seconds": best["jax_fa"],
        "import_ratio": best["jax_fa"] / best["jax"],
        "extension_bytes": Path(_native.__file__).stat().st_size,
        "package_bytes": _package_bytes(),
    }
    print(
        "import jax {jax_seconds:.3f} s, import jax_fa (with jax) {jax_fa_seconds:.3f} s: "
        "{import_ratio:.2f} times\n"
        "extension module {extension_bytes:,} bytes, of {package_bytes:,} installed".format(
            **figures
        )
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def _import_seconds(module: str) -> float:
    # -P: the checkout's jax_fa must not hide the installed one.
    command = [sys.executable, "-P", "-c", _TIMED.format(module)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _package_bytes() -> int:
    files = importlib.metadata.files("jax_fa") or ()
    return sum(Path(str(f.locate())).stat().st_size for f in files if f.suffix != ".pyc")
