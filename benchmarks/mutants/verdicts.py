"""Which defects a code object's own cases tell from the shipped code."""

from __future__ import annotations

import dataclasses
import functools
import multiprocessing
import random
from collections.abc import Iterable, Sequence

from jax_fa import emulator
from mutants import cases, harmless, kinds, replay
from mutants.kinds import KINDS
from mutants.replay import ORDERS, Known
from mutants.sites import Image, Mutant, sites


@dataclasses.dataclass(frozen=True)
class Subject:
    """A code object and what its kernels do on the cases."""

    target: str
    elf: bytes
    known: list[Known]

    def executed(self, kernel: str) -> frozenset[int]:
        """The places of the instructions that some case executes."""
        places = (known.executed for known in self.known if known.replay.kernel == kernel)
        return frozenset().union(*places)

    def of(self, mutant: Mutant) -> list[Known]:
        """The launches that execute the instruction."""
        return [
            known
            for known in self.known
            if known.replay.kernel == mutant.kernel and mutant.pc in known.executed
        ]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What killed a defect ("finding", "error", "result"), or why it is harmless, or neither.

    `beyond`: a rule has a reason on the paths through what the cases execute, and on others none.
    """

    target: str
    mutant: Mutant
    killed: str | None
    reason: str | None = None
    beyond: bool = False


def load(target: str, names: Iterable[str] | None = None) -> Subject:
    """The shipped code object on the cases."""
    elf = replay.shipped(target)
    code = emulator.CodeObject(elf)
    called = cases.CASES if names is None else names
    launches = (launch for name in called for launch in replay.record(name, target))
    return Subject(target, elf, [replay.know(launch, code) for launch in launches])


def pick(
    subject: Subject, wanted: Sequence[str] = KINDS, seed: int = 0, count: int | None = None
) -> list[Mutant]:
    """`count` defects of each kind (None: all) at instructions that the cases execute."""
    code, image = emulator.CodeObject(subject.elf), Image(subject.elf)
    found: list[Mutant] = []
    for kernel in sorted({known.replay.kernel for known in subject.known}):
        text = sites(code, image, kernel)
        found += kinds.mutants(subject.target, kernel, text, subject.executed(kernel))
    by_kind = kinds.by_kind(found)
    picked = []
    for kind in wanted:
        of_kind = by_kind[kind]
        rng = random.Random(f"{seed} {subject.target} {kind}")
        picked += of_kind if count is None else rng.sample(of_kind, min(count, len(of_kind)))
    return picked


def judge(subject: Subject, picked: Sequence[Mutant], jobs: int = 1) -> list[Verdict]:
    """The verdict on each defect."""
    if jobs > 1:
        context = multiprocessing.get_context("spawn")
        with context.Pool(jobs, _begin, (subject,)) as pool:
            killed = pool.map(_killed_here, picked, chunksize=8)
    else:
        image = Image(subject.elf)
        killed = [_killed(subject, image, mutant) for mutant in picked]
    code, image = emulator.CodeObject(subject.elf), Image(subject.elf)

    @functools.cache
    def rules(kernel: str) -> tuple[harmless.Rules, harmless.Rules]:
        text = sites(code, image, kernel)
        here = (None, subject.executed(kernel))
        everywhere, executed = (harmless.Rules(subject.target, text, x) for x in here)
        return everywhere, executed

    verdicts = []
    for mutant, by in zip(picked, killed, strict=True):
        reason, beyond = None, False
        if by is None:
            everywhere, executed = rules(mutant.kernel)
            reason = everywhere.reason(mutant)
            beyond = reason is None and executed.reason(mutant) is not None
        verdicts.append(Verdict(subject.target, mutant, by, reason, beyond))
    return verdicts


def _killed(subject: Subject, image: Image, mutant: Mutant) -> str | None:
    code = emulator.CodeObject(image.patched(mutant))
    for orders in (ORDERS[:1], ORDERS[1:]):
        for known in subject.of(mutant):
            by = replay.verdict(known, code, orders)
            if by:
                return by
    return None


_worker: tuple[Subject, Image] | None = None


def _begin(subject: Subject) -> None:
    global _worker  # one of each process
    _worker = subject, Image(subject.elf)


def _killed_here(mutant: Mutant) -> str | None:
    assert _worker is not None
    return _killed(*_worker, mutant)
