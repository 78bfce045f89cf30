"""The architectures of JAX's devices, and the targets that serve them."""

from __future__ import annotations

from typing import Any

import jax

from jax_fa import _native

_ARCHITECTURES = _native.architectures()


def platform_of(device: Any) -> str:
    """The platform that programs for a device are lowered for: "rocm", where JAX says "gpu"."""
    client = getattr(device, "client", None)
    return getattr(client, "_raw_platform", None) or device.platform


def architecture(device: Any) -> str | None:
    """The architecture of a device of JAX, "gfx950".

    None of what is no AMD GPU, and of one that nobody here knows: it is another process's, or of a
    topology without devices behind it.

    Raises:
      RuntimeError: HIP, which is asked where JAX does not say, gives no answer.
    """
    if platform_of(device) != "rocm":
        return None
    said = getattr(device, "compute_capability", None)
    if isinstance(said, str) and said.startswith("gfx"):
        return said.split(":")[0]  # without feature flags
    if device not in rocm_devices():
        return None
    # JAX may leave devices out (jax_rocm_visible_devices); its hardware ids are HIP's ordinals.
    architectures = _native.hip_devices()
    if device.local_hardware_id >= len(architectures):
        raise RuntimeError(f"HIP has {len(architectures)} devices, and JAX has {device}")
    return architectures[device.local_hardware_id]


def rocm_devices() -> list[Any]:
    """This process's AMD GPUs, as JAX has them."""
    try:
        return jax.local_devices(backend="rocm")
    except RuntimeError:  # it has no such backend
        return []


def target_of(architecture: str | None) -> str | None:
    """The target whose kernels serve an architecture, where this build has any."""
    target = _ARCHITECTURES.get(architecture or "")
    return target if target and _native.code_object(target) else None
