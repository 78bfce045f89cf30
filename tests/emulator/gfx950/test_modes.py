"""Relative vector registers and skipped vector instructions of gfx950."""

from __future__ import annotations

import gfx950_asm as asm
import numpy as np
import pytest
from compared import compared
from lane_values import assert_same

from jax_fa import emulator

WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)\n"


def _rows(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 2**32, (count, 64), dtype=np.uint32)


def _run(body: str, rows: np.ndarray, outputs: int, **options) -> np.ndarray:
    kernel = asm.Kernel(body, len(rows), outputs, lds_bytes=1024)
    return asm.run(asm.assemble({"k": kernel}), "k", kernel, rows[None], **options)[0]


@pytest.mark.parametrize("schedule", ["round_robin", "run_to_barrier", "random"])
@compared(
    "gfx950", "s_set_gpr_idx_on", "s_set_gpr_idx_off", "s_set_gpr_idx_mode", "s_set_gpr_idx_idx"
)
def test_relative_registers(schedule: str):
    rows = _rows(6)
    body = (
        "s_movk_i32 s20, 0x103\n"  # of which 8 bits count
        "s_set_gpr_idx_on s20, gpr_idx(SRC0)\nv_add_u32 v64, v16, v17\n"
        "s_set_gpr_idx_mode gpr_idx(SRC1)\nv_sub_u32 v65, v16, v17\n"
        "s_set_gpr_idx_idx 4\nv_add_u32 v66, v16, v17\n"
        "s_set_gpr_idx_mode gpr_idx(DST)\nv_mov_b32 v63, v18\nv_writelane_b32 v63, 7, 5\n"
        "s_set_gpr_idx_mode gpr_idx(SRC0,SRC2,DST)\nv_add3_u32 v64, v16, v16, v16\n"
        "s_set_gpr_idx_off\nv_add_u32 v69, v16, v17\ns_mov_b32 s21, m0\nv_mov_b32 v70, s21\n"
    )
    actual = _run("s_mov_b32 m0, 0x30a00\n" + body, rows, 7, schedule=schedule)
    moved = rows[2].copy()
    moved[5] = 7
    expected = [
        rows[3] + rows[1],
        rows[0] - rows[4],
        rows[0] + rows[5],
        moved,
        rows[4] + rows[0] + rows[4],
        rows[0] + rows[1],
        np.full(64, 0x3DA04, np.uint32),
    ]
    assert_same(actual, np.stack(expected), "relative registers")


def test_checks_see_the_registers_that_are_used():
    rows = _rows(1)
    on = "s_mov_b32 m0, 0\ns_set_gpr_idx_on 4, gpr_idx({})\n"
    _run(on.format("SRC0") + "v_mov_b32 v64, v12\ns_set_gpr_idx_off\n", rows, 1)
    with pytest.raises(emulator.EmulatorError, match="v20, which was never written"):
        _run(on.format("SRC0") + "v_mov_b32 v64, v16\ns_set_gpr_idx_off\n", rows, 1)
    late = "global_load_dword v64, v1, s[4:5]\n" + on.format("DST") + "v_mov_b32 v60, v16\n"
    with pytest.raises(emulator.EmulatorError, match="overwrites v64 while a load"):
        _run(late + WAIT + "s_set_gpr_idx_off\n", rows, 1)
    with pytest.raises(emulator.EmulatorError, match="reaches v259 by a relative register"):
        _run(on.format("SRC0") + "v_mov_b32 v64, v255\ns_set_gpr_idx_off\n", rows, 1)


@compared("gfx950", "s_setvskip")
def test_skipped_vector_instructions():
    """Scalar instructions go on; nothing of what is skipped has to be defined."""
    rows = _rows(2)
    body = (
        "v_mov_b32 v64, v16\nv_mov_b32 v65, v16\nds_write_b32 v1, v16\n"
        + WAIT
        + "s_movk_i32 s20, 4\n"
        "s_setvskip s20, 2\nv_mov_b32 v64, v99\nds_write_b32 v1, v17\ns_add_u32 s20, s20, 1\n"
        "global_load_dword v65, v[98:99], off\nv_readfirstlane_b32 s20, v16\n"
        "s_setvskip s20, 1\nv_mov_b32 v66, s20\nds_read_b32 v67, v1\n" + WAIT
    )
    actual = _run(body, rows, 4)
    expected = [rows[0], rows[0], np.full(64, 5, np.uint32), rows[0]]
    assert_same(actual, np.stack(expected), "s_setvskip")
