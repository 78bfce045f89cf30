"""Generated defects: what is made of a kernel, what kills it, and what is called harmless."""

import functools

import numpy as np
import pytest
from assemble import assemble
from cases import KERNEL_TARGETS
from mutants import barriers, kinds, nops, replay, table, waits
from mutants.sites import Image, sites
from mutants.verdicts import Subject, judge, load, pick

from jax_fa import _native, emulator

LANES = 128
START = """
    s_load_dwordx2 s[8:9], s[0:1], 0x0
    v_and_b32 v0, 0x3ff, v0
    v_lshlrev_b32 v1, 2, v0
    v_xor_b32 v2, 0x100, v1
    s_waitcnt lgkmcnt(0)
    global_load_dword v3, v1, s[8:9]
"""
END = """
    global_store_dword v1, v3, s[8:9]
    s_endpgm
"""
EXCHANGE = """
    s_waitcnt vmcnt(0)
    ds_write_b32 v1, v3
    s_waitcnt lgkmcnt(0)
    {barriers}
    ds_read_b32 v3, v2
    s_waitcnt lgkmcnt(0)
"""


def subject_of(body: str) -> Subject:
    """A kernel over an array with an element for each lane of two waves."""
    elf = assemble("gfx950", START + body + END, lds_bytes=1024)
    array = np.arange(LANES, dtype=np.int32)
    address = np.uint64(1 << 20)  # of where the array was
    launch = replay.Replay(
        *("own", "gfx950", "kernel", (1, 1, 1), (LANES, 1, 1)),
        address.tobytes(),
        (("array", int(address), array.tobytes()),),
    )
    return Subject("gfx950", elf, [replay.know(launch, emulator.CodeObject(elf))])


def verdicts(body: str, *wanted: str) -> list[str | None]:
    """What killed each defect, or why it is harmless, in the order of the instructions."""
    subject = subject_of(body)
    judged = judge(subject, pick(subject, wanted))
    judged.sort(key=lambda verdict: verdict.mutant.pc)
    return [verdict.killed or verdict.reason for verdict in judged]


def test_a_wait_that_bites_and_two_that_do_not():
    body = "s_waitcnt vmcnt(0)\ns_waitcnt vmcnt(0)\nv_add_u32 v3, 1, v3"
    for kind in ("wait removed", "wait raised"):
        assert verdicts(body, kind) == ["error", waits.LATER, waits.NOTHING]
    assert verdicts("s_waitcnt vmcnt(0)\nv_add_u32 v3, 1, v3", "wait raised") == [
        "error",
        "finding",
    ]


def test_a_wait_before_a_branch_bites_on_one_path():
    body = """
    s_cmp_eq_u32 s9, 0
    s_waitcnt vmcnt(0)
    s_cbranch_scc1 other
    s_waitcnt vmcnt(0)
    other:
    v_add_u32 v3, 1, v3
    """
    # The other path is not taken, so nothing tells the first of them; no rule may call it harmless.
    assert verdicts(body, "wait removed") == ["error", None, waits.NOTHING]


def test_barriers():
    one = EXCHANGE.format(barriers="s_barrier")
    assert verdicts(one, "barrier") == ["finding"]
    two = EXCHANGE.format(barriers="s_barrier\ns_barrier")
    assert verdicts(two, "barrier") == [barriers.NEXT, barriers.LAST]
    body = "s_waitcnt vmcnt(0)\ns_barrier\nv_add_u32 v3, 1, v3"
    assert verdicts(body, "barrier") == [barriers.NO_LDS]


def test_offsets_and_sources():
    body = EXCHANGE.format(barriers="s_barrier")
    assert set(verdicts(body, "offset")) <= {"finding", "error", "result"}
    body = "s_waitcnt vmcnt(0)\nv_sub_u32 v3, v3, v1"
    subject = subject_of(body)
    of_the_difference = [mutant for mutant in pick(subject, ("source",)) if "v_sub" in mutant.text]
    judged = judge(subject, of_the_difference)
    assert {(verdict.mutant.change, verdict.killed) for verdict in judged} == {
        *(("source 0 one on", "finding"), ("source 1 one on", "result"), ("swapped", "result"))
    }


def test_wait_states():
    body = """
    s_waitcnt vmcnt(0)
    v_cmp_lt_u32 vcc, v0, v3
    s_nop 1
    v_cndmask_b32 v3, v0, v3, vcc
    """
    assert verdicts(body, "nop") == [nops.MASK, nops.MASK]
    changes = pick(subject_of("s_waitcnt vmcnt(0)\nv_exp_f32 v3, v3\ns_nop 0"), ("nop",))
    assert [mutant.change for mutant in changes] == ["behind global_store_dword v1, v3, s[8:9]"]


def test_what_moves_keeps_every_other_instruction():
    body = EXCHANGE.format(barriers="s_barrier")
    subject = subject_of(body)
    image, code = Image(subject.elf), emulator.CodeObject(subject.elf)
    before = {site.pc: site.text for site in sites(code, image, "kernel")}
    for mutant in pick(subject):
        changed = emulator.CodeObject(image.patched(mutant))
        after = dict(changed._code.disassembly("kernel"))
        touched = {pc + 4 * i for pc, words in mutant.patches for i in range(len(words))}
        assert {pc: after[pc] for pc in before if pc not in touched} == {
            pc: text for pc, text in before.items() if pc not in touched
        }
        assert any(after.get(pc) != before.get(pc) for pc in touched)


@functools.cache
def shipped(target: str) -> Subject:
    return load(target, ["decode"])


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_defects_of_the_shipped_kernels(target):
    subject = shipped(target)
    assert subject.elf == _native.code_object(target)
    picked = pick(subject, count=5)
    judged = judge(subject, picked)
    rows = {row["kind"]: row for row in table(target, judged)}
    assert set(rows) == {*kinds.KINDS, "must be found", "all"}
    for row in rows.values():
        parts = ("finding", "error", "result", "harmless", "survived")
        assert row["mutants"] == sum(row[part] for part in parts)
    for kind in ("wait removed", "wait raised", "offset"):
        assert rows[kind]["finding"] + rows[kind]["error"] + rows[kind]["result"] > 0, kind
    # The seed alone says which are picked.
    assert pick(subject, count=5) == picked
    assert pick(subject, seed=1, count=5) != picked


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_a_launch_is_the_same_again(target):
    for known in shipped(target).known:
        code = emulator.CodeObject(shipped(target).elf)
        assert replay.verdict(known, code, replay.ORDERS) is None
        assert known.replay.blank
