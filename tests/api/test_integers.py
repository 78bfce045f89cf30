"""Integer operands: one rule in every operation. Known numbers that fit are taken, no others."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract_cases import values

from jax_fa import (
    append_to_pages,
    cu_seqlens_to_segment_ids,
    flash_attention,
    flash_attention_varlen,
    nn,
    paged_attention,
    reference,
    segment_ids_to_cu_seqlens,
)

X = jnp.asarray(values(0, 2, 4, 2, 16))
PAGES = jnp.asarray(values(1, 5, 4, 2, 16))
FLAT = X.reshape(8, 2, 16)


def _lengths(attend, q, k):
    def call(query_lengths, key_lengths):
        return attend(X, X, X, **{q: query_lengths, k: key_lengths})

    return call, {q: [3, 4], k: [4, 2]}


def _segments(attend):
    def call(query_segment_ids, key_segment_ids):
        ids = {"query_segment_ids": query_segment_ids, "key_segment_ids": key_segment_ids}
        return attend(X, X, X, **ids)

    ids = [[0, 0, 1, -1], [0, 1, 1, 2]]
    return call, {"query_segment_ids": ids, "key_segment_ids": ids}


def _varlen(attend):
    def call(cu_seqlens_q, cu_seqlens_k):
        return attend(FLAT, FLAT, FLAT, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k)

    return call, {"cu_seqlens_q": [0, 3, 8], "cu_seqlens_k": [0, 5, 7]}


def _paged(attend):
    def call(block_tables, key_lengths, query_lengths):
        return attend(X, PAGES, PAGES, block_tables, key_lengths, query_lengths=query_lengths)

    return call, {"block_tables": [[1, 2], [0, 4]], "key_lengths": [5, 8], "query_lengths": [4, 3]}


def _packed(attend):
    def call(block_tables, key_lengths, cu_seqlens_q):
        return attend(FLAT, PAGES, PAGES, block_tables, key_lengths, cu_seqlens_q=cu_seqlens_q)

    return call, {
        "block_tables": [[1, 2], [0, 4]],
        "key_lengths": [5, 8],
        "cu_seqlens_q": [0, 3, 8],
    }


def _append():
    def call(block_tables, key_lengths, new_lengths):
        pages = PAGES, PAGES, X, X
        return append_to_pages(*pages, block_tables, key_lengths, new_lengths=new_lengths)

    return call, {"block_tables": [[1, 2], [0, 4]], "key_lengths": [3, 1], "new_lengths": [4, 3]}


CASES: dict[str, Any] = {
    "lengths": _lengths(flash_attention, "query_lengths", "key_lengths"),
    "segments": _segments(flash_attention),
    "nn": _lengths(nn.dot_product_attention, "query_seq_lengths", "key_value_seq_lengths"),
    "varlen": _varlen(flash_attention_varlen),
    "paged": _paged(paged_attention),
    "packed": _packed(paged_attention),
    "append": _append(),
    "cu_seqlens": (lambda x: cu_seqlens_to_segment_ids(x, 8), {"cu_seqlens": [0, 3, 5]}),
    "segment_ids": (lambda x: segment_ids_to_cu_seqlens(x, 3), {"segment_ids": [0, 0, 2, -1]}),
    "reference, lengths": _lengths(reference.flash_attention, "query_lengths", "key_lengths"),
    "reference, segments": _segments(reference.flash_attention),
    "reference, varlen": _varlen(reference.flash_attention_varlen),
    "reference, paged": _paged(reference.paged_attention),
}


@pytest.mark.parametrize("name", CASES)
def test_known_numbers_are_taken(name):
    call, operands = CASES[name]
    expected = jax.tree.leaves(call(*(jnp.asarray(x, jnp.int32) for x in operands.values())))
    forms = {
        "lists": lambda x: x,
        "tuples": tuple,
        "int64": lambda x: np.asarray(x, np.int64),
        "int8": lambda x: np.asarray(x, np.int8),
        "a list of arrays": lambda x: [jnp.int32(y) if np.ndim(y) == 0 else y for y in x],
    }
    for form, of in forms.items():
        found = jax.tree.leaves(call(*map(of, operands.values())))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=form)


@pytest.mark.parametrize(
    ("name", "position"), [(n, i) for n in CASES for i in range(len(CASES[n][1]))]
)
def test_others_are_refused(name, position):
    call, operands = CASES[name]
    argument = list(operands)[position]

    def with_(change):
        changed = list(operands.values())
        changed[position] = change(changed[position])
        return call(*changed)

    def large(x):
        x = np.array(x, np.int64)
        x.reshape(-1)[0] = 2**32 + 3
        return x

    for of in (large, lambda x: large(x).tolist()):
        with pytest.raises(
            ValueError, match=f"{argument} must have numbers that fit int32; got .*4294967299"
        ):
            with_(of)
    for of, text in (
        (lambda x: np.asarray(x, np.float32), "dtype int32; got float32"),
        (lambda x: np.asarray(x) > 0, "dtype int32; got bool"),
        (lambda x: (np.asarray(x) > 0).tolist(), "int32, or a list of integers"),
        (lambda x: [0.5 for _ in x], "int32, or a list of integers"),
        (lambda x: [*x, [0, [0]]], "int32, or a list of integers"),
        (lambda x: 3, "an array; got int"),
        (lambda x: jnp.asarray(x, jnp.int16), "dtype int32; got int16"),
    ):
        with pytest.raises(TypeError, match=f"{argument} must .*{text}"):
            with_(of)


def test_traced_int64_is_refused():
    """Its numbers are not known, and narrowing would wrap them."""
    with jax.enable_x64(True):
        for name in ("lengths", "nn", "varlen", "paged", "append"):
            call, operands = CASES[name]
            arrays = [jnp.asarray(x, jnp.int64) for x in operands.values()]
            with pytest.raises(TypeError, match="must have dtype int32; got int64"):
                jax.jit(call)(*arrays)


@pytest.mark.parametrize("numbers", [[2**70, 1], [-(2**31) - 1, 0], [2**31, 0]], ids=str)
def test_numbers_past_int32(numbers):
    with pytest.raises(ValueError, match="key_lengths must have numbers that fit int32; got"):
        flash_attention(X, X, X, key_lengths=numbers)


def test_an_empty_list():
    x = X[:0]
    assert flash_attention(x, x, x, key_lengths=[]).shape == x.shape
