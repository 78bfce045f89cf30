"""Shape and dtype rules of packed sequences and of a paged cache, and their options."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_fa import flash_attention_varlen, paged_attention
from jax_fa._contract import shapes as _shapes
from jax_fa._contract.spec import AttentionSpec

S = jax.ShapeDtypeStruct

VARLEN: dict[str, Any] = {
    "query": S((9, 4, 64), "bfloat16"),
    "key": S((11, 2, 64), "bfloat16"),
    "value": S((11, 2, 32), "bfloat16"),
    "cu_seqlens_q": S((4,), "int32"),
    "cu_seqlens_k": S((4,), "int32"),
}
PAGED: dict[str, Any] = {
    "query": S((3, 2, 4, 64), "float16"),
    "k_pages": S((7, 16, 2, 64), "float16"),
    "v_pages": S((7, 16, 2, 32), "float16"),
    "block_tables": S((3, 5), "int32"),
    "key_lengths": S((3,), "int32"),
}
PACKED_QUERY: dict[str, Any] = {"query": S((9, 4, 64), "float16"), "cu_seqlens_q": S((4,), "int32")}


def test_varlen_results():
    out, lse = _shapes.varlen_attention(**VARLEN)
    assert (out.shape, out.dtype) == ((9, 4, 32), "bfloat16")
    assert (lse.shape, lse.dtype) == ((9, 4), jnp.float32)


def test_paged_results():
    out, lse = _shapes.paged_attention(**PAGED)
    assert (out.shape, out.dtype) == ((3, 2, 4, 32), "float16")
    assert (lse.shape, lse.dtype) == ((3, 2, 4), jnp.float32)
    out, lse = _shapes.paged_attention(**(PAGED | PACKED_QUERY))
    assert (out.shape, lse.shape) == ((9, 4, 32), (9, 4))
    pools = {"k_pages": S((7, 2, 16, 64), "float16"), "v_pages": S((7, 2, 16, 32), "float16")}
    out, _ = _shapes.paged_attention(**(PAGED | pools), heads_first=True)
    assert out.shape == (3, 2, 4, 32)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"query": S((1, 9, 4, 64), "bfloat16")}, ValueError, r"query must have .*\(tq, N, H\)"),
        ({"query": S((9, 4, 64), "int32")}, TypeError, "query must have one of the dtypes"),
        ({"query": S((9, 3, 64), "bfloat16")}, ValueError, "multiple of key's K=2; got N=3"),
        ({"query": S((9, 4, 96), "bfloat16")}, ValueError, r"key must have .*\(tk, K, H\).*H=96"),
        ({"key": S((11, 64), "bfloat16")}, ValueError, r"key must have shape \(tk, K, H\); got"),
        ({"key": S((11, 2, 64), "float32")}, TypeError, "key must have the dtype bfloat16"),
        ({"value": S((12, 2, 64), "bfloat16")}, ValueError, "value must have .*tk=11 and K=2"),
        ({"value": S((11, 2, 1, 64), "bfloat16")}, ValueError, r"value must .*\(tk, K, Hv\)"),
        ({"value": S((11, 2, 0), "bfloat16")}, ValueError, "value must have a head size Hv >= 1"),
        ({"cu_seqlens_q": S((0,), "int32")}, ValueError, r"cu_seqlens_q .*\(n \+ 1,\).*\(0,\)"),
        ({"cu_seqlens_q": S((1, 4), "int32")}, ValueError, "cu_seqlens_q must have shape"),
        ({"cu_seqlens_k": S((5,), "int32")}, ValueError, r"cu_seqlens_k .*cu_seqlens_q, \(4,\)"),
        ({"cu_seqlens_k": S((4,), "int64")}, TypeError, "cu_seqlens_k must have dtype int32"),
    ],
)
def test_varlen_errors_name_the_argument(change, error, text):
    with pytest.raises(error, match=text):
        _shapes.varlen_attention(**(VARLEN | change))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"query": S((9, 4, 64), "float16")}, ValueError, r"\(B, T, N, H\).* need cu_seqlens_q"),
        ({"query": S((3, 2, 5, 64), "float16")}, ValueError, "multiple of k_pages's K=2; got N=5"),
        ({"query": S((3, 2, 4, 96), "float16")}, ValueError, "k_pages must .*H=96 of query"),
        ({"query": S((4, 2, 4, 64), "float16")}, ValueError, "block_tables must have .*B=4"),
        ({"k_pages": S((7, 16, 64), "float16")}, ValueError, r"k_pages must .*\(P, page, K, H\)"),
        ({"k_pages": S((7, 0, 2, 64), "float16")}, ValueError, "k_pages must have a page size >="),
        ({"k_pages": S((7, 16, 2, 64), "int8")}, TypeError, "k_pages must have the dtype float16"),
        ({"v_pages": S((8, 16, 2, 64), "float16")}, ValueError, "v_pages must have .* k_pages"),
        ({"v_pages": S((7, 16, 2, 0), "float16")}, ValueError, "value must have a head size Hv"),
        ({"block_tables": S((3,), "int32")}, ValueError, r"block_tables must .*\(B, M\) with B=3"),
        ({"block_tables": S((3, 5), "int64")}, TypeError, "block_tables must have dtype int32"),
        ({"key_lengths": S((3, 1), "int32")}, ValueError, r"key_lengths must have shape \(B,\)"),
        ({"key_lengths": S((3,), "uint32")}, TypeError, "key_lengths must have dtype int32"),
        ({"query_lengths": S((2,), "int32")}, ValueError, r"query_lengths .*\(B,\), \(3,\)"),
        ({"cu_seqlens_q": S((4,), "int32")}, ValueError, r"query must .*\(tq, N, H\) with cu_"),
        (PACKED_QUERY | {"cu_seqlens_q": S((), "int32")}, ValueError, r"cu_seqlens_q .*\(B \+ 1"),
        (PACKED_QUERY | {"cu_seqlens_q": S((3,), "int32")}, ValueError, "block_tables .*B=2"),
        (PACKED_QUERY | {"cu_seqlens_q": S((4,), "int16")}, TypeError, "cu_seqlens_q .* int32"),
        (PACKED_QUERY | {"query_lengths": S((3,), "int32")}, ValueError, "query_lengths must be N"),
    ],
)
def test_paged_errors_name_the_argument(change, error, text):
    with pytest.raises(error, match=text):
        _shapes.paged_attention(**(PAGED | change))


def arrays(structs: dict[str, Any]) -> dict[str, Any]:
    return {name: jnp.zeros(x.shape, x.dtype) for name, x in structs.items()}


@pytest.mark.parametrize(
    ("attend", "structs"), [(flash_attention_varlen, VARLEN), (paged_attention, PAGED)]
)
def test_operands_must_be_arrays_of_their_dtype(attend, structs):
    operands = arrays(structs)
    for name, struct in structs.items():
        with pytest.raises(
            TypeError, match=f"{name} must be an array( of int32, or a list.*)?; got"
        ):
            attend(**(operands | {name: [0.5]}))
        if struct.dtype == jnp.int32:
            wrong = np.zeros(struct.shape, np.float32)
            with pytest.raises(TypeError, match=f"{name} must have dtype int32; got float32"):
                attend(**(operands | {name: wrong}))
    with pytest.raises(TypeError, match="return_lse must be a bool"):
        attend(**operands, return_lse=1)
    for name, struct in structs.items():
        if struct.dtype == jnp.int32:
            operands[name] = np.zeros(struct.shape, np.int32)  # NumPy's own are taken
    assert attend(**operands).shape == (*structs["query"].shape[:-1], 32)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"max_seqlen_q": -1}, ValueError, "max_seqlen_q must be >= 0 or None; got -1"),
        ({"max_seqlen_q": 1.0}, TypeError, "max_seqlen_q must be an integer or None; got 1.0"),
        ({"max_seqlen_q": jnp.int32(3)}, TypeError, "max_seqlen_q must be a Python value.*a hint"),
        ({"layout": "NDH"}, ValueError, 'layout must be "NHD" or "HND"; got \'NDH\''),
        ({"layout": np.array(["NHD"])}, ValueError, "layout must be"),
        ({"layout": None}, ValueError, "layout must be .*; got None"),
        ({"num_splits": 0}, ValueError, "num_splits must be >= 1"),
        ({"num_splits": jnp.int32(1)}, TypeError, "num_splits must be a Python value"),
        ({"implementation": "rocm"}, ValueError, "implementation must be"),
    ],
)
def test_option_errors_name_the_argument(options, error, text):
    with pytest.raises(error, match=text):
        paged_attention(**arrays(PAGED), **options)


def test_hints_of_one_order_of_size_are_one_option():
    make = AttentionSpec.make
    assert make(head_dim=8, max_seqlen_q=65) == make(head_dim=8, max_seqlen_q=128)
    assert [make(head_dim=8, max_seqlen_k=n).max_seqlen_k for n in (0, 1, 2, 3)] == [1, 1, 2, 4]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"query": S((3, 2, 4, 60), "float16"), "k_pages": 60, "v_pages": 60}, "H a multiple of 8"),
        ({"query": S((3, 2, 4, 264), "float16"), "k_pages": 264, "v_pages": 264}, "H <= 256"),
        ({}, "Hv=32"),
    ],
)
@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
def test_named_target_without_a_kernel_says_so(target, change, text):
    change = {
        n: S((7, 16, 2, x), "float16") if isinstance(x, int) else x for n, x in change.items()
    }
    operands = arrays(PAGED | change)
    with pytest.raises(NotImplementedError, match=f'implementation="{target}".*{text}'):
        paged_attention(**operands, implementation=target)
    assert paged_attention(**operands).shape[:3] == (3, 2, 4)  # xla's
