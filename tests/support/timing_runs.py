"""Kernels of a few instructions under the timing model."""

import numpy as np
from assemble import assemble

from jax_fa import emulator
from jax_fa.emulator.timing import constants

CONSTANTS = {
    target: {row.name: row.value for row in constants(target)} for target in ("gfx950", "gfx1201")
}
START = {target: values["group_start"] for target, values in CONSTANTS.items()}
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


def launch_clk(target):
    """What cold caches add to a launch."""
    value = CONSTANTS[target]
    scalars = value["cold_scalar"] - value["scalar_load_latency"]
    return value["cold_fetch"] + scalars + value["cold_load"] - value["l2_latency"]


def issues(target, body, waves=1, constants=None, **options):
    """(instruction of the body, clk) of each wave, counted from the first of all."""
    trace = launch(target, body, waves, **options).trace
    found = trace.issues(0, 1, False, constants or {})
    first_pc, first_clk = min(pc for _, pc, _ in found), min(clk for *_, clk in found)
    return [
        [(pc - first_pc, clk - first_clk) for w, pc, clk in found if w == wave]
        for wave in range(waves)
    ]


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
