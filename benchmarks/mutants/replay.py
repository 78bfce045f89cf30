"""Launches of our kernels that can be run again, on another code object and in every order."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from jax_fa import _native, emulator
from mutants.cases import CASES

# (arrival, schedule, seed): each arrival, and each order of waves with two of them.
Order = tuple[emulator.Arrival, emulator.Schedule, int]
ORDERS: tuple[Order, ...] = (
    ("late", "round_robin", 0),
    ("early", "run_to_barrier", 0),
    ("random", "random", 1),
    ("late", "reverse", 0),
    ("early", "random", 2),
    ("random", "run_to_barrier", 3),
    ("early", "reverse", 0),
    ("late", "random", 4),
    ("random", "round_robin", 5),
)
# A defect may make a loop endless; it stops at so many times the instructions of the whole launch.
_LONGER = 2


@dataclasses.dataclass(frozen=True)
class Replay:
    """One launch, with its argument segment and what its operands held before it.

    `operands` are (name, address, contents); `blank` names those that are written and not read,
    whose contents are no number, so that what is not written shows.
    """

    case: str
    target: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: bytes
    operands: tuple[tuple[str, int, bytes], ...]
    blank: frozenset[str] = frozenset()
    longest: int = 10**7
    workgroups: tuple[int, ...] = ()  # empty: all

    def run(self, code: emulator.CodeObject, **options: Any) -> tuple[emulator.Launch, list[bytes]]:
        """Launches it on `code`; the launch, and what the operands hold then."""
        arrays = [self._array(name, contents) for name, _, contents in self.operands]
        given = np.frombuffer(self.arguments, np.uint64)
        words = given.copy()
        for (_, address, contents), array in zip(self.operands, arrays, strict=True):
            # By what was given: a new address may be an old one of another operand.
            inside = (given >= address) & (given < address + len(contents))
            words[inside] += np.uint64((array.ctypes.data - address) % 2**64)
        launch = code.launch(
            self.kernel,
            self.grid,
            self.block,
            kernarg=words.tobytes(),
            buffers=arrays,
            threads=1,
            max_instructions_per_wave=self.longest,
            workgroups=self.workgroups or None,
            **options,
        )
        return launch, [array.tobytes() for array in arrays]

    def _array(self, name: str, contents: bytes) -> np.ndarray:
        spare = np.empty(len(contents) + 64, np.uint8)
        array = spare[-spare.ctypes.data % 64 :][: len(contents)]  # as XLA aligns
        array[:] = 0xFF if name in self.blank else np.frombuffer(contents, np.uint8)
        return array


@dataclasses.dataclass(frozen=True)
class Known:
    """A replay, what it gives, and how often it executes the instruction at each pc."""

    replay: Replay
    outputs: list[bytes]
    executed: dict[int, int]


def executed_of(launch: emulator.Launch) -> dict[int, int]:
    """How often each instruction was executed, by pc."""
    pairs: Any = np.frombuffer(launch._executed, np.uint64).reshape(-1, 2).tolist()
    return dict(pairs)


def know(replay: Replay, code: emulator.CodeObject) -> Known:
    """Runs it on the shipped code object."""
    launch, _ = replay.run(code)
    names = {f"buffers[{i}]": name for i, (name, _, _) in enumerate(replay.operands)}
    moved = {names[name]: of for name, of in launch.bytes["operands"].items() if name in names}
    blank = frozenset(name for name, of in moved.items() if of["written"] and not of["read"])
    replay = dataclasses.replace(replay, blank=blank, longest=_LONGER * launch.wave_instructions)
    launch, outputs = replay.run(code)
    return Known(replay, outputs, executed_of(launch))


def verdict(known: Known, code: emulator.CodeObject, orders: Sequence[Order]) -> str | None:
    """What tells the code from the shipped one: "finding", "error", "result"; None: nothing."""
    for arrival, schedule, seed in orders:
        options: dict[str, Any] = {"arrival": arrival, "schedule": schedule, "seed": seed}
        try:
            _, outputs = known.replay.run(code, **options)
        except emulator.EmulatorError:
            try:
                known.replay.run(code, checks=False, **options)
            except emulator.EmulatorError:
                return "error"
            return "finding"
        if outputs != known.outputs:
            return "result"
    return None


def record(case: str, target: str) -> Iterator[Replay]:
    """The launches of a case."""
    recorder = _native.EmulatorRecorder(keeps_operands=True)
    try:
        jax.block_until_ready(CASES[case].call(target))
    finally:
        recorder.stop()
    last = CASES[case].last_workgroups
    for fields in recorder.launches:
        arguments, count = fields["arguments"], fields["grid"][0]
        yield Replay(
            *(case, target, fields["kernel"], fields["grid"], fields["block"]),
            arguments + bytes(-len(arguments) % 8),
            tuple(fields["operands"]),
            workgroups=() if last is None else tuple(range(max(0, count - last), count)),
        )


@functools.cache
def shipped(target: str) -> bytes:
    """The embedded code object."""
    return _native.code_object(target)
