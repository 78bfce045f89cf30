"""Kernels of a few instructions under the timing model."""

import numpy as np
from assemble import assemble

from jax_fa import emulator

START = dict.fromkeys(("gfx950", "gfx1201"), 500)
SIMDS = 4


def launch(target, body, waves=1, *, timing=True, workgroups=(0,), grid=1, lds_bytes=0, **options):
    code = emulator.CodeObject(
        assemble(target, body + "\ns_endpgm\n", vgprs=256, lds_bytes=lds_bytes)
    )
    lanes = {"gfx950": 64, "gfx1201": 32}[target]
    return code.launch(
        "kernel",
        grid,
        waves * lanes,
        args=[np.zeros(4096, np.uint32)],
        checks=False,
        timing=timing,
        workgroups=workgroups,
        **options,
    )


def clk(target, body, waves=1, constants=None, **options):
    """Modelled clocks of one workgroup from its first instruction on."""
    trace = launch(target, body, waves, **options).trace
    return trace.time(0, 1, constants or {})[1] - START[target]


def marginal_clk(target, body, times=8, **options):
    """Clocks of one more repetition of the body."""
    short, long = (clk(target, body * n, **options) for n in (times, 2 * times))
    return (long - short) / times


def mfma(shape, place, regs):
    out = f"v[{64 + place * regs}:{64 + (place + 1) * regs - 1}]"
    return f"v_mfma_f32_{shape}_bf16 {out}, v[0:3], v[4:7], {out}\n"


SHORT = "".join(mfma("16x16x32", i, 4) for i in range(4))
LONG = "".join(mfma("32x32x16", i, 16) for i in range(4))
SPARSE = "".join(
    f"v_smfmac_f32_16x16x64_bf16 v[{64 + 4 * i}:{67 + 4 * i}], v[0:3], v[8:15], v16\n"
    for i in range(3)
)
WMMA = "".join(
    f"v_wmma_f32_16x16x16_bf16 v[{64 + 8 * i}:{71 + 8 * i}], v[0:3], v[4:7], "
    f"v[{64 + 8 * i}:{71 + 8 * i}]\n"
    for i in range(4)
)
