"""Attention for JAX on AMD GPUs.

``flash_attention``, ``flash_attention_varlen``, ``paged_attention`` and ``merge_attention`` compose
under jit, grad and vmap, and ``nn.dot_product_attention`` is jax.nn's function in their terms;
``reference`` holds plain jnp oracles, ``emulator`` runs the shipped gfx950 and gfx1201 code objects
on any CPU.
"""

# Floors of this package; each imports from those below it alone, which
# tests/house/test_python_floors.py holds:
#
#   __main__, _cli      the console script jax-fa
#   the public files    one for each public function: attention, varlen, paged, merge, page_cache,
#                       segments; and the namespaces nn and reference. emulator/ is one too, on
#                       _contract and _native alone
#   _ops                the operations: vmap, gradients, kernels' custom calls
#   _xla                implementation="xla", in jnp
#   _mesh               division over devices, export
#   _machine            AMD GPUs of this machine, architectures of JAX's devices
#   _contract           options, shapes and dtypes, tolerances
#   _native             the extension module (csrc/python)
#
# Sequence parallelism would be the public file parallel.py; adapters of other libraries a folder of
# public files, adapters/, one for each library, which nothing here imports; and what changes jax.nn
# in place the public file patch.py.

from importlib.metadata import version as _version

from jax_fa import emulator, nn, reference
from jax_fa._mesh.export import register as _register_exported
from jax_fa._ops.operations import partition_exported as _partition_exported
from jax_fa._ops.registry import register as _register_handlers
from jax_fa.attention import flash_attention
from jax_fa.merge import merge_attention
from jax_fa.page_cache import append_to_pages
from jax_fa.paged import paged_attention
from jax_fa.segments import cu_seqlens_to_segment_ids, segment_ids_to_cu_seqlens
from jax_fa.varlen import flash_attention_varlen

__version__ = _version("jax_fa")

_register_handlers()
_register_exported(_partition_exported)

__all__ = [
    "append_to_pages",
    "cu_seqlens_to_segment_ids",
    "emulator",
    "flash_attention",
    "flash_attention_varlen",
    "merge_attention",
    "nn",
    "paged_attention",
    "reference",
    "segment_ids_to_cu_seqlens",
]
