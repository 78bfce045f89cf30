"""What every test shares."""

import os

import jax
import pytest
from compared import instructions, named_by

import jax_fa  # noqa: F401  (the installed package, before any test module changes anything)
from jax_fa import emulator

# Python in processes that tests start imports the installed package too, and not the checkout's
# folder for being the working one.
os.environ["PYTHONSAFEPATH"] = "1"

# Tests of sharding use four devices; all others run on the first.
jax.config.update("jax_num_cpu_devices", 4)

# Products of float32 are those of the reference; GPUs have a default that is less exact.
_ON_GPU = jax.default_backend() != "cpu"
if _ON_GPU:
    jax.config.update("jax_default_matmul_precision", "highest")

# Users' programs are optimised, so CI's run on the latest JAX sets this.
_OPTIMIZED = _ON_GPU or os.environ.get("JAX_FA_TESTS_OPTIMIZED") == "1"

# What runs on JAX's own default device, be that a GPU (JAX_PLATFORMS=cuda,cpu); all else emulates,
# divides over those devices or compares with what a CPU gave.
_ANYWHERE = {
    *("attention", "batched", "blockwise", "exact", "merge", "nn", "page_cache", "paged"),
    *("paged_transforms", "segments", "varlen", "varlen_transforms", "vjp"),
}


@pytest.fixture(autouse=True)
def _on_the_cpu(request):
    """The CPU as default device, unless a test runs xla alone."""
    name = request.node.name
    anywhere = request.path.stem.removeprefix("test_") in _ANYWHERE
    on_cpu = any(request.node.iter_markers("on_cpu")) or "gfx" in name or "emulat" in name
    if not _ON_GPU or (anywhere and not on_cpu):
        yield
    else:
        with jax.default_device(jax.devices("cpu")[0]):
            yield


@pytest.fixture(autouse=True)
def _compiles_fast(request):
    """XLA's optimiser is left out where nothing is swept: it takes half of the compiling time."""
    swept = any(request.node.iter_markers("slow")) or any(request.node.iter_markers("optimized"))
    jax.config.update("jax_disable_most_optimizations", not (swept or _OPTIMIZED))


@pytest.fixture(autouse=True)
def _runs_what_it_compares(request, monkeypatch):
    """A test marked as comparing instructions launches kernels that have them."""
    missing = named_by(request.node.iter_markers("compared"))
    launch = emulator.CodeObject.launch

    def listed(code, kernel, *args, **options):
        missing.difference_update(instructions(code, kernel))
        return launch(code, kernel, *args, **options)

    if missing:
        monkeypatch.setattr(emulator.CodeObject, "launch", listed)
    yield
    assert not missing, f"marked as compared, but in no kernel that the test launched: {missing}"
