"""Which implementation serves a call."""

import jax
import jax.numpy as jnp
import pytest

from jax_fa import _native
from jax_fa._ops import select as _select


def choose(implementation, dtype="bfloat16", h=64, hv=None):
    x = jax.ShapeDtypeStruct((1, 4, 1, h), dtype)
    return _select.choose(implementation, x, x, jax.ShapeDtypeStruct((1, 4, 1, hv or h), dtype))


def test_unnamed():
    assert choose(None) == "any"
    assert choose(None, "float32") == "xla"
    assert choose(None, h=264) == "xla"
    assert choose(None, hv=32) == "xla"
    assert choose("xla") == "xla"


def test_build_without_a_target(monkeypatch):
    monkeypatch.setattr(_native, "code_object", lambda target: b"")
    with pytest.raises(NotImplementedError, match="this build of jax_fa has no kernels"):
        choose("gfx950")


def test_float64_is_named_in_the_refusal():
    with jax.enable_x64(True), pytest.raises(NotImplementedError, match="got float64"):
        choose("gfx950", jnp.float64)


@pytest.mark.parametrize(("h", "expected"), [(1, 8), (8, 8), (20, 24), (250, 256)])
def test_padded_head_dim(h, expected):
    assert _select.padded_head_dim(h) == expected


@pytest.mark.parametrize(
    ("target", "batch", "t", "heads", "s", "expected"),
    [
        ("gfx950", 1, 1, (32, 8), 8192, 32),
        ("gfx1201", 1, 1, (32, 8), 8192, 8),
        ("any", 1, 1, (32, 8), 8192, 32),
        ("gfx950", 1, 1, (32, 8), 1 << 17, 32),
        ("gfx950", 1, 1, (32, 8), 2048, 8),  # no split of fewer than 256 keys
        ("gfx950", 1, 1, (32, 8), 100, 1),
        ("gfx950", 1, 1, (32, 8), 0, 1),
        ("gfx950", 8, 1, (32, 8), 8192, 4),
        ("gfx950", 64, 1, (32, 8), 8192, 1),
        ("gfx950", 1, 16, (32, 8), 8192, 32),
        ("gfx950", 1, 17, (32, 8), 8192, 1),  # rows enough for a kernel of whole tiles
        ("gfx950", 0, 1, (32, 8), 8192, 1),
        ("gfx950", 1, 1, (0, 0), 8192, 1),
    ],
)
def test_splits_keep_the_compute_units_busy(target, batch, t, heads, s, expected):
    n, k = heads
    assert _select.dense_splits(target, (batch, t, n, 128), (batch, s, k, 128)) == expected
    assert _select.paged_splits(target, (batch, t, n, 128), k, batch, s) == expected
    assert _select.paged_splits(target, (batch * t, n, 128), k, batch, s) == expected
    packed = (batch * t, n, 128), (batch * s, k, 128)
    assert _select.varlen_splits(target, *packed, batch, None) == expected


def test_a_hint_is_the_longest_sequence():
    shapes = (4, 32, 128), (10_000, 8, 128)
    assert _select.varlen_splits("gfx950", *shapes, 4, None) == 8
    assert _select.varlen_splits("gfx950", *shapes, 4, 512) == 2
    assert _select.varlen_splits("gfx950", *shapes, 4, 1 << 20) == 8


def test_splits_that_no_key_would_be_in_take_no_workspace():
    assert _select.useful_splits(None, 64) is None
    assert _select.useful_splits(7, 8192) == 7
    assert [_select.useful_splits(2**63, keys) for keys in (0, 1, 16, 17)] == [1, 1, 1, 2]


def test_workspace_holds_out_and_lse_of_every_split():
    assert _select.workspace_bytes(1, (2, 3, 4, 128)) == 0
    assert _select.workspace_bytes(5, (2, 3, 4, 20)) == 5 * 2 * 3 * 4 * (24 + 1) * 4


def test_pages_are_never_padded():
    x = jax.ShapeDtypeStruct((1, 4, 1, 60), "bfloat16")
    assert _select.choose("gfx950", x, x, x) == "gfx950"
    assert _select.choose(None, x, x, x, paged=True) == "xla"
    with pytest.raises(NotImplementedError, match="pages with H a multiple of 8; got 60"):
        _select.choose("gfx950", x, x, x, paged=True)
