"""Holds every shipped kernel to the register and LDS budget that its main loop states."""

import functools

import pytest

from jax_fa import _native, emulator

# Per family, target and head size tile: vector registers at most, LDS bytes exactly. The numbers
# are those of the budget tables at the heads of decode.hip, mainloop/<target>/mainloop.h,
# mainloop/gfx950/two_groups.h and mainloop/gfx1201/staged_mainloop.h in csrc/kernels/. A target has
# the kernels of which it has a budget.
BUDGETS = {
    "flash": {
        "gfx950": {64: (184, 67584), 128: (256, 135168), 256: (256, 135168)},
        "gfx1201": {64: (216, 0), 128: (168, 0), 256: (256, 0)},
    },
    "decode": {
        "gfx950": {64: (96, 33792), 128: (128, 67584), 256: (168, 67584)},
        "gfx1201": {64: (144, 12672), 128: (168, 24960), 256: (256, 49536)},
    },
    "wide decode": {
        "gfx1201": {64: (168, 32768), 128: (192, 32768), 256: (240, 65536)},
    },
}
TARGETS = ("gfx950", "gfx1201")
DTYPES = ("bfloat16", "float16")
VARIANTS = {
    "flash": ("plain", "softcap", "paged", "paged_softcap"),
    "decode": ("plain", "paged"),
    "wide decode": ("wide", "paged_wide"),
}
KERNELS = [
    (target, name, budget)
    for family, budgets in BUDGETS.items()
    for target, by_head_dim in budgets.items()
    for head_dim, budget in by_head_dim.items()
    for dtype in DTYPES
    for variant in VARIANTS[family]
    for name in [f"{family.split()[-1]}_{dtype}_h{head_dim}_{variant}"]
]
MERGE_KERNELS = [f"merge_{dtype}" for dtype in DTYPES]


NAMES = {
    target: [name for of, name, _ in KERNELS if of == target] + MERGE_KERNELS for target in TARGETS
}


@functools.cache
def code_object(target):
    image = _native.code_object(target)
    assert image, f"this build has no code object of {target}"
    return emulator.CodeObject(image)


@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_has_a_budget(target):
    assert set(code_object(target).kernels) == set(NAMES[target])


@pytest.mark.parametrize(("target", "name", "budget"), KERNELS)
def test_kernel_keeps_its_budget(target, name, budget):
    max_vgprs, lds_bytes = budget
    kernel = code_object(target).kernels[name]
    assert kernel.vgprs <= max_vgprs
    assert kernel.lds_bytes == lds_bytes


@pytest.mark.parametrize(("target", "name"), [(x, name) for x in TARGETS for name in NAMES[x]])
def test_nothing_is_spilled(target, name):
    kernel = code_object(target).kernels[name]
    assert kernel.vgpr_spills == 0
    assert kernel.sgpr_spills == 0
    assert kernel.scratch_bytes == 0
    assert kernel.agprs == 0


@pytest.mark.parametrize("target", TARGETS)
def test_merge_needs_little(target):
    for name in MERGE_KERNELS:
        kernel = code_object(target).kernels[name]
        assert kernel.vgprs <= 32
        assert kernel.lds_bytes == 0


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_take_the_argument_block_alone(target):
    # sizeof(AttentionParams), sizeof(MergeParams): no hidden arguments, which only the HIP runtime
    # fills.
    for name, kernel in code_object(target).kernels.items():
        assert kernel.kernarg_bytes == (48 if name in MERGE_KERNELS else 344), name
