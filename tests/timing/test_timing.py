"""The timing model against arithmetic, on kernels of a few instructions: all of it modelled.

What it must reproduce is listed in the comments; the tolerances are for the ends of a run
(dispatch, the last instructions), never for the rate.
"""

import pytest
from timing_runs import LONG, SHORT, SIMDS, SPARSE, WMMA, clk, marginal_clk, mfma

from jax_fa.emulator import timing as _timing
from jax_fa.emulator.loops import Instruction


# --- matrix streams: 16 and 32 clk each ----------------------------------------------------------
@pytest.mark.parametrize("waves", [1, 4, 8])
@pytest.mark.parametrize(("body", "each"), [(SHORT, 16), (LONG, 32)])
def test_mfma_stream(body, each, waves):
    per_simd = -(-waves // SIMDS)
    assert marginal_clk("gfx950", body, waves=waves) == 4 * each * per_simd


def test_a_chain_on_one_accumulator_is_a_stream_too():
    # "0 extra slots for identical opcode and registers".
    assert marginal_clk("gfx950", mfma("16x16x32", 0, 4)) == 16


def test_a_product_of_a_product_waits_for_it():
    # 8 wait slots between, so the second issues 36 clk after the first.
    body = (
        mfma("16x16x32", 0, 4) + "v_mfma_f32_16x16x32_bf16 v[80:83], v[64:67], v[4:7], v[80:83]\n"
    )
    first = "v_mov_b32 v64, v65\n"
    assert clk("gfx950", body) - clk("gfx950", mfma("16x16x32", 0, 4)) == 36
    assert clk("gfx950", first + body) > clk("gfx950", body)


@pytest.mark.parametrize("waves", [1, 4, 8])
def test_wmma_stream(waves):
    assert marginal_clk("gfx1201", WMMA, waves=waves) == 4 * 16 * -(-waves // SIMDS)


# --- the matrix block: 96 MFMA and 3 smfmac take 1584 clk and leave 195 VALU slots ---------------
BLOCK = SHORT * 24 + SPARSE


def two_groups(first, second):
    """Wave 0 runs `first`, wave 4 of the same SIMD `second`."""
    return f"""
    v_readfirstlane_b32 s20, v0
    s_cmp_lt_u32 s20, 256
    s_cbranch_scc0 second
    s_setprio 1
{first}
    s_endpgm
second:
{second}
"""


def test_matrix_block():
    assert marginal_clk("gfx950", BLOCK, times=2) == 1584


def softmax(pairs):
    return "v_mul_f32 v20, v21, v22\nv_mul_f32 v23, v24, v25\n" * pairs


def test_matrix_block_beside_the_partners_vector_instructions():
    # 2 VALU in the gap of every MFMA, 1 in that of a smfmac: 195 of them do not slow it down, and
    # the partner's 195 slots are done when the block is.
    alone, full, over = (
        clk("gfx950", two_groups(BLOCK * 2, softmax(slots)), waves=8) for slots in (0, 195, 230)
    )
    assert full == pytest.approx(alone, abs=16)
    # Every slot more is one that the matrix core stands still.
    assert over - full == pytest.approx(4 * 2 * (230 - 195), abs=16)


def test_exponentials_take_two_slots():
    exponentials = "v_exp_f32 v20, v21\n" * 190
    both = clk("gfx950", two_groups(BLOCK * 2, exponentials), waves=8)
    alone = clk("gfx950", two_groups(BLOCK * 2, ""), waves=8)
    assert both == pytest.approx(alone, rel=0.01)
    assert marginal_clk("gfx950", "v_exp_f32 v20, v21\n") == 8


def test_packed_float32_gets_no_slot_beside_an_mfma():
    packed = "v_pk_mul_f32 v[20:21], v[22:23], v[24:25]\n" * 50
    plain = "v_mul_f32 v20, v22, v24\n" * 50
    slow, fast = (clk("gfx950", two_groups(BLOCK, v), waves=8) for v in (packed, plain))
    assert slow > fast + 4 * 50


def test_only_scalar_instructions_issue_right_after_an_mfma():
    # The partner's scalar instructions can take all 396 slots, its LDS reads three in four.
    alone, scalar, reads = (
        clk(
            "gfx950",
            two_groups(BLOCK, "v_mov_b32 v21, 0\n" + partner),
            waves=8,
            lds_bytes=1024,
            constants={"lds_latency": 0, "lds_return": 1e9},
        )
        for partner in ("", "s_add_u32 s21, s21, s22\n" * 390, "ds_read_b32 v20, v21\n" * 390)
    )
    assert scalar == pytest.approx(alone, abs=24)
    assert reads == pytest.approx(alone + 4 * (390 - 297), abs=24)


# --- the RDNA4 text's first-order arithmetic: 0.500, 0.594 and 0.547 cycles per score element ----
@pytest.mark.parametrize(("valu", "cycles"), [(0, 0.5), (192, 0.594), (96, 0.547)])
def test_first_order_of_the_rdna4_text(valu, cycles):
    # A wave's tile of 16 queries and 64 keys at head size 128: 64 WMMA, 32 exponentials, and
    # 192 VALU ("first cut") or 96 ("trimmed"). A CU has two SIMDs.
    tile = WMMA * 16 + "v_exp_f32 v20, v21\n" * 32
    tile += "".join(f"v_mul_f32 v{24 + i % 16}, v21, v22\n" for i in range(valu))
    per_simd = marginal_clk(
        "gfx1201", tile, times=2, waves=16, constants={"trans_hold": 0, "trans_unit": 0}
    )
    assert per_simd / 4 / (2 * 16 * 64) == pytest.approx(cycles, rel=0.01)


def test_exponentials_of_rdna4_between_the_two_bounds():
    # 32 exponentials beside 64 WMMA: between 0 and 32 x 3.5 = 112 clk.
    tile = WMMA * 16 + "v_exp_f32 v20, v21\n" * 32
    free, held = (
        marginal_clk("gfx1201", tile, times=2, waves=16, constants=constants) / 4
        for constants in ({"trans_hold": 0, "trans_unit": 0}, {})
    )
    assert free == pytest.approx(1024, rel=0.01)
    assert 1024 + 112 <= held <= 1024 + 128  # 4 where two follow one another on the unit


# --- rules of thumb from counts alone ------------------------------------------------------------
def instructions(**counts):
    names = {"matrix": "v_mfma_f32_32x32x16_bf16", "short": "v_mfma_f32_16x16x32_bf16"}
    classes = {"short": "matrix"}
    return [
        Instruction(0, names.get(name, name), classes.get(name, name), True, None)
        for name, count in counts.items()
        for _ in range(count)
    ]


def test_slot_rule():
    # AITER v3, 64 keys and 32 query rows: 34.9 clk per row; the kernel of the power-cap article
    # (csrc/README.md): 33.0.
    v3 = instructions(matrix=32, trans=33, valu=125, valu_packed=24)
    assert _timing.slot_rule_clk("gfx950", v3) / 32 == pytest.approx(34.9, abs=0.05)
    text = instructions(short=96, sparse_matrix=3, trans=48, valu=99)
    assert _timing.slot_rule_clk("gfx950", text) / 48 == pytest.approx(33.0, abs=0.01)
    rdna4 = instructions(matrix=64, trans=32, valu=192)
    assert _timing.slot_rule_clk("gfx1201", rdna4) / 2048 == pytest.approx(0.594, abs=5e-4)
