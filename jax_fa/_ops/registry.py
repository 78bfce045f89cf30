"""Registers the extension's FFI handlers with JAX, once, at import."""

import jax

from jax_fa import _native

FLASH = "jax_fa_flash"
VARLEN = "jax_fa_varlen"
PAGED = "jax_fa_paged"
APPEND = "jax_fa_append"


def register() -> None:
    """Makes every handler of the extension known to JAX on every platform that it serves.

    Registering a platform whose plugin is absent is queued and harmless.
    """
    for platform, handlers in _native.registrations().items():
        for name, stages in handlers.items():
            jax.ffi.register_ffi_target(name, stages, platform=platform, api_version=1)
