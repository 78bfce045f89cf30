"""Conversions between segment ids and cumulative lengths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_fa import cu_seqlens_to_segment_ids, segment_ids_to_cu_seqlens


@pytest.mark.parametrize(
    ("cu_seqlens", "total", "expected"),
    [
        ([0, 2, 5], 5, [0, 0, 1, 1, 1]),
        ([0, 2, 5], 7, [0, 0, 1, 1, 1, -1, -1]),
        ([0, 0, 3, 3, 4, 4], 6, [1, 1, 1, 3, -1, -1]),
        ([0, 0, 0], 2, [-1, -1]),
        ([0], 2, [-1, -1]),
        ([0, 1], 0, []),
    ],
)
def test_cu_seqlens_to_segment_ids(cu_seqlens, total, expected):
    ids = cu_seqlens_to_segment_ids(jnp.array(cu_seqlens, jnp.int32), total)
    assert ids.dtype == jnp.int32
    np.testing.assert_array_equal(ids, np.array(expected, np.int32))


@pytest.mark.parametrize(
    ("ids", "num_segments", "expected"),
    [
        ([0, 0, 1, 1, 1], 2, [0, 2, 5]),
        ([1, 1, 1, 3, -1, -1], 5, [0, 0, 3, 3, 4, 4]),
        ([-1, -1], 2, [0, 0, 0]),
        ([], 1, [0, 0]),
        ([0, 0], 0, [0]),
    ],
)
def test_segment_ids_to_cu_seqlens(ids, num_segments, expected):
    cu_seqlens = segment_ids_to_cu_seqlens(jnp.array(ids, jnp.int32), num_segments)
    assert cu_seqlens.dtype == jnp.int32
    np.testing.assert_array_equal(cu_seqlens, expected)


def test_round_trip_under_jit():
    cu_seqlens = jnp.array([0, 3, 3, 7, 12], jnp.int32)
    back = jax.jit(lambda c: segment_ids_to_cu_seqlens(cu_seqlens_to_segment_ids(c, 16), 4))
    np.testing.assert_array_equal(back(cu_seqlens), cu_seqlens)


def test_errors_name_the_argument():
    with pytest.raises(TypeError, match=r"cu_seqlens must have dtype int32; got float32"):
        cu_seqlens_to_segment_ids(jnp.zeros(2), 3)
    with pytest.raises(ValueError, match=r"cu_seqlens must have shape \(n,\).*got shape \(1, 2\)"):
        cu_seqlens_to_segment_ids(jnp.zeros((1, 2), jnp.int32), 3)
    with pytest.raises(TypeError, match="total must be a Python integer"):
        jax.jit(cu_seqlens_to_segment_ids)(jnp.zeros(2, jnp.int32), 3)
    with pytest.raises(ValueError, match="num_segments must be >= 0; got -1"):
        segment_ids_to_cu_seqlens(jnp.zeros(2, jnp.int32), -1)
    with pytest.raises(TypeError, match="segment_ids must have dtype int32"):
        segment_ids_to_cu_seqlens(jnp.zeros(2), 1)
