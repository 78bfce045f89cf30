"""Which cases of a sweep run by default."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def swept(cases: Iterable[Any], by_default: Callable[..., bool] | Iterable[Any]) -> list[Any]:
    """The cases as parameters; those that do not run by default are slow.

    by_default: the cases that do, or a function of a case's parameters that says so.
    """
    kept = by_default if callable(by_default) else None
    chosen = () if kept else tuple(by_default)  # type: ignore[arg-type]

    def runs(case: Any, values: tuple[Any, ...]) -> bool:
        return kept(*values) if kept else case in chosen

    made = []
    for case in cases:
        values = case if type(case) is tuple else (case,)
        marks = () if runs(case, values) else pytest.mark.slow
        made.append(pytest.param(*values, marks=marks))
    return made
