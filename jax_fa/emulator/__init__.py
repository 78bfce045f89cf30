"""Runs gfx950 and gfx1201 code objects on any CPU, instruction by instruction.

The emulator is harder on a kernel than the chip is. Results of loads arrive only when a wait
proves them there; with ``checks`` it reports registers and LDS that are read before they are
written or while their load is under way, LDS races, and barriers that some waves miss; and in any
case it stops at an access outside the arrays that were passed, and at an instruction that it does
not know.

>>> code = CodeObject("kernel.co")
>>> launch = code.launch("scale", grid=4, block=256, args=[x, np.float32(2), x.size])
>>> launch.counts["class"]["valu"]

``configure`` and ``record`` govern and observe the emulated custom calls of jit-compiled functions
(``implementation="gfx950"`` on a machine without that GPU).
"""

from jax_fa.emulator.arguments import Kernel
from jax_fa.emulator.calls import configure, record
from jax_fa.emulator.launch import CodeObject, EmulatorError, Launch
from jax_fa.emulator.options import Arrival as Arrival
from jax_fa.emulator.options import Schedule as Schedule
from jax_fa.emulator.steps import Step, Steps
from jax_fa.emulator.trace import chrome_trace

__all__ = [
    "CodeObject",
    "EmulatorError",
    "Kernel",
    "Launch",
    "Step",
    "Steps",
    "chrome_trace",
    "configure",
    "record",
]
