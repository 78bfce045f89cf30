"""Small problems that take the kernels through their paths: ends of tiles, no keys, going round."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jax_fa import flash_attention, paged_attention

_PAGE = 16


@dataclasses.dataclass(frozen=True)
class Case:
    """One call. `shape` is (B, T, S, N, K, H); `lengths` the keys of each sequence, on pages too.

    `values` says what query, key and value hold: unit normals; such that are thirty times larger,
    which moves the reference of the softmax; or normals with some NaN and infinity among values.
    Of large grids only the last workgroups run, which make the first rows.
    """

    shape: tuple[int, int, int, int, int, int]
    dtype: str = "bfloat16"
    values: Literal["normal", "loud", "not finite"] = "normal"
    paged: bool = False
    lengths: tuple[int, ...] | None = None
    query_lengths: tuple[int, ...] | None = None
    segments: tuple[int, ...] | None = None  # lengths, of queries and keys alike
    options: Mapping[str, Any] = dataclasses.field(default_factory=lambda: {"causal": True})
    last_workgroups: int | None = None

    def call(self, target: str) -> Any:
        """Runs it on the kernels of a target."""
        b, t, s, n, k, h = self.shape
        options: dict[str, Any] = {**self.options, "implementation": target, "return_lse": True}
        if self.query_lengths is not None:
            options["query_lengths"] = jnp.asarray(self.query_lengths, jnp.int32)
        if self.paged:
            count = -(-s // _PAGE)  # of a sequence
            pool = (b * count + 1, _PAGE, k, h)
            tables = np.random.default_rng(t).permutation(pool[0])[: b * count].reshape(b, count)
            lengths = jnp.asarray(self.lengths, jnp.int32)
            query, key, value = self._operands((b, t, n, h), pool)
            pages = jnp.asarray(tables, jnp.int32)
            return paged_attention(query, key, value, pages, lengths, **options)
        if self.lengths is not None:
            options["key_lengths"] = jnp.asarray(self.lengths, jnp.int32)
        if self.segments is not None:
            ids = jnp.asarray(np.repeat(np.arange(len(self.segments)), self.segments), jnp.int32)
            options["query_segment_ids"] = options["key_segment_ids"] = jnp.tile(ids, (b, 1))
        return flash_attention(*self._operands((b, t, n, h), (b, s, k, h)), **options)

    def _operands(self, query: tuple[int, ...], keys: tuple[int, ...]) -> list[jax.Array]:
        rng = np.random.default_rng(sum(self.shape))
        made = [rng.standard_normal(shape, np.float32) for shape in (query, keys, keys)]
        if self.values == "loud":
            made = [30 * array for array in made]
        if self.values == "not finite":
            holes = rng.random(keys)
            made[2][holes < 0.002] = np.nan
            made[2][holes > 0.999] = np.inf
        return [jnp.asarray(array, self.dtype) for array in made]


_WINDOW = {"window": (90, 3)}
_CAP = {"logits_soft_cap": 5.0}
_SPLIT = {"causal": True, "num_splits": 2}
# Of more sequences than the grid is made for: the workgroups of the first rows go round.
_ROUND: dict[str, Any] = {"segments": (50,) * 100, "last_workgroups": 8}
_SHORT_ROUND: dict[str, Any] = {"segments": (1, 5) * 60, "last_workgroups": 8}

CASES = {
    "dense": Case((2, 75, 150, 2, 1, 128), lengths=(150, 97), query_lengths=(75, 33)),
    "dense full": Case((1, 384, 520, 2, 1, 128), options={}),
    "dense causal": Case((1, 400, 400, 1, 1, 128)),
    "dense ragged": Case(
        (4, 70, 130, 2, 1, 128), lengths=(13, 130, 0, 64), query_lengths=(70, 0, 33, 64)
    ),
    "dense loud": Case((1, 130, 300, 2, 2, 128), values="loud"),
    "dense not finite": Case((1, 70, 130, 1, 1, 128), values="not finite"),
    "dense segments": Case((1, 300, 300, 1, 1, 128), segments=(40, 3, 100, 7, 150)),
    "dense round": Case((1, 5000, 5000, 1, 1, 128), **_ROUND),
    "dense short heads": Case((1, 400, 150, 1, 1, 90), options=_WINDOW),
    "dense heads": Case((3, 70, 130, 6, 3, 128), lengths=(100, 130, 64)),
    "cap": Case((1, 400, 330, 2, 1, 64), "float16", options=_CAP | _WINDOW),
    "cap short heads": Case((1, 400, 90, 1, 1, 40), "float16", options=_CAP),
    "cap heads": Case((3, 70, 130, 6, 3, 64), "float16", lengths=(100, 130, 64), options=_CAP),
    "cap not finite": Case((1, 70, 130, 1, 1, 64), "float16", "not finite", options=_CAP),
    "cap ragged": Case(
        *((4, 70, 130, 2, 2, 64), "float16"),
        lengths=(13, 130, 0, 64),
        query_lengths=(70, 0, 33, 64),
        options=_CAP | {"causal": True},
    ),
    "cap loud": Case((1, 130, 300, 1, 1, 64), "float16", "loud", options=_CAP),
    "cap segments": Case(
        (1, 300, 300, 1, 1, 64), "float16", segments=(40, 3, 100, 7, 150), options=_CAP
    ),
    "cap round": Case((1, 5000, 5000, 1, 1, 64), "float16", options=_CAP, **_ROUND),
    "wide": Case((2, 40, 90, 1, 1, 250), lengths=(90, 0)),
    "wide full": Case((1, 64, 300, 1, 1, 256), options={}),
    "wide loud": Case((1, 30, 200, 1, 1, 256), values="loud"),
    "wide not finite": Case((1, 30, 100, 1, 1, 256), values="not finite"),
    "decode": Case((2, 1, 190, 8, 2, 128), lengths=(190, 101), options=_SPLIT),
    "decode ragged": Case((3, 1, 700, 16, 1, 128), lengths=(700, 0, 64), options=_SPLIT),
    "decode full": Case((1, 4, 600, 4, 1, 128), options={}),
    "decode heads": Case((3, 2, 190, 12, 3, 128), lengths=(190, 77, 128)),
    "decode rows": Case((2, 4, 200, 16, 1, 128), options={}),
    "decode loud": Case((1, 1, 300, 16, 1, 128), values="loud"),
    "decode not finite": Case((1, 1, 300, 16, 1, 128), values="not finite"),
    "decode round": Case((1, 360, 360, 1, 1, 128), **_SHORT_ROUND),
    "rows round": Case((1, 360, 360, 4, 1, 64), "float16", **_SHORT_ROUND),
    "row round": Case((1, 360, 360, 1, 1, 64), "float16", **_SHORT_ROUND),
    "wide round": Case((1, 360, 360, 4, 1, 256), **_SHORT_ROUND),
    "rows": Case((1, 5, 140, 8, 1, 64), "float16"),
    "rows full": Case((2, 8, 600, 8, 1, 64), "float16", lengths=(600, 0), options={}),
    "rows 64": Case((2, 8, 200, 16, 2, 64), "float16"),
    "rows 16": Case((3, 1, 200, 48, 3, 64), "float16", lengths=(190, 77, 128)),
    "rows loud": Case((1, 4, 300, 16, 1, 64), "float16", "loud"),
    "paged decode": Case((2, 1, 160, 8, 2, 128), paged=True, lengths=(150, 67)),
    "paged decode ragged": Case((3, 1, 600, 16, 1, 128), paged=True, lengths=(600, 0, 64)),
    "paged decode rows": Case((3, 4, 200, 32, 2, 128), paged=True, lengths=(200, 63, 130)),
    "paged decode 16": Case((1, 2, 200, 8, 1, 120), paged=True, lengths=(170,)),
    "paged decode loud": Case((1, 4, 300, 4, 1, 128), values="loud", paged=True, lengths=(300,)),
    "paged": Case((2, 60, 160, 4, 2, 128), paged=True, lengths=(130, 83)),
    "paged full": Case((1, 390, 520, 1, 1, 128), paged=True, lengths=(520,)),
    "paged ragged": Case(
        (3, 70, 300, 2, 1, 128), paged=True, lengths=(300, 0, 90), query_lengths=(70, 20, 70)
    ),
    "paged heads": Case((2, 70, 160, 6, 3, 120), paged=True, lengths=(130, 83)),
    "paged not finite": Case(
        (1, 70, 130, 1, 1, 128), values="not finite", paged=True, lengths=(130,)
    ),
    "paged loud": Case((1, 100, 300, 1, 1, 128), values="loud", paged=True, lengths=(300,)),
}
