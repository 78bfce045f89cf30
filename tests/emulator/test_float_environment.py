"""Emulated numbers do not depend on how the calling thread's host arithmetic is set up."""

import contextlib
import ctypes
import platform

import jax
import ml_dtypes
import numpy as np
import pytest
from assemble import assemble

from jax_fa import emulator, flash_attention

TARGETS = ("gfx950", "gfx1201")

# out[i] = in[i] * factor + in[i], rounded twice; workgroups of 64.
SUMS = {
    "gfx950": """
s_load_dwordx4 s[8:11], s[0:1], 0x0
s_load_dword s12, s[0:1], 0x10
v_and_b32 v0, 0x3ff, v0
s_lshl_b32 s13, s2, 6
v_add_u32 v1, s13, v0
v_lshlrev_b32 v1, 2, v1
s_waitcnt lgkmcnt(0)
global_load_dword v2, v1, s[8:9]
s_waitcnt vmcnt(0)
v_mul_f32 v3, s12, v2
v_add_f32 v3, v3, v2
global_store_dword v1, v3, s[10:11]
s_endpgm
""",
    "gfx1201": """
s_load_b128 s[8:11], s[0:1], 0x0
s_load_b32 s12, s[0:1], 0x10
v_and_b32 v0, 0x3ff, v0
s_lshl_b32 s13, ttmp9, 6
v_add_nc_u32 v1, s13, v0
v_lshlrev_b32 v1, 2, v1
s_wait_kmcnt 0x0
global_load_b32 v2, v1, s[8:9]
s_wait_loadcnt 0x0
v_mul_f32 v3, s12, v2
v_add_f32 v3, v3, v2
global_store_b32 v1, v3, s[10:11]
s_endpgm
""",
}
ARGS = ("pointer", "pointer", "f32")

# Bits of x86's MXCSR beside its default.
MODES = {
    "flush": 1 << 15,
    "denormals_are_zero": 1 << 6,
    "both": 1 << 15 | 1 << 6,
    "down": 1 << 13,
    "up": 2 << 13,
    "towards_zero": 3 << 13,
}
MXCSR_AT = 28  # in glibc's fenv_t of x86-64


@contextlib.contextmanager
def host_mode(bits):
    """The calling thread computes with these bits of MXCSR; gives a function that reads them."""
    libm = ctypes.CDLL("libm.so.6")
    saved, changed = ctypes.create_string_buffer(32), ctypes.create_string_buffer(32)

    def mxcsr():
        libm.fegetenv(changed)
        return int.from_bytes(changed.raw[MXCSR_AT : MXCSR_AT + 4], "little")

    libm.fegetenv(saved)
    value = mxcsr() | bits
    changed[MXCSR_AT : MXCSR_AT + 4] = value.to_bytes(4, "little")
    libm.fesetenv(changed)
    try:
        yield lambda: mxcsr() & bits
    finally:
        libm.fesetenv(saved)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="sets a register of x86-64")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_launch_ignores_the_callers_mode_and_leaves_it(target, mode, threads):
    extra = ".amdhsa_float_denorm_mode_32 3\n"
    code = emulator.CodeObject(assemble(target, SUMS[target], ARGS, extra=extra))
    rng = np.random.default_rng(0)
    source = rng.standard_normal(64 * 5).astype(np.float32)
    source[::2] *= np.float32(1e-39)
    factor = np.float32(1 / 3)
    wanted = source * factor + source
    assert np.count_nonzero(np.abs(wanted) < np.finfo(np.float32).tiny) >= 160
    out = np.zeros_like(source)
    with host_mode(MODES[mode]) as bits:
        code.launch("kernel", 5, 64, args=[source, out, factor], threads=threads)
        left = bits()
    assert left == MODES[mode]
    np.testing.assert_array_equal(out.view(np.uint32), wanted.view(np.uint32))


# XLA's CPU threads flush denormals. One key weighs as much as another, so that the mean is the
# value, through the merging of parts as well.
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("num_splits", [1, 3])
@pytest.mark.parametrize("target", TARGETS)
def test_denormal_results_of_a_custom_call(target, num_splits, jit):
    value = np.full((1, 256, 2, 64), 1e-39, ml_dtypes.bfloat16)
    value[:, :, 1] = -3e-40
    query, key = np.zeros((1, 1, 2, 64), value.dtype), np.zeros_like(value)

    def attend(query, key, value):
        return flash_attention(query, key, value, implementation=target, num_splits=num_splits)

    with emulator.record() as launches:
        out = np.asarray((jax.jit(attend) if jit else attend)(query, key, value))
    assert any("merge" in launch.kernel for launch in launches) == (num_splits > 1)
    np.testing.assert_array_equal(out[0, 0].view(np.int16), value[0, 0].view(np.int16))
