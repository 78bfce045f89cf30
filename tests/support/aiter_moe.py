"""What AITER's mixtures of experts share: tokens sorted by expert."""

from __future__ import annotations

import numpy as np


def sort(chosen: np.ndarray, weights: np.ndarray, experts: int, block: int):
    """Token and place among its choices, weight, by expert in blocks; the expert of each block."""
    tokens = len(chosen)
    padding = chosen.shape[1] << 24 | tokens
    ids, shares, owners = [], [], []
    for expert in range(experts):
        token, place = np.nonzero(chosen == expert)
        count = -(-len(token) // block) * block
        ids.append(np.full(count, padding, np.int32))
        shares.append(np.zeros(count, np.float32))
        ids[-1][: len(token)] = place << 24 | token
        shares[-1][: len(token)] = weights[token, place]
        owners += [expert] * (count // block)
    return np.concatenate(ids), np.concatenate(shares), np.array(owners, np.int32)
