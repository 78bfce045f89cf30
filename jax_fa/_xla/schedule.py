"""Which schedule implementation="xla" follows: chosen when a program is lowered, by its platform.

A CPU walks one sequence and few keys at a time, which keeps them in its caches (blockwise.py);
every other platform takes large products of many rows and keys (batched.py), and so does a CPU
where sequences are tiny.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from jax_fa._contract.spec import AttentionSpec
from jax_fa._xla import batched, blockwise, deferred
from jax_fa._xla.keys import FlatKeys
from jax_fa._xla.rows import Work


def forward(spec: AttentionSpec, query: Any, keys: Any, work: Work) -> Any:
    """Attention of flat rows: see blockwise.forward."""
    cpu, other = (functools.partial(f.forward, spec) for f in (blockwise, batched))
    return by_platform(cpu, other, query, keys, work, pairs=_pairs(keys, work))


def backward(
    spec: AttentionSpec, query: Any, keys: Any, work: Work, *results: Any, with_d_keys: bool = True
) -> Any:
    """Gradients of `forward`: see blockwise.backward."""
    cpu, other = (
        functools.partial(f.backward, spec, with_d_keys=with_d_keys) for f in (blockwise, batched)
    )
    return by_platform(cpu, other, query, keys, work, *results, pairs=_pairs(keys, work))


TINY = 16
"""Pairs of a sequence up to which a turn of a loop costs more than what it computes."""


def by_platform(
    cpu: Callable[..., Any], other: Callable[..., Any], *operands: Any, pairs: int | None = None
) -> Any:
    """The results of `cpu` or `other` of the operands.

    Tiles are of sizes that are known: symbolic ones are walked as on a CPU.

    pairs: of rows and keys of each sequence, where they are of one length.
    """
    known = (size for x in jax.tree.leaves(operands) for size in getattr(x, "shape", (x,)))
    if not all(isinstance(size, int) for size in known):
        return cpu(*operands)
    if pairs is not None and pairs <= TINY:
        return other(*operands)
    return deferred.by_platform(cpu, other, *operands)


def _pairs(keys: Any, work: Work) -> Any:
    if work.batch is None or work.longest is None or not isinstance(keys, FlatKeys):
        return None
    return work.batch[1] * work.longest
