"""Attention in O(S) memory, in jnp alone: implementation="xla", forward and backward.

A loop over work items (rows.py) holds a loop over key blocks, with the online softmax between
them. Loop bounds follow the rows' key interval: blocks that no row of the item sees cost nothing.

The scores of an item and a key block are laid out [K, rows * G, keys]: key heads first, since
that is what both matrix products batch over; G query heads share a key head.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jax_fa._contract import shapes
from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.vary import full
from jax_fa._xla.keys import Block, FlatKeys, Keys, take
from jax_fa._xla.rows import Items, Work, row_interval
from jax_fa._xla.softmax import LARGE, Softmax, nothing, value_factor, weighted

BLOCK_K = 128


class Scale(NamedTuple):
    """A score is `query_factor * (q . k)`, its logit `magnitude * score` with magnitude > 0."""

    query_factor: float
    magnitude: float
    soft_cap: float

    @classmethod
    def of(cls, spec: AttentionSpec, biased: bool) -> Scale:
        if spec.soft_cap:
            return cls(spec.scale / spec.soft_cap, 1.0, spec.soft_cap)
        if biased:  # the bias adds to the logit
            return cls(spec.scale, 1.0, 0.0)
        return cls(float((spec.scale > 0) - (spec.scale < 0)), abs(spec.scale) or 1.0, 0.0)


def _put(flat: jax.Array, block: jax.Array, keep: jax.Array, start: Any) -> jax.Array:
    """Writes the rows of `block` where `keep`."""
    old = take(flat, start, block.shape[0])
    keep = keep.reshape(keep.shape + (1,) * (block.ndim - 1))
    return lax.dynamic_update_slice_in_dim(flat, jnp.where(keep, block, old), start, 0)


def _grouped(rows: jax.Array, k_heads: int) -> jax.Array:
    """[rows, N, ...] -> [K, rows * G, ...]."""
    r, n = rows.shape[:2]
    rows = rows.reshape(r, k_heads, n // k_heads, *rows.shape[2:])
    return jnp.moveaxis(rows, 1, 0).reshape(k_heads, r * (n // k_heads), *rows.shape[3:])


def _ungrouped(grouped: jax.Array, rows: int) -> jax.Array:
    """[K, rows * G, ...] -> [rows, N, ...]."""
    k_heads, rg = grouped.shape[:2]
    out = grouped.reshape(k_heads, rows, rg // rows, *grouped.shape[2:])
    return jnp.moveaxis(out, 0, 1).reshape(rows, k_heads * rg // rows, *grouped.shape[2:])


def precision(spec: AttentionSpec) -> lax.Precision | None:
    """Of products; None is JAX's default."""
    return lax.Precision.HIGHEST if spec.exact else None


class _Problem(NamedTuple):
    """What one item's loops share."""

    spec: AttentionSpec
    scale: Scale
    block_q: int
    block_k: int
    tied: bool  # whether blocks of keys are converted one by one, for want of a dtype's products

    @classmethod
    def of(cls, spec: AttentionSpec, keys: Keys, work: Work, bias: jax.Array | None) -> _Problem:
        scale = Scale.of(spec, bias is not None)
        # Known sequences have a block of their own, also where their number is symbolic.
        longest = keys.capacity if work.longest is None else work.longest
        # XLA on CPUs would convert all keys of a narrow dtype once, before the loop. Where lengths
        # may leave out most of them, time and memory are to follow the lengths.
        tied = isinstance(keys, FlatKeys) and work.lengths
        return cls(spec, scale, work.block_q, min(BLOCK_K, longest), tied)

    def dot(self, a: jax.Array, b: jax.Array, contract: tuple[int, int]) -> jax.Array:
        """A product batched over dimension 0, accumulated in at least float32."""
        return lax.dot_general(
            a,
            b,
            (((contract[0],), (contract[1],)), ((0,), (0,))),
            precision=precision(self.spec),
            preferred_element_type=shapes.lse_dtype(a.dtype),
        )

    def rows(self, query: jax.Array, item: Items) -> tuple[Block, jax.Array, jax.Array, Any]:
        """The item's block of rows, their key intervals [block_q], and its range of key blocks."""
        block = Block.of(query.shape[0], self.block_q, item.query_start, item.first_row)
        begin, end = row_interval(self.spec, item.query_length, item.key_length, block.index)
        end = jnp.where(block.mine, end, 0)
        sees = begin < end
        first = jnp.min(jnp.where(sees, begin, jnp.iinfo(jnp.int32).max)) // self.block_k
        last = (jnp.max(jnp.where(sees, end, 0)) + self.block_k - 1) // self.block_k
        return block, begin, end, (jnp.minimum(first, last), last)

    def keys(
        self, keys: Keys, item: Items, block_index: Any, begin: Any, end: Any
    ) -> tuple[Any, jax.Array, jax.Array, jax.Array]:
        """(block, K [K, keys, H], V [K, keys, Hv], seen [rows, keys]) of one key block."""
        if self.tied:
            keys, block_index = lax.optimization_barrier((keys, block_index))
        block, key, value = keys.load(item, block_index, self.block_k)
        index, mine = block.index[None, :], block.mine[None, :]
        seen = (index >= begin[:, None]) & (index < end[:, None]) & mine
        return block, jnp.swapaxes(key, 0, 1), jnp.swapaxes(value, 0, 1), seen

    def scores(
        self, query: jax.Array, key: jax.Array, seen: jax.Array, bias: jax.Array | None
    ) -> jax.Array:
        """Scores [K, rows * G, keys] before the magnitude; -inf where unseen.

        bias: [rows, N or 1, keys], each of rows and keys may be 1 too.
        """
        scores = self.dot(query, key, (2, 2)) * self.scale.query_factor
        if self.scale.soft_cap:
            scores = self.scale.soft_cap * jnp.tanh(scores)
        rows, keys = seen.shape
        group = scores.shape[1] // rows
        spread = jnp.broadcast_to(seen[:, None], (rows, group, keys)).reshape(1, rows * group, keys)
        if bias is not None:
            whole = jnp.broadcast_to(bias, (rows, group * scores.shape[0], bias.shape[2]))
            whole = _grouped(whole, scores.shape[0]).astype(scores.dtype)
            spread = spread & ~jnp.isneginf(whole)
            scores = scores + whole
        return jnp.where(spread, scores, -jnp.inf)


def _take_bias(bias: jax.Array | None, rows: Block, keys: Block) -> jax.Array | None:
    """The part [rows, Nb, keys] of a bias [Tb, Nb, Sb]; a dimension of 1 stands for all."""
    for axis, block in ((0, rows), (2, keys)):
        if bias is not None and bias.shape[axis] != 1:
            bias = lax.dynamic_slice_in_dim(bias, block.start, block.index.shape[0], axis)
    return bias


def _add_to_bias(d_bias: jax.Array, block: jax.Array, rows: Block, keys: Block) -> jax.Array:
    """Adds [rows, N, keys] to d_bias [Tb, Nb, Sb], summed over what the bias shares."""
    shared = [axis for axis, size in enumerate(d_bias.shape) if size == 1]
    block = jnp.sum(block, axis=shared, keepdims=True)
    zero = jnp.int32(0)  # of the starts' own type, with 64-bit numbers enabled too
    start = [zero if 0 in shared else rows.start, zero, zero if 2 in shared else keys.start]
    old = lax.dynamic_slice(d_bias, start, block.shape)
    return lax.dynamic_update_slice(d_bias, old + block, start)


def forward(
    spec: AttentionSpec,
    query: jax.Array,
    keys: Keys,
    work: Work,
    bias: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Attention of flat rows.

    Args:
      spec: the options.
      query: [R, N, H].
      keys: flat, [C, K, H] and [C, K, Hv], or in pages.
      work: which rows see which keys; rows of no item are 0 / -inf.
      bias: added to the logits of rows and keys that are one sequence: [R, N, C], each of which
        may be 1; -inf hides a key. For flat keys only.

    Returns:
      out [R, N, Hv] in the query's dtype, lse [R, N] in float32 (float64 for float64).
    """
    wide = shapes.lse_dtype(query.dtype)
    r, n, hv = query.shape[0], query.shape[1], keys.value_head_dim
    # In the wide type until the end: XLA on CPUs updates a slice of bfloat16 by way of a float32
    # copy of the whole array, for every item.
    out = full((r, n, hv), 0, wide, query)
    lse = full((r, n), -jnp.inf, wide, query)
    if 0 in (r, n, keys.capacity, work.items.sequence.size):
        return out.astype(query.dtype), lse
    problem = _Problem.of(spec, keys, work, bias)
    k_heads, magnitude = keys.heads, problem.scale.magnitude
    factor = value_factor(query.dtype, keys.capacity if work.longest is None else work.longest)

    def attend(index: Any, results: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        item = Items(*(field[index] for field in work.items))
        block, begin, end, (first, last) = problem.rows(query, item)
        rows = _grouped(take(query, block.start, problem.block_q), k_heads)

        def step(block_index: Any, state: Softmax) -> Softmax:
            at, k, v, seen = problem.keys(keys, item, block_index, begin, end)
            scores = problem.scores(rows, k, seen, _take_bias(bias, block, at))
            found, weights = Softmax.of(scores, magnitude)
            product = problem.dot(weights.astype(v.dtype), v * factor, (2, 1))
            return state.joined(found._replace(acc=product), magnitude)

        state = lax.fori_loop(first, last, step, nothing((k_heads, rows.shape[1]), hv, wide, query))
        item_out, maximum, log_total = state.finished()
        item_out, item_lse = item_out / factor, maximum * magnitude + log_total
        mine = block.mine & (begin < end)
        out, lse = results
        return (
            _put(out, _ungrouped(item_out, problem.block_q), mine, block.start),
            _put(lse, _ungrouped(item_lse, problem.block_q), mine, block.start),
        )

    out, lse = lax.fori_loop(0, work.count, attend, (out, lse))
    return out.astype(query.dtype), lse


def backward(
    spec: AttentionSpec,
    query: jax.Array,
    keys: Keys,
    work: Work,
    out: jax.Array,
    lse: jax.Array,
    d_out: jax.Array,
    d_lse: jax.Array,
    bias: jax.Array | None = None,
    with_d_keys: bool = True,
    with_d_bias: bool = False,
) -> tuple[jax.Array, tuple[jax.Array, jax.Array] | None, jax.Array | None]:
    """Gradients of `forward` by its saved results: dS = P (dP - delta + dlse).

    Shapes as in `forward`; d_out and d_lse are cotangents of out and lse. Weights P are normalised
    by lse where it is no larger than LARGE. Elsewhere, where too little of it is left of the sum of
    weights, rows are measured again: their maximum, and the sum of weights about it. So they are
    for the bias's gradient, with delta as the sum of P dP, of which out is a rounded one.

    Returns:
      (d_query, (d_key, d_value) or None, d_bias or None), as asked for.
    """
    wide = shapes.lse_dtype(query.dtype)
    d_query = full(query.shape, 0, wide, query)
    d_keys = keys.zeros(wide, query) if with_d_keys else None
    d_bias = full(bias.shape, 0, wide, query) if bias is not None and with_d_bias else None
    if 0 in (query.shape[0], query.shape[1], keys.capacity, work.items.sequence.size):
        return narrow(query.dtype, d_query, d_keys, d_bias)
    problem = _Problem.of(spec, keys, work, bias)
    scale, k_heads = problem.scale, keys.heads
    # The score's slope in q . k, apart from the soft cap's own.
    slope = spec.scale

    def attend(index: Any, results: tuple) -> tuple:
        d_query, *d_rest = results
        item = Items(*(field[index] for field in work.items))
        block, begin, end, (first, last) = problem.rows(query, item)
        mine = block.mine & (begin < end)

        def load(flat: jax.Array) -> jax.Array:
            rows = take(flat, block.start, problem.block_q)
            rows = jnp.where(mine.reshape(mine.shape + (1,) * (rows.ndim - 1)), rows, 0)
            return _grouped(rows, k_heads)

        rows, d_rows, log_sum, d_log_sum = (load(x) for x in (query, d_out, lse, d_lse))
        log_sum = jnp.where(jnp.isneginf(log_sum), 0, log_sum)  # a bias may hide every key

        def measure(block_index: Any, state: Softmax) -> Softmax:
            at, k, v, seen = problem.keys(keys, item, block_index, begin, end)
            scores = problem.scores(rows, k, seen, _take_bias(bias, block, at))
            found, weights = Softmax.of(scores, scale.magnitude)
            if with_d_bias:
                means = weighted(weights, problem.dot(d_rows, v, (2, 2)))
                found = found._replace(acc=means[..., None])
            return state.joined(found, scale.magnitude)

        measured = with_d_bias | jnp.any(jnp.abs(log_sum) > LARGE)
        state = nothing(log_sum.shape, int(with_d_bias), wide, query)
        state = lax.fori_loop(first, jnp.where(measured, last, first), measure, state)
        means, maximum, log_total = state.finished()
        maximum = jnp.where(measured, maximum, 0)
        log_sum = jnp.where(measured & ~jnp.isneginf(log_total), log_total, log_sum)
        if with_d_bias:
            delta = means[..., 0] - d_log_sum
        else:
            delta = jnp.sum(d_rows.astype(wide) * load(out).astype(wide), -1) - d_log_sum

        def step(block_index: Any, state: tuple) -> tuple:
            d_rows_query, d_keys, d_bias = state
            at, k, v, seen = problem.keys(keys, item, block_index, begin, end)
            scores = problem.scores(rows, k, seen, _take_bias(bias, block, at))
            # At most 1; rounding of very large logits must not make it overflow.
            logs = (scores - maximum[..., None]) * scale.magnitude - log_sum[..., None]
            weights = jnp.exp(jnp.minimum(logs, 0))
            d_weights = problem.dot(d_rows, v, (2, 2))
            d_scores = jnp.where(weights == 0, 0, weights * (d_weights - delta[..., None]))
            if d_bias is not None:
                d_logits = _ungrouped(d_scores, problem.block_q)
                d_bias = _add_to_bias(d_bias, d_logits, block, at)
            if scale.soft_cap:
                capped = jnp.where(weights == 0, 0, scores) / scale.soft_cap
                d_scores = d_scores * (1 - capped * capped)
            d_scores = (d_scores * slope).astype(query.dtype)
            weights = weights.astype(query.dtype)
            if d_keys is not None:
                d_key, d_value = (
                    problem.dot(d_scores, rows, (1, 1)),
                    problem.dot(weights, d_rows, (1, 1)),
                )
                d_keys = keys.add(d_keys, at, *(jnp.swapaxes(x, 0, 1) for x in (d_key, d_value)))
            return d_rows_query + problem.dot(d_scores, k, (2, 1)), d_keys, d_bias

        d_rows_query = full(rows.shape, 0, wide, query)
        d_rows_query, *d_rest = lax.fori_loop(first, last, step, (d_rows_query, *d_rest))
        d_block = _ungrouped(d_rows_query, problem.block_q)
        return _put(d_query, d_block, mine, block.start), *d_rest

    results = lax.fori_loop(0, work.count, attend, (d_query, d_keys, d_bias))
    return narrow(query.dtype, *results)


def narrow(
    dtype: Any,
    d_query: jax.Array,
    d_keys: tuple[jax.Array, jax.Array] | None,
    d_bias: jax.Array | None,
) -> tuple[jax.Array, tuple[jax.Array, jax.Array] | None, jax.Array | None]:
    """Gradients of the operands in their dtype; a bias has its own."""
    if d_keys is not None:
        d_keys = d_keys[0].astype(dtype), d_keys[1].astype(dtype)
    return d_query.astype(dtype), d_keys, d_bias
