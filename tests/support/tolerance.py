"""The reference, compiled, and assertions by the package's one tolerance function."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jax_fa import reference
from jax_fa._contract.tolerance import lse_tolerance, out_tolerance

_STATIC = ("causal", "window", "scale", "logits_soft_cap", "return_lse", "top_left", "layout")


def compiled_reference(function: Any) -> Any:
    """The function of `reference`, giving (out, lse) of the operands in float32."""
    names = set(inspect.signature(function).parameters) & set(_STATIC)
    compiled = jax.jit(function, static_argnames=names)

    def expect(query: Any, key: Any, value: Any, *integers: Any, **options: Any) -> tuple:
        wide = (x.astype(jnp.float32) for x in (query, key, value))
        return compiled(*wide, *integers, return_lse=True, **options)

    return expect


expect = compiled_reference(reference.flash_attention)


def assert_close(actual: Any, expected: Any, value: Any, implementation: str) -> None:
    """Holds (out, lse) against the reference's float32 (out, lse), -inf and NaN included."""
    out, lse = (np.asarray(x, np.float64) for x in actual)
    out_expected, lse_expected = (np.asarray(x, np.float64) for x in expected)
    assert out.shape == out_expected.shape
    assert lse.shape == lse_expected.shape
    if not out.size:
        return
    np.testing.assert_array_equal(np.isneginf(lse), np.isneginf(lse_expected))
    np.testing.assert_allclose(out, out_expected, rtol=0, atol=out_tolerance(value))
    finite = np.isfinite(lse_expected)
    difference = np.abs(lse[finite] - lse_expected[finite])
    allowed = lse_tolerance(lse_expected, value.dtype, implementation)[finite]
    worst = np.argmax(difference - allowed) if difference.size else None
    assert worst is None or difference[worst] <= allowed[worst], (
        f"lse is {difference[worst]} off; {allowed[worst]} allowed"
    )


# The error allowed, as a share of the largest gradient: gradients are sums over rows, in half
# precision of rounded terms.
_GRADIENT = {"float32": 5e-5, "bfloat16": 6e-2, "float16": 1e-2}


def assert_gradients_close(actual: Any, expected: Any, dtype: str = "float32") -> None:
    """Holds gradients by operands of a dtype against the reference's, in turn."""
    for place, (a, b) in enumerate(zip(actual, expected, strict=True)):
        assert a.dtype == dtype
        a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
        assert np.isfinite(a).all(), place
        atol = _GRADIENT[dtype] * max(1.0, np.abs(b).max(initial=0))
        np.testing.assert_allclose(a, b, atol=atol, rtol=0, err_msg=f"gradient {place}")
