"""Packed sequences and paged caches, with NaN wherever it must not count.

An operand made here has NaN in the rows and keys of no sequence, in the tail of every last page and
in every page that no sequence uses; tables hold foreign, negative and huge entries past a length.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jax_fa import _native
from jax_fa._contract.spec import TARGETS
from jax_fa._ops import registry as _registry


def targets_with(handler: str) -> tuple[str, ...]:
    """Targets whose kernels this build has behind `handler`."""
    if handler not in _native.registrations()["cpu"]:
        return ()
    return tuple(target for target in TARGETS if _native.code_object(target))


VARLEN_TARGETS = targets_with(_registry.VARLEN)
PAGED_TARGETS = targets_with(_registry.PAGED)
# (implementation, dtype) of every case: float32 on xla, bfloat16 on each target's kernels.
VARLEN_RUNS = [("xla", "float32"), *((target, "bfloat16") for target in VARLEN_TARGETS)]
PAGED_RUNS = [("xla", "float32"), *((target, "bfloat16") for target in PAGED_TARGETS)]


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, np.float32)


def clean(array: jax.Array) -> jax.Array:
    """The array with 0 for NaN.

    Tolerances, which grow with the values, and gradients of the reference, which keeps NaN out of
    results alone, are of this.
    """
    return jnp.nan_to_num(array)


def offsets(lengths: Any) -> np.ndarray:
    """int32 [n + 1] of n lengths."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int32)]).astype(np.int32)


@dataclasses.dataclass(frozen=True)
class Pack:
    """Sequences of (T_b, S_b), one after another, and rows and keys that are nobody's."""

    name: str
    lengths: tuple[tuple[int, int], ...]
    n: int = 2
    k: int = 1
    h: int = 64
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    spare: tuple[int, int] = (5, 3)  # rows and keys past the last sequence

    def operands(self, dtype: Any, seed: int = 0) -> tuple[jax.Array, jax.Array, jax.Array]:
        """query [tq, N, H], key and value [tk, K, H]."""
        rng = np.random.default_rng(seed)
        made = []
        for side, heads in ((0, self.n), (1, self.k), (1, self.k)):
            used = sum(pair[side] for pair in self.lengths)
            rows = normal(rng, used + self.spare[side], heads, self.h)
            rows[used:] = np.nan
            made.append(jnp.asarray(rows, dtype))
        return made[0], made[1], made[2]

    def offsets(self) -> dict[str, jax.Array]:
        """cu_seqlens_q and cu_seqlens_k."""
        return {
            name: jnp.asarray(offsets([pair[side] for pair in self.lengths]))
            for name, side in (("cu_seqlens_q", 0), ("cu_seqlens_k", 1))
        }

    def keywords(self) -> dict[str, Any]:
        """Options and offsets, as keyword arguments."""
        return {**self.options, **self.offsets()}

    def __str__(self) -> str:
        return self.name


CAUSAL = {"causal": True}


def _small(name: str, *lengths: tuple[int, int], **rest: Any) -> Pack:
    """A pack whose operands have the shape of all small packs.

    One compiled program then serves all that have the same options.
    """
    rest = {"options": CAUSAL, **rest}
    padded = (*lengths, *[(0, 0)] * (5 - len(lengths)))
    used = [sum(side) for side in zip(*padded, strict=True)]
    return Pack(name, padded, n=4, k=2, spare=(70 - used[0], 90 - used[1]), **rest)


PACKS = (
    _small("plain", (20, 20), (33, 33), (1, 1)),
    _small("T != S", (20, 41), (33, 7), (1, 33)),
    _small("T = 1", (1, 41), (1, 7), (1, 1)),
    _small("empty first", (0, 5), (7, 9)),
    _small("empty last", (7, 9), (0, 4)),
    _small("empty in the middle", (7, 9), (0, 0), (3, 3)),
    _small("no keys", (7, 0), (3, 9), (5, 0)),
    _small("all empty", (0, 0), (0, 3), (4, 0)),
    _small("nothing spare", (30, 40), (40, 50)),
    _small("window", (40, 50), (30, 40), options={"window": (9, 4)}),
    _small("window (0, 0)", (40, 50), (12, 12), options={"window": (0, 0)}),
    _small("soft cap", (20, 50), (30, 30), options={"logits_soft_cap": 2.0, **CAUSAL}),
    Pack("no sequences", ()),
    Pack("more queries than keys", ((76, 1), (34, 1), (146, 1)), options=CAUSAL),
    Pack("one query among empties", ((0, 0), (1, 3), (0, 0), (1, 5)), n=9, k=3, options=CAUSAL),
    Pack("about a tile", tuple((x, x) for x in (127, 128, 129, 64, 63)), n=1, options=CAUSAL),
    Pack("heads 7/1, H = 40", ((12, 30), (17, 17)), n=7, h=40, options=CAUSAL),
)


@dataclasses.dataclass(frozen=True)
class Cache:
    """Sequences of (T_b, S_b): the last T_b of S_b positions are queries, on shuffled pages."""

    name: str
    lengths: tuple[tuple[int, int], ...]
    page_size: int = 16
    n: int = 2
    k: int = 1
    h: int = 64
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    packed: bool = False
    layout: str = "NHD"
    spare_pages: int = 3
    spare_entries: int = 2

    def tables(self, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        """(block_tables [B, M], P); spare pages stand anywhere in the pool."""
        pages = [-(-s // self.page_size) for _, s in self.lengths]
        width = max(pages, default=0) + self.spare_entries
        total = sum(pages) + self.spare_pages
        order = rng.permutation(total)
        nonsense = np.array([-1, 2**31 - 1, total, *range(min(total, 2))])
        tables = rng.choice(nonsense, (len(pages), width)).astype(np.int32)
        used = 0
        for b, count in enumerate(pages):
            tables[b, :count] = order[used : used + count]
            used += count
        return tables, total

    def operands(self, dtype: Any, seed: int = 0) -> tuple:
        """query, k_pages, v_pages, block_tables, key_lengths."""
        rng = np.random.default_rng(seed)
        tables, total = self.tables(rng)
        pools = []
        for _ in range(2):
            pool = np.full((total, self.page_size, self.k, self.h), np.nan, np.float32)
            for b, (_, s) in enumerate(self.lengths):
                at = np.arange(s)
                rows = normal(rng, s, self.k, self.h)
                pool[tables[b, at // self.page_size], at % self.page_size] = rows
            pool = pool.swapaxes(1, 2) if self.layout == "HND" else pool
            pools.append(jnp.asarray(pool, dtype))
        if self.packed:
            used = sum(t for t, _ in self.lengths)
            query = normal(rng, used + 3, self.n, self.h)
            query[used:] = np.nan
        else:
            query = normal(rng, len(self.lengths), self.longest(), self.n, self.h)
            for row, (t, _) in zip(query, self.lengths, strict=True):
                row[t:] = np.nan
        key_lengths = np.array([s for _, s in self.lengths], np.int32)
        return jnp.asarray(query, dtype), *pools, jnp.asarray(tables), jnp.asarray(key_lengths)

    def longest(self) -> int:
        return max((t for t, _ in self.lengths), default=1)

    def keywords(self) -> dict[str, Any]:
        """Options and query lengths, as keyword arguments."""
        keywords: dict[str, Any] = dict(self.options)
        if self.layout != "NHD":
            keywords["layout"] = self.layout
        lengths = [t for t, _ in self.lengths]
        if self.packed:
            keywords["cu_seqlens_q"] = jnp.asarray(offsets(lengths))
        elif any(t != self.longest() for t in lengths):
            keywords["query_lengths"] = jnp.asarray(lengths, jnp.int32)
        return keywords

    def __str__(self) -> str:
        return self.name


def _decode(*key_lengths: int, t: int = 1) -> tuple[tuple[int, int], ...]:
    return tuple((t, s) for s in key_lengths)


CACHES = (
    Cache("decode", _decode(13, 1, 40), n=4, k=2),
    Cache("page 4, length 13", _decode(13), page_size=4),
    Cache("lengths are page multiples", _decode(32, 16, 48)),
    Cache("an empty sequence", ((1, 0), (1, 20), (0, 7))),
    *(Cache(f"page {p}", _decode(130, 7), page_size=p) for p in (1, 64, 100, 256)),
    *(Cache(f"T = {t}", _decode(40, 70, t=t), n=8, k=2) for t in (2, 8)),
    Cache("prefill", ((45, 45), (70, 70)), n=4, k=2),
    Cache("a chunk of prefill", ((32, 100), (17, 33)), n=4, k=2),
    Cache("T > S", ((9, 4), (2, 5))),
    Cache("a mixed batch", ((1, 50), (33, 33), (0, 12), (20, 90), (1, 1)), packed=True),
    Cache("a mixed batch, HND", ((1, 50), (33, 40)), n=4, k=2, packed=True, layout="HND"),
    Cache("HND", _decode(50, 33, t=3), n=4, k=2, layout="HND"),
    Cache("not causal", _decode(50, 33, t=3), options={"causal": False}),
    Cache("window", _decode(50, 33, t=3), options={"window": (17, 0)}),
    Cache("soft cap", _decode(50, 33), options={"logits_soft_cap": 2.0}),
    Cache("heads 7/1, H = 120", _decode(50, 33), n=7, h=120),
    Cache("nothing spare", _decode(32, 48), spare_pages=0, spare_entries=0),
)
