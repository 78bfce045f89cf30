"""Shape and dtype rules alone, and the static options: what is accepted and what errors say."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_fa import flash_attention, merge_attention
from jax_fa._contract import shapes as _shapes
from jax_fa._contract.spec import AttentionSpec

S = jax.ShapeDtypeStruct


def dense(query=(2, 5, 4, 64), key=(2, 7, 2, 64), value=None, dtype="bfloat16", **lengths):
    value = key if value is None else value
    return _shapes.dense_attention(S(query, dtype), S(key, dtype), S(value, dtype), **lengths)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (0,)])
def test_dense_results(batch, dtype):
    out, lse = dense((*batch, 5, 6, 8), (*batch, 7, 3, 8), (*batch, 7, 3, 16), dtype)
    assert (out.shape, out.dtype) == ((*batch, 5, 6, 16), dtype)
    assert (lse.shape, lse.dtype) == ((*batch, 5, 6), jnp.float32)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"query": (4, 64)}, ValueError, r"query must have shape \(\*B, T, N, H\).*got.*\(4, 64\)"),
        ({"key": (7, 2, 64)}, ValueError, r"key must have 4 dimensions.*got shape \(7, 2, 64\)"),
        ({"key": (3, 7, 2, 64)}, ValueError, r"key must have the leading dimensions \(2,\)"),
        ({"key": (2, 7, 2, 96)}, ValueError, r"key must have .*H=64.*got shape \(2, 7, 2, 96\)"),
        ({"value": (2, 8, 2, 64)}, ValueError, r"value must have .*S=7 and K=2.*\(2, 8, 2, 64\)"),
        ({"value": (2, 7, 1, 64)}, ValueError, r"value must have .*S=7 and K=2"),
        ({"key": (2, 7, 3, 64)}, ValueError, r"multiple of key's K=3; got N=4"),
        ({"key": (2, 7, 0, 64)}, ValueError, r"multiple of key's K=0; got N=4"),
        ({"dtype": "int8"}, TypeError, r"query must have one of the dtypes .*; got int8"),
        (
            {"query": (2, 5, 4, 0), "key": (2, 7, 2, 0)},
            ValueError,
            r"query must have a head size H >= 1; got 0",
        ),
        ({"value": (2, 7, 2, 0)}, ValueError, r"value must have a head size Hv >= 1; got 0"),
        ({"key_lengths": S((2,), "float32")}, TypeError, r"key_lengths must have dtype int32"),
        ({"key_lengths": S((3,), "int32")}, ValueError, r"key_lengths .*\(2,\); got shape \(3,\)"),
        ({"query_lengths": S((2, 1), "int32")}, ValueError, r"query_lengths must have shape"),
        ({"query_lengths": S((2,), "uint32")}, TypeError, r"query_lengths .* int32; got uint32"),
    ],
)
def test_dense_errors_name_the_argument(change, error, text):
    with pytest.raises(error, match=text):
        dense(**change)


@pytest.mark.parametrize("name", ["key", "value"])
def test_dtypes_must_agree(name):
    operands: dict[str, Any] = {
        n: jnp.zeros((1, 4, 1, 8), "bfloat16") for n in ("query", "key", "value")
    }
    operands[name] = operands[name].astype("float16")
    with pytest.raises(TypeError, match=f"{name} must have the dtype bfloat16 of query; got flo"):
        flash_attention(**operands)


@pytest.mark.parametrize("name", ["query", "key", "value", "query_lengths", "key_lengths"])
def test_operands_must_be_arrays(name):
    operands: dict[str, Any] = {n: jnp.zeros((1, 4, 1, 8)) for n in ("query", "key", "value")}
    operands[name] = [1.0]
    with pytest.raises(TypeError, match=f"{name} must be an array( of int32, or a list.*)?; got"):
        flash_attention(**operands)


@pytest.mark.parametrize("array", [np.array("text"), np.array(None), np.array(0, "M8[s]")], ids=str)
def test_operands_must_be_numbers(array):
    x = jnp.zeros((1, 4, 1, 8))
    with pytest.raises(TypeError, match="key must be an array of numbers; got dtype"):
        flash_attention(x, array, x)


@pytest.mark.parametrize("name", ["query_lengths", "key_lengths"])
@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_lengths_of_another_dtype_are_not_converted(name, dtype):
    x = jnp.zeros((1, 4, 1, 8))
    lengths: dict[str, Any] = {name: np.ones(1, dtype)}
    with pytest.raises(TypeError, match=f"{name} must have dtype int32; got {dtype}"):
        flash_attention(x, x, x, **lengths)


def test_return_lse_is_a_bool():
    x = jnp.zeros((1, 4, 1, 8))
    number: Any = 1
    with pytest.raises(TypeError, match="return_lse must be a bool; got 1 of type int"):
        flash_attention(x, x, x, return_lse=number)


def test_numpy_operands_are_taken():
    x = np.ones((1, 4, 1, 8), np.float32)
    np.testing.assert_allclose(flash_attention(x, x, x), x)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"window": (-1, 0)}, ValueError, "window left must be >= 0 or None; got -1; an open side"),
        ({"window": (0, -2)}, ValueError, "window right must be >= 0 or None; got -2$"),
        ({"window": 3}, TypeError, r"window must be a pair \(left, right\).*got 3"),
        ({"window": (1, 2, 3)}, TypeError, "window must be a pair"),
        ({"window": (True, 1)}, TypeError, "window left must be an integer or None; got True"),
        ({"window": (1.0, 1)}, TypeError, "window left must be an integer or None; got 1.0"),
        ({"causal": 1}, TypeError, "causal must be a bool; got 1 of type int"),
        ({"scale": "1"}, TypeError, "scale must be a number; got '1' of type str"),
        ({"scale": True}, TypeError, "scale must be a number; got True"),
        ({"scale": float("nan")}, ValueError, "scale must be finite in float32; got nan"),
        ({"scale": 1e300}, ValueError, "scale must be finite in float32"),
        ({"scale": 10**400}, ValueError, "scale must be finite in float32"),
        ({"logits_soft_cap": 1e-46}, ValueError, "logits_soft_cap must not vanish in float32"),
        ({"logits_soft_cap": -1.0}, ValueError, "logits_soft_cap must be None, 0 .*; got -1.0"),
        ({"implementation": "cuda"}, ValueError, "implementation must be None or one of 'xla', "),
        ({"implementation": ["xla"]}, ValueError, r"implementation must be .*; got \['xla'\]"),
        ({"num_splits": 0}, ValueError, "num_splits must be >= 1"),
    ],
)
def test_option_errors_name_the_argument(options, error, text):
    with pytest.raises(error, match=text):
        AttentionSpec.make(head_dim=64, **options)


@pytest.mark.parametrize("name", ["scale", "logits_soft_cap", "causal", "window"])
@pytest.mark.parametrize("traced", [True, False])
def test_static_options_are_python_values(name, traced):
    x = jnp.ones((1, 4, 1, 8))

    def attend(value):
        return flash_attention(x, x, x, **{name: value})

    with pytest.raises(TypeError, match=f"{name} must be a Python value.*; got a"):
        (jax.jit(attend) if traced else attend)(jnp.float32(1))
    if traced and name == "scale":
        with pytest.raises(TypeError, match="multiply the query by it"):
            jax.jit(attend)(jnp.float32(1))


def test_options_in_one_form():
    make = AttentionSpec.make
    assert make(head_dim=64).scale == 0.125
    assert make(head_dim=64, causal=True) == make(head_dim=64, window=(None, 0))
    assert make(head_dim=64, causal=True, window=(3, 9)) == make(head_dim=64, window=(3, 0))
    assert make(head_dim=64, window=(0, 0)).window_left == 0
    assert make(head_dim=64, logits_soft_cap=0) == make(head_dim=64)
    half: Any = np.float32(0.5)
    assert make(head_dim=64, scale=half).scale == 0.5
    assert hash(make(head_dim=64)) == hash(make(head_dim=64))


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "error"),
    [
        ("out_b", (2, 3, 9), "float32", ValueError),
        ("out_b", (2, 3, 8), "int32", TypeError),
        ("out_a", (2, 3, 8), "float16", TypeError),
        ("lse_a", (2, 3, 8), "float32", ValueError),
        ("lse_a", (2, 3), "bfloat16", TypeError),
        ("lse_b", (3, 2), "float32", ValueError),
    ],
)
def test_merge_errors_name_the_argument(name, shape, dtype, error):
    operands = {n: jnp.zeros((2, 3, 8)) for n in ("out_a", "out_b")}
    operands |= {n: jnp.zeros((2, 3)) for n in ("lse_a", "lse_b")}
    with pytest.raises(error, match="out_b" if name == "out_a" else name):
        merge_attention(**(operands | {name: jnp.zeros(shape, dtype)}))
