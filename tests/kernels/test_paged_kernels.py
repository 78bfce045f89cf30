"""Paged caches in the kernels: page sizes, orders of waves, counts, absent pages, far addresses."""

import ctypes
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernel_params import Params, Strides, WorkGrid
from kernel_runs import (
    KERNEL_TARGETS,
    assert_near,
    attention,
    expect_cache,
    recorded,
    run_in_every_order,
    wave_instructions,
)
from packs import Cache

from jax_fa import _native, emulator, flash_attention, paged_attention

attend: Any = functools.partial(paged_attention, return_lse=True)
PREFILL = ((70, 150), (100, 100), (3, 40), (0, 20))
CACHES = (
    # A tile of keys in one page, a multiple of it, and pages that a tile cuts.
    *(Cache(f"page {p}", PREFILL, p, n=4, k=2) for p in (1, 16, 64, 100, 128)),
    *(Cache(f"page {p}, H = 128", PREFILL[:2], p, h=128) for p in (16, 33, 64, 80, 256)),
    *(Cache(f"page {p}, H = 256", PREFILL[:2], p, n=1, h=256) for p in (16, 32, 100)),
    # More tiles than a wave has lanes; the first ones unseen.
    *(
        Cache(f"page {p}, {h} long", ((20, 4500),), p, h=h, options={"window": (w, 0)})
        for p, h, w in ((64, 64, 4400), (100, 64, None), (192, 128, None), (70, 128, 3000))
    ),
    *(
        Cache(f"page 64, H = {h}, capped", ((100, 400), (70, 70)), 64, h=h, options=options)
        for h, options in ((128, {"logits_soft_cap": 20.0}), (256, {"logits_soft_cap": 5.0}))
    ),
    Cache("H = 40", PREFILL, 64, h=40, options={"window": (30, 0)}),
    *(Cache(f"H = 72, page {p}", PREFILL, p, h=72) for p in (1, 70)),
    Cache("H = 240, HND", PREFILL[1:3], 24, n=1, h=240, layout="HND"),
    Cache("packed, HND", PREFILL, 64, h=128, packed=True, layout="HND"),
    Cache("packed, capped", PREFILL, 8, packed=True, options={"logits_soft_cap": 5.0}),
    Cache("decode", ((1, 150), (1, 640), (0, 3)), 64, n=8, k=2, h=128),
    Cache("decode, page 7", ((2, 150), (1, 640), (8, 9)), 7, n=6, k=2, h=64, packed=True),
    Cache("decode, H = 256", ((1, 150), (1, 33)), 16, n=3, k=1, h=256),
    Cache("the pool ends with the last page", ((70, 128), (1, 64)), 64, spare_pages=0),
    Cache("nothing spare", ((70, 120), (20, 60)), 30, spare_pages=0, spare_entries=0),
)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize(
    ("cache", "dtype"),
    [*((cache, "bfloat16") for cache in CACHES), *((cache, "float16") for cache in CACHES[::4])],
    ids=str,
)
def test_right_in_every_order(cache, target, dtype):
    operands = cache.operands(dtype)
    call = functools.partial(attend, *operands, **cache.keywords(), implementation=target)
    results, kernels = run_in_every_order(call)
    assert all("paged" in kernel for kernel in kernels - {f"merge_{dtype}"})
    assert_near(results, expect_cache(cache, operands), jnp.nan_to_num(operands[2]), target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("t", [1, 100])
@pytest.mark.parametrize("page_size", [16, 24, 64, 100])
def test_a_page_outside_the_pool_is_not_read(target, page_size, t):
    """It may give its sequence any numbers, but nobody else, and touches nothing else."""
    cache = Cache("", ((t, 150), (t, 100)), page_size, h=128, spare_pages=0)
    q, k, v, tables, lengths = cache.operands("bfloat16")
    call = functools.partial(attend, q, k, v, implementation=target)
    with recorded(checks=True):
        expected = call(tables, lengths)
        for absent in (-1, k.shape[0], 2**31 - 1, -(2**31)):
            for entry in (0, 1):
                results = call(tables.at[0, entry].set(absent), lengths)
                for actual, right in zip(results, expected, strict=True):
                    np.testing.assert_array_equal(actual[1], right[1])


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("page_size", [16, 64, 100])
@pytest.mark.parametrize("lengths", [[-5, 70], [2**31 - 1, 70], [-(2**31), 2**31 - 1]], ids=str)
def test_nonsense_lengths_stay_within_the_operands(target, page_size, lengths):
    cache = Cache("", ((70, 2 * page_size), (70, 70)), page_size, spare_pages=0, spare_entries=0)
    q, k, v, tables, _ = cache.operands("bfloat16")
    with recorded(checks=True):
        for query_lengths in (None, jnp.array([-1, 2**31 - 1], jnp.int32)):
            results = attend(
                *(q, k, v, tables, jnp.array(lengths, jnp.int32)),
                query_lengths=query_lengths,
                implementation=target,
            )
            jax.block_until_ready(results)


# Wave instructions of a paged prefill over those of the same dense one, at most, by page size for
# the head sizes 64, 128 and 256. On gfx950 pages of whole key tiles have the schedule that dense
# keys have; on gfx1201 dense keys have one of their own without a soft cap, so these have one.
HEAD_DIMS = (64, 128, 256)
PAGING = {
    "gfx950": (
        None,
        {1: (1.07, 1.125, 1.145), 64: (1.053, 1.04, 1.052), 100: (1.055, 1.066, 1.064)},
    ),
    "gfx1201": (30.0, {1: (1.09,) * 3, 64: (1.03,) * 3, 100: (1.035,) * 3}),
}


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("h", HEAD_DIMS)
@pytest.mark.parametrize("page_size", [1, 64, 100])
def test_paging_costs_few_instructions(target, h, page_size):
    t = 1024
    cap, limits = PAGING[target]
    options: Any = {"logits_soft_cap": cap, "implementation": target, "num_splits": 1}
    cache = Cache("", ((t, t),), page_size, n=1, h=h, spare_pages=0)
    q, k, v, tables, lengths = cache.operands("bfloat16")
    call = functools.partial(attend, q, k, v, tables, lengths, causal=False, **options)
    paged = wave_instructions(call)
    pages = tables[0, : -(-t // page_size)]
    rows = (x[pages].reshape(1, -1, 1, h)[:, :t] for x in (k, v))
    call = functools.partial(flash_attention, q, *rows, **options)
    limit = limits[page_size][HEAD_DIMS.index(h)]
    assert paged <= limit * wave_instructions(call)


def run_far_pool(target: str, kernel: str, page_size: int, pages: int, num_pages: int) -> None:
    """Runs a kernel on pools of `pages`, the last ones in use, which are said to have num_pages."""
    t, s, h = 8, 100, 64
    pools = [np.zeros((pages, page_size, h), jnp.bfloat16) for _ in range(2)]
    rng = np.random.default_rng(0)
    used = -(-s // page_size)
    tables = (pages - 1 - np.arange(used, dtype=np.int32))[None]
    q, *rows = (
        np.asarray(jnp.asarray(rng.standard_normal((x, 1, h), np.float32), jnp.bfloat16))
        for x in (t, s, s)
    )
    for pool, row in zip(pools, rows, strict=True):
        for i in range(s):
            pool[tables[0, i // page_size], i % page_size] = row[i, 0]
    q, out, lse = q.copy(), np.zeros((t, h), jnp.bfloat16), np.zeros(t, np.float32)
    shift = (page_size - 1).bit_length()
    by_one = (2**31 + 1, 0)
    one_workgroup = {"gfx950": (1, 1, 0, 1), "gfx1201": (1, 1, 1, 0)}[target]
    params = Params(
        query=q.ctypes.data,
        key=pools[0].ctypes.data,
        value=pools[1].ctypes.data,
        out=out.ctypes.data,
        lse=lse.ctypes.data,
        block_tables=tables.ctypes.data,
        query_stride=Strides(t * h, h, h),
        key_stride=Strides(page_size * h, h, h),
        out_stride=Strides(t * h, h, h),
        lse_stride=Strides(t, 1, 1),
        **{"batch": 1, "seqlen_q": t, "seqlen_k": s, "num_heads": 1, "num_kv_heads": 1, "group": 1},
        **{"head_dim": h, "page_size": page_size, "max_pages": used, "num_pages": num_pages},
        page_magic=(1 << (31 + shift)) // page_size + 1,
        page_shift=shift,
        num_splits=1,
        grid=WorkGrid(*one_workgroup, (by_one,) * 5),
        **{"window_left": 0x3FFFFFFF, "window_right": 0x3FFFFFFF},
        scale=h**-0.5,
    )
    code = emulator.CodeObject(_native.code_object(target))
    assert ctypes.sizeof(Params) == code.kernels[kernel].kernarg_bytes
    code.launch(
        kernel,
        grid=1,
        block=code.kernels[kernel].max_workgroup_size,
        args=[bytes(params)],
        buffers=[q, *pools, out, lse, tables],
    )
    actual = out[:, None], lse[:, None]
    assert_near(actual, attention(q, *rows), rows[1], target)


FAR_KERNELS = ("flash_bfloat16_h64_paged", "decode_bfloat16_h64_paged")


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("page_size", [1, 16, 64, 100])
@pytest.mark.parametrize("kernel", FAR_KERNELS)
def test_pools_that_no_buffer_reaches(target, page_size, kernel):
    """A pool of 3 GiB, of which the part that its table names is there."""
    run_far_pool(target, kernel, page_size, 101, 3 * 2**30 // (page_size * 128))


@pytest.mark.slow
@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("page_size", [16, 64, 100])
@pytest.mark.parametrize("kernel", FAR_KERNELS)
def test_pages_past_four_gib(target, page_size, kernel):
    """Pools of 5 GiB of which the last pages alone are ever touched, hence alone take memory."""
    pages = 5 * 2**30 // (page_size * 128)
    run_far_pool(target, kernel, page_size, pages, pages)


def test_a_spare_page_is_nan():
    """What the cases above rely on: everything that must not count is NaN or a foreign page."""
    cache = dataclasses.replace(CACHES[1], spare_pages=2)
    _, k, _, tables, lengths = cache.operands("float32")
    assert np.isnan(np.asarray(k)).all(axis=(1, 2, 3)).sum() >= 2
    assert tables.shape[1] * cache.page_size > max(np.asarray(lengths)) + cache.page_size
