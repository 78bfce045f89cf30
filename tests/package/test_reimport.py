"""The package imported again, as a notebook does that reloads what it has edited."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import importlib, sys, warnings
warnings.simplefilter("error")
import jax, jax.numpy as jnp
import jax_fa

def works(package):
    x = jnp.ones((1, 2, 2, 8), jnp.bfloat16)
    for implementation in ("xla", "gfx950"):
        with package.emulator.record() as launches:
            out = package.flash_attention(x, x, x, implementation=implementation)
            assert (out == 1).all()
        assert len(launches) == (implementation == "gfx950")
    def total(x):
        return package.flash_attention(x, x, x).astype(jnp.float32).sum()
    assert jnp.isfinite(jax.grad(total)(x)).all()
    try:
        package.emulator.CodeObject(b"no code object")
    except package.emulator.EmulatorError:
        pass

works(jax_fa)
{again}
works(jax_fa)
"""

AGAIN = {
    "reload": "assert importlib.reload(jax_fa) is jax_fa",
    "evicted": """
first = jax_fa
for name in [name for name in sys.modules if name.partition(".")[0] == "jax_fa"]:
    del sys.modules[name]
import jax_fa
assert jax_fa is not first
works(first)
""",
}


@pytest.mark.parametrize("how", AGAIN)
def test_imported_again(how):
    program = PROGRAM.replace("{again}", AGAIN[how])
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
