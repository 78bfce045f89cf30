"""The way from symptom to line in the emulator's README is the one that the commands go."""

import re
import shlex
from pathlib import Path

import numpy as np
from assemble import assemble

from jax_fa import _cli

README = Path(__file__).parents[2] / "csrc/emulator/README.md"

DOUBLE = """
s_load_dwordx4 s[8:11], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
s_waitcnt lgkmcnt(0)
global_load_dword v2, v1, s[8:9]
{wait}
v_add_u32 v2, v2, v2
global_store_dword v1, v2, s[10:11]
s_endpgm
"""


def words(line):
    return " ".join(line.split())


def test_commands_print_what_the_document_shows(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name, wait in (("double", ""), ("mended", "s_waitcnt vmcnt(0)")):
        code = assemble("gfx950", DOUBLE.format(wait=wait), ("pointer",) * 2)
        Path(f"{name}.co").write_bytes(code)
    np.save("in.npy", np.arange(1, 65, dtype=np.int32))
    blocks = re.findall(r"```console\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        for command, *shown in (part.splitlines() for part in block.split("$ ")[1:]):
            program, *arguments = shlex.split(command)
            assert program == "jax-fa"
            status = _cli.main(arguments)
            printed = [words(line) for line in capsys.readouterr().out.splitlines()]
            assert shown
            assert [line for line in printed if line in shown] == shown
            assert status == any(line.startswith("finding: ") for line in printed)
