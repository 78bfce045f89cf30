"""The order of floors in jax_fa: a module imports from its own floor and from floors below it.

    _native < _contract < _mesh < _xla < _ops < public files < __init__ < _cli < __main__
    _native < _machine < _ops, _cli
    _native < _contract < emulator < __init__

Imports never go round, on one floor neither. They are read from the sources; nothing is imported.
"""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "jax_fa"

# The floors that each may import from, beside its own. Whatever else stands in the package is a
# public file.
BELOW: dict[str, tuple[str, ...]] = {
    "_native": (),
    "_contract": ("_native",),
    "_mesh": ("_native", "_contract"),
    "_xla": ("_native", "_contract", "_mesh"),
    "_machine": ("_native",),
    "_ops": ("_native", "_contract", "_mesh", "_xla", "_machine"),
    "emulator": ("_native", "_contract"),
    "public": ("_native", "_contract", "_mesh", "_xla", "_ops"),
    "__init__": ("_mesh", "_ops", "emulator", "public"),
    "_cli": ("_native", "_contract", "_machine", "emulator", "public", "__init__"),
    "__main__": ("_cli",),
}


def floor_of(module: str) -> str:
    first = module.split(".")[0]
    return first if first in BELOW else "public"


def modules_in(package: Path) -> dict[str, Path]:
    """Sources by module name within the package, which itself is "__init__"."""
    found = {}
    for path in package.rglob("*.py"):
        *folders, name = path.relative_to(package).with_suffix("").parts
        parts = folders if folders and name == "__init__" else [*folders, name]
        found[".".join(parts)] = path
    return found


def imports_of(path: Path, known: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """(line, module within jax_fa) of every import of it, those in functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}:{node.lineno}: imports are absolute here"
            targets = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            root, *parts = target.split(".")
            if root != "jax_fa":
                continue
            if parts[:1] == ["_native"]:
                yield node.lineno, "_native"
                continue
            while parts and ".".join(parts) not in known:
                parts.pop()  # a name in a module, not a module
            yield node.lineno, ".".join(parts) or "__init__"


def complaints(package: Path) -> list[str]:
    """What is wrong with the imports of a package of this order."""
    known = modules_in(package)
    found, graph = [], {}
    for module, path in sorted(known.items()):
        graph[module] = set()
        floor = floor_of(module)
        for line, target in imports_of(path, known):
            graph[module].add(target)
            if floor_of(target) not in (floor, *BELOW[floor]):
                found.append(f"{module}:{line} imports {target}: {floor} is not above it")
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        found.append("imports go round: " + " <- ".join(error.args[1]))
    return found


def test_imports_point_down():
    assert len(modules_in(PACKAGE)) > 30
    assert complaints(PACKAGE) == []


GOOD = {
    "__init__.py": "from jax_fa._ops.dense import OPERATION\nfrom jax_fa.attention import attend",
    "_contract/__init__.py": "",
    "_contract/spec.py": "import math",
    "_mesh/__init__.py": "",
    "_mesh/vary.py": "from jax_fa._contract.spec import TARGETS",
    "_ops/__init__.py": "",
    "_ops/dense.py": "from jax_fa import _native\nfrom jax_fa._ops import varlen",
    "_ops/varlen.py": "from jax_fa._mesh.vary import full",
    "attention.py": "from jax_fa._ops import dense",
    "emulator/__init__.py": "from jax_fa import _native",
    "_cli/__init__.py": "from jax_fa import __version__, emulator",
}


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        (None, "", []),
        ("_contract/spec.py", "from jax_fa._ops import dense", ["_contract is not above it"]),
        ("_mesh/vary.py", "import jax_fa._ops.dense", ["_mesh is not above it"]),
        ("_ops/varlen.py", "def f():\n    from jax_fa import attention", ["_ops is not above it"]),
        ("emulator/__init__.py", "from jax_fa._mesh import vary", ["emulator is not above it"]),
        ("attention.py", "import jax_fa", ["public is not above it", "imports go round"]),
        ("_ops/varlen.py", "from jax_fa._ops import dense", ["imports go round"]),
    ],
)
def test_an_import_that_points_up_is_seen(tmp_path, file, text, expected):
    for name, source in (GOOD | ({file: text} if file else {})).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    found = complaints(tmp_path)
    for wanted in expected:
        assert any(wanted in complaint for complaint in found), found
    assert bool(found) == bool(expected), found
