"""Holds every shipped kernel to the register and LDS budget that its main loop states."""

import pytest

from jax_fa import _native, emulator

# Per family, target and head size tile: vector registers at most, LDS bytes exactly. The numbers
# are those of the budget tables at the heads of arch/<target>/mainloop.h and decode.hip in
# csrc/kernels/
BUDGETS = {
    "flash": {
        "gfx950": {64: (184, 33792), 128: (256, 67584), 256: (256, 67584)},
        "gfx1201": {64: (216, 0), 128: (168, 0), 256: (256, 0)},
    },
    "decode": {
        "gfx950": {64: (96, 33792), 128: (128, 67584), 256: (168, 67584)},
        "gfx1201": {64: (144, 12672), 128: (168, 24960), 256: (256, 49536)},
    },
}
TARGETS = ("gfx950", "gfx1201")
DTYPES = ("bfloat16", "float16")
VARIANTS = {
    "flash": ("plain", "softcap", "paged", "paged_softcap"),
    "decode": ("plain", "paged"),
}
KERNELS = [
    (f"{family}_{dtype}_h{head_dim}_{variant}", family, head_dim)
    for family, variants in VARIANTS.items()
    for dtype in DTYPES
    for head_dim in (64, 128, 256)
    for variant in variants
]
MERGE_KERNELS = [f"merge_{dtype}" for dtype in DTYPES]


@pytest.fixture(scope="module", params=TARGETS)
def code_object(request):
    image = _native.code_object(request.param)
    assert image, f"this build has no code object of {request.param}"
    return request.param, emulator.CodeObject(image)


def test_every_kernel_has_a_budget(code_object):
    _, code = code_object
    assert set(code.kernels) == {name for name, _, _ in KERNELS} | set(MERGE_KERNELS)


@pytest.mark.parametrize(("name", "family", "head_dim"), KERNELS)
def test_kernel_keeps_its_budget(code_object, name, family, head_dim):
    target, code = code_object
    max_vgprs, lds_bytes = BUDGETS[family][target][head_dim]
    kernel = code.kernels[name]
    assert kernel.vgprs <= max_vgprs
    assert kernel.lds_bytes == lds_bytes


@pytest.mark.parametrize("name", [name for name, _, _ in KERNELS] + MERGE_KERNELS)
def test_nothing_is_spilled(code_object, name):
    _, code = code_object
    kernel = code.kernels[name]
    assert kernel.vgpr_spills == 0
    assert kernel.sgpr_spills == 0
    assert kernel.scratch_bytes == 0
    assert kernel.agprs == 0


def test_merge_needs_little(code_object):
    _, code = code_object
    for name in MERGE_KERNELS:
        assert code.kernels[name].vgprs <= 32
        assert code.kernels[name].lds_bytes == 0


def test_kernels_take_the_argument_block_alone(code_object):
    # sizeof(AttentionParams), sizeof(MergeParams): no hidden arguments, which only the HIP runtime
    # fills.
    _, code = code_object
    for name, _, _ in KERNELS:
        assert code.kernels[name].kernarg_bytes == 280, name
    for name in MERGE_KERNELS:
        assert code.kernels[name].kernarg_bytes == 48, name
