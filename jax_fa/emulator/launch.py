"""Launches of code objects, and of the emulated custom calls of a process."""

import collections
import dataclasses
import functools
import numbers
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from jax_fa import _native
from jax_fa.emulator.arguments import Kernel, address_of, check_segment, pack
from jax_fa.emulator.loops import find_loops, read_listing
from jax_fa.emulator.options import (
    Arrival,
    Checks,
    Schedule,
    checks_wanted,
    is_timed,
    one_of,
    thread_count,
    triple,
    unsigned,
    wave_place,
    workgroup_list,
)
from jax_fa.emulator.steps import Step, Steps

EmulatorError = _native.EmulatorError

# A hundred million instructions take tens of seconds to emulate; a wave that walks over a million
# keys executes a fifth of them.
_MAX_INSTRUCTIONS_PER_WAVE = 100_000_000


@dataclasses.dataclass(frozen=True)
class Launch:
    """What one emulated launch did.

    Attributes:
      target, kernel: "gfx950" or "gfx1201", and the kernel's name.
      grid, block: workgroups, and lanes of a workgroup, along x, y and z.
      counts: ``{"class": {...}, "mnemonic": {...}}``; each executed wave instruction counts once in
        each of the two.
      bytes: ``{"global": {"read", "written"}, "lds": {...}, "operands": {name: {...}}}``, as
        requested by the lanes.
      bank_conflicts: passes over the LDS banks beyond the least that the accesses need.
      findings: what the checks found, under ``checks="collect"``.
      wave_instructions: executed wave instructions.
      seconds: time the emulation took, of launches seen by ``record``.
      cycles: modelled clocks of the launch on the whole chip; None without ``timing`` and when only
        some workgroups ran.
      matrix_busy: modelled share of that time in which the chip's matrix cores execute.
      useful_busy: modelled share in which they would for ``useful_flops`` alone; None without.
      trace: what the workgroups executed that were asked for with ``workgroups`` or ``follow``, for
        the timing model; None without ``timing``.
      loops: ``counts`` loop by loop.
      steps: what the wave did that was asked for with ``follow``; None without.
    """

    target: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    counts: dict[str, dict[str, int]]
    bytes: dict[str, dict[str, Any]]
    bank_conflicts: int
    findings: list[str]
    wave_instructions: int
    seconds: float | None = None
    cycles: float | None = None
    matrix_busy: float | None = None
    useful_busy: float | None = None
    trace: Any = dataclasses.field(default=None, repr=False)
    _code: Any = dataclasses.field(default=None, repr=False, compare=False)
    _executed: Any = dataclasses.field(default=b"", repr=False)  # the count at each pc, as bytes
    _followed: tuple[int, int] | None = None
    _steps: Any = dataclasses.field(default=(), repr=False, compare=False)

    @functools.cached_property
    def steps(self) -> Steps | None:
        """What the followed wave did, up to its 100,000th instruction."""
        if self._followed is None:
            return None
        texts = dict(self._code.disassembly(self.kernel))
        clocks: list[float | None] = [None] * len(self._steps)
        if self.trace is not None:
            group, wave = self._followed
            issues = self.trace.issues(self.trace.groups.index(group), 1, False, {})
            clocks = [clk for issued_by, _, clk in issues if issued_by == wave]
        return Steps(
            [
                Step(pc, texts[pc], clock, {r: np.frombuffer(x, np.uint32) for r, x in written})
                for (pc, written), clock in zip(self._steps, clocks, strict=False)
            ]
        )

    @functools.cached_property
    def loops(self) -> list[dict[str, Any]]:
        """The loops with matrix instructions that were executed, the busiest first.

        ``{"pc", "rounds", "class": {...}, "mnemonic": {...}}`` of each: where a round begins, how
        often a wave began one, and ``counts`` of the instructions within, without such loops inside
        it, which are listed by themselves. Divided by the rounds they are what a round of this
        launch took on average, rare paths included.
        """
        pairs: Any = np.frombuffer(self._executed, np.uint64).reshape(-1, 2).tolist()
        times: dict[int, int] = dict(pairs)
        executed = []
        for loop in find_loops(read_listing(self._code, self.kernel)):
            counts: dict[str, Any] = {"class": collections.Counter()}
            counts["mnemonic"] = collections.Counter()
            for instruction in loop.body:
                if instruction.pc in times:
                    counts["class"][instruction.op_class] += times[instruction.pc]
                    counts["mnemonic"][instruction.mnemonic] += times[instruction.pc]
            if counts["class"]:
                counts = {kind: dict(sorted(counts[kind].items())) for kind in counts}
                executed.append({"pc": loop.header, "rounds": times[loop.header], **counts})
        executed.sort(key=lambda loop: -sum(loop["class"].values()))
        return executed


def to_launch(
    fields: Mapping[str, Any], useful_flops: float | None = None, **others: Any
) -> Launch:
    """The native result as a Launch."""
    known = {**fields, **others}
    time = known.pop("time")
    for name in ("code", "executed", "followed", "steps"):
        known[f"_{name}"] = known.pop(name)
    if time is not None:
        simd_clk = time["simds"] * time["clk"]
        known["cycles"] = time["clk"]
        known["matrix_busy"] = time["matrix_clk"] / simd_clk
        if useful_flops is not None:
            known["useful_busy"] = useful_flops / time["flops_per_clk"] / simd_clk
    return Launch(**known)


class CodeObject:
    """A loaded ELF code object (version 4 to 6) of gfx950 or gfx1201.

    Args:
      source: a path, or the ELF's bytes.

    Raises:
      EmulatorError: it is damaged, or of another processor.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes):
        elf = bytes(source) if isinstance(source, bytes | bytearray) else Path(source).read_bytes()
        self._code = _native.EmulatorCode.parse(elf)
        self._kernels = {
            name: Kernel(**{**fields, "arguments": tuple(fields["arguments"])})
            for name, fields in self._code.kernels.items()
        }

    @property
    def target(self) -> str:
        """The processor: "gfx950" or "gfx1201"."""
        return self._code.target

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """Its kernels by name."""
        return MappingProxyType(self._kernels)

    def launch(
        self,
        kernel: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any] | None = None,
        *,
        kernarg: bytes | None = None,
        buffers: Sequence[np.ndarray] = (),
        lds_bytes: int = 0,
        schedule: Schedule = "round_robin",
        arrival: Arrival = "late",
        seed: int = 0,
        checks: Checks = True,
        timing: bool = False,
        useful_flops: float | None = None,
        threads: int | None = None,
        max_instructions_per_wave: int = _MAX_INSTRUCTIONS_PER_WAVE,
        workgroups: Sequence[int] | None = None,
        follow: tuple[int, int] | None = None,
    ) -> Launch:
        """Runs a kernel to its end.

        The result does not depend on ``threads``, unless workgroups add floats to one place in
        memory by atomics: these round in the order in which the workgroups come, which is that of
        their indices on one thread alone.

        Args:
          kernel: name of the kernel.
          grid: workgroups, one number or up to three.
          block: lanes of a workgroup, likewise.
          args: one value per kernel argument. A numpy array is passed by address, may be accessed
            within its bounds only, and is written in place; None is a null pointer; numbers are
            packed to the argument's size; bytes are a structure passed by value.
          kernarg: instead of ``args``, the raw argument segment.
          buffers: further arrays that the kernel may access, by addresses in ``kernarg`` or in a
            structure.
          lds_bytes: dynamic LDS beside the kernel's own.
          schedule: which wave of a workgroup runs when: turns ("round_robin", and "reverse" from
            the last wave on), each wave up to its next barrier ("run_to_barrier"), or turns of
            random waves and lengths ("random").
          arrival: when the result of a load is in its registers or in LDS: not before a wait proves
            it there, which is all that the ISA promises ("late"); with the load itself, as most
            chips would have it most of the time ("early"); or anywhere between, and on gfx1201 one
            load before another ("random"). ``checks`` find the same under each.
          seed: where "random" schedules and arrivals start from.
          checks: True raises at the first finding, "collect" lists them in the result, False looks
            for none.
          timing: model the time that the launch would take on the chip.
          useful_flops: floating-point operations that the case needs, for ``useful_busy``.
          threads: host threads; None is one per core.
          max_instructions_per_wave: stops endless loops. An interrupt (Ctrl-C) stops any launch.
          workgroups: run only these, by their linear index in the grid (x fastest): the results of
            the others are missing. For timing a large grid by samples.
          follow: (workgroup, wave) whose ``steps`` are wanted: the linear index of the workgroup in
            the grid, that of the wave in the workgroup.

        Raises:
          EmulatorError: a finding, an access outside the arrays, an unknown instruction, a wrong
            launch; says kernel, wave, lane, program counter and instruction.
          TypeError, ValueError: an argument that cannot be passed.
        """
        if useful_flops is not None:
            if not isinstance(useful_flops, numbers.Real):
                raise TypeError(f"useful_flops must be a number or None; got {useful_flops!r}")
            if not timing:
                raise ValueError("useful_flops is for the timing model: pass timing=True too")
        described = self._kernels.get(kernel)
        if described is None:
            raise EmulatorError(
                f"no kernel {kernel!r} in this code object; it has {', '.join(self._kernels)}"
            )
        if isinstance(buffers, np.ndarray):
            raise TypeError("buffers must be a sequence of numpy arrays; got one array")
        named = [(f"buffers[{i}]", array) for i, array in enumerate(buffers)]
        if args is not None and kernarg is None:
            segment, arrays = pack(kernel, described, args)
            named = arrays + named
        elif args is None and isinstance(kernarg, bytes | bytearray | memoryview):
            segment = bytes(kernarg)
            check_segment(kernel, described, segment)
        elif args is None and kernarg is not None:
            raise TypeError(f"kernarg must be bytes; got {type(kernarg).__name__}")
        else:
            raise TypeError("launch takes either args= or kernarg=")
        shape = triple(grid, "grid"), triple(block, "block")
        result = self._code.launch(
            kernel,
            *shape,
            kernarg=segment,
            buffers=[(name, *address_of(name, array)) for name, array in named],
            lds_bytes=unsigned(lds_bytes, 32, "lds_bytes"),
            schedule=one_of(Schedule, "schedule", schedule),
            arrival=one_of(Arrival, "arrival", arrival),
            seed=unsigned(seed, 64, "seed"),
            **checks_wanted(checks),
            threads=thread_count(threads),
            max_instructions_per_wave=unsigned(
                max_instructions_per_wave, 64, "max_instructions_per_wave"
            ),
            timing=is_timed(timing),
            workgroups=workgroup_list(workgroups),
            follow=wave_place(follow),
        )
        launched = {
            "code": self._code,
            "target": self.target,
            "kernel": kernel,
            "grid": shape[0],
            "block": shape[1],
        }
        return to_launch(result, useful_flops, **launched)
