"""Attention forward in Triton, written plainly: the peer that its compiler makes fast or not.

One program makes BLOCK_M query rows of one head and walks the keys in steps of BLOCK_N, with the
online softmax in base 2. Row-major [B, T, N, H] operands; lengths are multiples of the blocks.
"""

# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]


@triton.jit
def _walk(
    acc,
    total,
    top,
    query,
    key,
    value,
    stride,
    first,
    last,
    rows,
    scale,
    CAUSAL: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr,
):
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    for start in tl.range(first, last, BLOCK_N):
        keys = start + columns
        k = tl.load(key + keys[None, :] * stride + dims[:, None])
        scores = tl.dot(query, k) * scale
        if CAUSAL:
            scores = tl.where(keys[None, :] <= rows[:, None], scores, float("-inf"))
        highest = tl.maximum(top, tl.max(scores, 1))
        p = tl.math.exp2(scores - highest[:, None])
        shrink = tl.math.exp2(top - highest)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None]
        v = tl.load(value + keys[:, None] * stride + dims[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc)
        top = highest
    return acc, total, top


@triton.jit
def attention(
    query,
    key,
    value,
    out,
    length,
    heads,
    group,
    scale,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr,
):
    """Grid: query tiles, heads, sequences. ``group``: query heads per key head."""
    tile, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    stride_q = heads * HEAD_DIM
    stride_k = heads // group * HEAD_DIM
    at_q = batch.to(tl.int64) * length * stride_q + head * HEAD_DIM
    at_k = batch.to(tl.int64) * length * stride_k + head // group * HEAD_DIM
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    q = tl.load(query + at_q + rows[:, None] * stride_q + dims[None, :])
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    whole = tile * BLOCK_M // BLOCK_N * BLOCK_N if CAUSAL else length
    acc, total, top = _walk(
        *(acc, total, top, q, key + at_k, value + at_k, stride_k, 0, whole, rows, scale),
        False,
        BLOCK_N,
        HEAD_DIM,
    )
    if CAUSAL:
        last = (tile + 1) * BLOCK_M
        acc, total, top = _walk(
            *(acc, total, top, q, key + at_k, value + at_k, stride_k, whole, last, rows, scale),
            True,
            BLOCK_N,
            HEAD_DIM,
        )
    acc = acc / total[:, None]
    tl.store(out + at_q + rows[:, None] * stride_q + dims[None, :], acc.to(out.dtype.element_ty))
