"""What this machine has of an AMD GPU: by its kernel driver, by pip, by this process's own maps.

Nothing here loads a library or starts a backend.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from pathlib import Path
from typing import NamedTuple

import jax

_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_DEVICE = Path("/dev/kfd")
_MAPS = Path("/proc/self/maps")

# What of these is set to nothing, or to no index, hides every GPU.
_VISIBLE = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")

# jax-rocm7-plugin, jax-rocm7-pjrt; the distributions' names are spelled with - or _.
_PLUGIN = re.compile(r"jax[-_]rocm(\d+)[-_](plugin|pjrt)")


class Plugin(NamedTuple):
    """A distribution of JAX's ROCm plugin, which comes in two: "plugin" and "pjrt"."""

    name: str
    version: str
    rocm: int
    part: str


def gpu_architectures() -> list[str]:
    """The architecture of every AMD GPU that the kernel driver knows ("gfx950"), in its order."""
    found = []
    for node in sorted(_NODES.glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            properties = (node / "properties").read_text()
        except OSError:  # a container may see the folder and not read this node
            continue
        match = re.search(r"^gfx_target_version (\d+)$", properties, re.MULTILINE)
        if match and int(match[1]):  # a CPU's node has 0
            found.append(_architecture(int(match[1])))
    return found


def _architecture(version: int) -> str:
    """90500 is gfx950, 90010 gfx90a, 120001 gfx1201: two decimal digits for each hexadecimal."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def why_driver_is_closed() -> str | None:
    """Why this process cannot use the GPUs that the driver knows; None where it can."""
    if not _DEVICE.exists():
        return f"{_DEVICE} is not here; a container needs --device=/dev/kfd --device=/dev/dri"
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return f"{_DEVICE} is not this user's to open; its group (video or render) has to be"
    return None


def is_told_to_leave_gpus() -> bool:
    """Whether this process is told which platforms or GPUs to use, be that of JAX or of ROCm."""
    return bool(_jax_platforms()) or any(os.environ.get(name) in ("", "-1") for name in _VISIBLE)


def _jax_platforms() -> str | None:
    return jax.config.jax_platforms  # pyright: ignore[reportAttributeAccessIssue]


def plugins() -> list[Plugin]:
    """The installed parts of JAX's ROCm plugins."""
    found = set()
    for distribution in importlib.metadata.distributions():
        name = (distribution.metadata["Name"] or "").lower()
        if match := _PLUGIN.fullmatch(name):
            version = distribution.version
            found.add(Plugin(name.replace("_", "-"), version, int(match[1]), match[2]))
    return sorted(found)


def hip_libraries() -> list[str]:
    """The files of the HIP runtime that this process has mapped; two are one too many."""
    lines = _MAPS.read_text().splitlines()
    files = (line.split(maxsplit=5)[-1] for line in lines if "libamdhip64.so" in line)
    return sorted(set(files))
