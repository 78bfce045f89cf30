"""AITER's v3 backward attention, as its launcher csrc/cpp_itfs/mha_bwd.cu calls it.

Three kernels: rowsum(out * dout) ("odo"), the gradients, and what makes dq of the sums that the
second one adds by atomics ("dq_convert" of float32 ones, "dq_shuffle" of the query's dtype; at head
size 64 and 16 bits there is none).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import aiter
import numpy as np

from jax_fa import emulator

NO_MASK, TOP_LEFT, BOTTOM_RIGHT = range(3)
_THREADS = 256
_FOLDER = "fmha_v3_bwd"


@dataclasses.dataclass(frozen=True)
class Gradients:
    dq: np.ndarray
    dk: np.ndarray
    dv: np.ndarray
    delta: np.ndarray
    launches: list[emulator.Launch]


def _strides(array: np.ndarray) -> tuple[int, int, int]:
    """Bytes to the next head, sequence and row of [B, S, N, H]."""
    batch, row, head, _ = array.strides
    return head, batch, row


def _path(table: str, **wanted: Any) -> tuple[str, int]:
    row = aiter.find(f"{_FOLDER}/fmha_bwd_{table}.csv", **wanted)
    return f"{_FOLDER}/{row['co_name']}", int(row["ts"])


def _round_up(x: int, step: int) -> int:
    return -(-x // step) * step


def backward(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    out: np.ndarray,
    lse: np.ndarray,
    dout: np.ndarray,
    *,
    mask: int,
    atomic32: bool,
    **options: Any,
) -> Gradients:
    """query [B, T, N, H], key [B, S, K, H], value [B, S, K, V]; out and dout [B, T, N, V]; lse
    [B, N, T]. dk and dv are those of each query head, [B, S, N, ...]."""
    (batch, t, n, h), (_, s, k, v) = query.shape, value.shape
    dtype = "bf16" if query.dtype == aiter.BF16 else "fp16"
    kinds = {"dtype": dtype, "mode": 0}
    delta = np.zeros_like(lse)
    launches = []

    path, rows = _path("odo", hdim_v=v, **kinds)
    arguments = [out, dout, delta, *_strides(out), *_strides(dout)]
    arguments += [4 * t, 4 * n * t, 4, t, h, None, None]
    grid = (-(-t // rows), n, batch)
    launches.append(
        aiter.launch(path, grid, _THREADS, aiter.slots(arguments), [out, dout, delta], **options)
    )

    dq = np.zeros_like(query)
    dk, dv = np.zeros((batch, s, n, h), key.dtype), np.zeros((batch, s, n, v), value.dtype)
    has_post = h != 64 or atomic32
    if atomic32:
        sums = np.zeros((batch, n, t, h), np.float32)
    elif has_post:
        sums = np.zeros((batch, n, _round_up(t, 16), 192 if h == 192 else 128), query.dtype)
    else:
        sums = dq
    cvt = {} if h in (128, 192) and (h, v) != (192, 192) else {"bf16_cvt": 0}
    kind = {**kinds, **(cvt if dtype == "bf16" else {}), "hdim_q": h, "hdim_v": v}
    path, keys = _path("dqdkdv", mask=mask, atomic32=int(atomic32), **kind)
    arguments = [sums, dk, dv, query, key, value, dout, lse, delta]
    arguments += [h**-0.5, float(np.log2(np.e)), t, keys * key.strides[1], *_strides(query), n // k]
    arguments += [*_strides(key), dk.strides[1], s, h, v, n, *_strides(value), *_strides(dout)]
    arguments += [*_strides(dk)[:2], *_strides(dv), 4 * t, None, None, None, None]
    arguments += [t if atomic32 else _round_up(t, 16), 0, 0]
    groups = -(-s // keys)
    if mask != NO_MASK:  # one from each end
        groups = -(-groups // 2)
    buffers = [sums, dk, dv, query, key, value, dout, lse, delta]
    launches.append(
        aiter.launch(path, (groups, n, batch), _THREADS, aiter.slots(arguments), buffers, **options)
    )
    if has_post:
        table = "dq_convert" if atomic32 else "dq_shuffle"
        kind = {"mode": 0, "hdim_q": h, **({"dtype": dtype} if atomic32 else {})}
        path, rows = _path(table, **kind)
        head, sequence, row = sums.strides[1], sums.strides[0] if batch > 1 else 0, sums.strides[2]
        arguments = [sums, dq, head, sequence, row, *_strides(dq), t, h, None, None]
        grid = (-(-t // rows), n, batch)
        launches.append(
            aiter.launch(path, grid, _THREADS, aiter.slots(arguments), [sums, dq], **options)
        )
    return Gradients(dq, dk, dv, delta, launches)


def expected(query, key, value, dout, mask):
    """In float64: out, lse, delta and the gradients, dk and dv of each query head."""
    repeat = query.shape[2] // key.shape[2]
    q, k, v, do = (x.astype(np.float64) for x in (query, key, value, dout))
    k, v = np.repeat(k, repeat, 2), np.repeat(v, repeat, 2)
    scale = query.shape[-1] ** -0.5
    scores = np.einsum("btnh,bsnh->bnts", q, k) * scale
    t, s = np.indices(scores.shape[2:])
    shift = scores.shape[3] - scores.shape[2] if mask == BOTTOM_RIGHT else 0
    if mask != NO_MASK:
        scores = np.where(s <= t + shift, scores, -np.inf)
    top = np.maximum(scores.max(-1, keepdims=True), -1e30)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    p = weights / np.where(total == 0, 1, total)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + top)[..., 0]
    out = np.einsum("bnts,bsnh->btnh", p, v)
    delta = np.einsum("btnh,btnh->bnt", out, do)
    dp = np.einsum("btnh,bsnh->bnts", do, v)
    ds = p * (dp - delta[..., None]) * scale
    dq = np.einsum("bnts,bsnh->btnh", ds, k)
    dk = np.einsum("bnts,btnh->bsnh", ds, q)
    dv = np.einsum("bnts,btnh->bsnh", p, do)
    return tuple(np.ascontiguousarray(x) for x in (out, lse, delta, dq, dk, dv))
