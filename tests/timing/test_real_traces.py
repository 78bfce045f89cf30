"""The timing model beside thread traces of real gfx950 and gfx1200 chips, issue by issue.

gfx1200 has the core of gfx1201. The traces are those of tinygrad's repository, whose checkout
JAX_FA_SQTT names; with -s the tests print every kind of step. A step is an instruction and the one
before it in its wave; it takes the clocks from issue to issue.
"""

import collections
import dataclasses
import itertools
import os
import re
import statistics
from pathlib import Path

import numpy as np
import pytest
import sqtt
from assemble import assemble

from jax_fa import emulator

pytestmark = pytest.mark.skipif("JAX_FA_SQTT" not in os.environ, reason="JAX_FA_SQTT names none")

TARGETS = {"gfx950": "gfx950", "gfx1200": "gfx1201"}


# --- the kernels, as they were launched ----------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Launched:
    """``lds_bytes`` of those whose code object is none that a driver would load."""

    grid: tuple[int, int]
    block: int
    elems: tuple[int, ...]  # of each operand
    lds_bytes: int | None = None


KERNELS = {
    "E": Launched((1, 1), 1, ()),
    "E_3": Launched((1, 1), 3, (3, 3, 3)),
    "r_32_32_16_2": Launched((32, 32), 16, (1024, 1024, 1024)),
    "custom_lds_sync": Launched((1, 1), 128, (128,), 516),
    "custom_handwritten": Launched((1, 1), 128, (1024,), 0),
}


def modelled(target, traced, block=None):
    """The waves that one SIMD (gfx950: CU) had, as many of them, and what they issued.

    With another ``block`` those of one workgroup of so many lanes.
    """
    launched = KERNELS[traced.kernel]
    block = launched.block if block is None else block
    if launched.lds_bytes is None:
        code = emulator.CodeObject(traced.code_object)
    else:
        words = np.frombuffer(b"".join(traced.words.values()), np.uint32)
        body = "".join(f".long {word:#x}\n" for word in words)
        mode = ".amdhsa_workgroup_processor_mode 0"  # its waves share two SIMDs
        code = emulator.CodeObject(
            assemble(target, body, vgprs=256, lds_bytes=launched.lds_bytes, extra=mode)
        )
    (kernel,) = code.kernels
    launch = code.launch(
        kernel,
        launched.grid,
        block,
        [np.zeros(elems, np.float32) for elems in launched.elems],
        checks=False,
        timing=True,
        workgroups=[0],
    )
    simds = launch.trace.simds
    group_waves = -(-block // {"gfx950": 64, "gfx1201": 32}[target])
    traced_simds = len({wave.simd for wave in traced.waves})
    # Of gfx1200 one SIMD of the unit was traced.
    unit_waves = len(traced.waves) * (1 if traced_simds > 1 or group_waves > 1 else simds)
    resident = max(1, unit_waves // group_waves) if target == "gfx1201" else unit_waves
    waves = collections.defaultdict(list)
    for wave, pc, clk in launch.trace.issues(0, resident, True, {}):
        if traced_simds > 1 or wave % simds == 0:
            waves[wave].append((pc, clk))
    first = min(pc for pc, _ in waves[0])
    return [[sqtt.Issue(pc - first, clk) for pc, clk in waves[wave]] for wave in sorted(waves)]


def cached(target):
    """``modelled``, once for each kernel."""
    found = {}

    def get(traced, **options):
        key = traced.kernel, *options.items()
        if key not in found:
            found[key] = modelled(target, traced, **options)
        return found[key]

    return get


# --- kinds of steps ------------------------------------------------------------------------------
KINDS = (
    (r"s_wait.*(kmcnt|lgkm)|s_waitcnt", "wait"),
    (r"s_wait", "wait"),
    (r"s_(load|buffer)", "scalar load"),
    (r"s_endpgm", "end"),
    (r"s_cbranch|s_branch", "branch"),
    (r"s_(nop|clause|sendmsg|delay)", "hint"),
    (r"s_barrier_signal", "barrier"),
    (r"s_cmp", "compare"),
    (r"s_mul", "scalar multiply"),
    (r"s_", "scalar"),
    (r"v_wmma.*iu8", "WMMA iu8"),
    (r"v_wmma", "WMMA f16"),
    (r"v_s_", "scalar transcendental"),
    (r"v_(rcp|exp|log|sqrt)", "transcendental"),
    (r"v_lshlrev_b64", "64-bit shift"),
    (r"v_mad_co_u64", "64-bit multiply"),
    (r"v_", "vector"),
    (r"VOPD", "vector"),
    (r"ds_(store|write)", "LDS store"),
    (r"ds_", "LDS load"),
    (r"global_store", "store"),
    (r"global_load", "load"),
)
_REGISTERS = re.compile(r"\b([vs])\[(\d+)(?::(\d+))?\]|\b(VCC|ttmp)")


def kind_of(text):
    return next(name for pattern, name in KINDS if re.match(pattern, text, re.IGNORECASE))


def registers(text):
    """Those of each operand."""
    found = []
    for file, first, last, special in _REGISTERS.findall(text):
        numbers = range(int(first), int(last or first) + 1) if file else ()
        found.append({special} if special else {(file, number) for number in numbers})
    return found


def uses(before, text):
    """Whether the instruction reads what the one before it wrote."""
    if re.match(r"s_wait|s_barrier|s_nop|s_clause|s_sendmsg|s_endpgm", text):
        return False
    if re.match(r"s_cmp", before) and re.match(r"s_cbranch", text):
        return True
    if re.match(r"(ds_(store|write)|global_store|s_cmp|s_wait)", before):
        return False
    written = (registers(before) or [set()])[0]
    own = registers(text)
    accumulates = not re.match(r"ds_|global_|s_cmp", text) and len(own) < 2
    reads = (
        own if accumulates or re.match(r"ds_(store|write)|global_store|s_cmp", text) else own[1:]
    )
    return any(written & operand for operand in reads)


MEMORY = "scalar load", "LDS load", "LDS store", "load", "store"


def steps(text, issues):
    """[(kind of step, clocks)] of a wave; a wait is counted from the last one that it can wait for.

    Later waits for it are left out.
    """
    listed, waited_for = [], None
    for before, this in itertools.pairwise(issues):
        names = kind_of(text[before.pc]), kind_of(text[this.pc])
        if names[0] in MEMORY:
            waited_for = before
        if names[1] == "wait":
            if waited_for is not None:
                kind = kind_of(text[waited_for.pc])
                listed.append((f"{kind} to its wait", this.clk - waited_for.clk))
            waited_for = None
            continue
        suffix = " (uses it)" if uses(text[before.pc], text[this.pc]) else ""
        listed.append((f"{names[0]} to {names[1]}{suffix}", this.clk - before.clk))
    return listed


@dataclasses.dataclass(frozen=True)
class Row:
    kind: str
    chip: list[float]
    model: list[float]

    @property
    def medians(self):
        return statistics.median(self.chip), statistics.median(self.model)

    @property
    def met(self):
        """The model's median within 25% or 4 clocks of the chip's."""
        chip, model = self.medians
        return abs(model - chip) <= max(4, 0.25 * chip)


@pytest.fixture(scope="module", params=TARGETS)
def chip(request):
    """(name, [(trace, modelled waves)])."""
    model = cached(TARGETS[request.param])
    traces = sqtt.recordings(Path(os.environ["JAX_FA_SQTT"]), request.param)
    return request.param, [(traced, model(traced)) for traced in traces]


def rows_of(pairs):
    chip, model = collections.defaultdict(list), collections.defaultdict(list)
    for traced, waves in pairs:
        for wave, issued in zip(traced.waves, waves, strict=True):
            by_pc = {issue.pc for issue in wave.issues}  # waits by hint are in no trace
            same = [issue for issue in issued if issue.pc in by_pc]
            count = len(wave.issues)
            assert [i.pc for i in same[:count]] == [i.pc for i in wave.issues]
            for found, issues in ((chip, wave.issues), (model, same[:count])):
                for kind, clk in steps(traced.text, issues):
                    found[kind].append(clk)
    return [Row(kind, chip[kind], model[kind]) for kind in sorted(chip)]


# What the model does not reach.
NOT_MET = {
    # The wave that comes first waits for the text behind its loads, which the model does not fetch.
    "gfx950": {"load to vector"},
    # Younger waves stand behind the vector instructions of older ones, which here are done by then.
    "gfx1200": {"scalar load to vector"},
}


def test_kinds_of_steps(chip):
    name, pairs = chip
    rows = rows_of(pairs)
    print(f"\n{name}: clocks from issue to issue, chip (least, median, most) and model")
    for row in rows:
        measured, model = row.medians
        mark = "" if row.met else "  <-- missed"
        print(
            f"  {row.kind:<46} {len(row.chip):5} {min(row.chip):6.0f} {measured:7.1f} "
            f"{max(row.chip):6.0f}   {model:7.1f}{mark}"
        )
    missed = {row.kind for row in rows if not row.met}
    assert missed == NOT_MET[name]


# Of a round of the WMMA loop.
LOOP_DEVIATION = 0.1


def rounds(issues, head):
    return [issue.clk for issue in issues if issue.pc == head]


def round_clk(waves, head):
    """Clocks of a round of the loop with two waves on the SIMD.

    Of as many instructions as a round has, from the older wave's second round to its end.
    """
    old, young = waves
    first, second = rounds(old, head)[1:3]
    length = sum(first <= issue.clk < second for issue in old)
    end = old[-1].clk
    issued = sum(first <= issue.clk < end for issue in (*old, *young))
    return (end - first) * length / issued


def test_matrix_loop():
    """The hand-written loop of WMMA: two waves, and one alone, as the younger one is at last."""
    one, two = {"chip": [], "model": []}, {"chip": [], "model": []}
    model = cached("gfx1201")
    for traced in sqtt.recordings(Path(os.environ["JAX_FA_SQTT"]), "gfx1200"):
        if traced.kernel != "custom_handwritten":
            continue
        (head,) = (
            pc + 4 + 4 * (int(re.findall(r"\d+", text)[-1]) - 65536)
            for pc, text in traced.text.items()
            if text.startswith("s_cbranch_scc0")
        )
        old, young = (wave.issues for wave in traced.waves)
        two["chip"].append(round_clk((old, young), head))
        two["model"].append(round_clk(model(traced), head))
        alone = [clk for clk in rounds(young, head) if clk > old[-1].clk]
        one["chip"].append(statistics.median(b - a for a, b in itertools.pairwise(alone)))
        (only,) = model(traced, block=64)
        one["model"].append(
            statistics.median(b - a for a, b in itertools.pairwise(rounds(only, head)[2:]))
        )
    print("\nclocks of a round of the WMMA loop")
    for waves, clk in (("one wave", one), ("two waves", two)):
        measured, found = np.mean(clk["chip"]), np.mean(clk["model"])
        print(f"  {waves}: chip {measured:.0f}, model {found:.0f} ({found / measured - 1:+.1%})")
    for clk in (one, two):
        assert np.mean(clk["model"]) == pytest.approx(np.mean(clk["chip"]), rel=LOOP_DEVIATION)
