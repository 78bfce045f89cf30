"""Gradients of every implementation against the reference's."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import IMPLEMENTATIONS, Case
from sweeps import swept
from tolerance import assert_gradients_close

from jax_fa import flash_attention, merge_attention, reference

CASES = (
    Case("plain", batch=(2,), t=40, s=70, n=4, k=2, h=32),
    Case("causal, T < S", t=20, s=70, options={"causal": True}),
    Case("causal, T > S", t=70, s=20, n=3, options={"causal": True}),
    Case("window", t=60, s=80, options={"window": (9, 4)}),
    Case("soft cap", t=40, s=70, options={"logits_soft_cap": 2.0, "causal": True}),
    Case("negative scale", t=40, s=70, options={"scale": -0.4}),
    Case("scale 0", t=10, s=20, options={"scale": 0.0}),
    Case(
        "lengths",
        batch=(3,),
        t=30,
        s=50,
        options={"causal": True},
        query_lengths=(30, 0, 12),
        key_lengths=(50, 20, 0),
    ),
    Case("no leading dimensions", batch=(), t=7, s=9, n=2, k=2, h=20),
    Case("S = 0", t=5, s=0),
    Case("longer than a block", t=300, s=520, n=1, options={"window": (270, 3)}),
)


def total(attend, keywords, operands, lse_only=False):
    """A scalar that depends on every element of out and of the finite lse."""
    rng = np.random.default_rng(9)
    out, lse = attend(*operands, return_lse=True, **keywords)
    weights = jnp.asarray(rng.standard_normal(lse.shape), jnp.float32)
    sum_lse = jnp.sum(jnp.where(jnp.isneginf(lse), 0, lse * weights))
    if lse_only:
        return sum_lse
    weights = jnp.asarray(rng.standard_normal(out.shape), jnp.float32)
    return sum_lse + jnp.sum(out.astype(jnp.float32) * weights)


def gradients(attend, case, dtype, lse_only=False):
    function = jax.jit(
        jax.grad(lambda *x: total(attend, case.keywords(), x, lse_only), argnums=(0, 1, 2))
    )
    return function(*case.operands(dtype))


def wide(*operands, **keywords):
    return reference.flash_attention(*(x.astype(jnp.float32) for x in operands), **keywords)


def check(implementation, case, dtype, lse_only=False):
    attend = functools.partial(flash_attention, implementation=implementation)
    actual = gradients(attend, case, dtype, lse_only)
    expected = gradients(wide, case, dtype, lse_only)
    assert_gradients_close(actual, expected, dtype)


@pytest.mark.parametrize("case", swept(CASES, [*CASES[2:4], CASES[7], CASES[9]]), ids=str)
def test_xla_gradients(case):
    check("xla", case, "float32")


@pytest.mark.parametrize(
    ("case", "dtype"),
    swept(
        itertools.product(CASES[:3], ["bfloat16", "float16"]),
        [(CASES[0], "bfloat16"), (CASES[2], "float16")],
    ),
    ids=str,
)
def test_xla_gradients_in_half_precision(case, dtype):
    check("xla", case, dtype)


@pytest.mark.parametrize(
    ("case", "implementation"),
    swept(
        itertools.product([CASES[0], CASES[4], CASES[7]], IMPLEMENTATIONS[1:]),
        [(CASES[0], "gfx1201"), (CASES[4], "gfx950"), (CASES[7], "gfx950"), (CASES[7], "gfx1201")],
    ),
    ids=str,
)
def test_kernel_gradients(case, implementation):
    check(implementation, case, "bfloat16")


@pytest.mark.parametrize("case", swept(CASES[:3], CASES[2:3]), ids=str)
def test_gradient_through_lse_alone(case):
    check("xla", case, "float32", lse_only=True)


@pytest.mark.parametrize("implementation", swept(IMPLEMENTATIONS, ["xla", "gfx1201"]))
def test_gradient_through_merge(implementation):
    dtype = "float32" if implementation == "xla" else "bfloat16"
    operands = Case("", t=20, s=60).operands(dtype)

    def split(q, k, v, return_lse=True):
        part = functools.partial(flash_attention, return_lse=True, implementation=implementation)
        return merge_attention(*part(q, k[:, :23], v[:, :23]), *part(q, k[:, 23:], v[:, 23:]))

    def gradient(attend):
        return jax.jit(jax.grad(lambda *x: total(attend, {}, x), argnums=(0, 1, 2)))(*operands)

    actual, expected = gradient(split), gradient(wide)
    assert_gradients_close(actual, expected, dtype)


def test_nan_past_a_length_has_no_gradient():
    case = Case("", batch=(2,), t=10, s=40, key_lengths=(13, 40))
    q, k, v = case.operands("float32")
    spoilt = k.at[0, 13:].set(jnp.nan), v.at[0, 13:].set(jnp.nan)
    f = jax.grad(lambda *x: total(flash_attention, case.keywords(), x), argnums=(0, 1, 2))
    for a, b in zip(f(q, *spoilt), f(q, k, v), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.asarray(f(q, *spoilt)[1][0, 13:]).any()


@pytest.mark.parametrize("place", ["query", "cotangent"])
def test_nan_in_one_sequence_leaves_gradients_of_others(place):
    """A block of keys reaches into the next sequence, whose weights there are 0."""
    q, k, v = Case("", batch=(2,), t=10, s=12).operands("float32")
    d_out = jnp.ones(q.shape)
    _, vjp = jax.vjp(flash_attention, q, k, v)
    expected = vjp(d_out)
    if place == "query":
        _, vjp = jax.vjp(flash_attention, q.at[0, 3].set(jnp.nan), k, v)
    else:
        d_out = d_out.at[0, 3].set(jnp.nan)
    for a, b in zip(vjp(d_out), expected, strict=True):
        np.testing.assert_array_equal(a[1], b[1])
        assert np.isnan(a[0]).any()


def test_lengths_have_float0_gradients():
    q, k, v = Case("", batch=(2,), t=5, s=6).operands("float32")
    _, vjp = jax.vjp(
        lambda lengths: flash_attention(q, k, v, key_lengths=lengths), jnp.array([3, 6], jnp.int32)
    )
    (gradient,) = vjp(jnp.ones(q.shape))
    assert gradient.dtype == jax.dtypes.float0
    assert gradient.shape == (2,)


@pytest.mark.on_cpu
def test_saving_the_named_results_avoids_a_second_forward_call():
    q, k, v = Case("", t=300, s=300).operands("float32")
    policy = jax.checkpoint_policies.save_only_these_names("jax_fa_out", "jax_fa_lse")

    def loops(policy):
        def f(q):
            return jnp.sum(jnp.sin(flash_attention(q, k, v)))

        gradient = jax.jit(jax.value_and_grad(jax.checkpoint(f, policy=policy)))
        return (gradient.lower(q).compile().as_text() or "").count(" while(")

    assert loops(policy) < loops(None)


@pytest.mark.parametrize("first", swept([((0,),), ((0, 1, 2),)], [((0,),)]), ids=str)
def test_gradients_do_not_depend_on_what_was_asked_for_before(first):
    """In a loop JAX may use a forward it has kept, with the residual tree of a later one."""
    operands = Case("", t=8, s=8, n=2, k=1, h=16).operands("float32")

    def total(*operands):
        return jnp.sum(flash_attention(*operands) ** 2)

    def twice(*operands):
        return jax.lax.scan(lambda sum, _: (sum + total(*operands), None), 0.0, length=2)[0]

    every = (0, 1, 2)
    expected = jax.grad(total, every)(*operands)
    jax.grad(total, first)(*operands)
    for argnums in (every, (0,), (1,), every):
        for gradient, i in zip(jax.grad(twice, argnums)(*operands), argnums, strict=True):
            np.testing.assert_allclose(gradient, 2 * expected[i], rtol=1e-5, atol=1e-6)


def test_a_second_derivative_is_refused_by_name():
    operands = Case("", t=8, s=8, n=2, k=1, h=16).operands("float32")
    f = jax.grad(lambda *x: jnp.sum(flash_attention(*x) ** 2))
    with pytest.raises(NotImplementedError, match="attention is differentiable once"):
        jax.jacfwd(f)(*operands)
