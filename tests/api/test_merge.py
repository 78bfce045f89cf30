"""merge_attention against attention over all keys, and its edges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import IMPLEMENTATIONS, Case
from tolerance import assert_close, expect

from jax_fa import flash_attention, merge_attention, reference


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("cut", [0, 1, 40, 70])
def test_parts_merge_to_the_whole(implementation, cut):
    q, k, v = Case("", batch=(2,), t=20, s=70, n=4, k=2).operands("bfloat16")

    def part(keys):
        return flash_attention(
            q, k[:, keys], v[:, keys], return_lse=True, implementation=implementation
        )

    merged = merge_attention(*part(slice(cut)), *part(slice(cut, None)))
    assert_close(merged, expect(q, k, v), v, implementation)


def parts(lse_a, lse_b):
    rng = np.random.default_rng(0)
    out_a, out_b = (jnp.asarray(rng.standard_normal((2, 3, 8)), jnp.float32) for _ in range(2))
    return out_a, jnp.full((2, 3), lse_a), out_b, jnp.full((2, 3), lse_b)


def test_empty_parts():
    out_a, empty, out_b, some = parts(-jnp.inf, 1.5)
    # What stands in an empty part counts for nothing.
    out, lse = merge_attention(out_a * jnp.nan, empty, out_b, some)
    np.testing.assert_array_equal(out, out_b)
    np.testing.assert_array_equal(lse, some)
    out, lse = merge_attention(out_b, some, out_a, empty)
    np.testing.assert_array_equal(out, out_b)
    out, lse = merge_attention(jnp.zeros_like(out_a), empty, out_b * 0, empty)
    np.testing.assert_array_equal(out, np.zeros_like(out))
    assert np.isneginf(lse).all()


@pytest.mark.parametrize("difference", [1e4, -1e4, 1e30])
def test_lse_far_apart(difference):
    out_a, lse_a, out_b, lse_b = parts(0.0, difference)
    out, lse = merge_attention(out_a, lse_a, out_b, lse_b)
    np.testing.assert_array_equal(out, out_b if difference > 0 else out_a)
    np.testing.assert_array_equal(lse, jnp.maximum(lse_a, lse_b))


@pytest.mark.parametrize(("lse_a", "lse_b"), [(0.3, -0.4), (2.0, 2.0), (-1e4, 0.0)])
def test_gradients_equal_the_reference(lse_a, lse_b):
    operands = parts(lse_a, lse_b)

    def total(merge):
        def f(*args):
            out, lse = merge(*args)
            return jnp.sum(jnp.sin(out)) + jnp.sum(lse * lse)

        return jax.grad(f, argnums=(0, 1, 2, 3))(*operands)

    for a, b in zip(total(merge_attention), total(reference.merge_attention), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_gradients_of_empty_parts_are_finite():
    def f(*args):
        out, lse = merge_attention(*args)
        return jnp.sum(out) + jnp.sum(jnp.where(jnp.isneginf(lse), 0, lse))

    for lse_b in (0.5, -jnp.inf):
        for gradient in jax.grad(f, argnums=(0, 1, 2, 3))(*parts(-jnp.inf, lse_b)):
            assert np.isfinite(gradient).all()


def test_dtype_of_the_parts():
    out_a, lse_a, out_b, lse_b = parts(0.0, 1.0)
    out, lse = merge_attention(out_a.astype(jnp.bfloat16), lse_a, out_b.astype(jnp.bfloat16), lse_b)
    assert (out.dtype, lse.dtype) == (jnp.bfloat16, jnp.float32)


def test_many_parts_are_rounded_once():
    """A float32 sum takes parts of half precision in."""
    parts, rng = 64, np.random.default_rng(0)
    outs = jnp.asarray(rng.standard_normal((parts, 5, 2, 16)), jnp.bfloat16)
    lses = jnp.asarray(rng.standard_normal((parts, 5, 2)), jnp.float32)
    weights = np.exp(np.asarray(lses, np.float64))
    exact = (np.asarray(outs, np.float64) * weights[..., None]).sum(0) / weights.sum(0)[..., None]

    def merged(first):
        out, lse = first, lses[0]
        for i in range(1, parts):
            out, lse = merge_attention(out, lse, outs[i], lses[i])
        return out

    wide = merged(outs[0].astype(jnp.float32))
    assert wide.dtype == jnp.float32
    np.testing.assert_allclose(wide, exact, rtol=0, atol=1e-6)
    assert np.abs(np.asarray(merged(outs[0]), np.float64) - exact).max() > 1e-4
    gradient = jax.grad(lambda x: merge_attention(wide, lses[0], x, lses[1])[0].sum())(outs[1])
    assert gradient.dtype == jnp.bfloat16
