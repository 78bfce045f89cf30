"""The gfx12 encodings of memory and LDS instructions, against NumPy."""

from __future__ import annotations

import gfx1201_asm as asm
import numpy as np
from assemble import assemble
from compared import compared
from gfx1201_asm import Case
from lane_values import assert_same, u32

from jax_fa import emulator

GROUPS = 6
LANES = np.arange(32)


@compared(
    "gfx1201",
    "global_load_b32",
    "flat_load_b32",
    "global_load_b128",
    "global_load_d16_hi_b16",
    "global_load_i8",
    "ds_store_b32",
    "ds_load_b32",
    "ds_load_2addr_b32",
    "ds_store_2addr_stride64_b32",
    "ds_cmpstore_rtn_b32",
)
def test_global_and_lds_encodings():
    rows = u32(np.random.default_rng(9), (GROUPS, 4, 32))
    pair = "v_mov_b32 v2, s4\nv_mov_b32 v3, s5\nv_add_co_u32 v2, vcc_lo, v2, v1\n"
    pair += "v_add_co_ci_u32 v3, vcc_lo, 0, v3, vcc_lo\n"
    wide = "v_lshlrev_b32 v2, 4, v0\n"
    cases = {
        "off": Case(pair + "global_load_b32 v64, v[2:3], off offset:128\ns_wait_loadcnt 0x0"),
        "negative": Case(
            "v_add_nc_u32 v2, 0x100, v1\nglobal_load_b32 v64, v2, s[4:5] offset:-128\n"
            "s_wait_loadcnt 0x0"
        ),
        "flat": Case(pair + "flat_load_b32 v64, v[2:3] offset:256\ns_wait_loadcnt_dscnt 0x0"),
        "b128": Case(wide + "global_load_b128 v[64:67], v2, s[4:5]\ns_wait_loadcnt 0x0", 4),
        "d16_hi": Case(
            "v_mov_b32 v64, 1\nglobal_load_d16_hi_b16 v64, v1, s[4:5]\ns_wait_loadcnt 0x0"
        ),
        "i8": Case("global_load_i8 v64, v1, s[4:5] offset:3\ns_wait_loadcnt 0x0"),
        "lds": Case(
            "ds_store_b32 v1, v16 offset:128\nds_store_b32 v1, v17\ns_wait_dscnt 0x0\n"
            "ds_load_2addr_b32 v[64:65], v1 offset0:32 offset1:0\n"
            "ds_load_b32 v66, v1 offset:128\ns_wait_dscnt 0x0",
            3,
        ),
        "stride64": Case(
            "ds_store_2addr_stride64_b32 v1, v16, v17 offset0:1 offset1:2\ns_wait_dscnt 0x0\n"
            "ds_load_b32 v64, v1 offset:256\nds_load_b32 v65, v1 offset:512\ns_wait_dscnt 0x0",
            2,
        ),
        # The new value comes first, then what to compare with.
        "cmpstore": Case(
            "ds_store_b32 v1, v16\ns_wait_dscnt 0x0\n"
            "ds_cmpstore_rtn_b32 v64, v1, v17, v16\ns_wait_dscnt 0x0\n"
            "ds_load_b32 v65, v1\ns_wait_dscnt 0x0",
            2,
        ),
    }
    out = asm.run(cases, rows, lds_bytes=1024)
    flat = rows.reshape(GROUPS, -1)
    assert_same(out["off"][:, 0], rows[:, 1], "global_load_b32 off")
    assert_same(out["negative"][:, 0], rows[:, 1], "negative offset")
    assert_same(out["flat"][:, 0], rows[:, 2], "flat_load_b32")
    assert_same(out["b128"].transpose(0, 2, 1).reshape(GROUPS, -1), flat, "global_load_b128")
    assert_same(out["d16_hi"][:, 0], (rows[:, 0] << 16) | 1, "global_load_d16_hi_b16")
    assert_same(out["i8"].view(np.int32)[:, 0], rows[:, 0].view(np.int32) >> 24, "global_load_i8")
    assert_same(out["lds"][:, 0], rows[:, 0], "ds_load_2addr_b32, first")
    assert_same(out["lds"][:, 1], rows[:, 1], "ds_load_2addr_b32, second")
    assert_same(out["lds"][:, 2], rows[:, 0], "ds_load_b32 with an offset")
    assert_same(out["stride64"], rows[:, :2], "ds_store_2addr_stride64_b32")
    assert_same(out["cmpstore"], rows[:, :2], "ds_cmpstore_rtn_b32")


@compared(
    "gfx1201",
    "buffer_load_b32",
    "buffer_load_b64",
    "buffer_load_b128",
    "buffer_store_b32",
    "buffer_store_b128",
)
def test_buffer_encoding_and_range():
    rows = u32(np.random.default_rng(10), (1, 2, 32))
    resource = "s_mov_b32 s12, s4\ns_and_b32 s13, s5, 0xffff\ns_mov_b32 s14, 192\n"
    resource += "s_mov_b32 s15, 0x31027000\n"
    cases = {
        "offen": Case(
            resource
            + "buffer_load_b32 v64, v1, s[12:15], null offen offset:128\ns_wait_loadcnt 0x0"
        ),
        "soffset": Case(
            resource
            + "s_movk_i32 s20, 0x44\nbuffer_load_b64 v[64:65], off, s[12:15], s20 offset:4\n"
            "s_wait_loadcnt 0x0",
            2,
        ),
    }
    cases["partly"] = Case(
        resource.replace("192", "184") + "v_lshlrev_b32 v2, 4, v0\n"
        "buffer_load_b128 v[64:67], v2, s[12:15], null offen\ns_wait_loadcnt 0x0",
        4,
    )
    # Stored where the results go later, so this one runs first; and read back.
    stores = "v_mov_b32 v18, v16\nv_mov_b32 v19, v17\nv_lshlrev_b32 v2, 4, v0\n"
    stores += resource.replace("192", "512").replace("s4", "s6").replace("s5", "s7")
    place = "v2, s[12:15], null offen\n"
    for bits, data, read_back in ((128, "v[16:19]", "v[64:67]"), (32, "v16", "v68")):
        stores += f"buffer_store_b{bits} {data}, {place}s_wait_storecnt 0x0\n"
        stores += f"buffer_load_b{bits} {read_back}, {place}s_wait_loadcnt 0x0\n"
        stores += "v_mov_b32 v16, v17\n"
    out = asm.run({"stores": Case(stores, 5)} | cases, rows)
    assert_same(out["stores"], rows[:, [0, 1, 0, 1, 1]], "buffer_store_b128, b32")
    # 192 bytes are there; what lies past them reads as zero.
    expected = np.where(LANES < 16, rows[:, 1], 0).astype(np.uint32)
    assert_same(out["offen"][:, 0], expected, "buffer_load_b32")
    partly = np.stack(
        [
            np.where(4 * (4 * LANES + d) < 184, rows[0].ravel()[(4 * LANES + d) % 64], 0)
            for d in range(4)
        ]
    )
    assert_same(out["partly"][0], partly.astype(np.uint32), "buffer_load_b128, partly in range")
    for i in (0, 1):
        assert (out["soffset"][:, i] == rows[0, 0, 18 + i]).all()


@compared("gfx1201", "global_atomic_add_u32", "global_store_b32")
def test_atomics_return_when_asked():
    data, out = np.arange(32, dtype=np.uint32), np.zeros(64, np.uint32)
    body = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v2, 100
  s_wait_kmcnt 0x0
  global_atomic_add_u32 v3, v1, v2, s[4:5] th:TH_ATOMIC_RETURN
  s_wait_loadcnt 0x0
  global_atomic_add_u32 v1, v2, s[4:5]
  s_wait_storecnt 0x0
  global_load_b32 v4, v1, s[4:5]
  global_store_b32 v1, v3, s[6:7]
  s_wait_loadcnt 0x0
  global_store_b32 v1, v4, s[6:7] offset:128
  s_endpgm"""
    code = emulator.CodeObject(assemble("gfx1201", body, ("pointer", "pointer")))
    code.launch("kernel", 1, 32, [data, out])
    assert (out[:32] == np.arange(32)).all()
    assert (out[32:] == np.arange(32) + 200).all()
    assert (data == np.arange(32) + 200).all()


@compared("gfx1201", "global_load_tr_b128")
def test_transposing_load():
    rows = u32(np.random.default_rng(11), (GROUPS, 4, 32))
    # Lane l gives the address of 8 halves; a stride of 16 bytes makes an 8 x 8 block of 8 lanes.
    case = Case(
        "v_lshlrev_b32 v2, 4, v0\nglobal_load_tr_b128 v[64:67], v2, s[4:5]\ns_wait_loadcnt 0x0", 4
    )
    out = asm.run({"tr": case}, rows)["tr"]
    blocks = rows.reshape(GROUPS, -1).view(np.uint16).reshape(GROUPS, 4, 8, 8)
    received = out.transpose(0, 2, 1)  # [W, lane, 4 dwords]
    halves = np.ascontiguousarray(received).view(np.uint16).reshape(GROUPS, 4, 8, 8)
    assert_same(halves, blocks.swapaxes(-1, -2), "global_load_tr_b128")
