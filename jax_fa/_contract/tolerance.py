"""How far an implementation may be from the reference: the one place that says so.

Absolute tolerances for unit-normal inputs. The output is a weighted mean of the values, so its
tolerance grows with them. The kernels sum weights that are already rounded to the operand type,
which is what their lse tolerance allows for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_OUT = {"float64": 2e-5, "float32": 2e-5, "float16": 4e-3, "bfloat16": 2.5e-2}
_LSE_XLA = 1e-5
_LSE_KERNEL = {"float16": 1e-3, "bfloat16": 4e-3}


def out_tolerance(value: Any) -> float:
    """Absolute tolerance of out, from the values [..., S, K, Hv] and their dtype."""
    finite = np.asarray(value, np.float32)
    largest = np.max(np.abs(finite), where=np.isfinite(finite), initial=0.0)
    return _OUT[str(value.dtype)] * max(1.0, float(largest) / 6)


def lse_tolerance(lse: Any, dtype: Any, implementation: str) -> np.ndarray:
    """Absolute tolerance of each lse, from the reference's lse and the operands' dtype.

    implementation: "xla" or the name of a kernel target.
    """
    finite = np.nan_to_num(np.asarray(lse, np.float32), neginf=0.0, posinf=0.0)
    base = _LSE_XLA if implementation == "xla" else _LSE_KERNEL[str(np.dtype(dtype))]
    return base + 1e-6 * np.abs(finite)
