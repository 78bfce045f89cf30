"""Scalar floating-point instructions of gfx1201 against NumPy."""

import numpy as np
import pytest
from compared import compared
from scalar_asm import Instructions

# name: (result type, NumPy function of the operands)
FLOATS = {
    "s_add_f32": (np.float32, lambda a, b: a + b),
    "s_sub_f32": (np.float32, lambda a, b: a - b),
    "s_mul_f32": (np.float32, lambda a, b: a * b),
    "s_min_num_f32": (np.float32, np.fmin),
    "s_max_num_f32": (np.float32, np.fmax),
    "s_minimum_f32": (np.float32, np.minimum),
    "s_maximum_f32": (np.float32, np.maximum),
    "s_add_f16": (np.float16, lambda a, b: a + b),
    "s_sub_f16": (np.float16, lambda a, b: a - b),
    "s_mul_f16": (np.float16, lambda a, b: a * b),
    "s_minimum_f16": (np.float16, np.minimum),
    "s_max_num_f16": (np.float16, np.fmax),
    "s_ceil_f32": (np.float32, lambda a, b: np.ceil(a)),
    "s_floor_f32": (np.float32, lambda a, b: np.floor(a)),
    "s_trunc_f16": (np.float16, lambda a, b: np.trunc(a)),
    "s_rndne_f32": (np.float32, lambda a, b: np.rint(a)),
    "s_rndne_f16": (np.float16, lambda a, b: np.rint(a)),
}


RELATIONS = {"lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater}
CONVERSIONS = ("s_cvt_f16_f32", "s_cvt_f32_i32", "s_cvt_f32_u32", "s_cvt_i32_f32", "s_cvt_u32_f32")


def _lines() -> dict[str, str]:
    lines = {name: f"{name} s20, s16" for name in CONVERSIONS}
    for name in FLOATS:
        unary = name.split("_")[1] in ("ceil", "floor", "trunc", "rndne")
        lines[name] = f"{name} s20, s16" + ("" if unary else ", s18")
    for name in RELATIONS:
        for bits in (32, 16):
            for prefix in ("", "n"):
                lines[f"{prefix}{name}_{bits}"] = f"s_cmp_{prefix}{name}_f{bits} s16, s18"
    return lines


INSTRUCTIONS = Instructions("gfx1201", _lines())
FLUSHING = Instructions("gfx1201", {"s_add_f32": "s_add_f32 s20, s16, s18"}, denormals=0)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=compared("gfx1201", name)) for name in sorted(FLOATS)]
)
def test_float_instruction(name):
    dtype, function = FLOATS[name]
    rows, results, _ = INSTRUCTIONS.run(name)
    a, b = (rows[:, i].astype(np.uint32).view(np.float32) for i in (0, 1))
    actual = results.astype(np.uint32).view(np.float32)
    if dtype == np.float16:
        a, b, actual = (x.view(np.float16)[::2] for x in (a, b, actual))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(actual, function(a, b).astype(dtype))


def test_denormals_are_flushed_where_mode_says_so():
    rows, results, _ = FLUSHING.run("s_add_f32")
    a, b = (rows[:, i].astype(np.uint32).view(np.float32) for i in (0, 1))
    tiny = np.finfo(np.float32).tiny

    def flush(x):
        return np.where(np.abs(x) < tiny, np.float32(0), x)

    with np.errstate(all="ignore"):
        expected = flush(flush(a) + flush(b))
    np.testing.assert_array_equal(results.astype(np.uint32).view(np.float32), expected)


@pytest.mark.parametrize(
    ("relation", "bits"),
    [
        pytest.param(
            *(name, bits),
            marks=compared("gfx1201", f"s_cmp_{name}_f{bits}", f"s_cmp_n{name}_f{bits}"),
        )
        for name in RELATIONS
        for bits in (32, 16)
    ],
)
def test_float_compares(relation, bits):
    for prefix, want in (("", True), ("n", False)):
        rows, _, sccs = INSTRUCTIONS.run(f"{prefix}{relation}_{bits}")
        a, b = (rows[:, i].astype(np.uint32).view(np.float32) for i in (0, 1))
        if bits == 16:
            a, b = (x.view(np.float16)[::2] for x in (a, b))
        np.testing.assert_array_equal(sccs == 1, RELATIONS[relation](a, b) == want)


@compared("gfx1201", *CONVERSIONS)
def test_conversions():
    def run(name, dtype):
        rows, results, _ = INSTRUCTIONS.run(name)
        return rows[:, 0].astype(np.uint32), results.astype(np.uint32).view(dtype)

    bits, halves = run("s_cvt_f16_f32", np.float16)
    with np.errstate(all="ignore"):
        expected = bits.view(np.float32).astype(np.float16)
    np.testing.assert_array_equal(halves[::2], expected)
    bits, result = run("s_cvt_f32_i32", np.float32)
    np.testing.assert_array_equal(result, bits.view(np.int32).astype(np.float32))
    bits, result = run("s_cvt_f32_u32", np.float32)
    np.testing.assert_array_equal(result, bits.astype(np.float32))
    for name, dtype, low, high in (
        ("s_cvt_i32_f32", np.int32, -(2.0**31), 2.0**31 - 1),
        ("s_cvt_u32_f32", np.uint32, 0, 2.0**32 - 1),
    ):
        bits, result = run(name, dtype)
        whole = np.trunc(np.nan_to_num(bits.view(np.float32).astype(np.float64), nan=0))
        np.testing.assert_array_equal(result, np.clip(whole, low, high))
