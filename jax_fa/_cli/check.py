"""The command jax-fa check: whether kernels will be used here, and if not, why not and what to do.

It asks HIP for its devices only where JAX has some of platform rocm and does not say what they are:
a machine without an AMD GPU, and a process that is told to leave it alone, initialise nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import platform
import re
from collections.abc import Iterator
from typing import Any

import jax
import jaxlib.version

from jax_fa import __version__, _native, emulator
from jax_fa._contract.spec import TARGETS
from jax_fa._machine import devices as _devices
from jax_fa._machine import system

HELP = "whether kernels will be used on this machine, and if not, why not (exit status 1)"

_INSTALL = "pip install 'jax_fa[rocm]'"


@dataclasses.dataclass(frozen=True)
class Device:
    """A device of JAX: its architecture where it is an AMD GPU, and what None is on it."""

    name: str
    platform: str
    architecture: str | None
    implementation: str


@dataclasses.dataclass(frozen=True)
class Findings:
    """Everything that the answer rests on."""

    versions: dict[str, str]
    code_objects: dict[str, dict[str, int]]  # target -> bytes, kernels
    gpus: list[str]  # architectures, by the kernel driver
    driver_closed: str | None
    plugins: list[system.Plugin]
    platforms: str | None  # JAX_PLATFORMS, or the configuration's
    devices: list[Device]
    hip_libraries: list[str]
    jax_says: list[str]  # while it started its backends


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="write one JSON object to stdout and nothing else"
    )


def run(arguments: argparse.Namespace) -> int:
    """Report; 0 when kernels will be used on a device of JAX, else 1."""
    found = examine()
    used = _places_with_kernels(found)
    because = [] if used else list(reasons(found))
    if arguments.json:
        answer = {"kernels": bool(used), "because": because, "notes": list(notes(found))}
        plugins = [plugin._asdict() for plugin in found.plugins]
        print(json.dumps(answer | dataclasses.asdict(found) | {"plugins": plugins}))
    else:
        print("\n".join(_text(found)))
        for note in notes(found):
            print(f"Note: {note}.")
        if used:
            print(f"Kernels will be used on {', '.join(used)}.")
        for reason in because:
            print(f"Kernels will not be used: {reason}.")
    return 0 if used else 1


# --- What is here ---------------------------------------------------------------------------------


def examine() -> Findings:
    """Looks at the machine, the installation and JAX's devices."""
    gpus = system.gpu_architectures()
    devices, jax_says = _jax_devices()
    return Findings(
        versions={
            "jax_fa": __version__,
            "jax": jax.__version__,
            "jaxlib": jaxlib.version.__version__,
            "Python": platform.python_version(),
        },
        code_objects=_code_objects(),
        gpus=gpus,
        driver_closed=system.why_driver_is_closed() if gpus else None,
        plugins=system.plugins(),
        platforms=_platforms(),
        devices=devices,
        hip_libraries=system.hip_libraries(),  # after JAX has started what it starts
        jax_says=jax_says,
    )


def _platforms() -> str | None:
    return jax.config.jax_platforms  # pyright: ignore[reportAttributeAccessIssue]


def _code_objects() -> dict[str, dict[str, int]]:
    codes = {target: _native.code_object(target) for target in TARGETS}
    return {
        target: {"bytes": len(code), "kernels": len(emulator.CodeObject(code).kernels)}
        for target, code in codes.items()
        if code
    }


class _Listener(logging.Handler):
    """Keeps what JAX logs: a plugin that fails is no more than a line there."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            line += f" {record.exc_info[1]}"
        self.lines.append(line)


def _jax_devices() -> tuple[list[Device], list[str]]:
    """The devices of the default platform, of ROCm and of the CPU; and what JAX said meanwhile."""
    listener = _Listener()
    logger = logging.getLogger("jax")
    found: list[Any] = []
    logger.addHandler(listener)
    try:
        for backend in (None, "rocm", "cpu"):
            try:
                found += [d for d in jax.local_devices(backend=backend) if d not in found]
            except RuntimeError as error:
                if backend is None:  # all of JAX; of the others, that they are not here
                    listener.lines.append(str(error))
        devices = [_describe(device, listener.lines) for device in found]
    finally:
        logger.removeHandler(listener)
    return devices, listener.lines


def _describe(device: Any, lines: list[str]) -> Device:
    try:
        of = _devices.architecture(device)
    except RuntimeError as error:
        lines.append(f"{device}: {error}")
        of = None
    platform_name = _devices.platform_of(device)
    return Device(str(device), platform_name, of, _devices.target_of(of) or "xla")


# --- What follows ---------------------------------------------------------------------------------


def _places_with_kernels(found: Findings) -> list[str]:
    return [
        f"{device.name} ({device.architecture})"
        for device in found.devices
        if device.implementation != "xla"
    ]


def reasons(found: Findings) -> Iterator[str]:
    """Why no device runs kernels, each with what to do: every condition that is not met."""
    if not found.code_objects:
        yield "this build of jax_fa has no code objects; install a release, or build it whole"
    rocm = [device for device in found.devices if device.platform == "rocm"]
    if rocm:
        yield from (_why_not_on(device, found) for device in rocm)
        return
    lacking = list(_what_the_machine_lacks(found))
    yield from lacking
    if found.jax_says and (found.gpus or not found.devices):
        yield from (f"JAX says: {line.rstrip('.')}{_hint(line)}" for line in found.jax_says)
    elif not lacking:
        yield (
            "JAX started without the GPU and does not say why; JAX_PLATFORMS=rocm,cpu makes it "
            "stop and say, and AMD_LOG_LEVEL=3 makes HIP speak"
        )


def _hint(line: str) -> str:
    match = re.search(r"(lib[\w.+-]+): cannot open shared object file", line)
    if match is None:
        return ""
    return (
        f". {match[1]} is ROCm's own, which the plugin does not bring: install the plugin's ROCm, "
        "or name its lib folder in LD_LIBRARY_PATH"
    )


def _what_the_machine_lacks(found: Findings) -> Iterator[str]:
    if not found.gpus:
        yield "the kernel driver, amdgpu, knows no AMD GPU here, so calls run xla"
        return
    if not any(map(_devices.target_of, found.gpus)):
        yield (
            f"there are kernels for {' and '.join(found.code_objects) or 'nothing'}, "
            f"and the GPUs are {', '.join(found.gpus)}; they run xla"
        )
    if found.driver_closed:
        yield found.driver_closed
    yield from _what_plugins_lack(found)
    if found.platforms and not {"rocm", "gpu"} & set(found.platforms.split(",")):
        yield f'JAX_PLATFORMS is "{found.platforms}"; unset it, or add rocm to it'


def _why_not_on(device: Device, found: Findings) -> str:
    if device.architecture is None:
        return f"{device.name}: its architecture is not known: {'; '.join(found.jax_says)}"
    return (
        f"{device.name} is a {device.architecture}, and there are kernels for "
        f"{' and '.join(found.code_objects) or 'nothing'}; it runs xla"
    )


def _what_plugins_lack(found: Findings) -> Iterator[str]:
    parts = {(plugin.rocm, plugin.part) for plugin in found.plugins}
    if not parts:
        yield f"JAX's ROCm plugin is not installed; {_INSTALL}{_too_old(found)}"
    for rocm, part in sorted(parts):
        other = "pjrt" if part == "plugin" else "plugin"
        if (rocm, other) not in parts:
            yield f"jax-rocm{rocm}-{part} is installed without jax-rocm{rocm}-{other}; {_INSTALL}"


def _too_old(found: Findings) -> str:
    """What a Python gets that newer plugins do not come for."""
    version = found.versions["Python"]
    if tuple(map(int, version.split(".")[:2])) >= (3, 12):
        return ""
    return (
        f" (Python {version} gets JAX 0.10 with its plugin for ROCm 7, the last for it; "
        "later ones, and those for ROCm 10, come for Python 3.12 and newer)"
    )


def notes(found: Findings) -> Iterator[str]:
    """What may go wrong all the same."""
    jax_version = found.versions["jax"]
    for plugin in found.plugins:
        if _release(plugin.version) != _release(jax_version):
            yield (
                f"{plugin.name} {plugin.version} is not of JAX {jax_version}, and JAX does not "
                f"check that; {_INSTALL} chooses a pair"
            )
    if len({plugin.rocm for plugin in found.plugins}) > 1:
        yield "plugins for more than one ROCm are installed; leave one"
    if len(found.hip_libraries) > 1:
        yield (
            f"more than one HIP library is loaded, {' and '.join(found.hip_libraries)}; kernels "
            f"take that of JAX's plugin{_which()}, and others need not: look at LD_LIBRARY_PATH "
            "and LD_PRELOAD"
        )
    if _places_with_kernels(found):
        for device in found.devices:
            if device.platform == "rocm" and device.implementation == "xla":
                yield _why_not_on(device, found)


def _which() -> str:
    try:
        return f", {_native.hip_library()}"
    except RuntimeError:  # the plugin is not loaded, or there are two
        return ""


def _release(version: str) -> list[str]:
    """0.12.0 of 0.12.0.1 and 0.12.0.post1: what has to agree."""
    return version.split("+")[0].split(".")[:3]


# --- The report -----------------------------------------------------------------------------------


def _text(found: Findings) -> Iterator[str]:
    yield ", ".join(f"{name} {version}" for name, version in found.versions.items())
    objects = (
        f"{target} ({code['bytes']:,} bytes, {code['kernels']} kernels)"
        for target, code in found.code_objects.items()
    )
    parts = (f"{plugin.name} {plugin.version}" for plugin in found.plugins)
    yield f"code objects   {', '.join(objects) or 'none'}"
    yield f"AMD GPUs       {', '.join(found.gpus) or 'none'}"
    yield f"ROCm plugin    {', '.join(parts) or 'none'}"
    yield f"HIP library    {', '.join(found.hip_libraries) or 'not loaded'}"
    for device in found.devices:
        architecture = f" ({device.architecture})" if device.architecture else ""
        choice = "kernels" if device.implementation != "xla" else "xla"
        yield f"{device.name + architecture:<22} implementation=None: {choice}"
