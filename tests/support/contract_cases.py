"""Named problems whose custom calls, collectives and exported programs are frozen."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from jax_fa import append_to_pages, flash_attention, flash_attention_varlen, nn, paged_attention


def values(seed: int, *shape: int) -> np.ndarray:
    """float32 from -2 to 2 by whole numbers alone, so that every host and NumPy makes the same."""
    index = np.arange(np.prod(shape, dtype=np.int64), dtype=np.uint64) + np.uint64(seed << 32)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 1):
        index = (index ^ (index >> np.uint64(33))) * np.uint64(factor)
    whole = (index >> np.uint64(48)).astype(np.int32) - (1 << 15)
    return (whole / np.float32(1 << 14)).astype(np.float32).reshape(shape)


@dataclasses.dataclass(frozen=True)
class Problem:
    """A function of arrays and of ``implementation=``.

    shapes: of the floating operands, which come first.
    integers: the int32 operands.
    specs: how the operands lie on the mesh ("b", "h"), for problems of several devices.
    """

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    integers: tuple[Any, ...] = ()
    specs: tuple[P, ...] = ()

    def operands(self, dtype: Any) -> list[jax.Array]:
        floats = [jnp.asarray(values(i, *s), dtype) for i, s in enumerate(self.shapes)]
        return [*floats, *(jnp.asarray(x, jnp.int32) for x in self.integers)]

    def on(self, implementation: str | None) -> Callable[..., Any]:
        return functools.partial(self.function, implementation=implementation)


def _dense(**options: Any) -> Callable[..., Any]:
    return functools.partial(flash_attention, return_lse=True, **options)


def _lengths(q, k, v, query_lengths, key_lengths, **options):
    return flash_attention(
        q, k, v, query_lengths=query_lengths, key_lengths=key_lengths, causal=True, **options
    )


def _segments(q, k, v, query_ids, key_ids, **options):
    return flash_attention(
        q, k, v, query_segment_ids=query_ids, key_segment_ids=key_ids, causal=True, **options
    )


def _varlen(q, k, v, cu_q, cu_k, **options):
    return flash_attention_varlen(
        q, k, v, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, causal=True, return_lse=True, **options
    )


def _paged(q, k, v, tables, lengths, **options):
    return paged_attention(q, k, v, tables, lengths, return_lse=True, **options)


def _hnd(q, k, v, tables, lengths, query_lengths, **options):
    return _paged(q, k, v, tables, lengths, query_lengths=query_lengths, layout="HND", **options)


def _packed(q, k, v, tables, lengths, cu_q, **options):
    return paged_attention(
        q, k, v, tables, lengths, cu_seqlens_q=cu_q, max_seqlen_q=9, window=(20, 0), **options
    )


def _mapped(q, k, v, **options):
    return jax.vmap(_dense(**options), in_axes=(0, None, None))(q, k, v)


def gradient(function: Any, count: int = 3) -> Callable[..., Any]:
    """Gradients of a scalar of all results, in the first `count` operands."""

    def call(*operands, **options):
        def total(*floats):
            results = jax.tree.leaves(function(*floats, *operands[count:], **options))
            return sum(
                jnp.sum(jnp.where(jnp.isfinite(x), x, 0).astype(jnp.float32)) for x in results
            )

        return jax.grad(total, argnums=tuple(range(count)))(*operands[:count])

    return call


def _biased(q, k, v, bias, **options):
    return nn.dot_product_attention(q, k, v, bias, is_causal=True, **options)


def _top_left(q, k, v, **options):
    return nn.dot_product_attention(q, k, v, is_causal=True, local_window_size=7, **options)


def _append(k_pages, v_pages, key, value, tables, lengths, *, implementation):
    del implementation
    return append_to_pages(k_pages, v_pages, key, value, tables, lengths)


_ROWS = (2, 16, 4, 64), (2, 24, 2, 64), (2, 24, 2, 64)
_POOL = (7, 8, 2, 64)
_TABLES = (((0, 2, 4), (1, 3, -1)), (20, 11))

PROBLEMS = {
    "dense": Problem(_dense(), _ROWS),
    "causal, window, soft cap": Problem(
        _dense(causal=True, window=(9, 0), logits_soft_cap=5.0, scale=0.25), _ROWS
    ),
    "lengths": Problem(_lengths, _ROWS, ((16, 5), (24, 0))),
    "segment ids": Problem(
        _segments,
        _ROWS,
        ([[0] * 9 + [1] * 7, [0] * 16], [[0] * 12 + [1] * 12, [0] * 24]),
    ),
    "head size 40": Problem(_dense(causal=True), tuple((*s[:3], 40) for s in _ROWS)),
    "varlen": Problem(
        _varlen, ((30, 4, 64), (40, 2, 64), (40, 2, 64)), ((0, 9, 9, 28), (0, 12, 20, 38))
    ),
    "paged decode": Problem(_paged, ((2, 1, 4, 64), _POOL, _POOL), _TABLES),
    "paged packed prefill": Problem(_packed, ((14, 4, 64), _POOL, _POOL), (*_TABLES, (0, 9, 13))),
    "layout HND": Problem(_hnd, ((2, 3, 4, 64), *[(7, 2, 8, 64)] * 2), (*_TABLES, (2, 3))),
    "splits": Problem(_dense(num_splits=3), ((1, 1, 4, 64), *[(1, 300, 2, 64)] * 2)),
    "vmap": Problem(_mapped, ((3, *_ROWS[0]), *_ROWS[1:])),
    "gradient": Problem(gradient(_dense(causal=True)), _ROWS),
    "nn": Problem(_top_left, (*_ROWS[:1], *[(2, 16, 2, 64)] * 2)),
    "nn, bias": Problem(_biased, (*_ROWS, (2, 4, 16, 24))),
    "append to pages": Problem(_append, (_POOL, _POOL, *[(2, 2, 2, 64)] * 2), _TABLES),
}

_HEADS, _PAGES = P("b", None, "h"), P(None, None, "h")
_SHARDED_POOL = (22, 4, 2, 16)
_SHARDED_TABLES = ([[4 * b + i for i in range(5)] for b in range(4)], (20, 9, 18, 1))

SHARDED = {
    "dense": Problem(
        _dense(causal=True), ((4, 10, 8, 16), *[(4, 12, 2, 16)] * 2), specs=(_HEADS,) * 3
    ),
    "varlen": Problem(
        _varlen,
        ((12, 8, 16), *[(16, 2, 16)] * 2),
        ((0, 3, 10), (0, 5, 14)),
        (P(None, "h"), P(None, "h"), P(None, "h"), P(), P()),
    ),
    "paged": Problem(
        _paged,
        ((4, 3, 8, 16), *[_SHARDED_POOL] * 2),
        _SHARDED_TABLES,
        (_HEADS, _PAGES, _PAGES, P("b"), P("b")),
    ),
}
