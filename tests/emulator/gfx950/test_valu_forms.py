"""Modifiers, masks, DPP, SDWA, pairs and lane moves of gfx950, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import gfx950_asm as asm
import numpy as np
import pytest
from compared import compared
from lane_math import F32, flush, fma, signed, to_u32
from lane_values import assert_same, f32, to_mask, u32

GROUPS = 12


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@compared("gfx950", "v_cndmask_b32")
def test_modifiers():
    rows = f32(np.random.default_rng(9), (GROUPS, 3, 64))
    a, b, c = (rows[:, i] for i in range(3))
    clamp = lambda x: np.where(x > 0, np.minimum(x, 1), 0).astype(F32)  # noqa: E731
    expected = {
        "v_add_f32 v64, -v16, |v17|": -a + np.abs(b),
        "v_mul_f32 v64, -|v16|, v17 clamp": clamp(-np.abs(a) * b),
        "v_fma_f32 v64, v16, -v17, v18 mul:2": (fma(a, -b, c) * F32(2)),
        "v_mul_f32 v64, v16, v17 div:2": (a * b) * F32(0.5),
        "v_exp_f32 v64, -v16": flush(np.exp2(flush(-a).astype(np.float64)).astype(F32)),
        "v_cndmask_b32 v64, -v16, |v17|, s[10:11]": None,
        "v_add_u32 v64, v16, v17 clamp": np.minimum(
            a.view(np.uint32).astype(np.uint64) + b.view(np.uint32), 2**32 - 1
        ).astype(np.uint32),
    }
    bodies = {f"k{i}": text for i, text in enumerate(expected)}
    kernels = {
        name: asm.Kernel(f"s_mov_b32 s10, 0x5555aaaa\ns_mov_b32 s11, 0x0ff0f00f\n{text}", 3)
        for name, text in bodies.items()
    }
    lanes = [(0x0FF0F00F5555AAAA >> i) & 1 == 1 for i in range(64)]
    expected["v_cndmask_b32 v64, -v16, |v17|, s[10:11]"] = np.where(lanes, np.abs(b), -a)
    code = asm.assemble(kernels)
    for name, text in bodies.items():
        actual = asm.run(code, name, kernels[name], rows)[:, 0]
        assert_same(actual, expected[text], text, 1 if "exp" in text else 0)


@compared("gfx950", "v_readfirstlane_b32", "v_readlane_b32")
def test_inactive_lanes_keep_their_values():
    rows = f32(np.random.default_rng(10), (GROUPS, 3, 64))
    mask = 0x00FF123400018001
    lanes = np.array([(mask >> i) & 1 == 1 for i in range(64)])
    setup = "v_mov_b32 v64, v18\n"
    setup += f"s_mov_b32 exec_lo, {mask & 0xFFFFFFFF}\ns_mov_b32 exec_hi, {mask >> 32}\n"
    kernels = {
        "add": asm.Kernel(setup + "v_add_f32 v64, v16, v17", 3),
        "modified": asm.Kernel(setup + "v_add_f32 v64, -v16, v17", 3),
        "compare": asm.Kernel(setup + "v_cmp_lt_f32 s[20:21], v16, v17", 3, 1, 1),
        "first": asm.Kernel(
            setup + "s_mov_b64 exec, 0x3f0\nv_readfirstlane_b32 s20, v16\n"
            "v_readlane_b32 s21, v17, 40",
            3,
            1,
            1,
        ),
    }
    code = asm.assemble(kernels)
    a, b, c = (rows[:, i] for i in range(3))
    out = {name: asm.run(code, name, kernel, rows) for name, kernel in kernels.items()}
    assert_same(out["add"][:, 0], np.where(lanes, a + b, c), "add")
    assert_same(out["modified"][:, 0], np.where(lanes, b - a, c), "modified")
    assert_same(out["compare"][:, 1:, 0], to_mask((a < b) & lanes), "compare")
    assert_same(out["first"][:, 1, 0], a.view(np.uint32)[:, 4], "v_readfirstlane_b32")
    assert_same(out["first"][:, 2, 0], b.view(np.uint32)[:, 40], "v_readlane_b32")


def _dpp(x: np.ndarray, source: Callable[[int], int], old: np.ndarray, zero: bool) -> np.ndarray:
    result = old.copy()
    for lane in range(64):
        at = source(lane)
        if at >= 0:
            result[:, lane] = x[:, at]
        elif zero:
            result[:, lane] = 0
    return result


def test_dpp():
    rows = u32(np.random.default_rng(11), (2, 2, 64))
    row, at = (lambda i: i & ~15), (lambda i: i & 15)
    sources: dict[str, Callable[[int], int]] = {
        "quad_perm:[3,0,2,1]": lambda i: (i & ~3) + (3, 0, 2, 1)[i & 3],
        "row_shl:3": lambda i: i + 3 if at(i) + 3 < 16 else -1,
        "row_shr:1": lambda i: i - 1 if at(i) >= 1 else -1,
        "row_ror:5": lambda i: row(i) + (at(i) - 5) % 16,
        "row_mirror": lambda i: row(i) + 15 - at(i),
        "row_half_mirror": lambda i: (i & ~7) + 7 - (i & 7),
        "row_bcast:15": lambda i: row(i) - 1 if i >= 16 else -1,
        "row_bcast:31": lambda i: 31 if i >= 32 else -1,
        "row_newbcast:6": lambda i: row(i) + 6,
        "wave_shr:1": lambda i: i - 1,
    }
    kernels = {}
    for index, control in enumerate(sources):
        for zero in (False, True):
            bound = " bound_ctrl:0" if zero else ""
            kernels[f"k{index}{zero}"] = asm.Kernel(
                "v_mov_b32 v64, v17\n"
                f"v_mov_b32_dpp v64, v16 {control} row_mask:0xf bank_mask:0xf{bound}",
                2,
            )
    kernels["masks"] = asm.Kernel(
        "v_mov_b32 v64, v17\nv_add_u32_dpp v64, v16, v17 row_ror:1 row_mask:0x5 bank_mask:0x3", 2
    )
    code = asm.assemble(kernels)
    for index, (control, source) in enumerate(sources.items()):
        for zero in (False, True):
            name = f"k{index}{zero}"
            actual = asm.run(code, name, kernels[name], rows)[:, 0]
            assert_same(actual, _dpp(rows[:, 0], source, rows[:, 1], zero), control)
    actual = asm.run(code, "masks", kernels["masks"], rows)[:, 0]
    moved = rows[:, 0][:, [row(i) + (at(i) - 1) % 16 for i in range(64)]]
    on = [(0x5 >> (i // 16)) & 1 == 1 and (0x3 >> (at(i) // 4)) & 1 == 1 for i in range(64)]
    assert_same(actual, np.where(on, moved + rows[:, 1], rows[:, 1]), "row and bank masks")


def test_sdwa():
    rows = u32(np.random.default_rng(12), (GROUPS, 3, 64))
    a, b, c = (rows[:, i] for i in range(3))
    signed_byte = ((a >> 8) & 0xFF).astype(np.uint8).view(np.int8).astype(np.int64)
    total = to_u32(signed_byte + ((b >> 16) & 0xFFFF))
    expected = {
        "dst_sel:DWORD dst_unused:UNUSED_PAD": total,
        "dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE": (c & ~np.uint32(0xFF00)) | (total & 0xFF) << 8,
        "dst_sel:WORD_1 dst_unused:UNUSED_PAD": (total & 0xFFFF) << 16,
        "dst_sel:WORD_0 dst_unused:UNUSED_SEXT": to_u32(signed(total, 16)),
    }
    kernels = {
        f"k{i}": asm.Kernel(
            "v_mov_b32 v64, v18\n"
            f"v_add_u32_sdwa v64, sext(v16), v17 {text} src0_sel:BYTE_1 src1_sel:WORD_1",
            3,
        )
        for i, text in enumerate(expected)
    }
    code = asm.assemble(kernels)
    for i, (text, value) in enumerate(expected.items()):
        assert_same(asm.run(code, f"k{i}", kernels[f"k{i}"], rows)[:, 0], value, text)


@compared("gfx950", "v_pk_mul_f32", "v_pk_add_f32", "v_pk_fma_f32", "v_pk_mov_b32")
def test_pairs_of_single_precision():
    rows = f32(np.random.default_rng(13), (GROUPS, 6, 64))
    a, b, c = rows[:, 0:2], rows[:, 2:4], rows[:, 4:6]
    expected = {
        "v_pk_mul_f32 v[64:65], v[16:17], v[18:19]": a * b,
        "v_pk_add_f32 v[64:65], v[16:17], v[18:19]": a + b,
        "v_pk_fma_f32 v[64:65], v[16:17], v[18:19], v[20:21]": fma(a, b, c),
        "v_pk_mul_f32 v[64:65], v[16:17], v[18:19] op_sel_hi:[0,1]": a[:, :1] * b,
        "v_pk_mul_f32 v[64:65], v[16:17], v[18:19] op_sel:[1,0] op_sel_hi:[0,1]": a[:, ::-1] * b,
        "v_pk_add_f32 v[64:65], v[16:17], v[18:19] neg_lo:[1,0] neg_hi:[0,1]": np.stack(
            [b[:, 0] - a[:, 0], a[:, 1] - b[:, 1]], 1
        ),
        "v_pk_mov_b32 v[64:65], v[16:17], v[18:19] op_sel:[1,0]": np.stack([a[:, 1], b[:, 0]], 1),
    }
    kernels = {f"k{i}": asm.Kernel(text, 6, 2) for i, text in enumerate(expected)}
    kernels["in_place"] = asm.Kernel(
        "v_mov_b64 v[64:65], v[16:17]\n"
        "v_pk_mul_f32 v[64:65], v[64:65], v[18:19] op_sel:[1,0] op_sel_hi:[0,1]",
        6,
        2,
    )
    code = asm.assemble(kernels)
    for i, (text, value) in enumerate(expected.items()):
        assert_same(asm.run(code, f"k{i}", kernels[f"k{i}"], rows), value, text)
    actual = asm.run(code, "in_place", kernels["in_place"], rows)
    assert_same(actual, a[:, ::-1] * b, "sources are read before the pair is written")


@compared(
    "gfx950",
    "v_permlane16_swap_b32",
    "v_permlane32_swap_b32",
    "v_writelane_b32",
    "v_mbcnt_lo_u32_b32",
    "v_mbcnt_hi_u32_b32",
    "v_bitop3_b32",
)
def test_lane_exchange():
    rows = u32(np.random.default_rng(17), (2, 2, 64))
    kernels = {
        f"swap{n}": asm.Kernel(
            f"v_mov_b32 v64, v16\nv_mov_b32 v65, v17\ns_nop 1\nv_permlane{n}_swap_b32 v64, v65",
            2,
            2,
        )
        for n in (16, 32)
    }
    kernels["writelane"] = asm.Kernel(
        "v_mov_b32 v64, v16\ns_movk_i32 s3, 77\ns_mov_b64 exec, 1\nv_writelane_b32 v64, s3, 9", 2
    )
    kernels["mbcnt"] = asm.Kernel(
        "v_mbcnt_lo_u32_b32 v64, -1, 0\nv_mbcnt_hi_u32_b32 v64, -1, v64", 2
    )
    kernels["bitop3"] = asm.Kernel("v_bitop3_b32 v64, v16, v17, v0 bitop3:0x6c", 2)
    code = asm.assemble(kernels)
    for n in (16, 32):
        out = asm.run(code, f"swap{n}", kernels[f"swap{n}"], rows)
        a = rows[:, 0].reshape(2, -1, 2, n)
        b = rows[:, 1].reshape(2, -1, 2, n)
        expected_a, expected_b = a.copy(), b.copy()
        expected_a[:, :, 1], expected_b[:, :, 0] = b[:, :, 0], a[:, :, 1]
        assert_same(out[:, 0], expected_a.reshape(2, 64), f"v_permlane{n}_swap_b32")
        assert_same(out[:, 1], expected_b.reshape(2, 64), f"v_permlane{n}_swap_b32 source")
    expected = rows[:, 0].copy()
    expected[:, 9] = 77
    assert_same(asm.run(code, "writelane", kernels["writelane"], rows)[:, 0], expected, "writelane")
    lane = np.broadcast_to(np.arange(64, dtype=np.uint32), (2, 64))
    assert_same(asm.run(code, "mbcnt", kernels["mbcnt"], rows)[:, 0], lane, "mbcnt")
    a, b, c = rows[:, 0], rows[:, 1], lane
    expected = np.zeros_like(a)
    for bit in range(8):
        if (0x6C >> bit) & 1:
            terms = [v if (bit >> s) & 1 else ~v for v, s in ((a, 2), (b, 1), (c, 0))]
            expected |= terms[0] & terms[1] & terms[2]
    assert_same(asm.run(code, "bitop3", kernels["bitop3"], rows)[:, 0], expected, "bitop3")
