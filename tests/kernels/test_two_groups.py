"""The schedule of two groups on gfx950: its budget, its rare tiles, operands of any size."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from kernel_params import Params, Strides, WorkGrid
from kernel_runs import assert_near, attention, recorded, run_in_every_order

from jax_fa import _native, emulator, flash_attention
from jax_fa.emulator.listing import count, listing
from jax_fa.emulator.loops import find_hot_loops

TARGET = "gfx950"
DTYPES = ("bfloat16", "float16")
HEAD_DIMS = (64, 128, 256)


def kernel_of(dtype: str, head_dim: int, variant: str = "plain") -> str:
    return f"flash_{dtype}_h{head_dim}_{variant}"


@functools.cache
def code() -> emulator.CodeObject:
    return emulator.CodeObject(_native.code_object(TARGET))


# By head size: rows of a wave and keys of a tile; sparse matrix instructions, which make sums where
# the vector unit does not; slots of the vector unit. A score with a soft cap takes six more.
COMMON_TILES = {64: (48, 64, 3, 184), 128: (48, 64, 3, 184), 256: (32, 32, 0, 72)}
SLOTS_OF_CAP = 6


@pytest.mark.parametrize("variant", ["plain", "softcap", "paged", "paged_softcap"])
@pytest.mark.parametrize("head_dim", HEAD_DIMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_budget_of_the_common_tile(dtype, head_dim, variant):
    """The table at the head of csrc/kernels/mainloop/gfx950/two_groups.h, in both groups."""
    rows, keys, sums, slots = COMMON_TILES[head_dim]
    scores = rows * keys // 64
    kernel = kernel_of(dtype, head_dim, variant)
    paged, capped = "paged" in variant, "softcap" in variant
    loops = [count(TARGET, loop) for loop in find_hot_loops(listing(code(), kernel))]
    # Pages that are not of whole tiles have three loops of mainloop.h, with other look-ups each.
    assert len(loops) == (5 if paged else 2)
    for loop in sorted(loops, key=lambda loop: loop["valu_slots"])[:2]:
        # Both products in steps of 16 x 16 x 32.
        operands = keys * head_dim // (16 * 32)
        assert loop["matrix"] == 2 * operands * rows // 16
        assert loop["sparse_matrix"] == sums
        assert loop["trans"] == (3 if capped else 1) * scores
        assert loop["valu_slots"] <= slots + (SLOTS_OF_CAP if capped else 0) * scores
        assert loop["valu_packed"] == 0
        assert loop["lds_dma"] == 2 * keys * head_dim * 2 // 1024 // 8
        assert loop["lds_read"] == operands + 2 * operands
        assert loop["vmem"] == loop["lds_write"] == 0
        assert loop["barriers"] == 1
        assert loop["salu"] <= 40


def _normal(t: int, s: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((n, 1, 128)) for n in (t, s, s)]


def _growing(first: float, last: float) -> list[np.ndarray]:
    """References move on most tiles."""
    q, k, v = _normal(70, 500)
    return [q, k * np.linspace(first, last, len(k))[:, None, None], v]


def _scaled(
    query: float, key: float, begin: int = 0, end: int | None = None, t: int = 70
) -> list[np.ndarray]:
    """Queries and some keys are large; the other keys are small."""
    q, k, v = _normal(t, 500)
    k[begin:end] *= key
    return [q * query, k, v]


def _opposite() -> list[np.ndarray]:
    """Scores of the first two tiles are far below the others."""
    q, k, v = _normal(70, 500)
    q[:] = q[:1]
    k[:128] = -100 * q[0]
    return [q, k, v]


def _far_below(t: int, s: int) -> list[np.ndarray]:
    """All scores are far below 0, where references begin."""
    q, k, v = _normal(t, s)
    return [q - 3, k + 3, v]


def _equal(s: int) -> list[np.ndarray]:
    """Equal scores, and so large that the rounding of a scaled one is many powers of two."""
    q, k, v = _normal(70, s)
    return [np.full(q.shape, 2.0**15), np.full(k.shape, 2.0**15), v]


RARE: Mapping[str, tuple[list[np.ndarray], Mapping[str, Any]]] = {
    "growing": (_growing(0.1, 12), {}),
    "falling": (_growing(12, 0.1), {}),
    "far above the reference": (_scaled(1, 400, 200), {}),
    "far above, causal": (_scaled(1, 400, 200, t=400), {"causal": True}),
    "large": (_scaled(1e4, 1e4), {}),
    "large, later": (_scaled(1e4, 1e4, 200), {}),
    "large, at first": (_scaled(1e4, 1e4, 0, 100), {}),
    "large, causal": (_scaled(1e4, 1e4, t=400), {"causal": True}),
    "large, window": (_scaled(1e4, 1e4, t=400), {"window": (100, 30)}),
    "large scale": (_normal(70, 200), {"scale": 1e6}),
    **{f"{s} equal": (_equal(s), {}) for s in (1, 2, 65, 200)},
    "far below at first": (_opposite(), {}),
    # Rows of a wave see their first key in different tiles, or in one that no mask cuts.
    "window": (_far_below(400, 600), {"window": (40, 0)}),
    "window, first keys at the ends of tiles": (_far_below(200, 200), {"window": (63, 5)}),
    "rows without keys": (_far_below(500, 130), {"causal": True}),
    "negative scale": (_normal(70, 200), {"scale": -0.3}),
    "no scale": (_normal(70, 200), {"scale": 0.0}),
}


def run_rare(case: str, dtype: str, head_dim: int, variant: str, **more: Any) -> None:
    operands, options = RARE[case]
    q, k, v = (jnp.asarray(np.tile(x, 2)[..., :head_dim], dtype) for x in operands)
    assert all(np.isfinite(np.asarray(x, np.float32)).all() for x in (q, k, v))
    call = functools.partial(
        flash_attention, q[None], k[None], v[None], return_lse=True, implementation=TARGET
    )
    actual, kernels = run_in_every_order(lambda: call(**options, **more))
    assert kernels == {kernel_of(dtype, head_dim, variant)}
    expected = attention(*(np.asarray(x, np.float64) for x in (q, k, v)), **options, **more)
    assert_near((x[0] for x in actual), expected, v, TARGET)


@pytest.mark.parametrize(
    ("dtype", "head_dim"), [*((dtype, 128) for dtype in DTYPES), ("bfloat16", 64), ("float16", 256)]
)
@pytest.mark.parametrize("case", RARE)
def test_rare_tiles(case, dtype, head_dim):
    run_rare(case, dtype, head_dim, "plain")


# Caps under which references reach the bound of all scores, and do not.
@pytest.mark.parametrize(
    ("dtype", "head_dim", "cap"),
    [
        ("bfloat16", 128, 30.0),
        ("bfloat16", 128, 200.0),
        ("float16", 128, 50.0),
        ("bfloat16", 64, 2.0),
        ("bfloat16", 256, 30.0),
        ("float16", 256, 200.0),
    ],
)
@pytest.mark.parametrize("case", RARE)
def test_rare_tiles_with_a_soft_cap(case, dtype, head_dim, cap):
    run_rare(case, dtype, head_dim, "softcap", logits_soft_cap=cap)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_nan_hides_no_other_rows_scores(dtype):
    """One maximum serves the rows of a lane, of which a few see the NaN; references move later."""
    q, k, v = _normal(100, 300)
    k[250] = np.nan
    k[:200] *= 0.1
    k[200:] *= 20
    q, k, v = (jnp.asarray(x, dtype) for x in (q, k, v))
    with recorded():
        out, lse = flash_attention(
            q[None], k[None], v[None], causal=True, return_lse=True, implementation=TARGET
        )
    clean = 250 - 200  # the first row that sees it
    expected = attention(q[:clean], k[:250], v[:250], causal=True)
    assert_near((out[0, :clean], lse[0, :clean]), expected, v, TARGET)
    assert np.isnan(np.asarray(lse[0, clean:])).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_keys_of_weight_0_come_first(dtype):
    q, k, v = _normal(70, 300)
    q, k = np.abs(q), k - 3
    k[:130] = -np.inf
    q, k, v = (jnp.asarray(x, dtype) for x in (q, k, v))
    with recorded():
        out, lse = flash_attention(
            q[None], k[None], v[None], return_lse=True, implementation=TARGET
        )
    assert_near((out[0], lse[0]), attention(q, k[130:], v[130:]), v, TARGET)


@pytest.mark.parametrize("s", [200, 256])
def test_operands_that_no_buffer_reaches(s):
    """Keys of more than 4 GiB of which one head alone is ever touched, hence alone takes memory."""
    t, h, heads = 60, 128, 100_000
    q, *rows = (np.array(jnp.asarray(x, jnp.bfloat16)) for x in _normal(t, s))
    keys, values = (np.zeros((s, heads, h), np.uint16).view(jnp.bfloat16) for _ in range(2))
    assert keys.nbytes > 2**32
    for operand, row in zip((keys, values), rows, strict=True):
        operand[:, -1] = row[:, 0]
    out, lse = np.zeros((t, h), jnp.bfloat16), np.zeros(t, np.float32)
    by_one = (2**31 + 1, 0)
    params = Params(
        query=q.ctypes.data,
        key=keys[:, -1].ctypes.data,
        value=values[:, -1].ctypes.data,
        out=out.ctypes.data,
        lse=lse.ctypes.data,
        query_stride=Strides(t * h, h, h),
        key_stride=Strides(s * heads * h, heads * h, h),
        out_stride=Strides(t * h, h, h),
        lse_stride=Strides(t, 1, 1),
        **{"batch": 1, "seqlen_q": t, "seqlen_k": s, "num_heads": 1, "num_kv_heads": 1, "group": 1},
        head_dim=h,
        num_splits=1,
        grid=WorkGrid(1, 1, 0, 1, (by_one,) * 5),
        **{"window_left": 0x3FFFFFFF, "window_right": 0x3FFFFFFF},
        scale=h**-0.5,
    )
    kernel = code().kernels[kernel_of("bfloat16", h)]
    code().launch(
        kernel_of("bfloat16", h),
        grid=1,
        block=kernel.max_workgroup_size,
        args=[bytes(params)],
        buffers=[q, keys, values, out, lse],
    )
    assert_near((out[:, None], lse[:, None]), attention(q, *rows), rows[1], TARGET)
