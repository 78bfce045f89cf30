"""Thread traces of real chips, as tinygrad keeps them: what each wave issued, and when.

A recording is a pickle of tinygrad's profiler: programs, and a trace of every shader engine, which
tinygrad's own decoder reads. Of one SIMD of gfx1200 and of the four of one CU of gfx950 it holds
every issue. Nothing else of tinygrad is needed: its other classes are read as plain attributes.
"""

import collections
import dataclasses
import importlib
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class Issue:
    """One instruction of a wave; ``pc`` counts from the kernel's first."""

    pc: int
    clk: int


@dataclasses.dataclass
class TracedWave:
    """From its first instruction to its last; ``start`` is its dispatch."""

    simd: int
    start: int
    issues: list[Issue] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Traced:
    """A kernel and its waves on one SIMD (gfx1200) or CU (gfx950).

    ``text`` has the decoder's own spelling of each instruction, by pc; ``words`` its encoding.
    """

    kernel: str
    code_object: bytes
    text: dict[int, str]
    words: dict[int, bytes]
    waves: list[TracedWave]


class _Plain:
    """Stands for any class of tinygrad."""

    def __new__(cls, *_args: Any, **_keywords: Any) -> "_Plain":
        return object.__new__(cls)

    def __init__(self, *_args: Any, **_keywords: Any):
        pass

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)

    def __hash__(self) -> int:
        return id(self)


class _Reader(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        if module_name in ("builtins", "collections", "decimal", "copyreg"):
            return super().find_class(module_name, global_name)
        return type(global_name, (_Plain,), {})


def recordings(checkout: Path, chip: str) -> Iterator[Traced]:
    """All kernels of all recordings of a chip that have an instruction trace with waves in it."""
    decoder = _decoder(checkout)
    for file in sorted((checkout / "extra/sqtt/examples" / chip).glob("*.pkl")):
        with file.open("rb") as stream:
            events = _Reader(stream).load()
        of = collections.defaultdict(list)
        for event in events:
            of[type(event).__name__].append(event)
        programs = {program.tag: program for program in of["ProfileProgramEvent"]}
        for event in of["ProfileSQTTEvent"]:
            program = programs.get(event.kern)
            if event.itrace and program is not None:
                traced = _traced(decoder, event.blob, program, chip)
                if any(wave.issues for wave in traced.waves):
                    yield traced


def _decoder(checkout: Path) -> Any:
    sys.path.insert(0, str(checkout))
    try:
        sqtt = importlib.import_module("tinygrad.renderer.amd.sqtt")
        return sqtt, importlib.import_module("tinygrad.viz.serve").amd_decode
    finally:
        sys.path.remove(str(checkout))


def _traced(decoder: Any, blob: bytes, program: Any, chip: str) -> Traced:
    sqtt, amd_decode = decoder
    decoded = amd_decode(program.lib, chip)
    first = min(decoded)
    read = _waves_of_cdna if chip == "gfx950" else _waves_of_rdna
    waves = read(sqtt, blob, program.lib, chip, list(decoded))
    for wave in waves:
        wave.issues = [Issue(issue.pc - first, issue.clk) for issue in wave.issues]
    return Traced(
        program.name,
        program.lib,
        {pc - first: str(inst) for pc, inst in decoded.items()},
        {pc - first: inst.to_bytes() for pc, inst in decoded.items()},
        waves,
    )


def _waves_of_cdna(sqtt: Any, blob: bytes, *rest: Any) -> list[TracedWave]:
    """The traces of gfx950 name no instruction; kernels there are straight lines."""
    pcs = rest[-1]
    waves, running = [], {}
    for packet in sqtt.decode(blob):
        kind = type(packet).__name__
        if kind == "CDNA_WAVESTART" and packet.cu == 0:
            running[packet.simd, packet.wave] = TracedWave(packet.simd, packet._time)
            waves.append(running[packet.simd, packet.wave])
        elif kind == "CDNA_WAVEEND" and packet.cu == 0:
            running.pop((packet.simd, packet.wave))
        elif kind == "CDNA_ISSUE":
            for place in range(10):  # 0 nothing, 1 stalled, 2 issued, 3 issued without a unit
                wave = running.get((packet.simd, place))
                if wave is not None and getattr(packet, f"inst{place}") >= 2:
                    wave.issues.append(Issue(pcs[len(wave.issues)], packet._time))
    return waves


def _waves_of_rdna(
    sqtt: Any, blob: bytes, code_object: bytes, chip: str, _pcs: list[int]
) -> list[TracedWave]:
    starts = collections.defaultdict(list)
    for packet in sqtt.decode(blob):
        begins = type(packet).__name__.startswith("WAVESTART")
        if begins and packet.cu == 0 and packet.simd == 0:
            starts[packet.wave].append(packet._time)
    waves, running = [], {}
    for packet, info in sqtt.map_insts(blob, code_object, chip):
        if info is None:
            continue
        if info.wave not in running:
            running[info.wave] = TracedWave(0, starts[info.wave].pop(0))
            waves.append(running[info.wave])
        running[info.wave].issues.append(Issue(info.pc, packet._time))
        if type(packet).__name__.startswith("WAVEEND"):
            running.pop(info.wave)
    return waves
