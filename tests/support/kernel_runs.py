"""Kernels under the emulator's checks, and what they must give: attention in float64 NumPy."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from packs import Cache, Pack, offsets

from jax_fa import _native, emulator, flash_attention, paged_attention
from jax_fa._contract.spec import TARGETS
from jax_fa._contract.tolerance import lse_tolerance, out_tolerance

KERNEL_TARGETS = tuple(target for target in TARGETS if _native.code_object(target))

# Orders in which the waves of a workgroup run.
SCHEDULES: tuple[tuple[emulator.Schedule, int], ...] = (
    ("round_robin", 0),
    ("run_to_barrier", 0),
    ("reverse", 0),
    ("random", 1),
    ("random", 2),
)


def attention(
    query: Any,
    key: Any,
    value: Any,
    *,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    logits_soft_cap: float | None = None,
    scale: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(out [T, N, H], lse [T, N]) of one sequence, query [T, N, H] on key and value [S, K, H]."""
    q, k, v = (np.asarray(x, np.float64) for x in (query, key, value))
    (t, n, h), s = q.shape, len(k)
    if s == 0:
        return np.zeros(q.shape), np.full((t, n), -np.inf)
    left, right = window or (None, None)
    right = min(right or 0, 0) if causal else right
    offset = np.arange(s) - np.arange(t)[:, None] - (s - t)  # keys from a query's diagonal to a key
    seen = np.ones((t, s), bool)
    seen &= offset >= -left if left is not None else True
    seen &= offset <= right if right is not None else True
    k, v = (np.repeat(x, n // x.shape[1], axis=1) for x in (k, v))
    logits = np.einsum("tnh,snh->nts", q, k) * (h**-0.5 if scale is None else scale)
    if logits_soft_cap:
        logits = logits_soft_cap * np.tanh(logits / logits_soft_cap)
    logits = np.where(seen, logits, -np.inf)
    most = np.max(logits, axis=-1, keepdims=True)
    weights = np.exp(logits - np.where(np.isfinite(most), most, 0))
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.where(np.isfinite(most), most, 0) + np.log(total)
    out = np.einsum("nts,snh->tnh", weights / np.where(total == 0, 1, total), v)
    return out, lse[..., 0].T


def expect_pack(pack: Pack, operands: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """(out, lse) of a pack's operands, rows that are nobody's included."""
    q, k, v = (np.asarray(x, np.float64) for x in operands)
    out, lse = np.zeros(q.shape), np.full(q.shape[:-1], -np.inf)
    rows, keys = (offsets([pair[side] for pair in pack.lengths]) for side in (0, 1))
    for b in range(len(pack.lengths)):
        at, seen = slice(rows[b], rows[b + 1]), slice(keys[b], keys[b + 1])
        out[at], lse[at] = attention(q[at], k[seen], v[seen], **pack.options)
    return out, lse


def expect_cache(cache: Cache, operands: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """(out, lse) of a cache's operands, rows past a query length included."""
    q, k_pages, v_pages = (np.asarray(x, np.float64) for x in operands[:3])
    if cache.layout == "HND":
        k_pages, v_pages = k_pages.swapaxes(1, 2), v_pages.swapaxes(1, 2)
    out, lse = np.zeros(q.shape), np.full(q.shape[:-1], -np.inf)
    rows = offsets([t for t, _ in cache.lengths])
    for b, (t, s) in enumerate(cache.lengths):
        at = slice(rows[b], rows[b + 1]) if cache.packed else (b, slice(t))
        page, row = np.asarray(operands[3])[b, np.arange(s) // cache.page_size], np.arange(s)
        row %= cache.page_size
        options = {"causal": True, **cache.options}
        out[at], lse[at] = attention(q[at], k_pages[page, row], v_pages[page, row], **options)
    return out, lse


def assert_near(actual: Any, expected: Any, value: Any, target: str) -> None:
    """Holds (out, lse) to the package's tolerances; -inf where and only where expected."""
    out, lse = (np.asarray(x, np.float64) for x in actual)
    np.testing.assert_array_equal(np.isneginf(lse), np.isneginf(expected[1]))
    np.testing.assert_allclose(out, expected[0], rtol=0, atol=out_tolerance(value))
    finite = np.isfinite(expected[1])
    allowed = lse_tolerance(expected[1], value.dtype, target)[finite]
    assert np.all(np.abs(lse[finite] - expected[1][finite]) <= allowed)


@contextlib.contextmanager
def recorded(**settings: Any) -> Iterator[Sequence[emulator.Launch]]:
    with emulator.configure(**settings), emulator.record() as launches:
        yield launches


def run_in_every_order(call: Callable[[], Any]) -> tuple[Any, set[str]]:
    """The results of `call`, the same bits in every order without a finding, and its kernels."""
    bits, kernels, results = set(), set(), None
    for schedule, seed in SCHEDULES:
        with recorded(schedule=schedule, seed=seed, checks="collect") as launches:
            results = jax.block_until_ready(call())
        assert [launch.findings for launch in launches if launch.findings] == [], schedule
        kernels |= {launch.kernel for launch in launches}
        bits.add(tuple(np.asarray(result).tobytes() for result in results))
    assert len(bits) == 1
    return results, kernels


def assert_keys_are_read_once(
    query: jax.Array, shape: tuple[int, int, int, int], page_size: int | None, target: str
) -> None:
    """Causal attention on keys and values of `shape` [B, S, K, H], dense or in pages."""
    batch, s = shape[:2]
    # Key and value are two arrays, since the emulator counts the bytes of an array under one name.
    key, value = (jnp.full(shape, x, jnp.bfloat16) for x in (0, 1))
    with recorded() as launches:
        if page_size is None:
            out = flash_attention(query, key, value, causal=True, implementation=target)
        else:
            k_pages, v_pages = (x.reshape(-1, page_size, *shape[2:]) for x in (key, value))
            tables = jnp.arange(batch * s // page_size, dtype=jnp.int32).reshape(batch, -1)
            lengths = jnp.full(batch, s, jnp.int32)
            out = paged_attention(query, k_pages, v_pages, tables, lengths, implementation=target)
        jax.block_until_ready(out)
    least = key.nbytes
    for name in ("key", "value") if page_size is None else ("k_pages", "v_pages"):
        read = sum(x.bytes["operands"].get(name, {}).get("read", 0) for x in launches)
        assert least <= read <= 1.02 * least


def wave_instructions(call: Callable[[], Any]) -> int:
    with recorded() as launches:
        jax.block_until_ready(call())
    return sum(launch.wave_instructions for launch in launches)
