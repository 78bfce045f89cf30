"""Attention in O(S) memory, in jnp alone, for devices that want few and large products.

The loop is over steps of tiles (tiles.py); of each tile all heads are taken at once. A tile's
softmax is by itself, about its own maximum, and then joins what its rows have from other tiles.

Scores are laid out [W, K, rows, G, keys] for W tiles, K key heads and G query heads of each. What
rows and keys have in sum is laid out heads first too, and turned to the order of the operands
after the loop: XLA on GPUs adds a product to its part of a sum in place, but not a transposed one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jax_fa._contract import shapes
from jax_fa._contract.spec import AttentionSpec
from jax_fa._mesh.vary import full
from jax_fa._xla import ragged
from jax_fa._xla.aligned import Aligned
from jax_fa._xla.blockwise import Scale, narrow, precision
from jax_fa._xla.keys import FlatKeys, Keys
from jax_fa._xla.ragged import Ragged
from jax_fa._xla.rows import Work
from jax_fa._xla.softmax import LARGE, Softmax, nothing, value_factor, weighted
from jax_fa._xla.tiles import KeyTile, Rows

FORWARD_SCORES = 2**25
BACKWARD_SCORES = 2**24
"""Scores of a step. More would be no faster, and their memory is what a call needs most of."""

UNROLLED = 4
"""Steps up to which a loop is written out."""


def _grouped(rows: jax.Array, k_heads: int) -> jax.Array:
    """[W, rows, N, ...] -> [W, K, rows, G, ...]."""
    w, r, n = rows.shape[:3]
    return jnp.moveaxis(rows.reshape(w, r, k_heads, n // k_heads, *rows.shape[3:]), 2, 1)


def _ungrouped(grouped: jax.Array) -> jax.Array:
    """[W, K, rows, G, ...] -> [W, rows, N, ...]."""
    w, k_heads, r, group = grouped.shape[:4]
    return jnp.moveaxis(grouped, 1, 2).reshape(w, r, k_heads * group, *grouped.shape[4:])


class _Problem(NamedTuple):
    """What the steps share."""

    spec: AttentionSpec
    scale: Scale
    plan: Aligned | Ragged
    k_heads: int
    bias: jax.Array | None

    @classmethod
    def of(
        cls,
        spec: AttentionSpec,
        query: jax.Array,
        keys: Keys,
        work: Work,
        bias: jax.Array | None,
        scores: int,
    ) -> _Problem:
        (total, heads), biased = query.shape[:2], bias is not None
        plan: Aligned | Ragged
        if work.batch is not None and isinstance(keys, FlatKeys):
            t, s = work.batch[1], keys.capacity // work.batch[0]
            # Lengths save nothing within a tile, and only ragged tiles know of them.
            aligned = biased or not work.lengths or max(t, s) <= ragged.BLOCK
        else:
            s, aligned = 0, False
        if aligned:
            plan = Aligned.of(spec, work, s, heads, scores)
        else:
            plan = Ragged.of(spec, work, total, keys, heads, scores)
        return cls(spec, Scale.of(spec, bias is not None), plan, keys.heads, bias)

    def dot(self, a: jax.Array, b: jax.Array, names: str) -> jax.Array:
        """A product of a [W, K, x, y] and b, accumulated in at least float32."""
        wide = a.dtype in (jnp.float32, jnp.float64)  # other products are exact as they are
        return jnp.einsum(
            names,
            a,
            b,
            precision=precision(self.spec) if wide else None,
            preferred_element_type=shapes.lse_dtype(a.dtype),
        )

    def seen(self, rows: Rows, keys: KeyTile) -> tuple[jax.Array, jax.Array]:
        """Which pairs are seen, bool [W, rows, keys], and which rows see any key at all."""
        begin, end = rows.interval(self.spec)
        index = keys.index[:, None]
        inside = (index >= begin[..., None]) & (index < end[..., None])
        return inside & keys.mine[:, None], begin < end

    def scores(
        self, query: jax.Array, keys: KeyTile, seen: jax.Array, bias: jax.Array | None
    ) -> jax.Array:
        """Scores before the magnitude; -inf where unseen. query: [W, K, rows, G, H]."""
        w, k_heads, rows, group, h = query.shape
        flat = query.reshape(w, k_heads, rows * group, h)
        scores = self.dot(flat, keys.key, "wkrh,wskh->wkrs")
        scores = scores.reshape(w, k_heads, rows, group, -1) * self.scale.query_factor
        if self.scale.soft_cap:
            scores = self.scale.soft_cap * jnp.tanh(scores)
        seen = seen[:, None, :, None]
        if bias is not None:
            spread = self._spread(bias).astype(scores.dtype)
            seen = seen & ~jnp.isneginf(spread)
            scores = scores + spread
        return jnp.where(seen, scores, -jnp.inf)

    def _spread(self, bias: jax.Array) -> jax.Array:
        """[W, rows, N or 1, keys] -> [W, K or 1, rows, G or 1, keys]."""
        k_heads = self.k_heads if bias.shape[2] != 1 else 1
        return jnp.moveaxis(bias.reshape(*bias.shape[:2], k_heads, -1, bias.shape[3]), 2, 1)

    def d_weights(self, d_out: jax.Array, keys: KeyTile) -> jax.Array:
        """Gradients of the weights, from [W, K, rows, G, Hv]."""
        w, k_heads, rows, group, hv = d_out.shape
        flat = d_out.reshape(w, k_heads, rows * group, hv)
        products = self.dot(flat, keys.value, "wkrh,wskh->wkrs")
        return products.reshape(w, k_heads, rows, group, -1)

    def bias_of(self, tile: Any, rows: Rows, keys: KeyTile) -> tuple[Any, Any]:
        """Where in the bias the tile's part begins, and the part."""
        if self.bias is None:
            return None, None
        assert isinstance(self.plan, Aligned)
        return self.plan.bias(self.bias, tile, rows, keys)

    def nothing(self, width: int, heads: tuple[int, int], query: jax.Array) -> Softmax:
        """Of all rows, without keys so far."""
        *shape, _ = self.plan.sums(heads, (width,))
        return nothing(tuple(shape), width, shapes.lse_dtype(query.dtype), query)

    def join(self, state: Softmax, rows: Rows, found: Softmax) -> Softmax:
        """`state` with what a step's tiles have found."""
        old = Softmax(*(self.plan.part(x, rows) for x in state))
        new = old.joined(found, self.scale.magnitude)
        return Softmax(*(self.plan.put(x, rows, *y) for x, *y in zip(state, new, old, strict=True)))


def forward(
    spec: AttentionSpec, query: jax.Array, keys: Keys, work: Work, bias: jax.Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """Attention of flat rows: see blockwise.forward.

    bias: [B, T, N, S], each of which may be 1, for flat keys of dense work.
    """
    wide = shapes.lse_dtype(query.dtype)
    r, n, hv = query.shape[0], query.shape[1], keys.value_head_dim
    if 0 in (r, n, keys.capacity, work.sequences.query_start.size):
        return full((r, n, hv), 0, query.dtype, query), full((r, n), -jnp.inf, wide, query)
    problem = _Problem.of(spec, query, keys, work, bias, FORWARD_SCORES)
    plan, magnitude = problem.plan, problem.scale.magnitude
    factor = value_factor(query.dtype, keys.capacity if work.longest is None else work.longest)

    def step(tile: Any, state: Softmax) -> Softmax:
        rows, key_tile = plan.rows(tile), plan.keys(keys, tile)
        seen, _ = problem.seen(rows, key_tile)
        block = _grouped(plan.take(query, rows), keys.heads)
        _, part = problem.bias_of(tile, rows, key_tile)
        scores = problem.scores(block, key_tile, seen, part)
        found, weights = Softmax.of(scores, magnitude)
        value = key_tile.value * factor
        flat = weights.astype(value.dtype).reshape(*weights.shape[:2], -1, weights.shape[-1])
        acc = problem.dot(flat, value, "wkrs,wskh->wkrh").reshape(*weights.shape[:-1], hv)
        return problem.join(state, rows, found._replace(acc=acc))

    state = problem.nothing(hv, (keys.heads, n // keys.heads), query)
    out, maximum, log_total = _loop(plan, step, state).finished()
    out, lse = (out / factor).astype(query.dtype), maximum * magnitude + log_total
    return plan.flat(out), plan.flat(lse, -jnp.inf)


def _loop(plan: Aligned | Ragged, body: Any, state: Any, condition: Any = None) -> Any:
    """`body(tile, state)` for every step; for none where there is a condition that is False."""
    if condition is None and isinstance(plan.steps, int) and plan.steps <= UNROLLED:
        for step in range(plan.steps):
            state = body(plan.tile(step), state)
        return state
    steps = plan.steps if condition is None else jnp.where(condition, plan.steps, 0)
    return lax.fori_loop(0, steps, lambda i, state: body(plan.tile(i), state), state)


class _Saved(NamedTuple):
    """What the backward knows of rows, flat."""

    query: jax.Array
    d_out: jax.Array
    maximum: jax.Array
    log_sum: jax.Array
    delta: jax.Array

    def of(self, plan: Aligned | Ragged, rows: Rows, sees: jax.Array, k_heads: int) -> _Saved:
        """Of a step's rows, grouped; zeros where a row sees nothing, of which all may be NaN."""

        def take(flat: jax.Array) -> jax.Array:
            found = plan.take(flat, rows)
            keep = sees.reshape(sees.shape + (1,) * (found.ndim - 2))
            return _grouped(jnp.where(keep, found, 0), k_heads)

        return _Saved(*map(take, self))


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
    """Gradients of `forward` by its saved results: see blockwise.backward."""
    wide = shapes.lse_dtype(query.dtype)
    d_bias = full(bias.shape, 0, wide, query) if bias is not None and with_d_bias else None
    if 0 in (query.shape[0], query.shape[1], keys.capacity, work.sequences.query_start.size):
        d_query, d_keys = full(query.shape, 0, wide, query), keys.zeros(wide, query)
        return narrow(query.dtype, d_query, d_keys if with_d_keys else None, d_bias)
    problem = _Problem.of(spec, query, keys, work, bias, BACKWARD_SCORES)
    plan, scale = problem.plan, problem.scale
    heads = keys.heads, query.shape[1] // keys.heads
    delta = jnp.sum(d_out.astype(wide) * out.astype(wide), -1) - d_lse
    log_sum = jnp.where(jnp.isneginf(lse), 0, lse)  # a bias may hide every key
    saved = _Saved(query, d_out, jnp.zeros_like(log_sum), log_sum, delta)

    def measure(tile: Any, state: Softmax) -> Softmax:
        rows, key_tile = plan.rows(tile), plan.keys(keys, tile)
        seen, sees = problem.seen(rows, key_tile)
        at = saved.of(plan, rows, sees, keys.heads)
        _, part = problem.bias_of(tile, rows, key_tile)
        found, weights = Softmax.of(problem.scores(at.query, key_tile, seen, part), scale.magnitude)
        if with_d_bias:
            means = weighted(weights, problem.d_weights(at.d_out, key_tile))
            found = found._replace(acc=means[..., None])
        return problem.join(state, rows, found)

    measured = with_d_bias | jnp.any(jnp.abs(log_sum) > LARGE)
    state = problem.nothing(int(with_d_bias), heads, query)
    state = _loop(plan, measure, state, None if with_d_bias else measured)
    means, maximum, log_total = (plan.flat(x) for x in state.finished())
    saved = saved._replace(
        maximum=jnp.where(measured, maximum, 0),
        log_sum=jnp.where(measured & ~jnp.isneginf(log_total), log_total, log_sum),
        delta=means[..., 0] - d_lse if with_d_bias else delta,
    )
    d_query = full(plan.sums(heads, query.shape[2:]), 0, wide, query)
    d_keys = plan.key_sums(keys, wide, query) if with_d_keys else None

    def step(tile: Any, state: tuple) -> tuple:
        d_query, d_keys, d_bias = state
        rows, key_tile = plan.rows(tile), plan.keys(keys, tile)
        seen, sees = problem.seen(rows, key_tile)
        at = saved.of(plan, rows, sees, keys.heads)
        start, part = problem.bias_of(tile, rows, key_tile)
        scores = problem.scores(at.query, key_tile, seen, part)
        # At most 1; rounding of very large logits must not make it overflow.
        logs = (scores - at.maximum[..., None]) * scale.magnitude - at.log_sum[..., None]
        weights = jnp.exp(jnp.minimum(logs, 0))
        d_weights = problem.d_weights(at.d_out, key_tile)
        d_scores = jnp.where(weights == 0, 0, weights * (d_weights - at.delta[..., None]))
        if d_bias is not None:
            d_bias = _add_to_bias(d_bias, d_scores, start)
        if scale.soft_cap:
            capped = jnp.where(weights == 0, 0, scores) / scale.soft_cap
            d_scores = d_scores * (1 - capped * capped)
        flat = *weights.shape[:2], -1, weights.shape[-1]
        d_scores = (d_scores * spec.scale).astype(query.dtype).reshape(flat)
        weights = weights.astype(query.dtype).reshape(flat)
        if d_keys is not None:
            q_rows = at.query.reshape(*flat[:2], -1, query.shape[-1])
            d_rows = at.d_out.reshape(*flat[:2], -1, at.d_out.shape[-1])
            d_key = problem.dot(d_scores, q_rows, "wkrs,wkrh->wksh")
            d_value = problem.dot(weights, d_rows, "wkrs,wkrh->wksh")
            d_keys = plan.add(keys, d_keys, key_tile.block, d_key, d_value)
        found = problem.dot(d_scores, key_tile.key, "wkrs,wskh->wkrh")
        found = found.reshape(*at.query.shape)
        old = plan.part(d_query, rows)
        return plan.put(d_query, rows, old + found, old), d_keys, d_bias

    d_query, d_keys, d_bias = _loop(plan, step, (d_query, d_keys, d_bias))
    d_keys = None if d_keys is None else plan.key_gradients(d_keys)
    return narrow(query.dtype, plan.flat(d_query), d_keys, d_bias)


def _add_to_bias(d_bias: jax.Array, d_logits: jax.Array, start: Any) -> jax.Array:
    """Adds those of a tile to [Bb, Tb, Nb, Sb], summed over what the bias shares."""
    block = _ungrouped(d_logits)
    shared = [axis for axis, size in enumerate(d_bias.shape) if size == 1]
    block = jnp.sum(block, axis=shared, keepdims=True)
    old = lax.dynamic_slice(d_bias, start, block.shape)
    return lax.dynamic_update_slice(d_bias, old + block, start)
