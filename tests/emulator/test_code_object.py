"""Loading code objects: what they say, and that damaged ones are errors, never crashes."""

import os
from collections.abc import Iterable

import numpy as np
import pytest
from assemble import assemble, assemble_source, kernels_source

from jax_fa import _native, emulator

BODY = """
s_load_dwordx2 s[8:9], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
s_waitcnt lgkmcnt(0)
global_store_dword v1, v0, s[8:9]
s_endpgm
"""


@pytest.fixture(scope="module")
def elf():
    return assemble("gfx950", BODY)


def test_path_and_bytes(elf, tmp_path):
    path = tmp_path / "kernel.co"
    path.write_bytes(elf)
    for source in (elf, path, str(path)):
        code = emulator.CodeObject(source)
        assert code.target == "gfx950"
        assert list(code.kernels) == ["kernel"]


@pytest.mark.parametrize("version", [4, 5, 6])
def test_versions(version):
    image = assemble("gfx950", BODY, version=version)
    assert image[8] == version - 2  # the ELF's ABI version
    out = np.zeros(64, np.int32)
    emulator.CodeObject(image).launch("kernel", 1, 64, args=[out])
    np.testing.assert_array_equal(out, np.arange(64))


def test_missing_file():
    with pytest.raises(FileNotFoundError):
        emulator.CodeObject("no/such/file.co")


def _patched(elf: bytes, offset: int, value: bytes) -> bytes:
    return elf[:offset] + value + elf[offset + len(value) :]


def test_what_is_wrong_is_said(elf):
    cases = {
        "ELF signature": b"not an ELF" * 10,
        "offload bundle": b"__CLANG_OFFLOAD_BUNDLE__" + bytes(100),
        "truncated": elf[:100],
        "not AMDGPU": _patched(elf, 18, b"\x3e\x00"),
        "neither gfx950 nor gfx1201": _patched(elf, 48, b"\x2c"),  # gfx900
        "ABI version": _patched(elf, 8, b"\x01"),
    }
    for what, damaged in cases.items():
        with pytest.raises(emulator.EmulatorError, match=what):
            emulator.CodeObject(damaged)
    with pytest.raises(emulator.EmulatorError):
        emulator.CodeObject(b"")


def _only_metadata(source: str) -> str:
    """What an assembly file says of its kernels, without them."""
    return "\n".join(source.split("\n")[:2]) + "\n" + source[source.index(".amdgpu_metadata") :]


def test_kernels_of_objects_linked_together():
    """Each object brings a metadata note of its own."""
    stores = {
        name: BODY.replace("v1, v0, s", f"v1, v{place}, s") for place, name in enumerate("ab")
    }
    sources = [
        kernels_source("gfx950", {name: body}, vgprs=32 * (1 + place))
        for place, (name, body) in enumerate(stores.items())
    ]
    code = emulator.CodeObject(assemble_source("gfx950", *sources))
    assert {name: kernel.vgprs for name, kernel in code.kernels.items()} == {"a": 32, "b": 64}
    for place, name in enumerate("ab"):
        out = np.zeros(64, np.int32)
        code.launch(name, 1, 64, args=[out])
        np.testing.assert_array_equal(out, np.arange(64) * (4 if place else 1))


def test_kernel_described_twice():
    source, other = (kernels_source("gfx950", {"k": BODY}, vgprs=vgprs) for vgprs in (32, 40))
    code = emulator.CodeObject(assemble_source("gfx950", source, _only_metadata(source)))
    assert list(code.kernels) == ["k"]
    with pytest.raises(emulator.EmulatorError, match="describes kernel 'k' twice, and differently"):
        emulator.CodeObject(assemble_source("gfx950", source, _only_metadata(other)))


def _damaged(image: bytes, rng: np.random.Generator) -> bytes:
    """A copy that is cut, of another machine, overwritten, or has flipped bits."""
    copy = bytearray(image)
    kind = rng.integers(6)
    if kind == 0:
        del copy[rng.integers(len(copy)) :]
    elif kind == 1:
        copy[rng.choice([16, 18, 48])] = rng.integers(256)
    elif kind == 2:
        start = int(rng.integers(len(copy)))
        copy[start:] = rng.bytes(len(copy) - start)
    elif kind == 3:
        start, source = rng.integers(len(copy), size=2)
        block = copy[source : source + rng.integers(1, 65)]
        copy[start : start + len(block)] = block
    elif kind == 4:
        for place in rng.integers(len(copy), size=rng.integers(1, 8)):
            copy[place] = rng.integers(256)
    else:
        for place in rng.integers(len(copy), size=rng.integers(1, 4)):
            copy[place] ^= 1 << rng.integers(8)
    return bytes(copy)


def _load_and_run(images: Iterable[bytes], argument_bytes: int, block: int) -> dict[str, int]:
    """How many loaded, and how many of their kernels ran to the end."""
    ends = {"cases": 0, "loaded": 0, "ran": 0}
    for image in images:
        ends["cases"] += 1
        try:
            code = emulator.CodeObject(image)
        except emulator.EmulatorError:
            continue
        ends["loaded"] += 1
        for place, name in enumerate(code.kernels):
            out = np.zeros(64, np.int32)
            kernarg = np.uint64(out.ctypes.data).tobytes().ljust(argument_bytes, b"\0")
            checks = "collect" if place % 2 else True
            options = {"threads": 1, "max_instructions_per_wave": 1000, "checks": checks}
            try:
                code.launch(name, 1, block, kernarg=kernarg, buffers=[out], **options)
            except (emulator.EmulatorError, ValueError):
                continue
            ends["ran"] += 1
    return ends


def test_damaged_code_objects_are_errors_never_crashes(elf):
    """What still loads is also run."""
    rng = np.random.default_rng(0)
    ends = _load_and_run((_damaged(elf, rng) for _ in range(1500)), 8, 64)
    assert ends["loaded"] > 300
    assert ends["ran"] > 100


# Every family of instructions: scalar and vector, LDS, memory, branches, matrix.
ZEROS = "\n".join(f"v_mov_b32 v{register}, 0" for register in range(2, 28))
GFX950_MIX = f"""
s_load_dwordx2 s[8:9], s[0:1], 0x0
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 2, v0
s_mov_b32 s10, 256
s_mov_b32 s11, 0x27000
s_mov_b32 s12, 0
s_mov_b32 m0, 512
{ZEROS}
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
s_barrier
.Lloop:
global_load_dword v4, v1, s[8:9]
global_load_lds_dword v1, s[8:9]
s_waitcnt vmcnt(0)
ds_read_b32 v5, v1
ds_write_b32 v1, v4 offset:256
s_waitcnt lgkmcnt(0)
s_barrier
v_cvt_f32_i32 v6, v4
v_exp_f32 v7, v6
s_nop 1
v_mov_b32_dpp v8, v5 row_ror:1 row_mask:0xf bank_mask:0xf
v_cmp_lt_i32 vcc, v4, v5
v_cndmask_b32 v9, v4, v5, vcc
v_pk_fma_f32 v[10:11], v[6:7], v[6:7], v[8:9]
s_nop 1
v_mfma_f32_16x16x32_bf16 v[16:19], v[4:7], v[8:11], 0
v_mfma_scale_f32_16x16x128_f8f6f4 v[20:23], v[4:7], v[8:13], 0, v24, v25 cbsz:4 blgp:2
s_nop 15
v_permlane32_swap_b32 v16, v17
ds_bpermute_b32 v18, v1, v16
s_waitcnt lgkmcnt(0)
buffer_load_dword v20, v1, s[8:11], s12 offen
s_waitcnt vmcnt(0)
global_atomic_add v1, v4, s[8:9]
s_add_u32 s12, s12, 1
s_cmp_lt_u32 s12, 3
s_cbranch_scc1 .Lloop
global_store_dword v1, v18, s[8:9]
s_endpgm
"""
GFX1201_MIX = f"""
s_load_b64 s[8:9], s[0:1], 0x0
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 2, v0
v_lshlrev_b32 v3, 2, v0
s_mov_b32 s10, 256
s_mov_b32 s11, 0x30020000
s_mov_b32 s12, 0
{ZEROS}
v_and_b32 v3, 0x7c, v1
s_wait_kmcnt 0x0
.Lloop:
global_load_b32 v4, v1, s[8:9]
s_wait_loadcnt 0x0
ds_store_b32 v1, v4
s_wait_dscnt 0x0
s_barrier_signal -1
s_barrier_wait -1
ds_load_b32 v5, v1
s_wait_dscnt 0x0
v_cvt_f32_i32 v6, v4
v_exp_f32 v7, v6
v_dual_mul_f32 v8, v6, v7 :: v_dual_add_f32 v9, v7, v6
v_pk_fma_f16 v10, v6, v7, v8
v_wmma_f32_16x16x16_f16 v[16:23], v[4:7], v[8:11], 0
v_permlanex16_b32 v12, v4, s12, s12
global_load_tr_b128 v[24:27], v3, s[8:9]
s_wait_loadcnt 0x0
buffer_load_b32 v20, v1, s[8:11], s12 offen
s_wait_loadcnt 0x0
global_atomic_add_u32 v1, v4, s[8:9]
s_add_co_u32 s12, s12, 1
s_wait_alu depctr_sa_sdst(0)
s_cmp_lt_u32 s12, 3
s_cbranch_scc1 .Lloop
global_store_b32 v1, v12, s[8:9]
s_endpgm
"""
MIXES = {"gfx950": GFX950_MIX, "gfx1201": GFX1201_MIX}
FUZZ_CASES = int(os.environ.get("JAX_FA_FUZZ_CASES", "20000"))


@pytest.mark.slow
@pytest.mark.parametrize("target", MIXES)
def test_many_damaged_code_objects(target, capsys):
    elf = assemble(target, MIXES[target], lds_bytes=1024)
    assert _load_and_run([elf], 8, 64)["ran"] == 1
    rng = np.random.default_rng(1)
    ends = _load_and_run((_damaged(elf, rng) for _ in range(FUZZ_CASES)), 8, 64)
    with capsys.disabled():
        print(f"\n{target}: damaged code objects: {ends}, no crash")
    assert ends["ran"] > FUZZ_CASES // 20


@pytest.mark.slow
@pytest.mark.parametrize("target", MIXES)
def test_damaged_shipped_code_objects(target, capsys):
    image = _native.code_object(target)
    rng = np.random.default_rng(2)
    block = {"gfx950": 512, "gfx1201": 256}[target]
    ends = _load_and_run((_damaged(image, rng) for _ in range(FUZZ_CASES // 200)), 272, block)
    with capsys.disabled():
        print(f"\n{target}: damaged copies of the shipped code object: {ends}, no crash")
    assert ends["loaded"] > FUZZ_CASES // 2000
