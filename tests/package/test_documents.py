"""The documents name only files that exist."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    "README.md",
    ".github/CHANGELOG.md",
    ".github/CONTRIBUTING.md",
    "csrc/README.md",
    "csrc/emulator/README.md",
]
TARGETS = sorted(path.name for path in (ROOT / "csrc/emulator/target").iterdir() if path.is_dir())

# Folders that paths are given from, beside the document's own.
_BASES = ("", "csrc", "jax_fa")
_ANYWHERE = ("", ".github/**/", "benchmarks/**/", "csrc/**/", "jax_fa/**/", "tests/**/")
_ENDINGS = ("py", "pyi", "cc", "h", "hip", "def", "cmake", "md", "sh", "toml", "yml")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")
_BLOCK = re.compile(r"^(?: {4}.*|```[\s\S]*?^```)$", re.MULTILINE)
_PATH = re.compile(r"[\w./<>*{},-]+")


def _spellings(word: str) -> list[str]:
    """The paths of a word with alternatives, {a,b}, and with <target> or <name> for each target."""
    parts = re.split(r"\{([^{}]*)\}", word)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    words = ["".join(choice) for choice in itertools.product(*choices)]
    if any(re.search("<target>|<name>", x) for x in words):
        return [re.sub("<target>|<name>", target, x) for x in words for target in TARGETS]
    return words


def _is_ours(path: str, bases: list[Path]) -> bool:
    """Whether a word means a file here: it ends like one, or begins with a folder of ours."""
    first, *rest = path.split("/")
    known = bool(rest) and any((base / first).is_dir() for base in bases if first)
    return known or bool(re.search(rf"\.({'|'.join(_ENDINGS)})$", path))


def _exists(path: str, bases: list[Path]) -> bool:
    if "/" not in path:  # a name alone: of any file
        return any(next(ROOT.glob(pattern + path), None) for pattern in _ANYWHERE)
    return any(next(base.glob(path.rstrip("/")), None) for base in bases)


def _missing(text: str, folder: Path) -> list[str]:
    """Paths in the links and in the code of a document that lead nowhere."""
    links = (x.split("#")[0] for x in _LINK.findall(text) if ":" not in x)
    missing = [x for x in links if x and not (folder / x).exists()]
    bases = [folder, *(ROOT / base for base in _BASES)]
    blocks = " ".join(_BLOCK.findall(text))
    for code in [*_CODE.findall(_BLOCK.sub("", text)), blocks]:
        for word in _PATH.findall(code):
            for path in _spellings(word.rstrip(".,")):
                if _is_ours(path, bases) and not _exists(path, bases):
                    missing.append(path)
    return missing


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_exist(name):
    document = ROOT / name
    assert _missing(document.read_text(), document.parent) == []


def test_what_is_not_there_is_found():
    text = """
[a link](tests/nowhere.py), [another](csrc/README.md), `csrc/kernels/nowhere.h`, `tests/gone/`,
`emulator/target/<target>/nowhere.cc` and `emulator/target/<target>/decode.cc`, `pyproject.toml`,
`jax_fa/{attention,nowhere}.py`, `float32/float64`, `*.co`

    python -m pytest tests/nowhere/test_x.py
    python benchmarks/run.py start
"""
    assert _missing(text, ROOT) == [
        "tests/nowhere.py",
        "csrc/kernels/nowhere.h",
        "tests/gone/",
        *(f"emulator/target/{target}/nowhere.cc" for target in TARGETS),
        "jax_fa/nowhere.py",
        "tests/nowhere/test_x.py",
    ]
