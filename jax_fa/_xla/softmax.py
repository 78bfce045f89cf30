"""The softmax of a row in parts, each about its own maximum, and what joins them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jax_fa._mesh.vary import full

LARGE = 32.0
"""A log-sum-exp past it has rounded away too much of the sum of weights to normalise by."""


class Softmax(NamedTuple):
    """What rows have from some of their keys.

    Weights are exp of a logit less that of the maximum, and a logit is `magnitude` times a score.
    """

    maximum: jax.Array  # of the scores; -inf without any
    total: jax.Array  # of the weights
    rest: jax.Array  # what rounding has kept from the total
    acc: jax.Array  # weighted sums [..., X]

    @classmethod
    def of(cls, scores: jax.Array, magnitude: float) -> tuple[Softmax, jax.Array]:
        """(that of scores [..., keys], with sums of nothing; the weights)."""
        maximum = jnp.max(scores, axis=-1)
        shift = jnp.where(jnp.isneginf(maximum), 0, maximum)
        # Subtract before scaling, see reference.py. exp(-inf) = 0 for what is unseen.
        weights = jnp.exp((scores - shift[..., None]) * magnitude)
        total = jnp.sum(weights, axis=-1)
        return cls(maximum, total, jnp.zeros_like(total), total[..., None][..., :0]), weights

    def joined(self, other: Softmax, magnitude: float) -> Softmax:
        """With that from other keys."""
        maximum = jnp.maximum(self.maximum, other.maximum)
        shift = jnp.where(jnp.isneginf(maximum), 0, maximum)
        a, b = (jnp.exp((x.maximum - shift) * magnitude) for x in (self, other))
        # Many small weights beside a large one: what a sum rounds away is kept.
        x, y = self.total * a, other.total * b + self.rest * a
        total = x + y
        back = total - x
        rest = (x - (total - back)) + (y - back)
        return Softmax(maximum, total, rest, self.acc * a[..., None] + other.acc * b[..., None])

    def finished(self) -> tuple[jax.Array, jax.Array, jax.Array]:
        """(weighted means, maximum, logarithm of the total); 0, 0 and -inf without keys."""
        empty = self.total == 0
        total = jnp.where(empty, 1, self.total + self.rest)
        means = jnp.where(empty[..., None], 0, self.acc / total[..., None])
        maximum = jnp.where(empty, 0, self.maximum)
        return means, maximum, jnp.where(empty, -jnp.inf, jnp.log(total))


def nothing(shape: tuple[int, ...], width: int, dtype: Any, like: jax.Array) -> Softmax:
    """Of rows without keys so far, and sums of `width` each."""
    sums = (full(x, 0, dtype, like) for x in (shape, shape, (*shape, width)))
    return Softmax(full(shape, -jnp.inf, dtype, like), *sums)


def weighted(weights: jax.Array, values: jax.Array) -> jax.Array:
    """The sum of weights times values over keys; what has no weight may be NaN."""
    return jnp.sum(jnp.where(weights == 0, 0, weights * values), axis=-1)


def value_factor(dtype: Any, keys: Any) -> float:
    """A power of two by which the values of so many keys are scaled, so that no sum overflows.

    keys: a number, or a symbolic size. float16 needs none: its sums are far from float32's limit.
    """
    if dtype == jnp.float16:
        return 1.0
    return 2.0 ** -(math.ceil(math.log2(max(keys, 1))) if isinstance(keys, int) else 20)
