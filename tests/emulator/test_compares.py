"""Vector compares of both targets against NumPy: masks, and compares that set EXEC."""

from __future__ import annotations

from collections.abc import Callable

import gfx950_asm
import gfx1201_asm
import numpy as np
import pytest
from assemble import WAVE_SIZE
from compared import compared
from lane_values import assert_same, f16_pairs, f32, to_mask, u32

GROUPS = 12

ORDER: dict[str, Callable] = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
INTEGER = ORDER | {"ne": lambda a, b: a != b}
FLOAT = ORDER | {
    "lg": lambda a, b: (a < b) | (a > b),
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: a != b,
    "nlt": lambda a, b: ~(a < b),
}
KINDS = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "u32": np.uint32}
KINDS |= {"i16": np.int16, "u16": np.uint16, "i64": np.int64, "u64": np.uint64}


def _relations(kind: str) -> dict[str, Callable]:
    return FLOAT if kind.startswith("f") else INTEGER


def _cases(form: str) -> list:
    return [
        pytest.param(
            *(target, kind),
            id=f"{target}-{kind}",
            marks=compared(target, *(f"{form}_{name}_{kind}" for name in _relations(kind))),
        )
        for target in ("gfx950", "gfx1201")
        for kind in KINDS
    ]


def _operands(kind: str, lanes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of dwords, and a and b [W, lanes] in them. A third of the lanes have equal operands."""
    rng = np.random.default_rng(5)
    dtype = np.dtype(KINDS[kind])
    make = {"f32": f32, "f16": f16_pairs}.get(kind, u32)
    words = max(dtype.itemsize // 4, 1)
    rows = make(rng, (GROUPS, 2 * words, lanes)).view(np.uint32)
    rows[:, words:, ::3] = rows[:, :words, ::3]
    if words == 2:  # half of the lanes differ in the lower half only
        rows[:, 3, ::2] = rows[:, 1, ::2]
        wide = rows.astype(np.uint64)
        a, b = (wide[:, i] | wide[:, i + 1] << 32 for i in (0, 2))
    else:
        a, b = (rows[:, i].astype(f"u{dtype.itemsize}") for i in range(2))
    return rows, a.view(dtype), b.view(dtype)


def _sources(kind: str) -> str:
    return "v[16:17], v[18:19]" if kind.endswith("64") else "v16, v17"


def _run(target: str, bodies: dict[str, str], rows: np.ndarray, outputs: int) -> dict:
    return {"gfx950": _run_gfx950, "gfx1201": _run_gfx1201}[target](bodies, rows, outputs)


def _run_gfx950(bodies: dict[str, str], rows: np.ndarray, outputs: int) -> dict:
    kernels = {
        name: gfx950_asm.Kernel(body, rows.shape[1], outputs) for name, body in bodies.items()
    }
    code = gfx950_asm.assemble(kernels)
    return {name: gfx950_asm.run(code, name, kernel, rows) for name, kernel in kernels.items()}


def _run_gfx1201(bodies: dict[str, str], rows: np.ndarray, outputs: int) -> dict:
    cases = {name: gfx1201_asm.Case(body, outputs) for name, body in bodies.items()}
    return gfx1201_asm.run(cases, rows)


@pytest.mark.parametrize(("target", "kind"), _cases("v_cmp"))
def test_masks(target: str, kind: str):
    """A wave of 32 lanes has a mask of one register: the next one stays as it is."""
    wide = WAVE_SIZE[target] == 64
    rows, a, b = _operands(kind, WAVE_SIZE[target])
    bodies = {}
    for name in _relations(kind):
        compare, sources = f"v_cmp_{name}_{kind}", _sources(kind)
        bodies[name] = (
            f"s_mov_b32 s21, 77\ns_mov_b32 vcc_hi, 78\n"
            f"{compare} {'s[20:21]' if wide else 's20'}, {sources}\n"
            f"{compare} {'vcc' if wide else 'vcc_lo'}, {sources}\ns_nop 1\n"
            "v_mov_b32 v64, s20\nv_mov_b32 v65, s21\nv_mov_b32 v66, vcc_lo\nv_mov_b32 v67, vcc_hi"
        )
    for name, out in _run(target, bodies, rows, 4).items():
        mask = to_mask(_relations(kind)[name](a, b))
        if not wide:
            mask = np.stack([mask[:, 0], np.full(GROUPS, 77), np.full(GROUPS, 78)], 1)
        places = [0, 1, 0, 1] if wide else [0, 1, 0, 2]
        expected = np.broadcast_to(mask[:, places, None], out.shape).astype(np.uint32)
        assert_same(out, expected, f"v_cmp_{name}_{kind}")


@pytest.mark.parametrize(("target", "kind"), _cases("v_cmpx"))
def test_exec(target: str, kind: str):
    wide = WAVE_SIZE[target] == 64
    rows, a, b = _operands(kind, WAVE_SIZE[target])
    bodies = {
        name: f"v_mov_b32 v64, 5\nv_cmpx_{name}_{kind} {'vcc, ' if wide else ''}{_sources(kind)}\n"
        "v_mov_b32 v64, 7"
        for name in _relations(kind)
    }
    for name, out in _run(target, bodies, rows, 1).items():
        expected = np.where(_relations(kind)[name](a, b), 7, 5).astype(np.uint32)
        assert_same(out[:, 0], expected, f"v_cmpx_{name}_{kind}")


@compared("gfx950", "v_cmp_class_f32")
def test_class():
    rng = np.random.default_rng(6)
    rows = np.stack([f32(rng, (GROUPS, 64)).view(np.uint32), u32(rng, (GROUPS, 64)) & 0x3FF], 1)
    kernel = gfx950_asm.Kernel("v_cmp_class_f32 s[20:21], v16, v17", 2, 0, 1)
    actual = gfx950_asm.run(gfx950_asm.assemble({"k": kernel}), "k", kernel, rows)
    x, wanted = np.ascontiguousarray(rows[:, 0]).view(np.float32), rows[:, 1]
    negative, size = np.signbit(x), np.abs(x)
    number = np.select(
        [np.isnan(x), np.isinf(x), size == 0, size < 2.0**-126], [-1, 9, 6, 7], default=8
    )
    bit = np.where(number < 0, 1, np.where(negative, 11 - number, number))
    expected = (wanted >> bit.astype(np.uint32)) & 1
    assert_same(actual[:, :, 0], to_mask(expected.astype(bool)), "v_cmp_class_f32")
