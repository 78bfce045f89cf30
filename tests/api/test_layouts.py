"""Operands with heads before rows, or pages of the other layout: errors say what they look like."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from jax_fa import (
    append_to_pages,
    flash_attention,
    flash_attention_varlen,
    merge_attention,
    nn,
    paged_attention,
    reference,
)

Z = jnp.zeros
QUERY = r"query must be \(\*B, T, N, H\), and shape \(2, 8, 5, 64\) looks like \(\*B, N, T, H\): "


@pytest.mark.parametrize(
    "attend", [flash_attention, reference.flash_attention, nn.dot_product_attention]
)
def test_heads_before_rows(attend):
    q, k = Z((2, 8, 5, 64)), Z((2, 2, 7, 64))
    text = (
        r"multiple of key's K=7; got N=5; " + QUERY + r"pass jnp.swapaxes\(query, -3, -2\), and key"
    )
    with pytest.raises(ValueError, match=text):
        attend(q, k, k)
    out = attend(*(jnp.swapaxes(x, -3, -2) for x in (q, k, k)))
    assert out.shape == (2, 5, 8, 64)


def test_some_operands_alone():
    q, k = Z((2, 8, 5, 64)), Z((2, 7, 2, 64))
    with pytest.raises(ValueError, match=QUERY + r"pass jnp.swapaxes\(query, -3, -2\)$"):
        flash_attention(q, k, k)
    q, k = jnp.swapaxes(q, 1, 2), jnp.swapaxes(k, 1, 2)
    text = r"key must be \(\*B, S, K, H\), and shape \(2, 2, 7, 64\) looks like \(\*B, K, S, H\)"
    with pytest.raises(ValueError, match=text):
        flash_attention(q, k, k)


def test_heads_that_fit_in_no_order_have_no_hint():
    q, k = Z((2, 5, 5, 64)), Z((2, 7, 3, 64))
    with pytest.raises(ValueError, match=r"multiple of key's K=3; got N=5$"):
        flash_attention(q, k, k)


def test_packed_operands():
    q, k, offsets = Z((8, 5, 64)), Z((2, 7, 64)), Z(2, jnp.int32)
    text = r"query must be \(tq, N, H\), and shape \(8, 5, 64\) looks like \(N, tq, H\)"
    with pytest.raises(ValueError, match=text):
        flash_attention_varlen(q, k, k, cu_seqlens_q=offsets, cu_seqlens_k=offsets)


TABLES = Z((2, 3), jnp.int32), Z(2, jnp.int32)


@pytest.mark.parametrize(("layout", "other"), [("NHD", "HND"), ("HND", "NHD")])
def test_pages_of_the_other_layout(layout, other):
    shape = (9, 2, 16, 64) if layout == "NHD" else (9, 16, 2, 64)
    pages, new = Z(shape), Z((2, 1, 2, 64))
    text = rf'pages of shape .* look like layout="{other}"$'
    with pytest.raises(ValueError, match=text):
        paged_attention(Z((2, 1, 8, 64)), pages, pages, *TABLES, layout=layout)
    with pytest.raises(ValueError, match=text):
        append_to_pages(pages, pages, new, new, *TABLES, layout=layout)
    append_to_pages(pages, pages, new, new, *TABLES, layout=other)


def test_queries_and_new_keys_with_heads_before_rows():
    pages = Z((9, 16, 2, 64))
    with pytest.raises(
        ValueError, match=r"query must be \(B, T, N, H\), and shape \(2, 8, 1, 64\)"
    ):
        paged_attention(Z((2, 8, 1, 64)), pages, pages, *TABLES)
    new = Z((2, 2, 1, 64))
    with pytest.raises(ValueError, match=r"key must be \(B, T, K, H\), and shape .* looks like"):
        append_to_pages(pages, pages, new, new, *TABLES)


def test_a_log_sum_exp_with_heads_before_rows():
    out, lse = Z((2, 5, 8, 64)), Z((2, 8, 5))
    with pytest.raises(ValueError, match=r"lse_a must have .*pass jnp.swapaxes\(lse_a, -1, -2\)"):
        merge_attention(out, lse, out, lse)
    with pytest.raises(ValueError, match=r"got shape \(2, 5\)$"):
        merge_attention(out, lse[:, 0], out, lse[:, 0])


def test_queries_without_rows():
    q, k = Z((2, 8, 64)), Z((2, 7, 2, 64))
    pages = Z((9, 16, 2, 64))
    for attend, text in (
        (flash_attention, r"key must have 3 .*T = 1, query\[\.\.\., None, :, :\]"),
        (
            nn.dot_product_attention,
            r"query must have shape \(B, T, N, H\).*T = 1, query\[:, None\]",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            attend(q, k, k)
    with pytest.raises(
        ValueError, match=r"query must have shape .*T = 1, query\[:, None\]; packed"
    ):
        paged_attention(q, pages, pages, *TABLES)
