"""Which implementation serves a call, and the choices that shape its buffers.

All are static functions of shapes, dtypes and the target, made at trace or lowering.
"""

from __future__ import annotations

from typing import Any

from jax_fa import _native
from jax_fa._spec import TARGETS

ANY_TARGET = "any"
"""A custom call that serves whichever of our targets the device is."""

MAX_HEAD_DIM = 256
HEAD_DIM_MULTIPLE = 8
_KERNEL_DTYPES = ("bfloat16", "float16")


def choose(implementation: str | None, query: Any, key: Any, value: Any) -> str:
    """One of "xla", a target, or ANY_TARGET (on ROCm; xla elsewhere).

    Raises:
      NotImplementedError: a target is named that has no kernel for these operands.
    """
    if implementation == "xla":
        return "xla"
    missing = _no_kernel_because(query, value)
    if implementation is None:
        return "xla" if missing or not _may_lower_to_our_device() else ANY_TARGET
    if missing:
        raise NotImplementedError(
            f'implementation="{implementation}" {missing}; implementation="xla" serves it'
        )
    if not _native.code_object(implementation):
        raise NotImplementedError(
            f'implementation="{implementation}": this build of jax_fa has no kernels for it'
        )
    return implementation


def _no_kernel_because(query: Any, value: Any) -> str | None:
    if str(query.dtype) not in _KERNEL_DTYPES:
        return f"serves query of dtype {' or '.join(_KERNEL_DTYPES)}; got {query.dtype}"
    head_dim, value_head_dim = query.shape[-1], value.shape[-1]
    if head_dim > MAX_HEAD_DIM:
        return f"serves query with a head size H <= {MAX_HEAD_DIM}; got {head_dim}"
    if value_head_dim != head_dim:
        return f"serves value with the head size H={head_dim} of query; got Hv={value_head_dim}"
    return None


def _may_lower_to_our_device() -> bool:
    """False when AMD GPUs are here and one of them is of an architecture without kernels."""
    return all(architecture in TARGETS for architecture in _native.hip_devices())


def padded_head_dim(head_dim: int) -> int:
    """The head size that kernels take: the next multiple of 8."""
    return -(-head_dim // HEAD_DIM_MULTIPLE) * HEAD_DIM_MULTIPLE


def flash_workspace_bytes(num_splits: int) -> int:
    """Workspace of the dense kernels: none, since their keys are not split."""
    del num_splits
    return 0
