"""Which implementation serves a call."""

import jax
import jax.numpy as jnp
import pytest

from jax_fa import _native, _select


def choose(implementation, dtype="bfloat16", h=64, hv=None):
    x = jax.ShapeDtypeStruct((1, 4, 1, h), dtype)
    return _select.choose(implementation, x, x, jax.ShapeDtypeStruct((1, 4, 1, hv or h), dtype))


def test_unnamed(monkeypatch):
    monkeypatch.setattr(_native, "hip_devices", list)
    assert choose(None) == "any"
    assert choose(None, "float32") == "xla"
    assert choose(None, h=264) == "xla"
    assert choose(None, hv=32) == "xla"
    assert choose("xla") == "xla"


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (["gfx950"], "any"),
        (["gfx1201", "gfx1201"], "any"),
        (["gfx942"], "xla"),
        (["gfx950", "gfx90a"], "xla"),
    ],
)
def test_devices_of_another_architecture_take_xla(monkeypatch, devices, expected):
    monkeypatch.setattr(_native, "hip_devices", lambda: devices)
    assert choose(None) == expected


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
