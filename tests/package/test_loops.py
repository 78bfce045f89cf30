"""Hot loops of listings written by hand."""

from jax_fa.emulator.loops import Instruction, find_hot_loops

FALLS = {"s_branch": False, "s_endpgm": False}


def listing(*lines):
    """Instructions from "name", "name -> label" and "label:" lines; one pc each."""
    labels, names = {}, []
    for line in lines:
        if line.endswith(":"):
            labels[line[:-1]] = len(names)
        else:
            names.append(line)
    instructions = []
    for pc, line in enumerate(names):
        name, _, label = line.partition(" -> ")
        op_class = {"mfma": "matrix", "smfmac": "sparse_matrix"}.get(name, "valu")
        op_class = "branch" if name.startswith("s_") else op_class
        target = labels[label] if label else None
        instructions.append(Instruction(pc, name, op_class, FALLS.get(name, True), target))
    return instructions


def names(*lines):
    return [[i.mnemonic for i in loop] for loop in find_hot_loops(listing(*lines))]


def test_no_loop():
    assert names() == []
    assert names("mfma", "v_exp", "s_endpgm") == []


def test_a_loop_without_matrix_instructions_is_not_hot():
    assert names("mfma", "top:", "v_exp", "s_cbranch -> top", "s_endpgm") == []


def test_the_body_alone():
    found = names("v_mov", "top:", "mfma", "v_exp", "s_cbranch -> top", "v_mul", "s_endpgm")
    assert found == [["mfma", "v_exp", "s_cbranch"]]


def test_rare_blocks_are_passed_by():
    found = names(
        "top:",
        "mfma",
        "s_cbranch_scc0 -> join",
        *["v_mask"] * 5,
        "join:",
        "smfmac",
        "s_cbranch -> top",
        "s_endpgm",
    )
    assert found == [["mfma", "s_cbranch_scc0", "smfmac", "s_cbranch"]]


def test_all_matrix_instructions_are_passed_through_even_the_long_way():
    found = names(
        "top:",
        "v_load",
        "s_cbranch_scc0 -> join",
        *["v_scale"] * 3,
        "mfma",
        "join:",
        "s_cbranch -> top",
        "s_endpgm",
    )
    assert found == [["v_load", "s_cbranch_scc0", *["v_scale"] * 3, "mfma", "s_cbranch"]]


def test_of_several_back_edges_the_one_behind_all_matrix_instructions():
    found = names(
        "top:",
        "mfma",
        "s_cbranch_scc0 -> top",
        "mfma",
        "v_exp",
        "s_cbranch_scc1 -> top",
        "s_endpgm",
    )
    assert found == [["mfma", "s_cbranch_scc0", "mfma", "v_exp", "s_cbranch_scc1"]]


def test_a_rare_part_that_multiplies_is_passed_by():
    found = names(
        "top:",
        *["mfma"] * 3,
        "s_cbranch_scc0 -> join",
        *["mfma"] * 2,
        "join:",
        "smfmac",
        "s_cbranch -> top",
        "s_endpgm",
    )
    assert found == [["mfma", "mfma", "mfma", "s_cbranch_scc0", "smfmac", "s_cbranch"]]


def test_innermost_loops_only():
    found = names(
        *("outer:", "v_head"),
        *("inner:", "mfma", "mfma", "s_cbranch -> inner"),
        *("mfma", "s_cbranch -> outer"),
    )
    assert found == [["mfma", "mfma", "s_cbranch"]]


def test_a_part_that_may_be_repeated_is_no_loop():
    scores = ("scores:", "mfma", "s_cbranch_vccnz -> scores")
    found = names("tile:", "v_head", *scores, "v_exp", "mfma", "s_cbranch -> tile")
    assert found == [["v_head", "mfma", "s_cbranch_vccnz", "v_exp", "mfma", "s_cbranch"]]


def test_an_inner_loop_without_matrix_instructions_counts_once():
    found = names(
        "top:", "mfma", "spin:", "v_poll", "s_cbranch_scc0 -> spin", "s_cbranch_scc1 -> top"
    )
    assert found == [["mfma", "v_poll", "s_cbranch_scc0", "s_cbranch_scc1"]]


def test_two_wave_groups_have_two_loops():
    found = names(
        "s_cbranch -> b",
        *("a:", "mfma", "v_a", "s_cbranch -> a", "s_endpgm"),
        *("b:", "mfma", "v_b", "s_cbranch -> b", "s_endpgm"),
    )
    assert found == [["mfma", "v_a", "s_cbranch"], ["mfma", "v_b", "s_cbranch"]]


def test_a_loop_entered_in_its_middle():
    found = names(
        "s_cbranch_scc0 -> middle",
        "top:",
        "mfma",
        "middle:",
        "mfma",
        "s_cbranch_scc1 -> top",
        "s_endpgm",
    )
    assert len(found) == 1
    assert sorted(found[0]) == ["mfma", "mfma", "s_cbranch_scc1"]


def test_code_that_is_never_reached_has_no_hot_loop():
    assert names("s_endpgm", "top:", "mfma", "s_cbranch -> top") == []
