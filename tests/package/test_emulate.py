"""The command jax-fa emulate."""

import json

import numpy as np
import pytest
from assemble import WAVE_SIZE, assemble
from cases import KERNEL_TARGETS

from jax_fa import _cli

# out[lane] = in[lane] + addend, an int32.
ADD = {
    "gfx950": """
s_load_dwordx4 s[8:11], s[0:1], 0x0
s_load_dword s12, s[0:1], 0x10
v_lshlrev_b32 v1, 2, v0
s_waitcnt lgkmcnt(0)
global_load_dword v2, v1, s[8:9]
{wait}
v_add_u32 v2, s12, v2
global_store_dword v1, v2, s[10:11]
s_endpgm
""",
    "gfx1201": """
s_load_b128 s[8:11], s[0:1], 0x0
s_load_b32 s12, s[0:1], 0x10
v_lshlrev_b32 v1, 2, v0
s_wait_kmcnt 0x0
global_load_b32 v2, v1, s[8:9]
{wait}
v_add_nc_u32 v2, s12, v2
global_store_b32 v1, v2, s[10:11]
s_endpgm
""",
}
WAIT = {"gfx950": "s_waitcnt vmcnt(0)", "gfx1201": "s_wait_loadcnt 0x0"}
ARGS = ("pointer", "pointer", "i32")


@pytest.fixture(params=KERNEL_TARGETS)
def target(request):
    return request.param


@pytest.fixture
def add(target, tmp_path):
    path = tmp_path / "add.co"
    path.write_bytes(assemble(target, ADD[target].format(wait=WAIT[target]), ARGS))
    return path


@pytest.fixture
def source(target, tmp_path):
    path = tmp_path / "in.npy"
    np.save(path, np.arange(WAVE_SIZE[target], dtype=np.int32))
    return path


def emulate(capsys, *words, status=0):
    assert _cli.main(["emulate", *map(str, words)]) == status
    return capsys.readouterr()


def test_a_launch_with_arrays_from_files_and_to_them(capsys, add, source, target, tmp_path):
    lanes, out = WAVE_SIZE[target], tmp_path / "out.npy"
    command = [add, "--kernel", "kernel", "--args", source, f"zeros:i32:{lanes}", "i32:-5"]
    written = emulate(capsys, *command, "--save", f"1={out}").out
    np.testing.assert_array_equal(np.load(out), np.arange(lanes) - 5)
    np.testing.assert_array_equal(np.load(source), np.arange(lanes))
    assert "9 wave instructions" in written
    assert f"argument 1: int32 ({lanes},) [-5, -4, -3, -2, -1, 0, 1, 2, ...]" in written
    assert f"{4 * lanes + 20} B read, {4 * lanes} B written" in written
    assert "modelled" not in written


def test_json_and_what_is_asked_for(capsys, add, source, target):
    command = [
        add,
        "--kernel",
        "kernel",
        "--args",
        source,
        f"zeros:u8:4x{WAVE_SIZE[target]}",
        "i32:0x10",
    ]
    report = json.loads(emulate(capsys, *command, "--json", "--timing", "--follow", "0,0").out)
    assert report["counts"]["class"]["vmem_load"] == 1
    assert report["modelled_cycles"] > 0
    assert report["findings"] == []
    load = next(
        step for step in report["steps"] if step["text"].startswith(WAIT[target].split()[0])
    )
    assert load["modelled_clock"] > 0
    written = {name: values for step in report["steps"] for name, values in step["written"].items()}
    assert written["v2"] == list(range(16, 16 + WAVE_SIZE[target]))


def test_findings_are_printed_and_fail(capsys, target, source, tmp_path):
    path = tmp_path / "wrong.co"
    path.write_bytes(assemble(target, ADD[target].format(wait="s_nop 0"), ARGS))
    command = [
        path,
        "--kernel",
        "kernel",
        "--args",
        source,
        f"zeros:i32:{WAVE_SIZE[target]}",
        "i32:1",
    ]
    assert (
        "finding: kernel kernel, workgroup (0, 0, 0), wave 0"
        in emulate(capsys, *command, status=1).out
    )
    early = emulate(capsys, *command, "--no-checks", "--arrival", "early").out
    assert "argument 1: int32" in early
    assert "[1, 2, 3, 4, 5, 6, 7, 8, ...]" in early


def test_without_a_kernel_they_are_listed(capsys, add):
    listed = emulate(capsys, add).out
    assert "1 kernels" in listed
    assert listed.count("8 B)") == 2
    report = json.loads(emulate(capsys, add, "--json").out)
    assert [argument["bytes"] for argument in report["kernels"]["kernel"]] == [8, 8, 4]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--kernel", "other"], "--kernel must be one of kernel; got other"),
        (["--kernel", "kernel"], "kernel kernel takes 3 arguments"),
        (["--kernel", "kernel", "--args", "null", "null", "5"], "argument 2: each is one of"),
        (["--kernel", "kernel", "--args", "null", "null", "i8:300"], "argument 2: each is one of"),
        (["--kernel", "kernel", "--args", "null", "null", "i64:3"], "takes 4 bytes; got 8"),
        (["--kernel", "kernel", "--args", "none.npy", "null", "i32:3"], "none.npy"),
        (["--kernel", "kernel", "--args", "zeros:i32:-4", "null", "i32:3"], "argument 0: each"),
        (
            ["--kernel", "kernel", "--args", "null", "null", "i32:3", "--save", "2=x.npy"],
            "argument 2 is no array",
        ),
        (["--kernel", "kernel", "--args", "null", "null", "i32:3", "--grid", "0"], "grid must be"),
        (
            ["--kernel", "kernel", "--args", "null", "null", "i32:3", "--schedule", "x"],
            "schedule must be",
        ),
        (
            ["--kernel", "kernel", "--args", "null", "null", "i32:3", "--follow", "9"],
            "follow must be",
        ),
        (["--kernel", "kernel", "--args", "null", "null", "i32:3"], "outside"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_errors_name_what_is_wrong(capsys, add, words, error):
    assert error in emulate(capsys, add, *words, status=1).err


def test_a_file_that_is_none(capsys, tmp_path):
    assert "No such file" in emulate(capsys, tmp_path / "none.co", status=1).err
    (tmp_path / "text.co").write_text("text")
    assert "jax-fa: " in emulate(capsys, tmp_path / "text.co", status=1).err
