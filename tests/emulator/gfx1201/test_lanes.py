"""Lane moves of gfx1201 against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import gfx1201_asm as asm
import numpy as np
from compared import compared
from gfx1201_asm import Case
from lane_values import assert_same, u32

GROUPS = 6
LANES = np.arange(32)


def _moves() -> dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]]:
    row, quad = LANES & ~15, LANES & ~3
    reverse8 = "[7,6,5,4,3,2,1,0]"
    select = (LANES * 7 + 3) & 15
    low = sum(int(select[i]) << 4 * i for i in range(8))
    high = sum(int(select[8 + i]) << 4 * i for i in range(8))
    set_select = f"s_mov_b32 s20, {low:#x}\ns_mov_b32 s21, {high:#x}\n"
    in_row = select[LANES & 15]
    return {
        "quad_perm": (
            "v_mov_b32_dpp v64, v16 quad_perm:[3,1,0,2] row_mask:0xf bank_mask:0xf",
            lambda x: x[..., quad + np.array([3, 1, 0, 2])[LANES & 3]],
        ),
        "row_shr": (
            "v_mov_b32 v64, v17\nv_mov_b32_dpp v64, v16 row_shr:3 row_mask:0xf bank_mask:0xf",
            lambda x: np.where((LANES & 15) >= 3, x[..., np.maximum(LANES - 3, 0)], 0) + 0,
        ),
        "row_shl zero": (
            "v_mov_b32_dpp v64, v16 row_shl:2 row_mask:0xf bank_mask:0xf bound_ctrl:1",
            lambda x: np.where((LANES & 15) < 14, x[..., np.minimum(LANES + 2, 31)], 0),
        ),
        "row_ror": (
            "v_mov_b32_dpp v64, v16 row_ror:5 row_mask:0xf bank_mask:0xf",
            lambda x: x[..., row + ((LANES - 5) & 15)],
        ),
        "row_share": (
            "v_mov_b32_dpp v64, v16 row_share:6 row_mask:0xf bank_mask:0xf",
            lambda x: x[..., row + 6],
        ),
        "row_xmask": (
            "v_mov_b32_dpp v64, v16 row_xmask:9 row_mask:0xf bank_mask:0xf",
            lambda x: x[..., row + ((LANES & 15) ^ 9)],
        ),
        "dpp8": (
            f"v_mov_b32_dpp v64, v16 dpp8:{reverse8}",
            lambda x: x[..., (LANES & ~7) + 7 - (LANES & 7)],
        ),
        "e64_dpp8": (
            f"v_or3_b32_e64_dpp v64, v16, v17, 0 dpp8:{reverse8}",
            lambda x: x[..., (LANES & ~7) + 7 - (LANES & 7)],
        ),
        "permlane16": (
            set_select + "v_mov_b32 v64, 0\nv_permlane16_b32 v64, v16, s20, s21",
            lambda x: x[..., row + in_row],
        ),
        "permlanex16": (
            set_select + "v_mov_b32 v64, 0\nv_permlanex16_b32 v64, v16, s20, s21",
            lambda x: x[..., (row ^ 16) + in_row],
        ),
        # Source and destination are one register: read before written.
        "permlanex16 in place": (
            set_select + "v_mov_b32 v64, v16\nv_permlanex16_b32 v64, v64, s20, s21",
            lambda x: x[..., (row ^ 16) + in_row],
        ),
        "permlane16_var": (
            "v_mov_b32 v64, 0\nv_lshrrev_b32 v2, 2, v1\nv_mul_u32_u24 v2, 7, v2\n"
            "v_permlane16_var_b32 v64, v16, v2",
            lambda x: x[..., row + (LANES * 7 & 15)],
        ),
        "permlane64": ("v_permlane64_b32 v64, v16", lambda x: x),
        "readlane": (
            "v_readlane_b32 s20, v16, 19\nv_mov_b32 v64, s20",
            lambda x: np.broadcast_to(x[..., 19:20], x.shape),
        ),
        "readfirstlane": (
            "s_mov_b32 exec_lo, 0xff0\nv_readfirstlane_b32 s20, v16\ns_mov_b32 exec_lo, -1\n"
            "v_mov_b32 v64, s20",
            lambda x: np.broadcast_to(x[..., 4:5], x.shape),
        ),
        "bpermute": (
            "v_xor_b32 v2, 0x54, v1\nds_bpermute_b32 v64, v2, v16\ns_wait_dscnt 0x0",
            lambda x: x[..., LANES ^ 21],
        ),
    }


@compared(
    "gfx1201",
    "v_permlane16_b32",
    "v_permlanex16_b32",
    "v_permlane16_var_b32",
    "v_permlane64_b32",
    "v_readlane_b32",
    "v_readfirstlane_b32",
    "ds_bpermute_b32",
)
def test_lane_moves():
    rows = u32(np.random.default_rng(7), (GROUPS, 2, 32))
    rows[:, 1] = 0
    moves = _moves()
    out = asm.run({name: Case(body) for name, (body, _) in moves.items()}, rows, lds_bytes=256)
    for name, (_, fn) in moves.items():
        assert_same(out[name][:, 0], fn(rows[:, 0]).astype(np.uint32), name)


def test_permlane_of_lanes_that_are_off():
    rows = u32(np.random.default_rng(8), (GROUPS, 1, 32))
    body = "s_mov_b32 s20, 0x76543210\ns_mov_b32 s21, 0xfedcba98\nv_mov_b32 v64, 9\n"
    body += "s_mov_b32 exec_lo, 0xffff\nv_permlanex16_b32 v64, v16, s20, s21"
    out = asm.run(
        {
            "keep": Case(body),
            "zero": Case(body + " op_sel:[0,1]"),
            "fi": Case(body + " op_sel:[1,0]"),
        },
        rows,
    )
    lower = LANES < 16
    assert (out["keep"] == 9).all()
    assert (out["zero"][:, 0] == np.where(lower, 0, 9)).all()
    expected = np.where(lower, rows[:, 0][:, LANES ^ 16], 9)
    assert_same(out["fi"][:, 0], expected.astype(np.uint32), "fetch of inactive lanes")
