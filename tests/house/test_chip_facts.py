"""A target that leaves a fact of its chip out does not compile, and the compiler names the fact."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

CSRC = Path(__file__).parents[2] / "csrc"
TARGETS = sorted(path.parent.name for path in CSRC.glob("emulator/target/*/chip.cc"))

_FACT = re.compile(r"^ *\.(\w+) = (?!\s*$).*?,(?: *//.*)?\n", re.MULTILINE)


def _without_each_fact(source: str) -> tuple[str, list[str]]:
    """The source with its chip once more for each fact, which is left out there; the facts."""
    head, chip = source.split("constinit const Chip ", 1)
    body, end = chip.split("\n};\n", 1)
    body = body.split("{\n", 1)[1]
    chips, facts = [], []
    for match in _FACT.finditer(body):
        rest = body[: match.start()] + body[match.end() :]
        facts.append(match[1])
        chips.append(f"const Chip kWithout{len(facts)} = {{\n{rest}\n}};\n")
    return head + "".join(chips) + end, facts


def _compile(source: str, folder: Path) -> subprocess.CompletedProcess:
    (folder / "source.cc").write_text(source)
    words = ["-std=c++20", "-ferror-limit=0", "-I", CSRC, "-c", "source.cc", "-o", "object.o"]
    return subprocess.run(
        [sys.executable, "-m", "ziglang", "c++", *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def _missing(said: subprocess.CompletedProcess) -> list[str]:
    """The members that the compiler misses."""
    return re.findall(r"in implicit initialization of field '(\w+)'", said.stderr)


def test_a_required_member_is_asked_for(tmp_path):
    source = """
#include "emulator/required.h"
using jax_fa::emulator::Required;
struct Inner { Required<int> low, high; };
struct Outer { Required<bool> flag; Inner inner; };
const Outer whole = {.flag = true, .inner = {.low = 1, .high = 2}};
const Outer one = {.flag = true, .inner = {.low = 1}};
const Outer two = {.inner = {.low = 1, .high = 2}};
"""
    assert _missing(_compile(source, tmp_path)) == ["high", "flag"]


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_each_fact_is_asked_for_by_name(target, tmp_path):
    whole = (CSRC / "emulator" / "target" / target / "chip.cc").read_text()
    assert _compile(whole, tmp_path).returncode == 0
    source, facts = _without_each_fact(whole)
    assert len(facts) > 30
    said = _compile(source, tmp_path)
    assert said.returncode != 0
    # A group of facts that is left out is asked for by its first.
    asked = _missing(said)
    assert len(asked) >= len(facts)
    assert [fact for fact in facts if fact not in asked] == []
