"""The command jax-fa isa, on the shipped kernels and on code written here."""

import json

import pytest
from assemble import assemble
from cases import KERNEL_TARGETS

from jax_fa import _cli, _native, emulator
from jax_fa._cli import isa as _isa

KERNEL_KEYS = ["name", "op", "variant", "dtype", "head_dim", "vgprs", "agprs", "sgprs"]
KERNEL_KEYS += ["vgpr_spills", "sgpr_spills", "scratch_bytes", "lds_bytes", "workgroup_size"]
KERNEL_KEYS += ["waves_per_simd", "hot_loops"]
LOOP_KEYS = ["matrix", "sparse_matrix", "valu", "valu_packed", "valu_dual", "trans", "valu_slots"]
LOOP_KEYS += ["salu", "lds_read", "lds_write", "vmem", "lds_dma", "waits", "barriers", "branches"]
LOOP_KEYS += ["nops"]


def isa(capsys, *words):
    assert _cli.main(["isa", *map(str, words)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_json_of_the_shipped_kernels(capsys, target):
    report = json.loads(isa(capsys, "--target", target, "--json"))
    assert list(report) == ["target", "kernels"]
    assert report["target"] == target
    code = emulator.CodeObject(_native.code_object(target))
    assert [kernel["name"] for kernel in report["kernels"]] == list(code.kernels)
    for kernel in report["kernels"]:
        assert list(kernel) == KERNEL_KEYS
        assert kernel["vgprs"] == code.kernels[kernel["name"]].vgprs
        for loop in kernel["hot_loops"]:
            assert list(loop) == LOOP_KEYS
    plain = next(k for k in report["kernels"] if k["name"] == "flash_bfloat16_h128_plain")
    assert [plain[key] for key in ("op", "variant", "dtype", "head_dim")] == [
        *("flash", "plain", "bfloat16", 128)
    ]
    assert plain["hot_loops"]


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_matrix_work_of_a_hot_loop_is_that_of_its_tile(capsys, target):
    # Per wave and tile: both products of (rows x keys x H) in steps of one instruction.
    rows, keys, steps = {"gfx950": (48, 64, 16 * 16 * 32), "gfx1201": (16, 32, 16**3)}[target]
    report = json.loads(isa(capsys, "--target", target, "--json"))
    plain = next(k for k in report["kernels"] if k["name"] == "flash_bfloat16_h128_plain")
    # On gfx1201 a head that ends inside the tile has a loop of its own number of steps.
    heads = {"gfx950": (128,), "gfx1201": (128, 112, 96, 80)}[target]
    found = {loop["matrix"] for loop in plain["hot_loops"]}
    assert found == {2 * rows * keys * head // steps for head in heads}
    for loop in plain["hot_loops"]:
        assert loop["trans"] == rows * keys // {"gfx950": 64, "gfx1201": 32}[target]


BODY = {
    "gfx950": """
    s_mov_b32 s4, 3
    v_mov_b32 v4, 0
top:
    v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], v[0:3]
    v_smfmac_f32_16x16x64_bf16 v[0:3], v[4:7], v[8:15], v16
    v_exp_f32 v17, v17
    v_pk_mul_f32 v[18:19], v[18:19], v[18:19]
    v_add_f32 v17, v17, v17
    ds_read_b128 v[20:23], v4
    ds_write_b32 v4, v17
    s_waitcnt lgkmcnt(0)
    s_barrier
    s_nop 1
    s_cmp_lg_u32 s5, 0
    s_cbranch_scc0 join
    v_mov_b32 v30, 0
    v_mov_b32 v30, 0
join:
    s_sub_u32 s4, s4, 1
    s_cmp_lg_u32 s4, 0
    s_cbranch_scc1 top
    s_endpgm
""",
    "gfx1201": """
    s_mov_b32 s4, 3
top:
    v_wmma_f32_16x16x16_bf16 v[0:7], v[8:11], v[12:15], v[0:7]
    v_exp_f32 v17, v17
    v_dual_mul_f32 v18, v18, v18 :: v_dual_mul_f32 v19, v19, v19
    v_add_f32 v17, v17, v17
    global_load_b128 v[20:23], v24, s[0:1]
    s_wait_loadcnt 0
    s_barrier_signal -1
    s_barrier_wait -1
    s_sub_co_u32 s4, s4, 1
    s_cmp_lg_u32 s4, 0
    s_cbranch_scc1 top
    s_endpgm
""",
}
EXPECTED = {
    "gfx950": {"matrix": 1, "sparse_matrix": 1, "valu": 1, "valu_packed": 1, "trans": 1}
    | {"valu_slots": 4, "salu": 3, "lds_read": 1, "lds_write": 1, "waits": 1, "barriers": 1}
    | {"branches": 2, "nops": 1},
    "gfx1201": {"matrix": 1, "valu": 1, "valu_dual": 1, "trans": 1, "valu_slots": 2, "salu": 2}
    | {"vmem": 1, "waits": 1, "barriers": 2, "branches": 1},
}


@pytest.mark.parametrize("target", sorted(BODY))
def test_foreign_file(capsys, tmp_path, target):
    file = tmp_path / "foreign.co"
    file.write_bytes(assemble(target, BODY[target], lds_bytes=1024))
    report = json.loads(isa(capsys, file, "--json"))
    assert report["target"] == target
    (kernel,) = report["kernels"]
    assert kernel["name"] == "kernel"
    assert kernel["op"] is kernel["variant"] is kernel["dtype"] is kernel["head_dim"] is None
    assert kernel["lds_bytes"] == 1024
    assert kernel["hot_loops"] == [dict.fromkeys(LOOP_KEYS, 0) | EXPECTED[target]]
    assert "kernel: " in isa(capsys, file)


def test_unknown_instructions_are_said(capsys, tmp_path):
    file = tmp_path / "kernel.co"
    # The second is never reached, nor is the padding behind the end.
    body = ".long 0x7e00ffff\ns_endpgm\n.long 0x7e00ffff\n"
    file.write_bytes(assemble("gfx950", "v_mov_b32 v0, 0\n" + body))
    assert _cli.main(["isa", str(file)]) == 0
    said = capsys.readouterr().err
    assert said == "jax-fa: kernel: 1 instructions are not known here and count as nops\n"
    file.write_bytes(assemble("gfx950", "s_endpgm\n.long 0x7e00ffff\n"))
    assert _cli.main(["isa", str(file)]) == 0
    assert capsys.readouterr().err == ""


def test_names():
    assert _isa.describe_name("decode_float16_h64_paged_softcap") == {
        "op": "decode",
        "variant": "paged+softcap",
        "dtype": "float16",
        "head_dim": 64,
    }
    assert _isa.describe_name("decode_bfloat16_h256_paged_wide")["variant"] == "paged+wide"
    assert _isa.describe_name("merge_bfloat16") == {
        "op": "merge",
        "variant": "plain",
        "dtype": "bfloat16",
        "head_dim": None,
    }
    assert set(_isa.describe_name("attention").values()) == {None}


@pytest.mark.parametrize(
    ("target", "vgprs", "lds_bytes", "waves"),
    [
        ("gfx950", 64, 0, 8),
        ("gfx950", 128, 0, 4),
        ("gfx950", 136, 0, 3),
        ("gfx950", 256, 0, 2),
        ("gfx950", 64, 65536, 8),  # two workgroups of 1024 lanes
        ("gfx950", 64, 163840, 4),  # one
        ("gfx1201", 96, 0, 16),
        ("gfx1201", 97, 0, 12),
        ("gfx1201", 168, 0, 9),
        ("gfx1201", 256, 0, 5),
    ],
)
def test_waves_per_simd(capsys, tmp_path, target, vgprs, lds_bytes, waves):
    file = tmp_path / "kernel.co"
    file.write_bytes(assemble(target, "s_endpgm", vgprs=vgprs, lds_bytes=lds_bytes))
    (kernel,) = json.loads(isa(capsys, file, "--json"))["kernels"]
    assert kernel["waves_per_simd"] == waves


def test_what_cannot_be_read_is_said(capsys, tmp_path):
    file = tmp_path / "text.co"
    file.write_text("no code")
    for path in (file, tmp_path / "absent.co"):
        assert _cli.main(["isa", str(path), "--json"]) == 1
        written = capsys.readouterr()
        assert written.out == ""
        assert written.err.startswith("jax-fa: ")
    with pytest.raises(SystemExit):
        _cli.main(["isa", "--target", "gfx90a"])
    assert "gfx90a" in capsys.readouterr().err
