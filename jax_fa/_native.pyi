"""The extension module: FFI handlers, embedded code objects, HIP devices, emulator."""

from typing import Any

def registrations() -> dict[str, dict[str, Any]]:
    """FFI targets: ``{name: {"initialize": capsule, "execute": capsule}}``.

    One handler serves the platforms "cpu" (emulator) and "ROCM" (HIP), with ``api_version=1``.
    """

def code_object(target: str) -> bytes:
    """The embedded ELF code object of "gfx950" or "gfx1201"; empty where this build has none."""

def hip_devices() -> list[str]:
    """Architectures ("gfx950") of the HIP devices; empty where no HIP library is loaded."""

def hip_compute_units(device: int) -> int:
    """Compute units of a HIP device."""

def hip_flash(
    device: int, stream: int, shape: tuple[int, int, int, int, int, int], address: int
) -> None:
    """Enqueue bfloat16 attention of shape (B, T, S, N, K, H) on a HIP device, for tests.

    The path of a custom call below its handler. Every operand lies at ``address``.
    """
