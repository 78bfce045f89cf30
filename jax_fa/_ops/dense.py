"""Dense attention. The mapped axis of vmap joins the leading dimensions of the operands."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.sharding import Rule
from jax_fa._ops import registry, select, varlen
from jax_fa._ops.batching import join_leading
from jax_fa._ops.call import Pair, forward_call
from jax_fa._ops.operation import Operation
from jax_fa._ops.segments import packed_offsets
from jax_fa._xla.keys import FlatKeys
from jax_fa._xla.rows import Work, dense_work

# Rows of a batch have few segments: a launch has room for this many, and for an eighth as many more
# with each row of the batch. Where there are more, its workgroups go round.
_GRID_SEQUENCES = 64


class Operands(NamedTuple):
    """Padded sequences; segment ids come in pairs."""

    query: jax.Array  # [*B, T, N, H]
    key: jax.Array  # [*B, S, K, H]
    value: jax.Array  # [*B, S, K, Hv]
    query_lengths: jax.Array | None = None  # int32 [*B]
    key_lengths: jax.Array | None = None  # int32 [*B]
    query_segment_ids: jax.Array | None = None  # int32 [*B, T]
    key_segment_ids: jax.Array | None = None  # int32 [*B, S]


def _rule(spec: AttentionSpec, operands: Operands) -> Rule:
    """Divides by all leading dimensions and by key heads."""
    del spec
    batch = [f"b{i}" for i in range(operands.query.ndim - 3)]

    def dims(own: str) -> str:
        return " ".join([*batch, *own.split()])

    dims_of = {
        "query": dims("t K h"),
        "key": dims("s k h"),
        "value": dims("s k v"),
        "query_lengths": dims(""),
        "key_lengths": dims(""),
        "query_segment_ids": dims("t"),
        "key_segment_ids": dims("s"),
    }
    return Rule(dims_of, results=(dims("t K v"), dims("t K")), free=(*batch, "k"))


def _kernel(spec: AttentionSpec, target: str, operands: Operands) -> Pair:
    shape = operands.query.shape
    lead = len(shape) - 3
    if operands.query_segment_ids is not None:
        rows, key, value = (join_leading(x, lead + 1) for x in operands[:3])
        cu_seqlens_q, cu_seqlens_k, count = _offsets(operands)
        packs = varlen.Operands(rows, key, value, cu_seqlens_q, cu_seqlens_k)
        # The device alone knows how many segments there are.
        room = _GRID_SEQUENCES + _GRID_SEQUENCES // 8 * math.prod(shape[:lead])
        out, lse = varlen.kernel(spec, target, packs, count, room)
    else:
        query, key, value = (join_leading(x, lead) for x in operands[:3])
        num_splits = select.useful_splits(spec.num_splits, key.shape[1])
        num_splits = num_splits or select.dense_splits(target, query.shape, key.shape)
        arrays = query, key, value, *_flat_lengths(operands)
        out, lse = forward_call(registry.FLASH, spec, target, num_splits, arrays)
    return out.reshape(shape), lse.reshape(shape[:-1])


def _problem(spec: AttentionSpec, operands: Operands) -> tuple[jax.Array, FlatKeys, Work]:
    del spec
    *batch, t, _, _ = operands.query.shape
    sequences, s = math.prod(batch), operands.key.shape[-3]
    rows, keys = (
        join_leading(operands.query, len(batch) + 1),
        FlatKeys(operands.key, operands.value),
    )
    if operands.query_segment_ids is None:
        work = dense_work(sequences, t, s, *_flat_lengths(operands))
    else:
        cu_seqlens_q, cu_seqlens_k, _ = _offsets(operands)
        work = varlen.work(cu_seqlens_q, cu_seqlens_k, rows.shape[0], sequences * s, longest=t)
    return rows, keys, work


def _flat_lengths(operands: Operands) -> tuple[jax.Array | None, jax.Array | None]:
    """Lengths of queries and keys, int32 [B], of all sequences in one dimension."""
    lengths = operands.query_lengths, operands.key_lengths
    query_lengths, key_lengths = (None if x is None else x.reshape(-1) for x in lengths)
    return query_lengths, key_lengths


def _offsets(operands: Operands) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The segments as packed sequences of flat rows and keys, and their number.

    Lengths end segments early.
    """

    def flat(ids: jax.Array | None, lengths: jax.Array | None) -> jax.Array:
        assert ids is not None
        if lengths is not None:
            ids = jnp.where(jnp.arange(ids.shape[-1]) < lengths[..., None], ids, -1)
        return join_leading(ids, ids.ndim - 1)

    return packed_offsets(
        flat(operands.query_segment_ids, operands.query_lengths),
        flat(operands.key_segment_ids, operands.key_lengths),
    )


OPERATION = Operation("dense", Operands, rule=_rule, kernel=_kernel, problem=_problem)
