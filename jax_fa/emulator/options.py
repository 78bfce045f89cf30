"""Options of launches: their names, and what each may be."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

Schedule = Literal["round_robin", "run_to_barrier", "reverse", "random"]
Arrival = Literal["late", "early", "random"]
Checks = bool | Literal["collect"]


def triple(extent: int | Sequence[int], name: str) -> tuple[int, int, int]:
    """Up to three extents, filled up with ones."""
    parts = list(extent) if isinstance(extent, Sequence) else [extent]
    whole = all(isinstance(part, int | np.integer) and 1 <= part < 1 << 32 for part in parts)
    if not 1 <= len(parts) <= 3 or not whole:
        raise ValueError(f"{name} must be one to three positive integers; got {extent!r}")
    x, y, z = (int(part) for part in parts + [1] * (3 - len(parts)))
    return x, y, z


def unsigned(value: int, bits: int, name: str) -> int:
    """An integer of so many bits."""
    if not isinstance(value, int | np.integer) or not 0 <= value < 1 << bits:
        raise ValueError(f"{name} must be an integer from 0 to 2**{bits} - 1; got {value!r}")
    return int(value)


def checks_wanted(checks: Checks) -> dict[str, bool]:
    """What the native part is told of checks."""
    if not isinstance(checks, bool) and checks != "collect":
        raise ValueError(f"checks must be True, False or 'collect'; got {checks!r}")
    return {"checks": bool(checks), "collect": checks == "collect"}


def thread_count(threads: int | None) -> int:
    """Host threads; 0 for one per core."""
    if threads is None:
        return 0
    if not isinstance(threads, int | np.integer) or isinstance(threads, bool) or threads < 1:
        raise ValueError(
            f"threads must be an integer from 1 on, or None for one per core; got {threads!r}"
        )
    return int(threads)


def one_of(choices: Any, name: str, value: str) -> str:
    """A name among those of a Literal type."""
    if value not in get_args(choices):
        names = ", ".join(map(repr, get_args(choices)))
        raise ValueError(f"{name} must be one of {names}; got {value!r}")
    return value


def is_timed(timing: bool) -> bool:
    """Whether launches are timed."""
    if not isinstance(timing, bool):
        raise TypeError(f"timing must be a bool; got {timing!r}")
    return timing


def workgroup_list(workgroups: Sequence[int] | None) -> list[int]:
    """The workgroups to run; empty for all."""
    if workgroups is None:
        return []
    listed = list(workgroups) if isinstance(workgroups, Sequence | np.ndarray) else []
    whole = all(isinstance(index, int | np.integer) and index >= 0 for index in listed)
    if not listed or not whole or len(set(listed)) != len(listed):
        raise ValueError(
            f"workgroups must be different indices of the grid, or None for all; got {workgroups!r}"
        )
    return [int(index) for index in listed]


def wave_place(place: tuple[int, int] | None) -> tuple[int, int] | None:
    """A wave to follow."""
    if place is None:
        return None
    parts = list(place) if isinstance(place, Sequence) else []
    if len(parts) != 2 or not all(isinstance(part, int | np.integer) for part in parts):
        raise ValueError(f"follow must be (workgroup, wave), two integers, or None; got {place!r}")
    return unsigned(parts[0], 64, "follow[0]"), unsigned(parts[1], 32, "follow[1]")
