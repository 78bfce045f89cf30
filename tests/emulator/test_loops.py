"""What a launch executed, loop by loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assemble import assemble
from cases import KERNEL_TARGETS

from jax_fa import emulator, flash_attention

# Two loops with matrix instructions: a hot one, and one for what an argument says; and one without.
BODY = """
s_load_dwordx2 s[8:9], s[0:1], 0x0
s_load_dword s12, s[0:1], 0x8
v_mov_b32 v4, 0
s_waitcnt lgkmcnt(0)
s_mov_b32 s13, 3
rare:
v_mfma_f32_4x4x4_16b_f16 v[8:11], v[4:5], v[4:5], 0
s_sub_u32 s13, s13, 1
s_cmp_lg_u32 s13, 0
s_cbranch_scc1 rare
hot:
s_bitcmp1_b32 s12, 0
s_cbranch_scc0 even
v_exp_f32 v6, v4
even:
v_mfma_f32_4x4x4_16b_f16 v[8:11], v[4:5], v[4:5], 0
s_sub_u32 s12, s12, 1
s_cmp_lg_u32 s12, 0
s_cbranch_scc1 hot
s_mov_b32 s13, 50
idle:
s_sub_u32 s13, s13, 1
s_cmp_lg_u32 s13, 0
s_cbranch_scc1 idle
s_endpgm
"""


@pytest.mark.parametrize("rounds", [1, 10])
def test_loops_of_a_launch(rounds):
    body = BODY.replace("v4, 0\n", "v4, 0\nv_mov_b32 v5, 0\n")
    code = emulator.CodeObject(assemble("gfx950", body, ("pointer", "i32")))
    array = np.zeros(64, np.int32)
    launch = code.launch("kernel", 3, 128, args=[array, rounds])
    waves = 6
    loops = {loop["rounds"]: loop for loop in launch.loops}
    assert sorted(loops) == sorted({3 * waves, rounds * waves})
    busiest = max(3, rounds) * waves
    assert launch.loops[0] is loops[busiest]
    odd = (rounds + 1) // 2
    assert loops[rounds * waves]["class"] == {
        "branch": 2 * rounds * waves,
        "matrix": rounds * waves,
        "salu": 3 * rounds * waves,
        "trans": odd * waves,
    }
    assert loops[rounds * waves]["mnemonic"]["v_exp_f32"] == odd * waves
    assert loops[3 * waves]["class"] == {
        "branch": 3 * waves,
        "matrix": 3 * waves,
        "salu": 2 * 3 * waves,
    }


def test_a_kernel_without_loops():
    code = emulator.CodeObject(assemble("gfx1201", "s_endpgm"))
    assert code.launch("kernel", 1, 32, args=[np.zeros(32, np.int32)]).loops == []


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_loops_of_recorded_launches(target):
    x = jnp.ones((1, 512, 1, 128), jnp.bfloat16)
    with emulator.record() as launches:
        jax.block_until_ready(flash_attention(x, x, x, implementation=target))
    (launch,) = launches
    hot = launch.loops[0]
    assert hot["class"]["matrix"] > launch.counts["class"]["matrix"] / 2
    for loop in launch.loops:
        for kind in ("class", "mnemonic"):
            for name, times in loop[kind].items():
                assert times <= launch.counts[kind][name]
