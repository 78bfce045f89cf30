"""AttentionSpec: every static option of an attention call, once, checked and frozen."""

from __future__ import annotations

import dataclasses
import math
import numbers
from typing import Any, Required, TypedDict

import jax
import numpy as np
from jax.core import Tracer

from jax_fa import _native
from jax_fa._contract.operands import Integers

TARGETS = tuple(_native.targets())
"""Architectures that have kernels, by their LLVM names."""

IMPLEMENTATIONS = ("xla", *TARGETS)

LAYOUTS = ("NHD", "HND")
"""Orders of dimensions in a page: row, head, size of the head; or head, row, size."""

OPEN = -1
"""A window side without a limit."""


# Keyword arguments by name and type, for the overloads that type checkers read. Classes named
# ...Options have those that say what is computed, those named ...Call also those that say how.


class Options(TypedDict, total=False):
    """Keyword arguments that every function has, the reference included."""

    causal: bool
    window: tuple[int | None, int | None] | None
    scale: float | None
    logits_soft_cap: float | None


class DenseOptions(Options, total=False):
    """Keyword arguments of functions on dense operands."""

    query_lengths: Integers | None
    key_lengths: Integers | None
    query_segment_ids: Integers | None
    key_segment_ids: Integers | None


class Call(TypedDict, total=False):
    """Keyword arguments that say how."""

    num_splits: int | None
    implementation: str | None


class DenseCall(DenseOptions, Call, total=False):
    """Keyword arguments of flash_attention."""


class VarlenCall(Options, Call, total=False):
    """Keyword arguments of flash_attention_varlen."""

    cu_seqlens_q: Required[Integers]
    cu_seqlens_k: Required[Integers]
    max_seqlen_q: int | None
    max_seqlen_k: int | None


class PagedCall(Options, Call, total=False):
    """Keyword arguments of paged_attention."""

    query_lengths: Integers | None
    cu_seqlens_q: Integers | None
    max_seqlen_q: int | None
    layout: str


@dataclasses.dataclass(frozen=True)
class AttentionSpec:
    """What a call computes, apart from its arrays.

    Query t of a sequence with diagonal d sees key s when
    ``t + d - window_left <= s <= t + d + window_right``; d is ``S_b - T_b``, or 0 with top_left.
    """

    scale: float
    soft_cap: float = 0.0  # 0: none
    window_left: int = OPEN
    window_right: int = OPEN  # 0 is causal
    top_left: bool = False
    implementation: str | None = None
    num_splits: int | None = None  # None: chosen by the target's static rule
    # Hints, which shape a launch and change no result.
    max_seqlen_q: int | None = None
    max_seqlen_k: int | None = None
    heads_first: bool = False  # pages are [P, K, page, H]
    exact: bool = True  # products of float32 are; else they are as JAX's default precision has them

    @classmethod
    def make(
        cls,
        *,
        head_dim: int,
        causal: bool = False,
        window: tuple[int | None, int | None] | None = None,
        scale: float | None = None,
        logits_soft_cap: float | None = None,
        implementation: str | None = None,
        top_left: bool = False,
        num_splits: int | None = None,
        max_seqlen_q: int | None = None,
        max_seqlen_k: int | None = None,
        heads_first: bool = False,
        exact: bool = True,
    ) -> AttentionSpec:
        """Checks the public options and brings them into one form. Raises TypeError, ValueError."""
        left, right = _window(window)
        if require_bool("causal", causal):
            right = 0
        if scale is None:
            scale = 1.0 / math.sqrt(head_dim) if head_dim else 1.0
        return cls(
            scale=_real("scale", scale, "multiply the query by it instead, with scale=1.0"),
            soft_cap=_soft_cap(logits_soft_cap),
            window_left=left,
            window_right=right,
            top_left=top_left,
            implementation=_implementation(implementation),
            num_splits=_splits(num_splits),
            max_seqlen_q=_longest("max_seqlen_q", max_seqlen_q),
            max_seqlen_k=_longest("max_seqlen_k", max_seqlen_k),
            heads_first=heads_first,
            exact=exact,
        )


def require_static(name: str, value: Any, advice: str) -> None:
    """Raises a TypeError when a static option is a traced or device array."""
    if isinstance(value, Tracer):
        raise TypeError(
            f"{name} must be a Python value, known when the function is traced; got a traced array "
            f"of shape {value.shape} and dtype {value.dtype}: {advice}"
        )
    if isinstance(value, jax.Array):
        raise TypeError(
            f"{name} must be a Python value; got a jax.Array: pass float(...) or int(...) of it, "
            f"or {advice}"
        )


_STATIC_ADVICE = "mark it as static (jax.jit's static_argnames), or branch outside of jit"


def require_bool(name: str, value: Any) -> bool:
    """`value` as a bool, or a TypeError that names it. An int is no bool."""
    require_static(name, value, _STATIC_ADVICE)
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a bool; got {value!r} of type {type(value).__name__}")
    return bool(value)


def _real(name: str, value: Any, advice: str) -> float:
    require_static(name, value, advice)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, np.number)):
        raise TypeError(f"{name} must be a number; got {value!r} of type {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:  # an int past all floats
        number = math.inf
    if not math.isfinite(number) or abs(number) > float(np.finfo(np.float32).max):
        raise ValueError(f"{name} must be finite in float32; got {value!r}")
    return number


def _soft_cap(value: Any) -> float:
    if value is None:
        return 0.0
    number = _real("logits_soft_cap", value, _STATIC_ADVICE)
    if number < 0:
        raise ValueError(f"logits_soft_cap must be None, 0 (none) or positive; got {value!r}")
    if number and number < np.finfo(np.float32).tiny:  # kernels would take it for none
        raise ValueError(f"logits_soft_cap must not vanish in float32; got {value!r}")
    return number


def _window(window: Any) -> tuple[int, int]:
    if window is None:
        return OPEN, OPEN
    require_static("window", window, _STATIC_ADVICE)
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        raise TypeError(f"window must be a pair (left, right) of integers or None; got {window!r}")
    return _side("left", window[0]), _side("right", window[1])


def _side(name: str, value: Any) -> int:
    if value is None:
        return OPEN
    value = _integer(f"window {name}", value, _STATIC_ADVICE)
    if value < 0:
        hint = "; an open side is None" if value == -1 else ""
        raise ValueError(f"window {name} must be >= 0 or None; got {value}{hint}")
    return min(value, 2**30)


def _integer(name: str, value: Any, advice: str) -> int:
    require_static(name, value, advice)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(
            f"{name} must be an integer or None; got {value!r} of type {type(value).__name__}"
        )
    return int(value)


def _implementation(value: Any) -> str | None:
    if value is not None and (not isinstance(value, str) or value not in IMPLEMENTATIONS):
        names = ", ".join(repr(name) for name in IMPLEMENTATIONS)
        raise ValueError(f"implementation must be None or one of {names}; got {value!r}")
    return value


def _splits(value: Any) -> int | None:
    if value is None:
        return None
    value = _integer("num_splits", value, _STATIC_ADVICE)
    if value < 1:
        raise ValueError(f"num_splits must be >= 1 or None (automatic); got {value}")
    return value


def _longest(name: str, value: Any) -> int | None:
    """The hint, rounded up to a power of two, so that few programs serve many lengths."""
    if value is None:
        return None
    value = _integer(name, value, "leave it out: it is no more than a hint")
    if value < 0:
        raise ValueError(f"{name} must be >= 0 or None; got {value}")
    return 1 << max(0, value - 1).bit_length()


def parse_layout(layout: Any) -> bool:
    """Whether pages are [P, K, page, H]."""
    require_static("layout", layout, _STATIC_ADVICE)
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise ValueError(f'layout must be "NHD" or "HND"; got {layout!r}')
    return layout == "HND"
