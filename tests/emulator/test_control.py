"""Masks, calls, branches and scalar loads."""

import numpy as np
import pytest
from assemble import assemble
from compared import compared

from jax_fa import emulator


@compared("gfx950", "s_and_saveexec_b64", "s_andn2_b64")
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


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(name, marks=compared(name, "s_getpc_b64", "s_swappc_b64", "s_setpc_b64"))
        for name in ("gfx950", "gfx1201")
    ],
)
def test_call_and_return(target):
    load, wait, store = {
        "gfx950": ("s_load_dwordx2", "s_waitcnt lgkmcnt(0)", "global_store_dword"),
        "gfx1201": ("s_load_b64", "s_wait_kmcnt 0x0", "global_store_b32"),
    }[target]
    low, high = {
        "gfx950": ("s_add_u32", "s_addc_u32"),
        "gfx1201": ("s_add_co_u32", "s_add_co_ci_u32"),
    }[target]
    body = f"""
    {load} s[8:9], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    s_getpc_b64 s[4:5]
    .Lhere:
    {low} s4, s4, .Lfunction-.Lhere
    {high} s5, s5, 0
    s_swappc_b64 s[6:7], s[4:5]
    {wait}
    {store} v1, v2, s[8:9]
    s_endpgm
    .Lfunction:
    v_mov_b32 v2, 9
    s_setpc_b64 s[6:7]
    """
    out = np.zeros(32, np.int32)
    emulator.CodeObject(assemble(target, body)).launch("kernel", 1, 32, args=[out])
    np.testing.assert_array_equal(out, 9)


@compared("gfx950", "s_buffer_load_dword", "s_buffer_load_dwordx4")
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
    s_buffer_load_dword s24, s[16:19], 0x4
    s_buffer_load_dword s25, s[16:19], 0xc
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v2, s22
    v_mov_b32 v3, s23
    v_mov_b32 v4, s24
    v_mov_b32 v5, s25
    global_store_dwordx4 v1, v[2:5], s[10:11]
    s_endpgm
    """
    source, out = np.arange(10, 14, dtype=np.int32), np.full(4, -1, np.int32)
    code = emulator.CodeObject(assemble("gfx950", body, ("pointer", "pointer")))
    code.launch("kernel", 1, 1, args=[source, out])
    np.testing.assert_array_equal(out, [12, 0, 11, 0])


# A condition, and whether the branch is taken under it.
BRANCHES = {
    "s_cbranch_scc0": ("s_cmp_eq_u32 s9, s9", False),
    "s_cbranch_scc1": ("s_cmp_eq_u32 s9, s9", True),
    "s_cbranch_vccz": ("s_mov_b64 vcc, 0", True),
    "s_cbranch_vccnz": ("s_mov_b64 vcc, 0", False),
    "s_cbranch_execz": ("s_mov_b64 exec, 0", True),
    "s_cbranch_execnz": ("s_mov_b64 exec, 0", False),
    "s_branch": ("", True),
}


@pytest.mark.parametrize(
    "target",
    [pytest.param(name, marks=compared(name, *BRANCHES)) for name in ("gfx950", "gfx1201")],
)
@pytest.mark.parametrize("taken", [False, True])
def test_branches(target, taken):
    """Under the condition that a branch asks for, and under its opposite."""
    opposite = {
        "s_cmp_eq_u32 s9, s9": "s_cmp_lg_u32 s9, s9",
        "s_mov_b64 vcc, 0": "s_mov_b64 vcc, 1",
        "s_mov_b64 exec, 0": "s_mov_b64 exec, 1",
        "": "",
    }
    body, expected = "s_mov_b32 s12, 0\n", 0
    for bit, (branch, (condition, when)) in enumerate(BRANCHES.items()):
        if taken != when:
            condition = opposite[condition]
        goes = taken or branch == "s_branch"
        expected |= (not goes) << bit
        body += f"{condition}\n{branch} .Lafter{bit}\ns_bitset1_b32 s12, {bit}\n.Lafter{bit}:\n"
        body += "s_mov_b64 exec, 1\n"
    load, wait, store = {
        "gfx950": ("s_load_dwordx2", "s_waitcnt lgkmcnt(0)", "global_store_dword"),
        "gfx1201": ("s_load_b64", "s_wait_kmcnt 0x0", "global_store_b32"),
    }[target]
    start = f"{load} s[8:9], s[0:1], 0x0\nv_mov_b32 v1, 0\n{wait}\n"
    end = f"v_mov_b32 v2, s12\n{store} v1, v2, s[8:9]\ns_endpgm"
    move, half = {"gfx950": ("s_mov_b64", ""), "gfx1201": ("s_mov_b32", "_lo")}[target]
    for mask in ("vcc", "exec"):
        body = body.replace(f"s_mov_b64 {mask}", f"{move} {mask}{half}")
    out = np.zeros(1, np.int32)
    emulator.CodeObject(assemble(target, start + body + end)).launch("kernel", 1, 1, args=[out])
    assert out[0] == expected


SCALAR_LOADS = {
    "gfx950": {1: "s_load_dword"} | {size: f"s_load_dwordx{size}" for size in (2, 4, 8, 16)},
    "gfx1201": {size: f"s_load_b{32 * size}" for size in (1, 2, 3, 4, 8, 16)},
}


@pytest.mark.parametrize(
    "target",
    [pytest.param(name, marks=compared(name, *of.values())) for name, of in SCALAR_LOADS.items()],
)
def test_scalar_loads_of_every_size(target):
    wait, store = {
        "gfx950": ("s_waitcnt lgkmcnt(0)", "global_store_dword"),
        "gfx1201": ("s_wait_kmcnt 0x0", "global_store_b32"),
    }[target]
    loads = SCALAR_LOADS[target]
    body = f"{loads[4]} s[8:11], s[0:1], 0x0\nv_mov_b32 v1, 0\n{wait}\n"
    place = 0
    for size, mnemonic in loads.items():
        registers = "s16" if size == 1 else f"s[16:{15 + size}]"
        body += f"{mnemonic} {registers}, s[8:9], {4 * size:#x}\n{wait}\n"
        for i in range(size):
            body += f"v_mov_b32 v2, s{16 + i}\n{store} v1, v2, s[10:11] offset:{4 * place}\n"
            place += 1
    source, out = np.arange(100, 200, dtype=np.int32), np.zeros(place, np.int32)
    code = emulator.CodeObject(assemble(target, body + "s_endpgm", ("pointer", "pointer")))
    code.launch("kernel", 1, 1, args=[source, out])
    expected = [source[size : 2 * size] for size in loads]
    np.testing.assert_array_equal(out, np.concatenate(expected))


@compared("gfx1201", "s_and_saveexec_b32", "s_and_not1_b32")
def test_save_and_mask_of_one_register():
    body = """
    s_load_b64 s[8:9], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    v_mov_b32 v2, 1
    s_mov_b32 s12, 0x0f0f00ff
    s_wait_kmcnt 0x0
    s_and_saveexec_b32 s14, s12
    v_mov_b32 v2, 2
    s_and_not1_b32 exec_lo, s14, exec_lo
    v_add_nc_u32 v2, 4, v2
    s_mov_b32 exec_lo, s14
    s_clause 0x1
    s_delay_alu instid0(VALU_DEP_1)
    s_wait_alu 0xfffe
    s_nop 3
    global_store_b32 v1, v2, s[8:9]
    s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
    s_endpgm
    """
    out = np.zeros(32, np.int32)
    emulator.CodeObject(assemble("gfx1201", body)).launch("kernel", 1, 32, args=[out])
    taken = (0x0F0F00FF >> np.arange(32)) & 1 == 1
    np.testing.assert_array_equal(out, np.where(taken, 2, 5))
