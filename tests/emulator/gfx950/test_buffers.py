"""Buffer resources with a stride against NumPy."""

from __future__ import annotations

import gfx950_asm as asm
import numpy as np
import pytest
from lane_values import assert_same

LANE = np.arange(64)
WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)\n"
STRIDE = 12


def _run(body: str, rows: np.ndarray, outputs: int, **options) -> np.ndarray:
    kernel = asm.Kernel(body, len(rows), outputs, lds_bytes=1024)
    return asm.run(asm.assemble({"k": kernel}), "k", kernel, rows[None], **options)[0]


def _data(seed: int, rows: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, (rows, 64), dtype=np.uint32)


def _resource(records: int, stride: int) -> str:
    """s[24:27]: the kernel's own input."""
    return (
        f"s_mov_b32 s24, s4\ns_and_b32 s25, s5, 0xffff\ns_or_b32 s25, s25, {stride << 16:#x}\n"
        f"s_mov_b32 s26, {records}\ns_mov_b32 s27, 0x27000\n"
    )


def _dwords(rows: np.ndarray, offsets: np.ndarray, count: int) -> np.ndarray:
    """`count` dwords from byte offsets that fit into the input, [count, 64]."""
    memory = rows.reshape(-1)
    return np.stack([memory[np.minimum(offsets // 4 + d, memory.size - 1)] for d in range(count)])


@pytest.mark.parametrize("records", [0, 40, 63, 64])
def test_an_index_counts_strides(records: int):
    """With idxen the index alone is judged, and by num_records strides: the last records in range
    may reach into the next one and past num_records bytes."""
    rows = _data(1, 8)
    rows[0] = index = np.random.default_rng(2).permutation(64)
    rows[1] = offset = LANE % 3 * 4  # v[16:17]: the index, then the offset
    body = _resource(records, STRIDE) + (
        "s_movk_i32 s28, 8\ns_mov_b32 m0, 0\n"
        "buffer_load_dwordx2 v[64:65], v16, s[24:27], 0 idxen offset:4\n"
        "buffer_load_dwordx4 v[66:69], v[16:17], s[24:27], s28 idxen offen\n"
        "buffer_load_dword v[16:17], s[24:27], s28 idxen offen lds\n"
    )
    body += WAIT + "ds_read_b32 v70, v1\n" + WAIT
    actual = _run(body, rows, 7)
    inside = index < records
    at = index * STRIDE + offset + 8
    expected = [_dwords(rows, index * STRIDE + 4, 2), _dwords(rows, at, 4), _dwords(rows, at, 1)]
    assert_same(actual, np.where(inside, np.concatenate(expected), 0), "indexed loads")


@pytest.mark.parametrize("records", [0, 40, 61])
def test_stores_and_atomics_by_index(records: int):
    rows = _data(3, 8)
    rows[0] = index = np.random.default_rng(4).permutation(64)
    body = _resource(records, STRIDE) + (
        "buffer_store_dwordx2 v[18:19], v16, s[24:27], 0 idxen offset:256\n"
        "buffer_atomic_add v20, v16, s[24:27], 0 idxen offset:264\n"
    )
    body += WAIT + "".join(
        f"global_load_dword v{64 + i}, v1, s[4:5] offset:{256 * i}\n" for i in range(8)
    )
    actual = _run(body + WAIT, rows, 8)
    memory = rows.reshape(-1).copy()
    for lane in np.nonzero(index < records)[0]:
        at = 64 + 3 * index[lane]
        memory[at : at + 2] = rows[2:4, lane]
        memory[at + 2] = (int(memory[at + 2]) + int(rows[4, lane])) & 0xFFFFFFFF
    assert_same(actual, memory.reshape(8, 64), "indexed stores")


@pytest.mark.parametrize("records", [0, 200, 254])
def test_without_an_index_a_stride_means_nothing(records: int):
    """num_records counts bytes."""
    rows = _data(5, 2)
    rows[0] = LANE * 4
    body = _resource(records, STRIDE) + "buffer_load_dword v64, v16, s[24:27], 0 offen\n" + WAIT
    expected = np.where(rows[0] + 4 <= np.uint32(records), rows[0], 0)
    assert_same(_run(body, rows, 1), expected[None], "offsets on a resource with a stride")


def test_an_index_without_a_stride_moves_nothing():
    rows = _data(6, 2)
    rows[0] = LANE
    body = _resource(8, 0) + "buffer_load_dword v64, v16, s[24:27], 0 idxen offset:4\n" + WAIT
    expected = np.full((1, 64), rows[0, 1], np.uint32)
    assert_same(_run(body, rows, 1), expected, "stride 0")
