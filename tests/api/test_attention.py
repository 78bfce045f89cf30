"""flash_attention on every implementation against the reference."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import DENSE, HEAD_DIMS, IMPLEMENTATIONS, KERNEL_TARGETS, Case
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import swept
from tolerance import assert_close, expect

from jax_fa import flash_attention, reference

# Every case on float32 xla and on bfloat16 kernels; the other dtypes are in the slow sweep.
RUNS = [("xla", "float32"), *((target, "bfloat16") for target in KERNEL_TARGETS)]
SLOW_RUNS = [("xla", "bfloat16"), ("xla", "float16"), *((t, "float16") for t in KERNEL_TARGETS)]
EVERY_DTYPE = DENSE[1:2] + tuple(case for case in HEAD_DIMS if case.h in (20, 256))

# xla has neither kernels' tiles nor their bounds: one case of each option there.
XLA_CASES = {"plain", "causal, T > S: top rows see nothing", "no leading dimensions", "T = S = 1"}
XLA_CASES |= {"two leading dimensions", "T = 1", "S = 0", "T = 0", "no sequences", "T = 129"}
XLA_CASES |= {"window (0, 0), T != S", "window left open", "soft cap, negative scale", "scale 0"}
XLA_CASES |= {"causal lengths", "heads 9/3", "H = 1", "H = 256"}


def check(case: Case, implementation: str, dtype: str) -> None:
    operands = case.operands(dtype)
    attend = functools.partial(flash_attention, return_lse=True, implementation=implementation)
    out, lse = attend(*operands, **case.keywords())
    assert out.dtype == dtype
    assert lse.dtype == jnp.float32
    assert_close((out, lse), expect(*operands, **case.keywords()), operands[2], implementation)


@pytest.mark.parametrize(
    ("case", "implementation", "dtype"),
    swept(
        ((case, *run) for case in (*DENSE, *HEAD_DIMS) for run in RUNS),
        lambda case, implementation, _: implementation != "xla" or str(case) in XLA_CASES,
    ),
    ids=str,
)
def test_matches_the_reference(case, implementation, dtype):
    check(case, implementation, dtype)


@pytest.mark.parametrize(("implementation", "dtype"), SLOW_RUNS)
@pytest.mark.parametrize("case", EVERY_DTYPE, ids=str)
def test_matches_the_reference_in_every_dtype(case, implementation, dtype):
    check(case, implementation, dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("implementation", "dtype"), SLOW_RUNS)
@pytest.mark.parametrize("case", [c for c in (*DENSE, *HEAD_DIMS) if c not in EVERY_DTYPE], ids=str)
def test_sweep_of_cases_and_dtypes(case, implementation, dtype):
    check(case, implementation, dtype)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_many_query_heads_on_many_key_heads(implementation):
    check(Case("N=64, K=16", t=3, s=5, n=64, k=16), implementation, "bfloat16")


@settings(max_examples=2, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_any_shape_and_options(implementation, data):
    check_drawn(implementation, data)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_many_shapes_and_options(implementation, data):
    check_drawn(implementation, data)


def check_drawn(implementation, data):
    draw = data.draw
    k = draw(st.integers(1, 3))
    batch = tuple(draw(st.lists(st.integers(1, 2), max_size=2)))
    t, s = draw(st.integers(0, 70)), draw(st.integers(0, 140))
    side = st.none() | st.integers(0, 150)
    options = {
        "causal": draw(st.booleans()),
        "window": draw(st.none() | st.tuples(side, side)),
        "scale": draw(st.none() | st.sampled_from([0.0, -0.5, 0.125, 1.5])),
        "logits_soft_cap": draw(st.none() | st.sampled_from([1.0, 30.0])),
    }
    lengths = {
        name: draw(st.none() | st.tuples(*[st.integers(0, limit)] * int(np.prod(batch, dtype=int))))
        for name, limit in (("query_lengths", t), ("key_lengths", s))
    }
    case = Case(
        "drawn",
        batch=batch,
        t=t,
        s=s,
        n=k * draw(st.integers(1, 3)),
        k=k,
        h=draw(st.sampled_from([8, 24, 64, 100])),
        options=options,
        **lengths,
    )
    check(case, implementation, draw(st.sampled_from(["bfloat16", "float16"])))


# --- Numbers --------------------------------------------------------------------------------------


def attend_all(implementation, q, k, v, **options):
    """(out, lse) as NumPy float32."""
    results = flash_attention(q, k, v, return_lse=True, implementation=implementation, **options)
    return tuple(np.asarray(x, np.float32) for x in results)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("s", [1, 2, 8])
def test_very_large_equal_logits_give_the_value(implementation, s):
    x = jnp.full((1, s, 1, 64), 133120, jnp.bfloat16)
    out, _ = attend_all(implementation, x, x, x)
    np.testing.assert_array_equal(out, np.full(out.shape, 133120, np.float32))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_float16_logits_past_its_range(implementation):
    rng = np.random.default_rng(0)
    q, k, v = (jnp.asarray(-900 * rng.random((1, 40, 2, 64)), jnp.float16) for _ in range(3))
    expected, _ = expect(q, k, v)
    out, lse = attend_all(implementation, q, k, v)
    assert np.isfinite(lse).all()
    np.testing.assert_allclose(out, np.asarray(expected), rtol=4e-3)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("outlier", [False, True])
def test_logits_far_below_zero(implementation, dtype, outlier):
    rng = np.random.default_rng(1)
    s, h = 96 + 16, 64  # half a tile of padding keys that must not weigh exp(0)
    k = np.full((1, s, 1, h), -100.0) + rng.integers(0, 2, (1, s, 1, h))
    if outlier:
        k[0, 70] = 10.0
    q = jnp.full((1, 20, 1, h), 10, dtype)
    k, v = jnp.asarray(k, dtype), jnp.asarray(rng.standard_normal((1, s, 1, h)), dtype)
    expected = expect(q, k, v, scale=1.0)
    assert float(expected[1].min()) < -5e4 or outlier
    assert_close(attend_all(implementation, q, k, v, scale=1.0), expected, v, implementation)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_logits_below_any_finite_minus_infinity(implementation):
    q, k, v = Case("", t=20, s=40, n=1).operands("bfloat16")
    q, k = jnp.full_like(q, 2.0**60), jnp.full_like(k, -(2.0**60))  # logits -2^126
    out, lse = attend_all(implementation, q, k, v, scale=1.0)
    mean = np.broadcast_to(np.asarray(v, np.float32).mean(1, keepdims=True), out.shape)
    np.testing.assert_allclose(out, mean, atol=2.5e-2)
    np.testing.assert_allclose(lse, -(2.0**126), rtol=1e-6)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_equal_logits_give_the_mean_and_log_s(implementation, dtype):
    s = 100
    v = jnp.asarray(np.random.default_rng(0).standard_normal((1, s, 1, 64)), dtype)
    q, k = jnp.ones((1, 3, 1, 64), dtype), jnp.ones((1, s, 1, 64), dtype)
    expected = np.broadcast_to(np.asarray(v, np.float32).mean(1, keepdims=True), (1, 3, 1, 64))
    assert_close(
        attend_all(implementation, q, k, v),
        (expected, np.full((1, 3, 1), 8 + np.log(s))),
        v,
        implementation,
    )


# --- Non-finite operands --------------------------------------------------------------------------


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_past_a_length_nothing_counts(implementation, bad):
    case = Case("", batch=(4,), t=20, s=128, key_lengths=(32, 64, 96, 47), query_lengths=(20,) * 4)
    q, k, v = case.operands("bfloat16")
    past = jnp.arange(case.s)[None, :] >= jnp.asarray(case.key_lengths)[:, None]
    spoil = functools.partial(jnp.where, past[..., None, None], jnp.asarray(bad, q.dtype))
    clean = attend_all(implementation, q, k, v, **case.keywords())
    spoilt = attend_all(implementation, q, spoil(k), spoil(v), **case.keywords())
    for a, b in zip(clean, spoilt, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_key_reaches_the_rows_that_see_it(implementation, bad):
    q, k, v = Case("", t=80, s=80, options={"causal": True}).operands("bfloat16")
    # A whole row of either gives NaN logits: q has both signs.
    out, lse = attend_all(implementation, q, k.at[0, 50].set(bad), v, causal=True)
    assert np.isnan(out[0, 50:]).all()
    assert np.isnan(lse[0, 50:]).all()
    clean = attend_all(implementation, q, k, v, causal=True)
    np.testing.assert_array_equal(lse[0, :50], clean[1][0, :50])
    np.testing.assert_array_equal(out[0, :50], clean[0][0, :50])


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_nan_query_row_stays_in_its_row(implementation):
    q, k, v = Case("", t=40, s=70).operands("float16")
    out, _ = attend_all(implementation, q.at[0, 7, 1].set(jnp.nan), k, v)
    spoilt = np.isnan(out).any(-1)
    expected = np.zeros_like(spoilt)
    expected[0, 7, 1] = True
    np.testing.assert_array_equal(spoilt, expected)


# --- Repetition and composition -------------------------------------------------------------------


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_same_inputs_same_bits(implementation):
    operands = Case("", t=100, s=130, n=4, k=2).operands("bfloat16")
    first = attend_all(implementation, *operands, causal=True)
    for _ in range(4):
        again = attend_all(implementation, *operands, causal=True)
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_inside_loops_and_remat(implementation):
    q, k, v = Case("", t=20, s=30, n=1).operands("bfloat16")
    attend = functools.partial(flash_attention, causal=True, implementation=implementation)
    once = attend(q, k, v)
    twice = attend(once, k, v)
    looped = jax.jit(lambda q: jax.lax.fori_loop(0, 2, lambda _, x: attend(x, k, v), q))(q)
    np.testing.assert_array_equal(looped, twice)
    scanned = jax.lax.scan(lambda x, _: (attend(x, k, v), None), q, length=2)[0]
    np.testing.assert_array_equal(scanned, twice)

    def total(q):
        return attend(q, k, v).astype(jnp.float32).sum()

    np.testing.assert_array_equal(jax.grad(jax.checkpoint(total))(q), jax.grad(total)(q))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_donated_query(implementation):
    q, k, v = Case("", t=20, s=30).operands("bfloat16")
    attend = functools.partial(flash_attention, causal=True, implementation=implementation)
    expected = attend(q, k, v)
    donated = q.copy()
    out = jax.jit(attend, donate_argnums=0)(donated, k, v)
    np.testing.assert_array_equal(out, expected)
    assert donated.is_deleted()


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_sliced_and_transposed_operands(implementation):
    q, k, v = Case("", batch=(2,), t=20, s=30, n=4, k=2).operands("bfloat16")

    @jax.jit
    def attend(q_heads_first, kv):
        key, value = kv[..., :64], kv[..., 64:]
        return flash_attention(
            q_heads_first.swapaxes(1, 2), key, value, implementation=implementation
        )

    actual = attend(q.swapaxes(1, 2), jnp.concatenate([k, v], -1))
    np.testing.assert_array_equal(actual, flash_attention(q, k, v, implementation=implementation))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_donated_operands(implementation):
    q, k, v = Case("", t=20, s=30, n=1).operands("bfloat16")
    expected = flash_attention(q, k, v, implementation=implementation)
    attend = jax.jit(
        functools.partial(flash_attention, implementation=implementation), donate_argnums=0
    )
    np.testing.assert_array_equal(attend(q.copy(), k, v), expected)


# --- What kernels do not serve --------------------------------------------------------------------


def operands_for(h, hv, dtype):
    rng = np.random.default_rng(0)
    shapes = (1, 9, 2, h), (1, 11, 1, h), (1, 11, 1, hv)
    return [jnp.asarray(rng.standard_normal(s), dtype) for s in shapes]


@pytest.mark.parametrize("target", KERNEL_TARGETS)
@pytest.mark.parametrize(
    ("h", "hv", "dtype", "text"),
    [
        (288, 288, "bfloat16", "head size H <= 256; got 288"),
        (512, 512, "bfloat16", "head size H <= 256; got 512"),
        (64, 32, "bfloat16", "Hv=32"),
        (64, 64, "float32", "got float32"),
    ],
)
def test_named_target_without_a_kernel_says_so(target, h, hv, dtype, text):
    with pytest.raises(NotImplementedError, match=f'implementation="{target}".*{text}'):
        flash_attention(*operands_for(h, hv, dtype), implementation=target)


@pytest.mark.parametrize(
    ("h", "hv", "dtype"), [(288, 288, "bfloat16"), (512, 512, "float16"), (64, 32, "float32")]
)
def test_xla_serves_the_rest_by_default(h, hv, dtype):
    q, k, v = operands_for(h, hv, dtype)
    assert_close(flash_attention(q, k, v, return_lse=True), expect(q, k, v), v, "xla")


def test_float64():
    with jax.enable_x64(True):
        q, k, v = operands_for(64, 64, "float64")
        out, lse = flash_attention(q, k, v, return_lse=True)
        expected, lse_expected = reference.flash_attention(q, k, v, return_lse=True)
        assert out.dtype == lse.dtype == jnp.float64
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(lse, lse_expected, rtol=1e-12)
