"""Shape and dtype rules: pure functions of shapes and dtypes, to result types or an error.

Legend: *B leading batch dimensions, T query length, S key length, N query heads, K key/value heads,
H head size, Hv value head size.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Struct = jax.ShapeDtypeStruct

_DTYPES = ("bfloat16", "float16", "float32", "float64")


def dense_attention(
    query: Any, key: Any, value: Any, query_lengths: Any = None, key_lengths: Any = None
) -> tuple[Struct, Struct]:
    """(out [*B, T, N, Hv], lse float32 [*B, T, N]) of dense operands.

    Raises:
      ValueError: a shape is wrong. The text names the argument, what it must be, what it was.
      TypeError: a dtype is wrong, likewise.
    """
    require_float("query", query)
    if query.ndim < 3:
        raise ValueError(
            f"query must have shape (*B, T, N, H), at least 3 dimensions; got {_show(query)}"
        )
    *batch, t, n, h = query.shape
    for name, operand in (("key", key), ("value", value)):
        require_same_dtype(name, operand, query)
        if operand.ndim != query.ndim:
            raise ValueError(
                f"{name} must have {query.ndim} dimensions like query {_show(query)}; "
                f"got {_show(operand)}"
            )
        if list(operand.shape[:-3]) != batch:
            raise ValueError(
                f"{name} must have the leading dimensions {tuple(batch)} of query; "
                f"got {_show(operand)}"
            )
    s, k = key.shape[-3:-1]
    if key.shape[-1] != h:
        raise ValueError(
            f"key must have shape (*B, S, K, H) with H={h} as in query; got {_show(key)}"
        )
    if value.shape[-3:-1] != (s, k):
        raise ValueError(
            f"value must have shape (*B, S, K, Hv) with S={s} and K={k} as in key; "
            f"got {_show(value)}"
        )
    require_grouped_heads(n, k)
    require_head_sizes(h, value.shape[-1])
    for name, lengths in (("query_lengths", query_lengths), ("key_lengths", key_lengths)):
        if lengths is not None:
            require_int32(name, lengths)
            if list(lengths.shape) != batch:
                raise ValueError(
                    f"{name} must have shape (*B) = {tuple(batch)}; got {_show(lengths)}"
                )
    return (
        Struct((*batch, t, n, value.shape[-1]), query.dtype),
        Struct((*batch, t, n), lse_dtype(query.dtype)),
    )


def merge_attention(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> tuple[Struct, Struct]:
    """(out [..., N, Hv], lse [..., N]) of two parts."""
    require_float("out_a", out_a)
    require_same_dtype("out_b", out_b, out_a, like="out_a")
    if out_a.ndim < 1:
        raise ValueError(f"out_a must have shape (..., Hv); got {_show(out_a)}")
    _require_shape("out_b", out_b, out_a.shape, "the shape of out_a")
    for name, lse in (("lse_a", lse_a), ("lse_b", lse_b)):
        if lse.dtype not in (jnp.float32, jnp.float64):
            raise TypeError(f"{name} must have dtype float32; got {lse.dtype}")
        _require_shape(name, lse, out_a.shape[:-1], "the shape of out_a without its last dimension")
    return Struct(out_a.shape, out_a.dtype), Struct(lse_a.shape, lse_a.dtype)


def lse_dtype(dtype: Any) -> Any:
    """float32, but float64 for float64 operands."""
    return jnp.promote_types(dtype, jnp.float32)


def require_float(name: str, operand: Any) -> None:
    """Raises TypeError unless `operand` has one of the floating-point types served."""
    if str(operand.dtype) not in _DTYPES:
        raise TypeError(
            f"{name} must have one of the dtypes {', '.join(_DTYPES)}; got {operand.dtype}"
        )


def require_same_dtype(name: str, operand: Any, other: Any, like: str = "query") -> None:
    """Raises TypeError unless the dtypes agree."""
    if operand.dtype != other.dtype:
        raise TypeError(f"{name} must have the dtype {other.dtype} of {like}; got {operand.dtype}")


def require_int32(name: str, operand: Any) -> None:
    """Raises TypeError unless `operand` is int32."""
    if operand.dtype != jnp.int32:
        raise TypeError(f"{name} must have dtype int32; got {operand.dtype}")


def require_grouped_heads(n: int, k: int) -> None:
    """Raises ValueError unless N is a multiple of K."""
    if (k == 0 and n != 0) or (k != 0 and n % k != 0):
        raise ValueError(
            f"query must have a number of heads N that is a multiple of key's K={k}; got N={n}"
        )


def require_head_sizes(h: int, hv: int) -> None:
    """Raises ValueError when a head is empty."""
    if h < 1:
        raise ValueError(f"query must have a head size H >= 1; got {h}")
    if hv < 1:
        raise ValueError(f"value must have a head size Hv >= 1; got {hv}")


def _require_shape(name: str, operand: Any, shape: Any, what: str) -> None:
    if tuple(operand.shape) != tuple(shape):
        raise ValueError(f"{name} must have {what}, {tuple(shape)}; got {_show(operand)}")


def _show(operand: Any) -> str:
    return f"shape {tuple(operand.shape)}"


def as_array(name: str, operand: Any) -> jax.Array:
    """`operand` as a JAX array, or a TypeError that names it."""
    if not isinstance(operand, (jax.Array, np.ndarray)) and not hasattr(operand, "__jax_array__"):
        raise TypeError(f"{name} must be an array; got {type(operand).__name__}")
    return jnp.asarray(operand)


def as_lengths(name: str, operand: Any) -> jax.Array | None:
    """`operand` as an int32 JAX array, or a TypeError; None stays None.

    The dtype is looked at before JAX would narrow a NumPy int64.
    """
    if operand is None:
        return None
    if hasattr(operand, "dtype"):
        require_int32(name, operand)
    return as_array(name, operand)
