"""Hints for errors of shape: the order of dimensions that operands look as if they had.

Other libraries have heads before rows, or pages in another layout. A hint is a text to end an error
with, empty where the operands do not look like that either.
"""

from __future__ import annotations

from typing import Any


def rows_and_heads(query: Any, key: Any, rows: str, keys: str) -> str:
    """For an N that is no multiple of K.

    rows, keys: the dimensions that query and key must have, as "(*B, T, N, H)".
    """
    (t, n), (s, k) = query.shape[-3:-1], key.shape[-3:-1]
    if _grouped(t, s):
        return _swapped("query", query, rows) + ", and key and value likewise"
    if _grouped(n, s):
        return _swapped("key", key, keys) + ", and value likewise"
    return _swapped("query", query, rows) if _grouped(t, k) else ""


def query_or_pages(query: Any, k_pages: Any, heads_first: bool, rows: str) -> str:
    """The same of pages, [P, K, page, H] with heads_first."""
    t, n = query.shape[-3:-1]
    k, page_size = k_pages.shape[1:3] if heads_first else k_pages.shape[2:0:-1]
    if _grouped(n, page_size):
        return _other_layout(k_pages, heads_first)
    return _swapped("query", query, rows) if _grouped(t, k) else ""


def new_keys(name: str, new: Any, pages: Any, heads_first: bool) -> str:
    """For keys or values (B, T, K, H) that do not fit the pages that they are written into."""
    k, page_size = pages.shape[1:3] if heads_first else pages.shape[2:0:-1]
    if new.shape[-1] != pages.shape[-1]:
        return ""
    if new.shape[2] == page_size:
        return _other_layout(pages, heads_first)
    return _swapped(name, new, "(B, T, K, H)") if new.shape[1] == k else ""


def lse(name: str, found: Any, wanted: tuple[int, ...]) -> str:
    """For a log-sum-exp that is not of its output's shape (..., T, N)."""
    *lead, t, n = found.shape if found.ndim > 1 else (0, 0, 0)
    if (*lead, n, t) != tuple(wanted):
        return ""
    return f"; it looks like (..., N, T): pass jnp.swapaxes({name}, -1, -2)"


def _swapped(name: str, operand: Any, letters: str) -> str:
    *lead, rows, heads, size = letters.strip("()").split(", ")
    looks = ", ".join((*lead, heads, rows, size))
    return (
        f"; {name} must be {letters}, and shape {tuple(operand.shape)} looks like ({looks}): "
        f"pass jnp.swapaxes({name}, -3, -2)"
    )


def _other_layout(pages: Any, heads_first: bool) -> str:
    other = "NHD" if heads_first else "HND"
    return f'; pages of shape {tuple(pages.shape)} look like layout="{other}"'


def _grouped(n: int, k: int) -> bool:
    return n > 0 and k > 0 and n % k == 0
