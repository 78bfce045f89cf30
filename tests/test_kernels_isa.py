"""Holds every shipped kernel to the register and LDS budget that its main loop states."""

import pytest

from jax_fa import _native, emulator

# Per target and head size tile: vector registers at most, LDS bytes exactly. The numbers are those
# of the budget table at the head of csrc/kernels/arch/<target>/mainloop.h.
BUDGETS = {
    "gfx950": {64: (176, 33792), 128: (248, 67584), 256: (256, 67584)},
    "gfx1201": {64: (216, 0), 128: (168, 0), 256: (256, 0)},
}
DTYPES = ("bfloat16", "float16")
VARIANTS = ("plain", "softcap")
KERNELS = [
    (target, f"flash_{dtype}_h{head_dim}_{variant}", head_dim)
    for target, tiles in BUDGETS.items()
    for dtype in DTYPES
    for head_dim in tiles
    for variant in VARIANTS
]


@pytest.fixture(scope="module", params=sorted(BUDGETS))
def code_object(request):
    image = _native.code_object(request.param)
    assert image, f"this build has no code object of {request.param}"
    return request.param, emulator.CodeObject(image)


def test_every_kernel_has_a_budget(code_object):
    target, code = code_object
    named = {name for kernel_target, name, _ in KERNELS if kernel_target == target}
    flash = {name for name in code.kernels if name.startswith("flash_")}
    assert flash == named


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_kernel_keeps_its_budget(code_object, dtype, variant, head_dim):
    target, code = code_object
    max_vgprs, lds_bytes = BUDGETS[target][head_dim]
    kernel = code.kernels[f"flash_{dtype}_h{head_dim}_{variant}"]
    assert kernel.vgpr_spills == 0
    assert kernel.sgpr_spills == 0
    assert kernel.scratch_bytes == 0
    assert kernel.agprs == 0
    assert kernel.vgprs <= max_vgprs
    assert kernel.lds_bytes == lds_bytes


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_kernel_takes_the_argument_block_alone(code_object, dtype, variant, head_dim):
    # sizeof(AttentionParams): no hidden arguments, which only the HIP runtime fills.
    _, code = code_object
    assert code.kernels[f"flash_{dtype}_h{head_dim}_{variant}"].kernarg_bytes == 272
