"""Matrix instructions of gfx950: operand layouts, the order of summation, sparse forms."""

from __future__ import annotations

import gfx950_asm as asm
import numpy as np
import pytest
from compared import compared
from lane_math import fma
from lane_values import assert_same

F32 = np.float32
LANE = np.arange(64)


def _to_bits(x: np.ndarray, kind: str) -> np.ndarray:
    """Single precision numbers, exact in `kind`, to their encodings."""
    if kind == "f16":
        return x.astype(np.float16).view(np.uint16).astype(np.uint32)
    return x.astype(F32).view(np.uint32) >> (16 if kind == "bf16" else 0)


def _round(x: np.ndarray, kind: str) -> np.ndarray:
    if kind == "f16":
        return x.astype(np.float16).astype(F32)
    bits = x.astype(F32).view(np.uint32)
    return (bits & np.uint32(0xFFFF0000)).view(F32) if kind == "bf16" else x.astype(F32)


def _pack(elements: np.ndarray, kind: str) -> np.ndarray:
    """[64 lanes, elements] to register rows [dwords, 64]."""
    bits = _to_bits(elements, kind)
    if kind == "f32":
        return bits.T
    return (bits[:, 0::2] | bits[:, 1::2] << 16).T


def _accumulate(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a [I, K], b [K, J] added to c [I, J]: one fused multiply-add per k, in ascending order."""
    for k in range(a.shape[1]):
        x, y = np.broadcast_arrays(a[:, k : k + 1], b[k : k + 1])
        c = fma(x, y, c)
    return c


def _result_place(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Row i and column j of D in register r of lane l, as [registers, 64]."""
    r = np.arange(size * size // 64)[:, None]
    if size == 16:
        return 4 * (LANE // 16) + r, np.broadcast_to(LANE % 16, (len(r), 64))
    return 8 * (r // 4) + 4 * (LANE // 32) + r % 4, np.broadcast_to(LANE % 32, (len(r), 64))


def _marked(*cases: tuple) -> list:
    """Cases that begin with the mnemonic that they are about."""
    return [pytest.param(*case, id=case[0], marks=compared("gfx950", case[0])) for case in cases]


DENSE = _marked(
    ("v_mfma_f32_16x16x32_bf16", "bf16", 16, 32),
    ("v_mfma_f32_16x16x32_f16", "f16", 16, 32),
    ("v_mfma_f32_32x32x16_bf16", "bf16", 32, 16),
    ("v_mfma_f32_32x32x16_f16", "f16", 32, 16),
    ("v_mfma_f32_16x16x16_bf16", "bf16", 16, 16),
    ("v_mfma_f32_16x16x16_f16", "f16", 16, 16),
    ("v_mfma_f32_32x32x8_bf16", "bf16", 32, 8),
    ("v_mfma_f32_32x32x8_f16", "f16", 32, 8),
    ("v_mfma_f32_16x16x4_f32", "f32", 16, 4),
    ("v_mfma_f32_32x32x2_f32", "f32", 32, 2),
)


def _range(first: int, count: int, bank: str = "v") -> str:
    return f"{bank}[{first}:{first + count - 1}]" if count > 1 else f"{bank}{first}"


def _lanes(x: np.ndarray, size: int, depth: int) -> np.ndarray:
    """A [size, depth] (or B transposed) as [64, elements of a lane]."""
    elements = depth * size // 64
    k = (LANE // size * elements)[:, None] + np.arange(elements)
    return x[(LANE % size)[:, None], k]


@pytest.mark.parametrize(("mnemonic", "kind", "size", "depth"), DENSE)
def test_dense(mnemonic: str, kind: str, size: int, depth: int):
    rng = np.random.default_rng(depth)
    a, b = (_round(rng.normal(size=(size, depth)), kind) for _ in range(2))
    if kind == "bf16":  # products that single precision cannot hold
        a[0] *= F32(2.0**-80)
        b[1] *= F32(2.0**-60)
        a[2] *= F32(2.0**100)
        b[3] *= F32(2.0**90)
    a[5, 1], b[7, 1], a[6, 0] = np.inf, 0, np.nan
    c = rng.normal(size=(size, size)).astype(F32)
    i, j = _result_place(size)
    operand_a = _pack(_lanes(a, size, depth), kind)
    operand_b = _pack(_lanes(b, size, depth), kind)
    rows = np.concatenate([operand_a, operand_b, c[i, j].view(np.uint32)])[None]
    n, registers = len(operand_a), len(i)
    first_c = 16 + 2 * n
    operands = f"{_range(16, n)}, {_range(16 + n, n)}"
    out = _range(64, registers)
    agprs = "".join(f"v_accvgpr_write_b32 a{2 + e}, v{16 + e}\n" for e in range(n))
    copies = "".join(f"v_mov_b32 v{64 + e}, v{first_c + e}\n" for e in range(registers))
    kernels = {
        "plain": f"{mnemonic} {out}, {operands}, {_range(first_c, registers)}",
        "in_place": copies + f"s_nop 1\n{mnemonic} {out}, {operands}, {out}",
        "zero": f"{mnemonic} {out}, {operands}, 0",
        "agpr": agprs + f"s_nop 1\n{mnemonic} {out}, {_range(2, n, 'a')}, {_range(16 + n, n)}, 0",
        "exec": f"s_mov_b64 exec, 5\n{mnemonic} {out}, {operands}, {_range(first_c, registers)}",
    }
    kernels = {name: asm.Kernel(body, len(rows[0]), registers) for name, body in kernels.items()}
    code = asm.assemble(kernels)
    with np.errstate(all="ignore"):
        full = _accumulate(a, b.T, c)[i, j]
        alone = _accumulate(a, b.T, np.zeros_like(c))[i, j]
    for name, kernel in kernels.items():
        expected = alone if name in ("zero", "agpr") else full
        assert_same(asm.run(code, name, kernel, rows)[0], expected, f"{mnemonic}, {name}")


SPARSE = _marked(
    ("v_smfmac_f32_16x16x64_bf16", "bf16", 16, 64),
    ("v_smfmac_f32_16x16x64_f16", "f16", 16, 64),
    ("v_smfmac_f32_32x32x32_bf16", "bf16", 32, 32),
    ("v_smfmac_f32_16x16x32_bf16", "bf16", 16, 32),
    ("v_smfmac_f32_32x32x16_f16", "f16", 32, 16),
)


@pytest.mark.parametrize(("mnemonic", "kind", "size", "depth"), SPARSE)
@pytest.mark.parametrize("chosen", [0, 1])
def test_sparse(mnemonic: str, kind: str, size: int, depth: int, chosen: int):
    """Set 1 of the positions is asked for by abid; what the other set holds changes nothing."""
    rng = np.random.default_rng(depth)
    groups = 64 // size
    stored = depth // 2 // groups  # elements of A in a lane
    a = _round(rng.normal(size=(64, stored)), kind)
    b = _round(rng.normal(size=(depth, size)), kind)
    c = rng.normal(size=(size, size)).astype(F32)
    pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    place = pairs[rng.integers(0, 6, (64, stored // 2))].reshape(64, stored)
    position = np.zeros(64, np.uint32)
    for e in range(stored):
        position |= (place[:, e] << (2 * e)).astype(np.uint32)
    bits = 2 * stored
    other = rng.integers(0, 2**bits, 64, dtype=np.uint32)
    shifted = position | other << bits if chosen == 0 else other | position << bits
    k_of_a = 2 * stored * (LANE // size)[:, None] + 4 * (np.arange(stored) // 2) + place
    sums = c.copy()
    for t in range(depth // 2):  # in the order of the stored elements
        group, e = divmod(t, stored)
        lanes = group * size + np.arange(size)
        x, y = np.broadcast_arrays(a[lanes, e][:, None], b[k_of_a[lanes, e]])
        sums = fma(x, y, sums)
    e = np.arange(2 * stored)
    k_of_b = 8 * (LANE // size)[:, None] + e % 8 + 8 * groups * (e // 8)
    operand_b = b[k_of_b, (LANE % size)[:, None]]
    i, j = _result_place(size)
    first = _pack(a, kind)
    second = _pack(operand_b, kind)
    rows = np.concatenate([first, second, shifted[None], c[i, j].view(np.uint32)])[None]
    n, m, registers = len(first), len(second), len(i)
    copies = "".join(f"v_mov_b32 v{64 + r}, v{17 + n + m + r}\n" for r in range(registers))
    body = (
        f"{copies}s_nop 1\n{mnemonic} {_range(64, registers)}, {_range(16, n)}, "
        f"{_range(16 + n, m)}, v{16 + n + m} abid:{chosen}"
    )
    kernel = asm.Kernel(body, len(rows[0]), registers)
    actual = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows)[0]
    assert_same(actual, sums[i, j], mnemonic)


@compared("gfx950", "v_smfmac_f32_16x16x64_bf16")
def test_row_sums_by_sparse_ones():
    """A of ones at positions (0, 1) in even lanes and (2, 3) in odd ones: rows 0 and 1 of D hold
    the sums of alternate pairs of k, which together are the sum of a column of B."""
    rng = np.random.default_rng(0)
    b = _round(rng.random((64, 16)), "bf16")
    e = np.arange(16)
    operand_b = b[8 * (LANE // 16)[:, None] + e % 8 + 32 * (e // 8), (LANE % 16)[:, None]]
    ones = np.full((4, 64), 0x3F803F80, np.uint32)
    positions = np.where(LANE % 2 == 0, 0x44444444, 0xEEEEEEEE).astype(np.uint32)
    rows = np.concatenate([ones, _pack(operand_b, "bf16"), positions[None]])[None]
    zeros = "".join(f"v_mov_b32 v{64 + r}, 0\n" for r in range(4))
    body = f"{zeros}s_nop 1\nv_smfmac_f32_16x16x64_bf16 v[64:67], v[16:19], v[20:27], v28"
    kernel = asm.Kernel(body, 13, 4)
    sums = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows)[0].view(F32)
    np.testing.assert_allclose(sums[0] + sums[1], b.sum(0)[LANE % 16], rtol=1e-5)


BLOCKS = _marked(
    ("v_mfma_f32_4x4x4_16b_f16", "f16", 4),
    ("v_mfma_f32_16x16x4_4b_bf16", "bf16", 16),
    ("v_mfma_f32_32x32x4_2b_f16", "f16", 32),
    ("v_mfma_f32_4x4x1_16b_f32", "f32", 4),
    ("v_mfma_f32_32x32x1_2b_f32", "f32", 32),
)


@pytest.mark.parametrize(("mnemonic", "kind", "size"), BLOCKS)
@pytest.mark.parametrize("broadcast", [False, True])
def test_several_blocks(mnemonic: str, kind: str, size: int, broadcast: bool):
    """Products of one block each; with cbsz all blocks use the A of block abid."""
    rng = np.random.default_rng(size)
    blocks, depth = 64 // size, 1 if kind == "f32" else 4
    a, b = (_round(rng.normal(size=(blocks, size, depth)), kind) for _ in range(2))
    c = rng.normal(size=(blocks, size, size)).astype(F32)
    per_block = size * size // 64
    block = np.repeat(np.arange(blocks), max(per_block, 1))[:, None] + 0 * LANE
    if size == 4:
        block, i, j = np.broadcast_arrays(LANE // 4, np.arange(4)[:, None], LANE % 4)
    else:
        i, j = (np.tile(x, (blocks, 1)) for x in _result_place(size))
    operands = [_pack(x[LANE // size, LANE % size], kind) for x in (a, b)]
    rows = np.concatenate([*operands, c[block, i, j].view(np.uint32)])[None]
    n, registers = len(operands[0]), len(i)
    suffix = f" cbsz:{(blocks - 1).bit_length()} abid:1" if broadcast else ""
    body = (
        f"{mnemonic} {_range(64, registers)}, {_range(16, n)}, {_range(16 + n, n)}, "
        f"{_range(16 + 2 * n, registers)}{suffix}"
    )
    kernel = asm.Kernel(body, len(rows[0]), registers)
    actual = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows)[0]
    used = np.ones(blocks, int) if broadcast else np.arange(blocks)
    sums = np.stack([_accumulate(a[used[x]], b[x].T, c[x]) for x in range(blocks)])
    assert_same(actual, sums[block, i, j], mnemonic)


INTEGERS = _marked(
    ("v_mfma_i32_16x16x32_i8", 16, 32),
    ("v_mfma_i32_16x16x64_i8", 16, 64),
    ("v_mfma_i32_32x32x16_i8", 32, 16),
    ("v_mfma_i32_32x32x32_i8", 32, 32),
)


@pytest.mark.parametrize(("mnemonic", "size", "depth"), INTEGERS)
def test_integers(mnemonic: str, size: int, depth: int):
    rng = np.random.default_rng(depth)
    a, b = (rng.integers(-128, 128, (size, depth), dtype=np.int8) for _ in range(2))
    c = rng.integers(-(2**31), 2**31, (size, size), dtype=np.int32)
    i, j = _result_place(size)
    operands = [np.ascontiguousarray(_lanes(x, size, depth)).view(np.uint32).T for x in (a, b)]
    rows = np.concatenate([*operands, c[i, j].view(np.uint32)])[None]
    n, registers = len(operands[0]), len(i)
    body = (
        f"{mnemonic} {_range(64, registers)}, {_range(16, n)}, {_range(16 + n, n)}, "
        f"{_range(16 + 2 * n, registers)}"
    )
    kernel = asm.Kernel(body, len(rows[0]), registers)
    actual = asm.run(asm.assemble({"k": kernel}), "k", kernel, rows)[0]
    expected = (a.astype(np.int64) @ b.T.astype(np.int64) + c).astype(np.int32)
    assert_same(actual, expected[i, j], mnemonic)
