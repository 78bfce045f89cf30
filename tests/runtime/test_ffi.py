"""The FFI handler called directly: every wrong operand is refused with a message that names it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_fa import _native

B, T, S, N, K, H = 2, 3, 5, 4, 2, 64

OPERANDS = {
    "query": ((B, T, N, H), jnp.bfloat16),
    "key": ((B, S, K, H), jnp.bfloat16),
    "value": ((B, S, K, H), jnp.bfloat16),
    "query_lengths": ((0,), jnp.int32),
    "key_lengths": ((0,), jnp.int32),
}
RESULTS = {
    "out": ((B, T, N, H), jnp.bfloat16),
    "lse": ((B, T, N), jnp.float32),
    "workspace": ((0,), jnp.uint8),
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


def call_raw(attributes, operands=OPERANDS, results=RESULTS, handler="jax_fa_flash"):
    """One jit, as users do."""
    flash = jax.ffi.ffi_call(handler, [jax.ShapeDtypeStruct(*x) for x in results.values()])
    arrays = [jnp.zeros(*operand) for operand in operands.values()]
    return jax.block_until_ready(jax.jit(lambda *args: flash(*args, **attributes))(*arrays))


def call(**changes):
    """The custom call with some operands, results or attributes changed."""
    operands = {name: changes.pop(name, default) for name, default in OPERANDS.items()}
    results = {name: changes.pop(name, default) for name, default in RESULTS.items()}
    attributes = {name: changes.pop(name, default) for name, default in ATTRIBUTES.items()}
    assert not changes, changes
    return call_raw(attributes, operands, results)


def test_handlers_of_both_platforms_and_stages():
    registrations = _native.registrations()
    attention = {"jax_fa_flash", "jax_fa_varlen", "jax_fa_paged"}
    assert set(registrations["ROCM"]) == attention
    assert set(registrations["cpu"]) == attention | {"jax_fa_append"}
    for handlers in registrations.values():
        assert all(set(handlers[name]) == {"initialize", "execute"} for name in attention)


@pytest.mark.parametrize("stages", [("initialize", "execute"), ("execute",)])
def test_a_handler_of_rocm_without_a_stream_is_an_error(stages):
    handlers = _native.registrations()["ROCM"]["jax_fa_flash"]
    name = f"test_{len(stages)}_of_rocm_on_a_cpu"
    chosen = {stage: handlers[stage] for stage in stages}
    jax.ffi.register_ffi_target(name, chosen, platform="cpu", api_version=1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="Failed to get platform stream"):
        call_raw(ATTRIBUTES, handler=name)


def test_right_operands_run():
    out, lse, _ = call()
    np.testing.assert_array_equal(out, 0)
    np.testing.assert_allclose(lse, np.log(S), atol=4e-3)


def test_no_keys():
    shape = (B, 0, K, H)
    out, lse, _ = call(key=(shape, jnp.bfloat16), value=(shape, jnp.bfloat16))
    np.testing.assert_array_equal(out, 0)
    np.testing.assert_array_equal(lse, -np.inf)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": ((B, T, N, H), jnp.float32)}, r"query must be bf16 or f16; got f32"),
        ({"key": ((B, S, K, H), jnp.float16)}, r"key must be bf16; got f16"),
        ({"value": ((B, S, K, H), jnp.int8)}, r"value must be bf16; got i8"),
        (
            {"query": ((B, T, N * H), jnp.bfloat16)},
            r"query must be \[B, T, N, H\]; got \[2, 3, 256\]",
        ),
        ({"key": ((B * S, K, H), jnp.bfloat16)}, r"key must be \[B, S, K, H\]; got \[10, 2, 64\]"),
        (
            {"key": ((B + 1, S, K, H), jnp.bfloat16)},
            r"key must be .*\[2, 5, 2, 64\]; got \[3, 5, 2, 64\]",
        ),
        ({"value": ((B, S + 1, K, H), jnp.bfloat16)}, r"value must be .* got \[2, 6, 2, 64\]"),
        ({"value": ((B, S, K, H // 2), jnp.bfloat16)}, r"value must be .* got \[2, 5, 2, 32\]"),
        ({"query_lengths": ((B,), jnp.uint32)}, r"query_lengths must be i32; got u32"),
        (
            {"query_lengths": ((B + 1,), jnp.int32)},
            r"query_lengths must be \[B\] = \[2\]; got \[3\]",
        ),
        ({"key_lengths": ((B, 1), jnp.int32)}, r"key_lengths must be \[B\] or \[0\]; got \[2, 1\]"),
        ({"key_lengths": ((1,), jnp.int32)}, r"key_lengths must be \[B\] = \[2\]; got \[1\]"),
        ({"out": ((B, T, N, H), jnp.float32)}, r"out must be bf16; got f32"),
        ({"out": ((B, T, K, H), jnp.bfloat16)}, r"out must be .* got \[2, 3, 2, 64\]"),
        (
            {"lse": ((B, N, T), jnp.float32)},
            r"lse must be \[B, T, N\] = \[2, 3, 4\]; got \[2, 4, 3\]",
        ),
        ({"lse": ((B, T, N), jnp.bfloat16)}, r"lse must be f32; got bf16"),
        ({"workspace": ((4,), jnp.float32)}, r"workspace must be u8; got f32"),
        ({"target": "gfx942"}, r"target must be gfx950, gfx1201 or any; got gfx942"),
        ({"target": "any"}, r"lowered for an AMD GPU of any target, and runs on a CPU"),
        ({"scale": np.float32(np.nan)}, r"scale must be finite"),
        ({"soft_cap": np.float32(-1)}, r"soft_cap must be 0 \(none\) or positive"),
        ({"window_left": np.int64(-2)}, r"window_left must be -1 \(open\) or more; got -2"),
        ({"window_right": np.int64(-7)}, r"window_right must be -1 \(open\) or more; got -7"),
        ({"num_splits": np.int64(0)}, r"num_splits must be 1 or more; got 0"),
        ({"scale": np.float64(1)}, r"attribute scale: expected F32 but got F64"),
        ({"num_splits": "one"}, r"attribute num_splits: expected S64 but got a string"),
        ({"target": True}, r"attribute target: expected a string but got PRED"),
    ],
)
def test_wrong_operand(changes, message):
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        call(**changes)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_missing_attribute(name):
    attributes = {key: value for key, value in ATTRIBUTES.items() if key != name}
    with pytest.raises(jax.errors.JaxRuntimeError, match=f"the attribute {name} is missing"):
        call_raw(attributes)


def test_unknown_attribute():
    with pytest.raises(jax.errors.JaxRuntimeError, match="there is no attribute sinks"):
        call_raw({**ATTRIBUTES, "sinks": True})


def test_wrong_number_of_operands():
    operands = {key: value for key, value in OPERANDS.items() if key != "key_lengths"}
    with pytest.raises(jax.errors.JaxRuntimeError, match="must be 5 and 3; got 4 and 3"):
        call_raw(ATTRIBUTES, operands)
    with pytest.raises(jax.errors.JaxRuntimeError, match="must be 5 and 3; got 5 and 1"):
        call_raw(ATTRIBUTES, results={"out": RESULTS["out"]})


@pytest.mark.parametrize("head_dim", [4, 65, 264])
def test_wrong_head_size(head_dim):
    def shape(*leading):
        return (*leading, head_dim), jnp.bfloat16

    with pytest.raises(jax.errors.JaxRuntimeError, match=f"multiple of 8 .* got {head_dim}"):
        call(query=shape(B, T, N), key=shape(B, S, K), value=shape(B, S, K), out=shape(B, T, N))


def test_wrong_head_ratio():
    key = ((B, S, 3, H), jnp.bfloat16)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"multiple of .* got 4 and 3"):
        call(key=key, value=key)
