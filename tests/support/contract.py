"""What users of the package rely on, in words that can be stored: names, calls, kernels, options.

``describe()`` gives JSON of today's package. freeze.py stores it, and tests/api/test_frozen.py
compares the stored with today's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import io
import json
import re
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from contract_calls import TARGETS, describe_calls

import jax_fa
from jax_fa import _native, emulator

MODULES = ("attention", "varlen", "paged", "merge", "nn", "reference", "emulator")
ROOT = Path(__file__).resolve().parents[2]


def describe(root: Path = ROOT) -> dict[str, Any]:
    """Everything but the exported programs. root: the checkout, for what only its text says."""
    return {
        "names": describe_names(),
        "ffi_targets": describe_ffi_targets(),
        "kernels": describe_kernels(),
        "command_line": describe_command_line(),
        "environment": environment_variables(root),
        "cmake_options": cmake_options(root),
        "calls": describe_calls(),
    }


# --- Names ----------------------------------------------------------------------------------------


def describe_names() -> dict[str, Any]:
    """Signature and sections of the docstring of every public name, by its import path."""
    found: dict[str, Any] = {"jax_fa": sorted(jax_fa.__all__)}
    found["jax_fa.emulator"] = sorted(emulator.__all__)
    for name in jax_fa.__all__:
        found[f"jax_fa.{name}"] = _describe(getattr(jax_fa, name))
    for short in MODULES:
        module = importlib.import_module(f"jax_fa.{short}")
        for name, value in _public_members(module):
            found[f"jax_fa.{short}.{name}"] = _describe(value)
    return found


def _public_members(module: Any) -> Iterator[tuple[str, Any]]:
    """Members in ``__all__``, or else the functions that the module itself defines."""
    named = getattr(module, "__all__", None)
    for name, value in sorted(vars(module).items()):
        here = inspect.isfunction(value) and value.__module__ == module.__name__
        if name in named if named is not None else here and not name.startswith("_"):
            yield name, value


def _describe(value: Any) -> Any:
    if inspect.ismodule(value):
        return "module"
    if not inspect.isclass(value):
        return {"parameters": _parameters(value), "docstring": _sections(value)}
    if issubclass(value, Exception):
        return [base.__name__ for base in value.__mro__]
    members = {
        name: _parameters(member) if callable(member) else "property"
        for name, member in vars(value).items()
        if not name.startswith("_") and (callable(member) or isinstance(member, property))
    }
    fields = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
    return {"parameters": _parameters(value), "fields": fields, "members": members}


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Name and default of each, "*" where those follow that are passed by name alone."""
    words, by_name = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not by_name:
            words.append("*")
            by_name = True
        required = parameter.default is parameter.empty
        words.append(parameter.name if required else f"{parameter.name}={parameter.default!r}")
    return words


def _sections(function: Any) -> list[str]:
    """Titles of the docstring's sections, then the errors that it names."""
    text = inspect.getdoc(function) or ""
    found = re.findall(r"^(Args|Returns|Raises|Numerics|Source|Yields)\b", text, re.M)
    raises = re.search(r"^Raises:\n((?:[ ].*\n?)*)", text, re.M)
    errors = re.findall(r"\b(\w+Error)\b", raises[1]) if raises else []
    return found + sorted(set(errors))


# --- Native names ---------------------------------------------------------------------------------


def describe_ffi_targets() -> dict[str, Any]:
    """Stages of every handler. Programs that were exported hold these names."""
    handlers = _native.registrations()["cpu"]
    return {name: sorted(stages) for name, stages in sorted(handlers.items())}


def describe_kernels() -> dict[str, Any]:
    """Symbols of each code object."""
    codes = {target: emulator.CodeObject(_native.code_object(target)) for target in TARGETS}
    return {target: sorted(code.kernels) for target, code in codes.items()}


# --- Options --------------------------------------------------------------------------------------


def describe_command_line() -> dict[str, Any]:
    """Options of every command, and the keys of what it writes as JSON."""
    options = {
        command: sorted(set(re.findall(r"--[a-z-]+", _written([*command.split(), "--help"]))))
        for command in ("", "demo", "isa", "check")
    }
    report = json.loads(_written(["isa", "--target", "gfx1201", "--json"]))
    kernel = next(k for k in report["kernels"] if k["hot_loops"])
    keys = [list(report), list(kernel), list(kernel["hot_loops"][0])]
    return {"options": options, "isa_json": keys}


def _written(words: list[str]) -> str:
    (script,) = [e for e in entry_points(group="console_scripts") if e.name == "jax-fa"]
    written = io.StringIO()
    with contextlib.redirect_stdout(written), contextlib.suppress(SystemExit):
        script.load()(words)
    return written.getvalue()


def environment_variables(root: Path) -> list[str]:
    """Names of the variables that the package's sources read."""
    text = _sources(root, "jax_fa/**/*.py", "csrc/**/*.cc", "csrc/**/*.h")
    python = r"(?:environ(?:\.get)?[(\[]|getenv\()\s*\"(\w+)\""
    return sorted(set(re.findall(python, text)))


def cmake_options(root: Path) -> list[str]:
    text = _sources(root, "CMakeLists.txt", "csrc/cmake/*.cmake")
    found = re.findall(r"\bset\((\w+) \S+ CACHE (?!INTERNAL)\w+|\boption\((\w+)", text)
    return sorted({first or second for first, second in found})


def _sources(root: Path, *patterns: str) -> str:
    return "\n".join(path.read_text() for p in patterns for path in sorted(root.glob(p)))
