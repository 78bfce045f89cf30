"""Which implementation serves a call, and the choices that shape its buffers.

All are static functions of shapes, dtypes and the target, made at trace or lowering.
"""

from __future__ import annotations

import math
from typing import Any

from jax_fa import _native

ANY_TARGET = "any"
"""A custom call that serves whichever of our targets the device is."""

_FACTS = _native.targets()
MAX_HEAD_DIM = min(facts["max_head_dim"] for facts in _FACTS.values())
HEAD_DIM_MULTIPLE = _native.head_dim_multiple
_KERNEL_DTYPES = ("bfloat16", "float16")


def choose(
    implementation: str | None, query: Any, key: Any, value: Any, paged: bool = False
) -> str:
    """One of "xla", a target, or ANY_TARGET, of which choice.py makes kernels or xla.

    Raises:
      NotImplementedError: a target is named that has no kernel for these operands.
    """
    if implementation == "xla":
        return "xla"
    missing = _no_kernel_because(query, value, paged)
    if implementation is None:
        return "xla" if missing else ANY_TARGET
    if missing:
        raise NotImplementedError(
            f'implementation="{implementation}" {missing}; implementation="xla" serves it'
        )
    if not _native.code_object(implementation):
        raise NotImplementedError(
            f'implementation="{implementation}": this build of jax_fa has no kernels for it'
        )
    return implementation


def _no_kernel_because(query: Any, value: Any, paged: bool) -> str | None:
    if str(query.dtype) not in _KERNEL_DTYPES:
        return f"serves query of dtype {' or '.join(_KERNEL_DTYPES)}; got {query.dtype}"
    head_dim, value_head_dim = query.shape[-1], value.shape[-1]
    if head_dim > MAX_HEAD_DIM:
        return f"serves query with a head size H <= {MAX_HEAD_DIM}; got {head_dim}"
    if value_head_dim != head_dim:
        return f"serves value with the head size H={head_dim} of query; got Hv={value_head_dim}"
    if paged and head_dim % HEAD_DIM_MULTIPLE:  # padding would copy the cache
        return f"serves pages with H a multiple of {HEAD_DIM_MULTIPLE}; got {head_dim}"
    return None


def padded_head_dim(head_dim: int) -> int:
    """The head size that kernels take: the next multiple of 8."""
    return -(-head_dim // HEAD_DIM_MULTIPLE) * HEAD_DIM_MULTIPLE


def workspace_bytes(num_splits: int, query_shape: tuple[int, ...]) -> int:
    """Partial results of every split: out and lse of each row and head, float32."""
    if num_splits == 1:
        return 0
    *rows, head_dim = query_shape
    return num_splits * math.prod(rows) * (padded_head_dim(head_dim) + 1) * 4


# --- Splits of the keys ---------------------------------------------------------------------------

# A split of fewer keys than this costs more to merge than it saves.
_MIN_KEYS_PER_SPLIT = 256

# The fewest keys of a tile. More splits than tiles of this size would leave some without a key.
_MIN_KEYS_PER_TILE = min(facts["min_split_keys"] for facts in _FACTS.values())


def useful_splits(wanted: int | None, keys: int) -> int | None:
    """The splits that were asked for, of which at most so many can hold a key."""
    return None if wanted is None else min(wanted, max(1, -(-keys // _MIN_KEYS_PER_TILE)))


def dense_splits(target: str, query_shape: Any, key_shape: Any) -> int:
    """Number of splits of dense attention, query [B, T, N, H] on key [B, S, K, H]."""
    (batch, t, n, _), (s, k) = query_shape, key_shape[1:3]
    return _splits(target, batch, t, n, k, s)


def varlen_splits(
    target: str, query_shape: Any, key_shape: Any, sequences: int, longest: int | None
) -> int:
    """Number of splits of packed attention, query [tq, N, H] on key [tk, K, H].

    longest: a guess at the longest sequence of keys; the mean without one.
    """
    (total_q, n, _), (total_k, k, _) = query_shape, key_shape
    mean_q, mean_k = (-(-total // max(sequences, 1)) for total in (total_q, total_k))
    keys = mean_k if longest is None else min(longest, total_k)
    return _splits(target, sequences, mean_q, n, k, keys)


def paged_splits(
    target: str, query_shape: Any, key_heads: int, sequences: int, capacity: int
) -> int:
    """Number of splits on a paged cache whose tables have room for `capacity` keys each."""
    *rows, n, _ = query_shape
    t = rows[1] if len(rows) == 2 else -(-rows[0] // max(sequences, 1))
    return _splits(target, sequences, t, n, key_heads, capacity)


def _splits(target: str, sequences: int, t: int, n: int, k: int, keys: int) -> int:
    """Splits enough for a workgroup on every compute unit, none of too few keys.

    A target that may be any gets enough for the largest. A call whose heads of a group do not share
    a tile gets one split: it has many workgroups, or few keys.
    """
    workgroups = sequences * k
    facts = _FACTS.values() if target == ANY_TARGET else (_FACTS[target],)
    if workgroups == 0 or t * (n // k) > max(one["packed_rows"] for one in facts):
        return 1
    units = max(one["compute_units"] for one in facts)
    return max(1, min(-(-units // workgroups), keys // _MIN_KEYS_PER_SPLIT))
