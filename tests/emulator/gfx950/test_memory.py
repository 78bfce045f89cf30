"""LDS, global, flat, scratch and buffer instructions of gfx950 against NumPy."""

from __future__ import annotations

import gfx950_asm as asm
import numpy as np
import pytest
from compared import compared
from lane_values import assert_same, u32

from jax_fa import emulator

LANE = np.arange(64)
WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)\n"
LDS = 4096


def _run(body: str, rows: np.ndarray, outputs: int, lds_bytes: int = LDS, **options) -> np.ndarray:
    kernel = asm.Kernel(body, len(rows), outputs, lds_bytes=lds_bytes)
    return asm.run(asm.assemble({"k": kernel}), "k", kernel, rows[None], **options)[0]


def _fill(rows: int, first: int = 20) -> str:
    """Writes `rows` input rows to LDS, row r's lane l at dword 64 r + l."""
    return "".join(f"ds_write_b32 v1, v{first + r} offset:{256 * r}\n" for r in range(rows)) + WAIT


def _data(rng_seed: int, rows: int) -> np.ndarray:
    return np.random.default_rng(rng_seed).integers(0, 2**32, (rows, 64), dtype=np.uint32)


@compared(
    "gfx950",
    "ds_read_u8",
    "ds_read_i8",
    "ds_read_u16",
    "ds_read_i16",
    "ds_read_u16_d16",
    "ds_read_u16_d16_hi",
    "ds_write_b32",
    "ds_write_b8",
    "ds_write_b16_d16_hi",
)
def test_lds_small_reads_and_writes():
    data = _data(3, 2)
    address = np.random.default_rng(4).permutation(512)[:64].astype(np.uint32)
    rows = np.concatenate([address[None], address[None] // 2 * 2, _data(5, 2), data])
    names = ["u8", "i8"], ["u16", "i16"]
    body = _fill(2)
    for i, register in enumerate((16, 16, 17, 17)):
        body += f"ds_read_{(names[0] + names[1])[i]} v{64 + i}, v{register}\n"
    body += "v_mov_b32 v68, v18\nv_mov_b32 v69, v18\n"
    body += "ds_read_u16_d16 v68, v17\nds_read_u16_d16_hi v69, v17\n" + WAIT
    actual = _run(body, rows, 6)
    memory = data.view(np.uint8).reshape(-1)
    byte = memory[address]
    even = address // 2 * 2
    half = memory.view(np.uint16)[even // 2].astype(np.uint32)
    old = rows[2]
    expected = [
        byte.astype(np.uint32),
        byte.view(np.int8).astype(np.int32).view(np.uint32),
        half,
        half.astype(np.uint16).view(np.int16).astype(np.int32).view(np.uint32),
        (old & 0xFFFF0000) | half,
        (old & 0xFFFF) | half << 16,
    ]
    assert_same(actual, np.stack(expected), "small reads")
    body = _fill(2) + "ds_write_b8 v16, v18\n" + WAIT + "ds_read_b32 v64, v1\n"
    body += "ds_read_b32 v65, v1 offset:256\n" + WAIT + "ds_write_b16_d16_hi v17, v19\n" + WAIT
    body += "ds_read_b32 v66, v1\nds_read_b32 v67, v1 offset:256\n" + WAIT
    actual = _run(body, rows, 4)
    memory[address] = rows[2] & 0xFF
    after_bytes = memory.copy()
    for lane in range(64):
        memory.view(np.uint16)[even[lane] // 2] = rows[3][lane] >> 16
    expected = np.stack([after_bytes, memory]).view(np.uint32).reshape(4, 64)
    assert_same(actual, expected, "small writes")


@compared("gfx950", "ds_read2_b32", "ds_read2st64_b32", "ds_read2_b64", "ds_write2_b32")
def test_lds_two_addresses():
    data = _data(6, 8)
    rows = np.concatenate([(LANE * 4).astype(np.uint32)[None], _data(7, 4)[:3], data])
    body = (
        _fill(8)
        + "v_lshlrev_b32 v2, 3, v0\n"
        + "ds_read2_b32 v[64:65], v1 offset0:3 offset1:70\n"
        + "ds_read2st64_b32 v[66:67], v1 offset0:1 offset1:4\n"
        + "ds_read2_b64 v[68:71], v2 offset0:2 offset1:65\n"
        + WAIT
        + "ds_write2_b32 v2, v17, v18 offset0:1 offset1:0\n"
        + WAIT
        + "ds_read_b32 v72, v1\nds_read_b32 v73, v1 offset:256\n"
        + WAIT
    )
    actual = _run(body, rows, 10)
    memory = data.reshape(-1).copy()
    pairs = memory.view(np.uint64)
    expected = [memory[LANE + 3], memory[LANE + 70], memory[LANE + 64], memory[LANE + 256]]
    for offset in (2, 65):
        pair = np.ascontiguousarray(pairs[LANE + offset]).view(np.uint32).reshape(64, 2)
        expected += [pair[:, 0], pair[:, 1]]
    memory[2 * LANE + 1], memory[2 * LANE] = rows[1], rows[2]
    expected += [memory[LANE], memory[LANE + 64]]
    assert_same(actual, np.stack(expected), "two addresses")


@compared("gfx950", "ds_read_b64_tr_b16")
def test_transposing_read():
    """Per 16 lanes: lane c gives the address of row c / 4, columns 4 (c % 4).. of a 4 x 16 block of
    16-bit elements, and receives column c."""
    data = _data(8, 4)
    block = np.random.default_rng(9).permutation(8)[:4]  # where each group's block lies, in 128 B
    pitch = 32  # bytes of a row of 16 elements
    address = block[LANE // 16] * 128 + (LANE % 16 // 4) * pitch + (LANE % 4) * 8
    rows = np.concatenate([address[None].astype(np.uint32), np.zeros((3, 64), np.uint32), data])
    actual = _run(f"{_fill(4)}ds_read_b64_tr_b16 v[64:65], v16\n{WAIT}", rows, 2)
    elements = data.reshape(-1).view(np.uint16).reshape(-1, 4, 16)
    columns = elements[block].transpose(0, 2, 1).reshape(64, 4)
    expected = np.ascontiguousarray(columns).view(np.uint32).T
    assert_same(actual, np.ascontiguousarray(expected), "ds_read_b64_tr_b16")


@pytest.mark.parametrize(
    "bits",
    [pytest.param(n, marks=compared("gfx950", f"ds_read_b64_tr_b{n}")) for n in (8, 4)],
)
def test_transposing_read_of_narrow_elements(bits: int):
    """Per 16 lanes a block of 64 / bits rows of 16 elements, of which each lane gives 8 bytes; lane
    c receives column c."""
    data = _data(20, 2)
    block = np.random.default_rng(21).permutation(4)  # where each group's block lies, in 128 B
    address = block[LANE // 16] * 128 + LANE % 16 * 8
    rows = np.concatenate([address[None].astype(np.uint32), np.zeros((3, 64), np.uint32), data])
    actual = _run(f"{_fill(2)}ds_read_b64_tr_b{bits} v[64:65], v16\n{WAIT}", rows, 2)
    spread = (data.reshape(-1, 1).view(np.uint8)[..., None] >> np.arange(0, 8, bits)) & (
        2**bits - 1
    )
    columns = spread.reshape(4, 64 // bits, 16)[block].transpose(0, 2, 1).reshape(64, 64 // bits)
    packed = (columns.astype(np.uint64) << (bits * np.arange(64 // bits)).astype(np.uint64)).sum(1)
    expected = packed.astype(np.uint64).view(np.uint32).reshape(64, 2).T
    assert_same(actual, np.ascontiguousarray(expected), f"ds_read_b64_tr_b{bits}")


@compared("gfx950", "ds_bpermute_b32", "ds_permute_b32", "ds_swizzle_b32")
def test_exchanges_between_lanes():
    x = u32(np.random.default_rng(10), (1, 64))
    target = np.random.default_rng(11).permutation(64).astype(np.uint32)
    rows = np.concatenate([target[None] * 4, x])
    body = (
        "ds_bpermute_b32 v64, v16, v17\nds_permute_b32 v65, v16, v17\n"
        'ds_swizzle_b32 v66, v17 offset:swizzle(BITMASK_PERM,"0p1i1")\n'
        "ds_swizzle_b32 v67, v17 offset:swizzle(QUAD_PERM,3,0,0,1)\n"
        "ds_bpermute_b32 v68, v16, v17 offset:8\n"
        "v_mov_b32 v69, 0\ns_mov_b64 exec, 0xff\nds_bpermute_b32 v69, v16, v17\n"
        "s_mov_b64 exec, -1\n" + WAIT
    )
    actual = _run(body, rows, 6)
    x = x[0]
    pushed = np.zeros_like(x)
    pushed[target] = x
    # 0p1i1: bit 4 cleared, bit 3 kept, bit 2 set, bit 1 inverted, bit 0 set.
    swizzled = (LANE & 32) | ((((LANE & 0b01010) | 0b00101) ^ 0b00010) & 31)
    quad = (LANE & ~3) + np.array([3, 0, 0, 1])[LANE & 3]
    inactive = np.where((LANE < 8) & (target < 8), x[target], 0)
    expected = [x[target], pushed, x[swizzled], x[quad], x[(target + 2) % 64], inactive]
    assert_same(actual, np.stack(expected).astype(np.uint32), "exchanges")


@compared("gfx950", "ds_add_u32", "ds_max_rtn_i32", "ds_min_u32")
def test_lds_atomics():
    rows = np.concatenate([(LANE % 8 * 4).astype(np.uint32)[None], _data(12, 3), _data(13, 1)])
    body = _fill(1) + "ds_add_u32 v16, v17\nds_max_rtn_i32 v64, v16, v18 offset:32\n"
    body += "ds_min_u32 v16, v19 offset:64\n" + WAIT + "ds_read_b32 v65, v1\n" + WAIT
    actual = _run(body, rows, 2)
    memory, old = rows[4].copy(), np.zeros(64, np.uint32)
    for lane in range(64):
        at = lane % 8
        memory[at : at + 1] += rows[1][lane]
        old[lane] = memory[at + 8]
        memory[at + 8] = np.maximum(
            memory[at + 8 : at + 9].view(np.int32), rows[2][lane : lane + 1].view(np.int32)
        ).view(np.uint32)[0]
        memory[at + 16] = min(memory[at + 16], rows[3][lane])
    assert_same(actual, np.stack([old, memory]), "LDS atomics")


def test_lds_bounds():
    rows = np.full((1, 64), LDS - 4, np.uint32)
    for body in ("ds_read_b64 v[64:65], v16", "ds_write_b32 v16, v16 offset:4"):
        with pytest.raises(emulator.EmulatorError, match="LDS address 409"):
            _run(f"{body}\n{WAIT}", rows, 2, checks=False)


# ---- memory ----
_HEAD = "v_mov_b32 v2, s4\nv_mov_b32 v3, s5\nv_add_co_u32 v2, vcc, v2, v16\n"
_HEAD += "v_addc_co_u32 v3, vcc, 0, v3, vcc\n"  # v[2:3] = input + v16


@compared("gfx950", "global_store_byte_d16_hi")
def test_stores():
    """Stores of every width into the kernel's own input, read back."""
    rows = _data(16, 12)
    rows[0] = LANE * 32
    body = _HEAD + (
        "global_store_dwordx4 v[2:3], v[18:21], off offset:256\n"
        "global_store_short v16, v22, s[4:5] offset:272\n"
        "global_store_byte_d16_hi v[2:3], v23, off offset:275\n"
        "flat_store_dwordx2 v[2:3], v[24:25] offset:280\n" + WAIT
    )
    body += "".join(
        f"global_load_dword v{64 + i}, v1, s[4:5] offset:{256 * (1 + i)}\n" for i in range(8)
    )
    actual = _run(body + WAIT, rows, 8)
    memory = rows[1:9].copy().reshape(64, 8)
    given = rows.copy()
    memory[:, 0:4] = given[2:6].T
    memory[:, 4] = (
        (memory[:, 4] & 0x00FF0000) | (given[6] & 0xFFFF) | ((given[7] >> 16) & 0xFF) << 24
    )
    memory[:, 6:8] = given[8:10].T
    assert_same(actual, memory.reshape(8, 64), "stores")


def test_buffer_range():
    """Out of range when voffset + offset + soffset + size passes num_records: loads give 0, stores
    and LDS-DMA's source vanish."""
    rows = _data(17, 4)
    rows[0] = LANE * 16
    body = (
        "s_mov_b32 s24, s4\ns_and_b32 s25, s5, 0xffff\ns_movk_i32 s26, 760\n"
        "s_mov_b32 s27, 0x27000\ns_movk_i32 s28, 20\ns_mov_b32 m0, 512\n"
        "buffer_load_dwordx4 v[64:67], v16, s[24:27], s28 offen offset:4\n"
        "s_nop 0\nbuffer_load_dword v16, s[24:27], s28 offen offset:4 lds\n"
        + WAIT
        + "ds_read_b32 v68, v1 offset:516\n"
        "buffer_store_dwordx2 v[18:19], v16, s[24:27], 0 offen\n"
        + WAIT
        + "global_load_dword v69, v1, s[4:5] offset:512\n"
        + WAIT
    )
    actual = _run(body, rows, 6)
    memory = rows.reshape(-1).copy()
    at = LANE * 4 + 6
    inside = LANE * 16 + 24 + 16 <= 760
    expected = [np.where(inside, memory[np.minimum(at + d, 255)], 0) for d in range(4)]
    expected.append(np.where(LANE * 16 + 24 + 4 <= 760, memory[np.minimum(at, 255)], 0))
    stored = memory.copy()
    for lane in np.nonzero(LANE * 16 + 8 <= 760)[0]:
        stored[lane * 4 : lane * 4 + 2] = rows[2:4, lane]
    expected.append(stored[128:192])
    assert_same(actual, np.stack(expected), "buffer range")


@pytest.mark.parametrize("records", [756, 760, 764, 767])
def test_buffer_range_by_dwords(records):
    """The dwords of one access that are in range are loaded and stored, the others are not."""
    rows = _data(18, 6)
    rows[0] = LANE * 16
    body = (
        "s_mov_b32 s24, s4\ns_and_b32 s25, s5, 0xffff\n"
        f"s_movk_i32 s26, {records}\ns_mov_b32 s27, 0x27000\ns_mov_b32 m0, 0\ns_nop 0\n"
        "buffer_load_dwordx4 v[64:67], v16, s[24:27], 0 offen\n"
        "buffer_load_dwordx3 v[68:70], v16, s[24:27], 0 offen\n"
        "buffer_load_dwordx2 v[72:73], v16, s[24:27], 0 offen offset:4\n"
        "buffer_load_dwordx4 v16, s[24:27], 0 offen lds\n"
        + WAIT
        + "v_mov_b32 v71, 0\nds_read_b128 v[74:77], v16\n"
        "buffer_store_dwordx4 v[18:21], v16, s[24:27], 0 offen\n"
        + WAIT
        + "global_load_dwordx4 v[78:81], v16, s[4:5]\n"
        + WAIT
    )
    actual = _run(body, rows, 18, lds_bytes=1024)
    memory = rows.reshape(-1)[:256].reshape(64, 4)
    inside = (np.arange(256).reshape(64, 4) + 1) * 4 <= records
    loaded = np.where(inside, memory, 0)
    expected = np.zeros((18, 64), np.uint32)
    expected[0:4] = expected[10:14] = loaded.T
    expected[4:7] = loaded.T[:3]
    expected[8:10] = loaded.T[1:3]
    expected[14:18] = np.where(inside, rows[2:6].T, memory).T
    assert_same(actual, expected, "buffer range by dwords")


def test_buffer_atomics_are_in_range_as_a_whole():
    rows = _data(19, 4)
    rows[0] = LANE * 16
    body = (
        "s_mov_b32 s24, s4\ns_and_b32 s25, s5, 0xffff\ns_movk_i32 s26, 756\n"
        "s_mov_b32 s27, 0x27000\n"
        "buffer_atomic_swap_x2 v[18:19], v16, s[24:27], 0 offen\n"
        + WAIT
        + "global_load_dwordx4 v[64:67], v16, s[4:5]\n"
        + WAIT
    )
    expected = rows.reshape(-1).reshape(64, 4).copy()
    expected[:47, :2] = rows[2:4, :47].T  # lane 47 would end at byte 760
    assert_same(_run(body, rows, 4), expected.T, "atomics")


@pytest.mark.parametrize(
    "dwords",
    [
        pytest.param(dwords, marks=compared("gfx950", f"global_load_lds_dword{suffix}"))
        for dwords, suffix in ((1, ""), (3, "x3"), (4, "x4"))
    ],
)
def test_lds_dma(dwords: int):
    """LDS address = M0 + offset + lane * size; lanes that are off write nothing."""
    rows = _data(18, 6)
    shuffled = np.random.default_rng(19).permutation(64) * 16
    rows[0] = shuffled
    suffix = "dword" + (f"x{dwords}" if dwords > 1 else "")
    clear = "v_mov_b32 v2, 0\n" + "".join(
        f"ds_write_b32 v1, v2 offset:{256 * i}\n" for i in range(8)
    )
    body = (
        clear
        + WAIT
        + (
            "s_mov_b32 s24, s4\ns_and_b32 s25, s5, 0xffff\ns_movk_i32 s26, 0x7fff\n"
            "s_mov_b32 s27, 0x27000\ns_movk_i32 s3, 64\ns_mov_b32 m0, s3\n"
            "s_mov_b32 exec_lo, 0xfffff0ff\ns_nop 0\n"
            f"buffer_load_{suffix} v16, s[24:27], 0 offen offset:32 lds\n"
            "s_mov_b64 exec, -1\n" + WAIT
        )
    )
    body += "".join(f"ds_read_b32 v{64 + i}, v1 offset:{256 * i}\n" for i in range(6)) + WAIT
    memory = rows.reshape(-1)
    lds = np.zeros(6 * 64, np.uint32)
    for lane in range(64):
        if not 8 <= lane < 12:
            for d in range(dwords):
                lds[(96 + lane * dwords * 4) // 4 + d] = memory[(shuffled[lane] + 32) // 4 + d]
    assert_same(_run(body, rows, 6), lds.reshape(6, 64), f"buffer LDS-DMA of {dwords} dwords")
    body = body.replace(
        f"buffer_load_{suffix} v16, s[24:27], 0 offen offset:32 lds",
        f"global_load_lds_{suffix} v16, s[4:5] offset:32",
    )
    assert_same(_run(body, rows, 6), lds.reshape(6, 64), f"global LDS-DMA of {dwords} dwords")


def test_lds_dma_arrives_at_the_wait():
    rows = _data(20, 2)
    body = (
        "v_mov_b32 v2, 0\nds_write_b32 v1, v2\n"
        + WAIT
        + (
            "s_mov_b32 m0, 0\ns_nop 0\nglobal_load_lds_dword v1, s[4:5]\n"
            "ds_read_b32 v64, v1\ns_waitcnt lgkmcnt(0)\ns_waitcnt vmcnt(0)\n"
            "ds_read_b32 v65, v1\n" + WAIT
        )
    )
    actual = _run(body, rows, 2, checks=False)
    assert_same(actual[0], np.zeros(64, np.uint32), "before the wait")
    assert_same(actual[1], rows[0], "after the wait")


@compared("gfx950", "global_atomic_add", "global_atomic_umax")
def test_global_atomics():
    rows = np.concatenate([(LANE % 4 * 4).astype(np.uint32)[None], _data(21, 3)])
    body = (
        "global_atomic_add v64, v16, v17, s[4:5] offset:512 sc0\n"
        + WAIT
        + "global_atomic_umax v16, v18, s[4:5] offset:528\n"
        + WAIT
        + "global_load_dword v65, v1, s[4:5] offset:512\n"
        + WAIT
    )
    actual = _run(body, rows, 2)
    memory, old = rows[2].copy(), np.zeros(64, np.uint32)
    for lane in range(64):
        old[lane] = memory[lane % 4]
        memory[lane % 4 : lane % 4 + 1] += rows[1][lane]
    for lane in range(64):
        memory[4 + lane % 4] = max(memory[4 + lane % 4], rows[2][lane])
    assert_same(actual, np.stack([old, memory]), "global atomics")


def test_bounds_name_the_lane():
    rows = np.zeros((1, 64), np.uint32)
    rows[0, 37] = 1 << 20
    with pytest.raises(emulator.EmulatorError, match="lane 37"):
        _run("global_load_dword v64, v16, s[4:5]\n" + WAIT, rows, 1)


def test_unknown_opcode_names_itself():
    with pytest.raises(emulator.EmulatorError, match="v_cubeid_f32 is not implemented"):
        _run("v_cubeid_f32 v64, v16, v16, v16", np.zeros((1, 64), np.uint32), 1)
