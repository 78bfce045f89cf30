"""Up to 64 rows of a key head in decode kernels: how often K and V are read, and the results."""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernel_runs import (
    KERNEL_TARGETS,
    assert_keys_are_read_once,
    assert_near,
    attention,
    expect_cache,
    expect_pack,
    recorded,
    run_in_every_order,
)
from packs import Cache, Pack
from sweeps import swept

from jax_fa import flash_attention, flash_attention_varlen, paged_attention

# Tokens and query heads of a key head.
ROWS = ((17, 1), (31, 1), (8, 4), (3, 11), (8, 6), (8, 8))


def normal(rng, *shape, dtype="bfloat16"):
    return jnp.asarray(rng.standard_normal(shape, np.float32), dtype)


def expect(query, key, value, lengths, **options):
    """(out, lse) of dense operands, of which `lengths` keys count."""
    parts = []
    for q, k, v, s in zip(query, key, value, lengths, strict=True):
        parts.append(attention(*(np.asarray(x, np.float64) for x in (q, k[:s], v[:s])), **options))
    return tuple(np.stack(x) for x in zip(*parts, strict=True))


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize(
    ("page_size", "t", "group"),
    [(None, 8, 4), (None, 2, 12), (None, 17, 1), (None, 8, 8), (16, 8, 4), (64, 8, 4), (100, 8, 8)],
)
@pytest.mark.parametrize("h", [64, 128, 256])
def test_one_reading_serves_all_rows(target, page_size, h, t, group):
    q = jnp.zeros((2, t, 2 * group, h), jnp.bfloat16)
    s = 1600 if page_size == 100 else 2048
    assert_keys_are_read_once(q, (2, s, 2, h), page_size, target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize(
    ("h", "dtype"),
    swept(
        [
            *((h, "bfloat16") for h in (40, 64, 128, 200, 256)),
            *((h, "float16") for h in (64, 128, 256)),
        ],
        [(40, "bfloat16"), (200, "bfloat16"), (128, "float16")],
    ),
)
def test_any_number_of_rows(target, dtype, h):
    """Causal attention of some sequences, the last shorter than a wave's share of the rows."""
    rng = np.random.default_rng(0)
    lengths = jnp.array([190, 70, 5, 0], jnp.int32)
    # On gfx950 the kernel is the same for any number.
    for t, group in {"gfx950": ROWS[2::3], "gfx1201": ROWS}[target]:
        q = normal(rng, 4, t, 2 * group, h, dtype=dtype)
        key, value = (normal(rng, 4, 190, 2, h, dtype=dtype) for _ in range(2))
        expected = expect(q, key, value, lengths, causal=True)
        past = jnp.arange(190)[:, None, None] >= lengths[:, None, None, None]
        key, value = (jnp.where(past, jnp.nan, x) for x in (key, value))
        with recorded(checks=True) as launches:
            results = jax.block_until_ready(
                flash_attention(
                    *(q, key, value),
                    causal=True,
                    key_lengths=lengths,
                    return_lse=True,
                    implementation=target,
                )
            )
        assert_wide(launches, target)
        assert_near(results, expected, jnp.nan_to_num(value), target)


def assert_wide(launches, target):
    """One kernel whose tile has 64 rows: of gfx950 that is every decode kernel."""
    suffix = {"gfx950": "", "gfx1201": "_wide"}[target]
    kernels = {x.kernel for x in launches if not x.kernel.startswith("merge_")}
    assert kernels
    assert all(x.startswith("decode_") and x.endswith(suffix) for x in kernels)


OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"window": (100, 0)},
    {"window": (3, 5)},
    {"causal": True, "logits_soft_cap": 5.0},
    {"scale": -0.2},
    {"scale": 40.0, "causal": True},
)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize(
    ("h", "num_splits"),
    swept(itertools.product([64, 128, 256], [1, 2, 7]), [(64, 7), (128, 1), (256, 2)]),
)
def test_options_and_splits(target, num_splits, h):
    rng = np.random.default_rng(1)
    q = normal(rng, 1, 11, 6, h)
    key, value = (normal(rng, 1, 300, 2, h) for _ in range(2))
    for options in OPTIONS:
        with recorded(checks=True) as launches:
            results = jax.block_until_ready(
                flash_attention(
                    *(q, key, value),
                    **options,
                    num_splits=num_splits,
                    return_lse=True,
                    implementation=target,
                )
            )
        assert_wide(launches, target)
        assert_near(results, expect(q, key, value, [300], **options), value, target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize(
    ("h", "t", "group"),
    swept(
        ((h, *rows) for h in (64, 128, 256) for rows in ((6, 3), (7, 7), (8, 8))),
        [(64, 7, 7), (128, 8, 8), (256, 6, 3)],
    ),
)
def test_every_order_gives_the_same_bits(target, h, t, group):
    rng = np.random.default_rng(2)
    q = normal(rng, 1, t, group, h)
    key, value = (normal(rng, 1, 500, 1, h) for _ in range(2))
    for num_splits in (1, 3):
        call = functools.partial(
            flash_attention,
            *(q, key, value),
            causal=True,
            window=(350, 0),
            num_splits=num_splits,
            return_lse=True,
            implementation=target,
        )
        results, _ = run_in_every_order(call)
        expected = expect(q, key, value, [500], causal=True, window=(350, 0))
        assert_near(results, expected, value, target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize(
    ("h", "page_size", "packed"),
    swept(
        (
            (h, *pages)
            for h in (64, 120, 128, 256)
            for pages in ((1, False), (16, True), (64, False), (64, True), (100, True))
        ),
        [
            *((64, 16, True), (64, 64, False), (120, 1, False), (120, 64, True)),
            *((128, 64, True), (128, 100, True), (256, 16, True), (256, 64, False)),
        ],
    ),
)
def test_pages(target, h, page_size, packed):
    lengths = ((8, 300), (5, 5), (0, 0), (7, 129), (8, 31))
    cache = Cache("", lengths, page_size, n=8, k=2, h=h, packed=packed)
    arrays = cache.operands("bfloat16")
    call = functools.partial(
        paged_attention,
        *arrays,
        **cache.keywords(),
        return_lse=True,
        implementation=target,
    )
    with recorded(checks=True) as launches:
        results = jax.block_until_ready(call())
    assert_wide(launches, target)
    assert_near(results, expect_cache(cache, arrays), jnp.nan_to_num(arrays[2]), target)


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize("h", [64, 128, 256])
def test_packed_sequences_by_their_mean(target, h):
    """Longer and shorter sequences than a tile holds, and some of nothing."""
    lengths = ((40, 90), (1, 200), (0, 7), (3, 3), (13, 70))
    pack = Pack("", lengths, n=4, k=2, h=h, options={"causal": True}, spare=(5, 3))
    arrays = pack.operands("bfloat16")
    call = functools.partial(
        flash_attention_varlen,
        *arrays,
        **pack.keywords(),
        return_lse=True,
        implementation=target,
    )
    with recorded() as launches:
        jax.block_until_ready(call())
    assert_wide(launches, target)
    results, _ = run_in_every_order(call)
    out, lse = results
    used = sum(t for t, _ in lengths)
    np.testing.assert_array_equal(np.asarray(out[used:], np.float32), 0)
    assert np.isneginf(np.asarray(lse[used:])).all()
    expected = expect_pack(pack, arrays)
    assert_near(
        (out[:used], lse[:used]),
        (expected[0][:used], expected[1][:used]),
        jnp.nan_to_num(arrays[2]),
        target,
    )
