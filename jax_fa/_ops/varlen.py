"""Attention of packed sequences. Under vmap the packs become one."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.sharding import Rule
from jax_fa._ops import registry, select
from jax_fa._ops.batching import join_leading, spread
from jax_fa._ops.call import Pair, forward_call
from jax_fa._ops.operation import Operation
from jax_fa._xla.keys import FlatKeys
from jax_fa._xla.rows import Work, joined_packs, monotone, packed_work


class Operands(NamedTuple):
    """Sequences one after another."""

    query: jax.Array  # [tq, N, H]
    key: jax.Array  # [tk, K, H]
    value: jax.Array  # [tk, K, Hv]
    cu_seqlens_q: jax.Array  # int32 [n + 1]
    cu_seqlens_k: jax.Array  # int32 [n + 1]


def _rule(spec: AttentionSpec, operands: Operands) -> Rule:
    """Divides by key heads."""
    del spec, operands
    dims = {"query": "t K h", "key": "s k h", "value": "s k v"}
    dims |= {"cu_seqlens_q": "n", "cu_seqlens_k": "n"}
    return Rule(dims, results=("t K v", "t K"), free=("k",))


def kernel(
    spec: AttentionSpec,
    target: str,
    operands: Operands,
    num_sequences: jax.Array | None = None,
    grid_sequences: int | None = None,
) -> Pair:
    """(out, lse) by the custom call.

    num_sequences: int32 [], the sequences past which all are empty; None: all that the offsets
      have room for. The launch is made for grid_sequences; with more its workgroups go round.
    """
    query, key = operands.query, operands.key
    room = operands.cu_seqlens_q.shape[0] - 1
    sequences = room if grid_sequences is None else min(grid_sequences, room)
    num_splits = select.useful_splits(spec.num_splits, key.shape[0])
    num_splits = num_splits or select.varlen_splits(
        target, query.shape, key.shape, sequences, spec.max_seqlen_k
    )
    if num_sequences is not None:
        num_sequences = num_sequences.reshape(1)
    arrays = *operands, num_sequences
    return forward_call(
        *(registry.VARLEN, spec, target, num_splits, arrays), grid_sequences=np.int64(sequences)
    )


def _problem(spec: AttentionSpec, operands: Operands) -> tuple[jax.Array, FlatKeys, Work]:
    query, key, value, cu_seqlens_q, cu_seqlens_k = operands
    items = work(cu_seqlens_q, cu_seqlens_k, query.shape[0], key.shape[0], spec.max_seqlen_q)
    return query, FlatKeys(key, value), items


def work(
    cu_seqlens_q: jax.Array,
    cu_seqlens_k: jax.Array,
    total_q: int,
    total_k: int,
    longest: int | None,
) -> Work:
    """Items of packed sequences; `longest` as in rows.packed_work."""
    ends = monotone(cu_seqlens_k, total_k)
    return packed_work(monotone(cu_seqlens_q, total_q), ends[:-1], jnp.diff(ends), total_q, longest)


def _join(axis_size: int, mapped: Any, operands: Operands, with_d_keys: bool) -> Operands:
    del with_d_keys
    packs = spread(axis_size, mapped, operands)
    offsets = _joined_offsets(
        packs.cu_seqlens_q, packs.cu_seqlens_k, packs.query.shape[1], packs.key.shape[1]
    )
    return Operands._make((*(join_leading(x) for x in packs[:3]), *offsets))


def _joined_offsets(
    cu_seqlens_q: jax.Array, cu_seqlens_k: jax.Array, total_q: int, total_k: int
) -> tuple[jax.Array, jax.Array]:
    """Offsets [A, n + 1] of packs, as those of one pack.

    Between the last sequence of a pack and the first of the next stand two more: the rows that are
    nobody's, on no keys, and the keys that are nobody's, with no rows.
    """
    ends = joined_packs(cu_seqlens_q, total_q), joined_packs(cu_seqlens_k, total_k)
    next_q = jnp.append(ends[0][1:, 0], cu_seqlens_q.shape[0] * total_q)
    joined_q = jnp.concatenate([ends[0], next_q[:, None]], 1)
    joined_k = jnp.concatenate([ends[1], ends[1][:, -1:]], 1)
    return joined_q.reshape(-1), joined_k.reshape(-1)


OPERATION = Operation("varlen", Operands, rule=_rule, kernel=kernel, problem=_problem, join=_join)
