"""What AITER's matrix products share: shuffled weights, comparison."""

from __future__ import annotations

import numpy as np


def shuffle(weights: np.ndarray) -> np.ndarray:
    """[..., N, K] in blocks of 16 rows and 32 bytes of a row, each of 16 rows by 16 bytes by 2
    (shuffle_weight of aiter.ops)."""
    pack = 16 // weights.itemsize
    *_, n, k = weights.shape
    blocks = weights.reshape(-1, n // 16, 16, k // (2 * pack), 2, pack)
    return np.ascontiguousarray(blocks.transpose(0, 1, 3, 4, 2, 5)).reshape(weights.shape)
