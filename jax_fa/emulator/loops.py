"""Finds the loops of a kernel's machine code that the time is spent in.

Works on the listing of a code object: instructions with the places that control can go to. Loops
nest as strongly connected components do (take a loop's header away and what still goes round is an
inner loop), which holds for hand-written code with several ways into a loop too. Where every round
of a loop does at least as much matrix work outside an inner one as in one trip round it, the inner
one is taken for a part of the round that may be repeated, and for no loop of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

MATRIX_CLASSES = frozenset({"matrix", "sparse_matrix"})


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One instruction of a listing.

    Attributes:
      pc: byte offset in the code object.
      mnemonic: as the disassembler spells it.
      op_class: what it counts as.
      falls_through: control may go on behind it.
      target: pc that a branch may go to instead, or None.
    """

    pc: int
    mnemonic: str
    op_class: str
    falls_through: bool
    target: int | None

    @property
    def is_matrix(self) -> bool:
        """Whether it runs on the matrix core."""
        return self.op_class in MATRIX_CLASSES


@dataclasses.dataclass(frozen=True)
class Loop:
    """A loop that holds matrix instructions, at any depth.

    Attributes:
      header: pc where a round begins.
      body: its instructions but those of such loops within it, in order of address.
    """

    header: int
    body: list[Instruction]


def read_listing(code: Any, kernel: str) -> list[Instruction]:
    """The decoded text of a kernel of a native code object."""
    return [Instruction(*fields) for fields in code.instructions(kernel)]


@dataclasses.dataclass
class _Block:
    instructions: list[Instruction]
    successors: list[int]
    matrix: int  # matrix instructions in it


def find_hot_loops(listing: Sequence[Instruction]) -> list[list[Instruction]]:
    """The innermost loops that hold matrix instructions, each as one trip round it.

    The trip is the shortest path from the loop's header to a back edge that holds all of its matrix
    instructions; where no path holds all (two bodies under an if), one that holds the most.
    Where most of them are on every path, the others are a rare part that multiplies too, which the
    trip passes by. Loops inside that hold none (a wait, say) count once.
    """
    if not listing:
        return []
    blocks = _blocks(listing)
    place = {block: i for i, block in enumerate(_reverse_postorder(blocks, 0))}
    innermost = [loop for loop in _nest(blocks, place) if not loop.inner]
    trips = (_trip(blocks, place, loop.header, loop.blocks) for loop in innermost)
    return [[i for b in trip for i in blocks[b].instructions] for trip in trips]


def find_loops(listing: Sequence[Instruction]) -> list[Loop]:
    """The loops that hold matrix instructions, outer ones too, in order of address."""
    if not listing:
        return []
    blocks = _blocks(listing)
    place = {block: i for i, block in enumerate(_reverse_postorder(blocks, 0))}
    return [
        Loop(
            blocks[loop.header].instructions[0].pc,
            [i for b in sorted(loop.blocks - loop.inner) for i in blocks[b].instructions],
        )
        for loop in _nest(blocks, place)
    ]


@dataclasses.dataclass
class _Cycle:
    header: int
    blocks: set[int]
    inner: set[int]  # of them, those of cycles within that hold matrix instructions


def _nest(blocks: Sequence[_Block], place: dict[int, int]) -> list[_Cycle]:
    """All cycles that hold matrix instructions, in order of address."""
    found = []
    pending = [set(place)]
    while pending:
        for component in _hot_cycles(blocks, pending.pop()):
            header = min(component, key=place.__getitem__)
            rest = component - {header}
            inner = set().union(*_hot_cycles(blocks, rest))
            if _repeats_a_part(blocks, header, component, inner):
                inner = set()
            if inner:
                pending.append(rest)
            found.append(_Cycle(header, component, inner))
    return sorted(found, key=lambda cycle: cycle.header)


def _repeats_a_part(
    blocks: Sequence[_Block], header: int, component: set[int], inner: set[int]
) -> bool:
    """Whether every round has at least as much matrix work outside the inner cycles as in them."""
    certain = {b for b in component if _is_certain(blocks, header, component, b)}
    without, within = (
        sum(blocks[b].matrix for b in certain & x) for x in (component - inner, inner)
    )
    return 0 < within <= without


def _hot_cycles(blocks: Sequence[_Block], within: Collection[int]) -> Iterator[set[int]]:
    return (c for c in _cycles(blocks, within) if any(blocks[b].matrix for b in c))


def reachable(listing: Sequence[Instruction]) -> list[Instruction]:
    """The instructions that control can get to from the first, in order of address."""
    if not listing:
        return []
    blocks = _blocks(listing)
    return [
        i for block in sorted(_reverse_postorder(blocks, 0)) for i in blocks[block].instructions
    ]


def _blocks(listing: Sequence[Instruction]) -> list[_Block]:
    """Basic blocks in order of address, successors by index. The entry is block 0."""
    index = {instruction.pc: i for i, instruction in enumerate(listing)}
    leaders = {0}
    for i, instruction in enumerate(listing):
        if instruction.target is not None or not instruction.falls_through:
            leaders.add(i + 1)
        if instruction.target in index:
            leaders.add(index[instruction.target])
    starts = sorted(leader for leader in leaders if leader < len(listing))
    number = {start: n for n, start in enumerate(starts)}
    blocks = []
    for start, end in zip(starts, [*starts[1:], len(listing)], strict=True):
        last = listing[end - 1]
        successors = []
        if last.falls_through and end < len(listing):
            successors.append(number[end])
        if last.target in index:
            successors.append(number[index[last.target]])
        body = list(listing[start:end])
        blocks.append(_Block(body, successors, sum(i.is_matrix for i in body)))
    return blocks


def _reverse_postorder(blocks: Sequence[_Block], entry: int) -> list[int]:
    order, seen = [], {entry}
    stack = [(entry, iter(blocks[entry].successors))]
    while stack:
        block, successors = stack[-1]
        following = next((s for s in successors if s not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(blocks[following].successors)))
    return order[::-1]


def _cycles(blocks: Sequence[_Block], within: Collection[int]) -> list[set[int]]:
    """The strongly connected components that go round (Tarjan's algorithm, iterative)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    found = []
    for root in sorted(within):
        if root in index:
            continue
        stack = [(root, iter(_inside(blocks[root].successors, within)))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        while stack:
            block, successors = stack[-1]
            for s in successors:
                if s not in index:
                    index[s] = low[s] = len(index)
                    path.append(s)
                    on_path.add(s)
                    stack.append((s, iter(_inside(blocks[s].successors, within))))
                    break
                if s in on_path:
                    low[block] = min(low[block], index[s])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[block])
                if low[block] == index[block]:
                    component = set()
                    while block not in component:
                        component.add(path.pop())
                    on_path -= component
                    if len(component) > 1 or block in blocks[block].successors:
                        found.append(component)
    return found


def _inside(successors: Iterable[int], within: Collection[int]) -> list[int]:
    return [s for s in successors if s in within]


def _is_certain(blocks: Sequence[_Block], header: int, component: set[int], block: int) -> bool:
    """Whether every way round the loop from its header holds the block."""
    if block == header:
        return True
    seen, pending = {header, block}, [header]
    while pending:
        for s in _inside(blocks[pending.pop()].successors, component):
            if s == header:
                return False
            if s not in seen:
                seen.add(s)
                pending.append(s)
    return True


def _trip(
    blocks: Sequence[_Block], place: dict[int, int], header: int, component: set[int]
) -> list[int]:
    """Blocks of the shortest way from the header to a back edge with the most matrix instructions.

    Edges that go back within the loop are not taken, so the order of `place` is topological.
    """
    certain = [
        b for b in component if blocks[b].matrix and _is_certain(blocks, header, component, b)
    ]
    most = sum(blocks[b].matrix for b in component)
    counts = {b: blocks[b].matrix for b in component}
    if 2 * sum(counts[b] for b in certain) > most:
        counts = {b: counts[b] if b in certain else 0 for b in component}
    best = {header: (counts[header], -len(blocks[header].instructions))}
    before: dict[int, int] = {}
    for block in sorted(component, key=place.__getitem__):
        if block not in best:
            continue
        for s in blocks[block].successors:
            if s not in component or place[s] <= place[block]:
                continue
            matrix, shortness = best[block]
            value = (matrix + counts[s], shortness - len(blocks[s].instructions))
            if s not in best or value > best[s]:
                best[s], before[s] = value, block
    last = max(
        (b for b in component if header in blocks[b].successors and b in best), key=best.__getitem__
    )
    trip = [last]
    while trip[-1] != header:
        trip.append(before[trip[-1]])
    return trip[::-1]
