"""Attention in Triton, written for these tests: what another compiler makes of the same problem."""

import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]


@triton.jit
def attend(
    query,
    key,
    value,
    out,
    scale,
    rows,
    keys,
    H: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_KV: tl.constexpr,
):
    """One head of [rows, H] on [keys, H]; a program takes BLOCK_Q rows."""
    t = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    h = tl.arange(0, H)
    s = tl.arange(0, BLOCK_KV)
    q = tl.load(query + t[:, None] * H + h[None, :], mask=t[:, None] < rows, other=0.0)
    top = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    sums = tl.zeros([BLOCK_Q, H], tl.float32)
    for start in range(0, keys, BLOCK_KV):
        here = start + s
        k = tl.load(key + here[None, :] * H + h[:, None], mask=here[None, :] < keys, other=0.0)
        scores = tl.dot(q, k) * (scale * 1.44269504)
        scores = tl.where(here[None, :] < keys, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp2(scores - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(value + here[:, None] * H + h[None, :], mask=here[:, None] < keys, other=0.0)
        sums = tl.dot(weights.to(v.dtype), v, sums * shrink[:, None])
        top = new_top
    sums = sums / total[:, None]
    place = out + t[:, None] * H + h[None, :]
    tl.store(place, sums.to(out.dtype.element_ty), mask=t[:, None] < rows)
