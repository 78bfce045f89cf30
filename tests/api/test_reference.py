"""The oracle against rows worked out one at a time in NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest
from cases import DENSE, Case
from sweeps import swept
from tolerance import expect

from jax_fa import reference

SMALL = [case for case in DENSE if case.t * case.s <= 12000 and case.batch]


@pytest.mark.parametrize("case", swept(SMALL, SMALL[::3]), ids=str)
def test_rows_one_at_a_time(case):
    q, k, v = (np.asarray(x, np.float64) for x in case.operands("float32"))
    keywords = case.keywords()
    out, lse = expect(*(jnp.asarray(x, jnp.float32) for x in (q, k, v)), **keywords)
    batch = int(np.prod(case.batch))
    q, k, v = (x.reshape(batch, *x.shape[-3:]) for x in (q, k, v))
    out, lse = (np.asarray(x).reshape(batch, *x.shape[len(case.batch) :]) for x in (out, lse))
    scale = keywords.get("scale", 1 / np.sqrt(case.h))
    cap = keywords.get("logits_soft_cap") or 0
    left, right = keywords.get("window", (None, None))
    if keywords.get("causal"):
        right = 0
    t_b = case.query_lengths or [case.t] * batch
    s_b = case.key_lengths or [case.s] * batch
    rng = np.random.default_rng(0)
    rows = [(b, t, n) for b in range(batch) for t in range(case.t) for n in range(case.n)]
    for i in rng.permutation(len(rows))[:60]:
        b, t, n = rows[i]
        middle = t + s_b[b] - t_b[b]
        seen = [
            s
            for s in range(s_b[b])
            if t < t_b[b]
            and (left is None or s >= middle - left)
            and (right is None or s <= middle + right)
        ]
        if not seen:
            np.testing.assert_array_equal(out[b, t, n], 0)
            assert np.isneginf(lse[b, t, n])
            continue
        head = n // (case.n // case.k)
        logits = k[b, seen, head] @ q[b, t, n] * scale
        if cap:
            logits = cap * np.tanh(logits / cap)
        weights = np.exp(logits - logits.max())
        np.testing.assert_allclose(
            out[b, t, n], weights @ v[b, seen, head] / weights.sum(), atol=2e-5
        )
        expected = logits.max() + np.log(weights.sum())
        np.testing.assert_allclose(lse[b, t, n], expected, atol=1e-5, rtol=1e-6)


def test_top_left_diagonal():
    q, k, v = Case("", t=4, s=9, n=1).operands("float32")
    top_left = reference.flash_attention(q, k, v, causal=True, top_left=True)
    for t in range(4):
        row = reference.flash_attention(q[:, t : t + 1], k[:, : t + 1], v[:, : t + 1])
        np.testing.assert_allclose(top_left[:, t : t + 1], row, atol=1e-6)
