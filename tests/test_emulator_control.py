"""Masks, calls, branches and scalar loads."""

import numpy as np
from assemble import assemble

from jax_fa import emulator


def test_exec_mask_operations():
    """s_and_saveexec and the vector instructions it governs."""
    body = """
    s_load_dwordx2 s[8:9], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    v_mov_b32 v2, 1
    s_mov_b32 s12, 0x0f0f0f0f
    s_mov_b32 s13, 0x000000ff
    s_waitcnt lgkmcnt(0)
    s_and_saveexec_b64 s[14:15], s[12:13]
    v_mov_b32 v2, 2
    s_cbranch_execz .Lnone
    s_andn2_b64 exec, s[14:15], exec
    v_add_u32 v2, 4, v2
    .Lnone:
    s_mov_b64 exec, s[14:15]
    global_store_dword v1, v2, s[8:9]
    s_endpgm
    """
    out = np.zeros(64, np.int32)
    emulator.CodeObject(assemble("gfx950", body)).launch("kernel", 1, 64, args=[out])
    taken = (0x000000FF0F0F0F0F >> np.arange(64, dtype=np.uint64)) & np.uint64(1) == 1
    np.testing.assert_array_equal(out, np.where(taken, 2, 5))


def test_call_and_return():
    body = """
    s_load_dwordx2 s[8:9], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    s_getpc_b64 s[4:5]
    .Lhere:
    s_add_u32 s4, s4, .Lfunction-.Lhere
    s_addc_u32 s5, s5, 0
    s_swappc_b64 s[6:7], s[4:5]
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v2, s[8:9]
    s_endpgm
    .Lfunction:
    v_mov_b32 v2, 9
    s_setpc_b64 s[6:7]
    """
    out = np.zeros(64, np.int32)
    emulator.CodeObject(assemble("gfx950", body)).launch("kernel", 1, 64, args=[out])
    np.testing.assert_array_equal(out, 9)


def test_scalar_buffer_load_past_its_end_is_zero():
    body = """
    s_load_dwordx4 s[8:11], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
    s_mov_b64 s[16:17], s[8:9]
    s_and_b32 s17, s17, 0xffff
    s_mov_b32 s18, 12
    s_mov_b32 s19, 0
    s_buffer_load_dwordx4 s[20:23], s[16:19], 0x0
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v2, s22
    global_store_dword v1, v2, s[10:11]
    v_mov_b32 v2, s23
    global_store_dword v1, v2, s[10:11] offset:4
    s_endpgm
    """
    source, out = np.arange(10, 14, dtype=np.int32), np.full(2, -1, np.int32)
    code = emulator.CodeObject(assemble("gfx950", body, ("pointer", "pointer")))
    code.launch("kernel", 1, 1, args=[source, out])
    np.testing.assert_array_equal(out, [12, 0])
