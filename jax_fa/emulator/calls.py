"""How the emulated custom calls of the process run, and what they do."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from jax_fa import _native
from jax_fa.emulator.launch import Launch, to_launch
from jax_fa.emulator.options import (
    Arrival,
    Checks,
    Schedule,
    checks_wanted,
    is_timed,
    one_of,
    thread_count,
    unsigned,
    wave_place,
    workgroup_list,
)


def configure(
    *,
    schedule: Schedule | None = None,
    arrival: Arrival | None = None,
    seed: int | None = None,
    checks: Checks | None = None,
    threads: int | None = None,
    timing: bool | None = None,
    workgroups: Sequence[int] | None = None,
    follow: tuple[int, int] | None = None,
) -> _Settings:
    """A context in which emulated custom calls run so; what is None stays as it is.

    The settings belong to the process, not to the thread, and a call takes those in force when it
    executes: under asynchronous dispatch, wait for results (``jax.block_until_ready``) within the
    context. The start is ``schedule="round_robin"``, ``arrival="late"``, one thread per core and
    ``checks=False`` (unlike ``CodeObject.launch``: model code wants the speed; tests switch checks
    on here).

    A finding of ``checks=True`` fails the custom call, so it reaches the caller as JAX's runtime
    error with the emulator's text. ``checks="collect"`` lists findings in what ``record`` yields.
    ``timing=True`` models the time of the launches that ``record`` yields. With ``workgroups`` only
    these run of every launch that has them, and the results are not to be used. ``follow`` gives
    the ``steps`` of that wave of every launch that runs it.
    """
    wanted: dict[str, Any] = {}
    if schedule is not None:
        wanted["schedule"] = one_of(Schedule, "schedule", schedule)
    if arrival is not None:
        wanted["arrival"] = one_of(Arrival, "arrival", arrival)
    if seed is not None:
        wanted["seed"] = unsigned(seed, 64, "seed")
    if checks is not None:
        wanted.update(checks_wanted(checks))
    if threads is not None:
        wanted["threads"] = thread_count(threads)
    if timing is not None:
        wanted["timing"] = is_timed(timing)
    if workgroups is not None:
        wanted["workgroups"] = workgroup_list(workgroups)
    if follow is not None:
        wanted["follow"] = wave_place(follow)
    return _Settings(wanted)


class _Settings(contextlib.ContextDecorator):
    """Settings that hold within a context, or while a decorated function runs."""

    def __init__(self, wanted: dict[str, Any]):
        self._wanted = wanted
        self._before: list[dict[str, Any]] = []  # of each context under way
        self._used = False

    def __enter__(self) -> None:
        self._used = True
        before = _native.emulator_settings()
        _native.set_emulator_settings(**{**before, **self._wanted})
        self._before.append(before)

    def __exit__(self, *exception: object) -> None:
        _native.set_emulator_settings(**self._before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self._used = True
        return super().__call__(function)

    def __del__(self) -> None:
        if not self._used:
            message = (
                "emulator.configure(...) alone sets nothing: with emulator.configure(...): ..."
            )
            warnings.warn(message, RuntimeWarning, stacklevel=2)


class _Launches(Sequence[Launch]):
    """The launches seen so far, in the order in which they ended."""

    def __init__(self, recorder: Any):
        self._recorder = recorder

    def _all(self) -> list[Launch]:
        return [to_launch(fields) for fields in self._recorder.launches]

    def __len__(self) -> int:
        return len(self._recorder.launches)

    @overload
    def __getitem__(self, index: int) -> Launch: ...
    @overload
    def __getitem__(self, index: slice) -> list[Launch]: ...
    def __getitem__(self, index: int | slice) -> Launch | list[Launch]:
        return self._all()[index]

    def __iter__(self) -> Iterator[Launch]:
        return iter(self._all())


@contextlib.contextmanager
def record() -> Iterator[Sequence[Launch]]:
    """Yields the sequence of launches that emulated custom calls of this process make meanwhile.

    It grows as calls end, and keeps what it has after the context. Under asynchronous dispatch,
    wait for results within the context.
    """
    recorder = _native.EmulatorRecorder()
    try:
        yield _Launches(recorder)
    finally:
        recorder.stop()
