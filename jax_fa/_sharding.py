"""How operations divide over the devices of a mesh: by batch and by key heads, never by pages.

Under jit with sharded operands every device runs the operation on its own sequences and heads,
with no collective. A pool divided by pages cannot be served so, since any sequence may use any
page: it is refused, at trace where that can be seen, else when the program is partitioned.
"""

from __future__ import annotations

from typing import Any

import jax
from jax.core import Tracer

_REFUSAL = (
    "{name} must not be sharded over its pages: any sequence may use any page, so every device "
    "needs the whole pool; shard the dimension of heads, or give each device a pool of its own "
    "with jax.shard_map; got {sharding}"
)


def refuse_divided_pages(name: str, pages: Any, heads_first: bool) -> None:
    """Raises ValueError where it can be seen that a pool is divided by pages or rows of a page.

    It can be for concrete arrays, and for traced ones on axes of type Explicit.
    """
    sharding = pages.sharding if _is_concrete(pages) else jax.typeof(pages).sharding
    _refuse_divided(name, pages.shape, sharding, heads_first)


def _is_concrete(array: Any) -> bool:
    return isinstance(array, jax.Array) and not isinstance(array, Tracer)


def _refuse_divided(name: str, shape: Any, sharding: Any, heads_first: bool) -> None:
    if sharding is None:
        return
    local = sharding.shard_shape(tuple(shape))
    row = 2 if heads_first else 1
    if local[0] != shape[0] or local[row] != shape[row]:
        raise ValueError(_REFUSAL.format(name=name, sharding=sharding))
