"""Comments and docstrings name only files that exist."""

from __future__ import annotations

import fnmatch
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "csrc", "jax_fa", "tests")

# Files that comments propose.
PLANNED = {"parallel.py", "patch.py"}

_SOURCES = {".py", ".pyi", ".cc", ".h", ".hip", ".def", ".cmake"}
# Python's comments name registers such as v64.h; there a header is a path.
_IN_CXX = re.compile(r"(?<![\w*<>./])[\w*<>./]*[\w*]\.(?:py|cc|h|hip|def|cmake)\b")
_IN_PYTHON = re.compile(
    r"(?<![\w*<>./])(?:[\w*<>./]*[\w*]\.py|[\w*<>./]+/[\w*]+\.(?:cc|h|hip|def))\b"
)


def _sources() -> list[Path]:
    return [p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in _SOURCES]


def _comments(path: Path, text: str) -> Iterator[str]:
    if path.suffix == ".cmake":
        yield from re.findall(r"#.*", text)
    elif path.suffix not in (".py", ".pyi"):
        yield from re.findall(r"//.*", text)
    else:
        opens = True  # a statement
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT or (opens and token.type == tokenize.STRING):
                yield token.string
            elif token.type != tokenize.NL:
                opens = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def _gone(path: Path, text: str, files: list[str]) -> list[str]:
    """Names of files in the comments of a source that are no file's."""
    pattern = _IN_PYTHON if path.suffix in (".py", ".pyi") else _IN_CXX
    named = [name for comment in _comments(path, text) for name in pattern.findall(comment)]
    patterns = {name: "*/" + re.sub("<[a-z]+>", "*", name.removeprefix("../")) for name in named}
    return [
        name
        for name, glob in patterns.items()
        if name not in PLANNED and not any(fnmatch.fnmatchcase(file, glob) for file in files)
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_that_comments_name(folder):
    files = [f"/{path.relative_to(ROOT)}" for path in _sources()]
    assert len(files) > 200
    gone = {
        str(path.relative_to(ROOT)): names
        for path in _sources()
        if path.is_relative_to(ROOT / folder) and path != Path(__file__)
        if (names := _gone(path, path.read_text(), files))
    }
    assert gone == {}


@pytest.mark.parametrize(
    ("name", "comment"),
    [
        ("x.h", "int x;  // see nowhere.h, forward.h and mainloop/<target>/mainloop.h\n"),
        ("x.cmake", "# nowhere.h of csrc\n"),
        ("x.py", "# launch/nowhere.h, launch/params.h, v64.h\n"),
        ("x.py", '"""See launch/nowhere.h and test_*.py."""\n'),
    ],
)
def test_a_name_of_no_file_is_found(name, comment):
    files = ["/csrc/launch/params.h", "/csrc/kernels/mainloop/gfx950/mainloop.h", "/a/test_x.py"]
    (found,) = _gone(Path(name), comment, [*files, "/forward.h"])
    assert found.endswith("nowhere.h")
