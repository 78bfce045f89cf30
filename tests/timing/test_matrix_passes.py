"""How long each matrix product of gfx950 holds the matrix core: passes of 4 clocks, modelled.

The numbers are those of AMD's matrix instruction calculator for CDNA 3, whose instructions gfx950
keeps; LLVM's scheduling model (Write2PassMAI to Write16PassMAI) has the same.
"""

import pytest
from timing_runs import marginal_clk

# mnemonic, registers of A and of B, registers of the result, clocks
PRODUCTS = [
    ("v_mfma_f32_32x32x2_f32", 1, 16, 64),
    ("v_mfma_f32_16x16x4_f32", 1, 4, 32),
    ("v_mfma_f32_4x4x1_16b_f32", 1, 4, 8),
    ("v_mfma_f32_16x16x1_4b_f32", 1, 16, 32),
    ("v_mfma_f32_32x32x1_2b_f32", 1, 32, 64),
    ("v_mfma_f32_4x4x4_16b_f16", 2, 4, 8),
    ("v_mfma_f32_4x4x4_16b_bf16", 2, 4, 8),
    ("v_mfma_f32_16x16x4_4b_f16", 2, 16, 32),
    ("v_mfma_f32_32x32x4_2b_bf16", 2, 32, 64),
    ("v_mfma_f32_16x16x16_f16", 2, 4, 16),
    ("v_mfma_f32_32x32x8_bf16", 2, 16, 32),
    ("v_mfma_f32_16x16x32_bf16", 4, 4, 16),
    ("v_mfma_f32_32x32x16_f16", 4, 16, 32),
    ("v_mfma_i32_16x16x32_i8", 2, 4, 16),
    ("v_mfma_i32_32x32x16_i8", 2, 16, 32),
]


@pytest.mark.parametrize(("mnemonic", "operand", "result", "clk"), PRODUCTS)
def test_a_stream_takes_the_passes_of_its_products(mnemonic, operand, result, clk):
    def registers(first, count):
        return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"

    a, b = registers(0, operand), registers(8, operand)
    sums = [registers(64 + result * place, result) for place in range(4)]
    body = "".join(f"{mnemonic} {d}, {a}, {b}, {d}\n" for d in sums)
    assert marginal_clk("gfx950", body) == len(sums) * clk


def test_a_result_waits_for_all_passes():
    # 16 passes where another product of 32 x 32 results has 8: 32 clk more.
    def first_use(mnemonic, operand):
        product = f"{mnemonic} v[64:79], {operand}, {operand}, v[64:79]\n"
        return marginal_clk("gfx950", product + "v_mov_b32 v64, v65\n")

    long = first_use("v_mfma_f32_32x32x2_f32", "v0")
    short = first_use("v_mfma_f32_32x32x16_bf16", "v[0:3]")
    assert long - short == 32
