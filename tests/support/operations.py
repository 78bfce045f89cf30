"""Every public operation as a function of arrays, with what its dimensions are.

For tests of what must hold in all of them: where arrays lie, and which modes JAX is in.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from contract_cases import PROBLEMS, Problem, gradient
from jax.sharding import PartitionSpec as P

from jax_fa import cu_seqlens_to_segment_ids, merge_attention, nn, segment_ids_to_cu_seqlens


@dataclasses.dataclass(frozen=True)
class Operation:
    """A problem, and names of its operands' dimensions: "b" of sequences, "n" and "k" of heads."""

    problem: Problem
    dims: tuple[str, ...]

    @property
    def floats(self) -> int:
        return len(self.problem.shapes)

    def directions(self, implementation: str | None) -> dict[str, Callable[..., Any]]:
        """Forward, and gradient where there is one."""
        forward = self.problem.on(implementation)
        if not self.floats:
            return {"forward": forward}
        return {"forward": forward, "gradient": gradient(forward, self.floats)}

    def specs(self, sequences: str | None, heads: str | None) -> list[P]:
        """Of the operands: dimensions of sequences and of heads over these mesh axes."""
        axes = {"b": sequences, "n": heads, "k": heads}
        return [P(*(axes.get(name) for name in dims.split())) for dims in self.dims]


def _masked(q, k, v, mask, **options):
    return nn.dot_product_attention(q, k, v, mask=mask.astype(bool), **options)


def _masked_bias(q, k, v, bias, mask, **options):
    return nn.dot_product_attention(q, k, v, bias, mask.astype(bool), **options)


def _nn_lengths(q, k, v, query_lengths, key_lengths, **options):
    lengths = {"query_seq_lengths": query_lengths, "key_value_seq_lengths": key_lengths}
    return nn.dot_product_attention(q, k, v, **lengths, return_residual=True, **options)


def _merged(out_a, lse_a, out_b, lse_b, *, implementation):
    del implementation
    return merge_attention(out_a, lse_a.astype(jnp.float32), out_b, lse_b.astype(jnp.float32))


def _ids_of(offsets, *, implementation):
    del implementation
    return cu_seqlens_to_segment_ids(offsets, 30)


def _offsets_of(ids, *, implementation):
    del implementation
    return segment_ids_to_cu_seqlens(ids, 4)


_DENSE = "b t n h", "b s k h", "b s k h"
_PACKED = "t n h", "s k h", "s k h"
_PAGED = "b t n h", "p r k h", "p r k h", "b m", "b"
_ROWS = PROBLEMS["dense"].shapes
_PARTS = (2, 16, 4, 64), (2, 16, 4)
_MASK = [[[[(t + s) % 3 > 0 for s in range(24)] for t in range(16)]]]

OPERATIONS = {
    "dense": Operation(PROBLEMS["dense"], _DENSE),
    "causal, window, soft cap": Operation(PROBLEMS["causal, window, soft cap"], _DENSE),
    "lengths": Operation(PROBLEMS["lengths"], (*_DENSE, "b", "b")),
    "segment ids": Operation(PROBLEMS["segment ids"], (*_DENSE, "b t", "b s")),
    "varlen": Operation(PROBLEMS["varlen"], (*_PACKED, "o", "o")),
    "paged decode": Operation(PROBLEMS["paged decode"], _PAGED),
    "paged packed prefill": Operation(
        PROBLEMS["paged packed prefill"], ("t n h", *_PAGED[1:3], "c m", "c", "o")
    ),
    "layout HND": Operation(
        PROBLEMS["layout HND"], ("b t n h", "p k r h", "p k r h", "b m", "b", "b")
    ),
    "vmap": Operation(PROBLEMS["vmap"], ("a b t n h", *_DENSE[1:])),
    "nn": Operation(PROBLEMS["nn"], _DENSE),
    "nn, lengths": Operation(Problem(_nn_lengths, _ROWS, ((16, 5), (24, 0))), (*_DENSE, "b", "b")),
    "nn, bias": Operation(PROBLEMS["nn, bias"], (*_DENSE, "b n t s")),
    "nn, mask": Operation(Problem(_masked, _ROWS, (_MASK * 2,)), (*_DENSE, "b 1 t s")),
    "nn, bias and mask": Operation(
        Problem(_masked_bias, (*_ROWS, (1, 4, 16, 24)), (_MASK * 2,)),
        (*_DENSE, "1 n t s", "b 1 t s"),
    ),
    "append to pages": Operation(
        PROBLEMS["append to pages"], ("p r k h", "p r k h", "b t k h", "b t k h", "b m", "b")
    ),
    "merge": Operation(Problem(_merged, _PARTS * 2), ("b t n h", "b t n") * 2),
    "cu_seqlens_to_segment_ids": Operation(Problem(_ids_of, (), ([0, 9, 9, 28],)), ("o",)),
    "segment_ids_to_cu_seqlens": Operation(
        Problem(_offsets_of, (), ([0] * 5 + [2] * 7 + [3] * 3 + [-1] * 3,)), ("b",)
    ),
}

KERNELS = ("dense", "lengths", "segment ids", "varlen", "paged decode")
"""Operations that have kernels of their own ways of taking operands."""
