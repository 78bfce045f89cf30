"""Attention for JAX on AMD GPUs.

``flash_attention``, ``flash_attention_varlen``, ``paged_attention`` and ``merge_attention`` compose
under jit, grad and vmap, and ``nn.dot_product_attention`` is jax.nn's function in their terms;
``reference`` holds plain jnp oracles, ``emulator`` runs the shipped gfx950 and gfx1201 code objects
on any CPU.
"""

from importlib.metadata import version as _version

from jax_fa import emulator, nn, reference
from jax_fa._mesh import export as _exported
from jax_fa._mesh import sharding as _sharding
from jax_fa._ops import registry as _registry
from jax_fa._ops.append import append_to_pages
from jax_fa._ops.segments import cu_seqlens_to_segment_ids, segment_ids_to_cu_seqlens
from jax_fa.attention import flash_attention
from jax_fa.merge import merge_attention
from jax_fa.paged import paged_attention
from jax_fa.varlen import flash_attention_varlen

__version__ = _version("jax_fa")

_registry.register()
_exported.register(_sharding.partition_exported)

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
