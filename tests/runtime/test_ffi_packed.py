"""The handlers of packed and paged attention called directly: wrong operands are refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

B, T, N, K, H = 2, 3, 4, 2, 64
TQ, TK = 6, 10
P, PAGE, M = 5, 16, 3
F16, F32, I32, U8 = jnp.bfloat16, jnp.float32, jnp.int32, jnp.uint8

CALLS = {
    "jax_fa_varlen": (
        {
            "query": ((TQ, N, H), F16),
            "key": ((TK, K, H), F16),
            "value": ((TK, K, H), F16),
            "cu_seqlens_q": ((B + 1,), I32),
            "cu_seqlens_k": ((B + 1,), I32),
            "num_sequences": ((0,), I32),
        },
        {"out": ((TQ, N, H), F16), "lse": ((TQ, N), F32), "workspace": ((0,), U8)},
        {"grid_sequences": np.int64(B)},
    ),
    "jax_fa_paged": (
        {
            "query": ((B, T, N, H), F16),
            "k_pages": ((P, PAGE, K, H), F16),
            "v_pages": ((P, PAGE, K, H), F16),
            "block_tables": ((B, M), I32),
            "key_lengths": ((B,), I32),
            "query_lengths": ((0,), I32),
            "cu_seqlens_q": ((0,), I32),
        },
        {"out": ((B, T, N, H), F16), "lse": ((B, T, N), F32), "workspace": ((0,), U8)},
        {"hnd": False},
    ),
}
ATTRIBUTES = {
    "target": "gfx950",
    "scale": np.float32(0.125),
    "soft_cap": np.float32(0),
    "window_left": np.int64(-1),
    "window_right": np.int64(-1),
    "top_left": False,
    "num_splits": np.int64(1),
}


def call(name, **changes):
    """The custom call on zeros with some operands, results or attributes changed."""
    groups = (*CALLS[name][:2], {**ATTRIBUTES, **CALLS[name][2]})
    operands, results, attributes = (
        {key: changes.pop(key, default) for key, default in group.items()} for group in groups
    )
    assert not changes, changes
    attend = jax.ffi.ffi_call(name, [jax.ShapeDtypeStruct(*x) for x in results.values()])
    arrays = [jnp.zeros(*operand) for operand in operands.values()]
    return jax.block_until_ready(jax.jit(functools.partial(attend, **attributes))(*arrays))


# Zeros of offsets and of lengths: no row sees a key.
@pytest.mark.parametrize("changes", [{}, {"num_splits": np.int64(3)}], ids=str)
@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
@pytest.mark.parametrize("name", CALLS)
def test_right_operands_run(name, target, changes):
    rows = B * T * N if name == "jax_fa_paged" else TQ * N
    for splits in (0, 2, 3):  # as many as the workspace holds are run, however many are asked for
        workspace = ((splits * rows * (H + 1) * 4,), U8)
        out, lse, _ = call(name, target=target, workspace=workspace, **changes)
        np.testing.assert_array_equal(np.asarray(out, np.float32), 0)
        np.testing.assert_array_equal(lse, -np.inf)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("jax_fa_varlen", {"key": ((0, K, H), F16), "value": ((0, K, H), F16)}),
        (
            "jax_fa_varlen",
            {
                **dict.fromkeys(("cu_seqlens_q", "cu_seqlens_k"), ((1,), I32)),
                "grid_sequences": np.int64(0),
            },
        ),
        ("jax_fa_varlen", {"num_sequences": ((1,), I32), "grid_sequences": np.int64(0)}),
        ("jax_fa_paged", {"k_pages": ((0, PAGE, K, H), F16), "v_pages": ((0, PAGE, K, H), F16)}),
        ("jax_fa_paged", {"block_tables": ((B, 0), I32)}),
        (
            "jax_fa_paged",
            {"hnd": True, **dict.fromkeys(("k_pages", "v_pages"), ((P, 2, 9, H), F16))},
        ),
    ],
    ids=str,
)
def test_nothing_to_see(name, changes):
    out, lse, _ = call(name, **changes)
    np.testing.assert_array_equal(np.asarray(out, np.float32), 0)
    np.testing.assert_array_equal(lse, -np.inf)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("jax_fa_varlen", {"query": ((TQ, N, H), F32)}, r"query must be bf16 or f16; got f32"),
        ("jax_fa_varlen", {"query": ((1, TQ, N, H), F16)}, r"query must be \[tq, N, H\]; got"),
        ("jax_fa_varlen", {"key": ((TK, K, H + 8), F16)}, r"key must be \[tk, K, H\] = .* got"),
        ("jax_fa_varlen", {"value": ((TK + 1, K, H), F16)}, r"value must be \[tk, K, H\] = .* got"),
        ("jax_fa_varlen", {"cu_seqlens_q": ((0,), I32)}, r"cu_seqlens_q must be \[n \+ 1\]; got"),
        (
            "jax_fa_varlen",
            {"cu_seqlens_k": ((B,), I32)},
            r"cu_seqlens_k must be .* \[3\]; got \[2\]",
        ),
        ("jax_fa_varlen", {"cu_seqlens_k": ((B + 1,), U8)}, r"cu_seqlens_k must be i32; got u8"),
        ("jax_fa_varlen", {"num_sequences": ((2,), I32)}, r"num_sequences must be .* got \[2\]"),
        ("jax_fa_varlen", {"grid_sequences": np.int64(3)}, r"grid_sequences must be .*2; got 3"),
        ("jax_fa_varlen", {"grid_sequences": np.int64(-1)}, r"grid_sequences must be .* got -1"),
        ("jax_fa_varlen", {"out": ((TQ, K, H), F16)}, r"out must be \[tq, N, H\] = .* got"),
        (
            "jax_fa_varlen",
            {"lse": ((N, TQ), F32)},
            r"lse must be \[tq, N\] = \[6, 4\]; got \[4, 6\]",
        ),
        ("jax_fa_varlen", {"num_splits": np.int64(0)}, r"num_splits must be 1 or more; got 0"),
        ("jax_fa_paged", {"query": ((TQ, N, H), F16)}, r"query must be \[B, T, N, H\]; got"),
        ("jax_fa_paged", {"cu_seqlens_q": ((B + 1,), I32)}, r"query must be \[tq, N, H\]; got"),
        (
            "jax_fa_paged",
            {"k_pages": ((P, PAGE, K, 72), F16)},
            r"head size of k_pages must .* got 72",
        ),
        ("jax_fa_paged", {"k_pages": ((P, K, H), F16)}, r"k_pages must be \[P, page, K, H\]; got"),
        (
            "jax_fa_paged",
            {"v_pages": ((P, 8, K, H), F16)},
            r"v_pages must be .* got \[5, 8, 2, 64\]",
        ),
        (
            "jax_fa_paged",
            {"k_pages": ((P, 0, K, H), F16)},
            r"page size of k_pages must be 1 or more",
        ),
        ("jax_fa_paged", {"hnd": True}, r"query heads must be a multiple .* got 4 and 16"),
        ("jax_fa_paged", {"block_tables": ((B * M,), I32)}, r"block_tables must be \[B, M\]; got"),
        ("jax_fa_paged", {"block_tables": ((1, M), I32)}, r"block_tables must be .* got \[1, 3\]"),
        ("jax_fa_paged", {"block_tables": ((B, M), U8)}, r"block_tables must be i32; got u8"),
        (
            "jax_fa_paged",
            {"key_lengths": ((0,), I32)},
            r"key_lengths must be \[B\] = \[2\]; got \[0\]",
        ),
        ("jax_fa_paged", {"query_lengths": ((3,), I32)}, r"query_lengths must be .* got \[3\]"),
        (
            "jax_fa_paged",
            {"lse": ((B, N, T), F32)},
            r"lse must be \[B, T, N\] = .* got \[2, 4, 3\]",
        ),
        ("jax_fa_paged", {"soft_cap": np.float32(-1)}, r"soft_cap must be 0 \(none\) or positive"),
    ],
)
def test_wrong_operand(name, changes, message):
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        call(name, **changes)
