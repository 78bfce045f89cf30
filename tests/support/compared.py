"""Which instructions a test compares with NumPy, or with Python's integers.

A test says so by ``@compared(target, mnemonic, ...)``, or by such a mark on one of its parameters.
conftest.py holds it to that: it must launch a kernel that has each of them. And
test_instructions.py holds the tests to the shipped kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from jax_fa import emulator

Instructions = set[tuple[str, str]]  # (target, mnemonic)


def compared(target: str, *mnemonics: str) -> pytest.MarkDecorator:
    return pytest.mark.compared(target, *mnemonics)


def named_by(marks: Iterator[pytest.Mark]) -> Instructions:
    """The instructions that marks named `compared` list."""
    return {(mark.args[0], name) for mark in marks for name in mark.args[1:]}


def named_by_test(test: Callable) -> Instructions:
    """The instructions that a test and its parameters list."""
    found: Instructions = set()
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "compared":
            found |= named_by(iter([mark]))
        if mark.name == "parametrize":
            for parameters in mark.args[1]:
                marks = getattr(parameters, "marks", ())
                found |= named_by(each for each in marks if each.name == "compared")
    return found


def instructions(code: emulator.CodeObject, kernel: str) -> Instructions:
    """The instructions of a kernel, each half of a dual-issued pair by itself."""
    texts = (text for _, text in code._code.disassembly(kernel))
    return {(code.target, half.split()[0]) for text in texts for half in text.split("::")}
