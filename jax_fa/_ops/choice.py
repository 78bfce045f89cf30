"""Kernels or xla, for calls that name no implementation: chosen when a program is lowered.

What counts are the devices that the program is lowered for. When it is traced nobody knows them,
and JAX may have no backend yet. Where they are AMD GPUs that one target serves, all of them, the
program calls kernels. Where they are others, or unlike ones, it is xla and a warning says so, once.
Nothing is asked of HIP for a program of another platform.

A program for export, and one for devices that are not here, calls kernels on ROCm: the handlers
look at the device that they run on.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import lax
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, mlir
from jax.sharding import Mesh

from jax_fa._contract.spec import TARGETS
from jax_fa._machine import devices as _devices
from jax_fa._machine import system
from jax_fa._mesh.export import refuse_derivatives


def kernel_or_xla(kernel: Callable[..., Any], xla: Callable[..., Any], *operands: Any) -> Any:
    """The results of `kernel` on AMD GPUs that have them, else of `xla`; a tuple of arrays each."""
    leaves, tree = jax.tree.flatten(operands)
    jaxprs = tuple(
        jax.make_jaxpr(lambda *x, f=f: f(*jax.tree.unflatten(tree, x)))(*leaves)
        for f in (kernel, xla)
    )
    # JAX lowers a program once for whatever devices, unless a primitive says that it needs them.
    # Within shard_map the mesh tells them, and it may be one that has none.
    local = jax.sharding.get_abstract_mesh().manual_axes
    return tuple((_local_choice_p if local else _choice_p).bind(*leaves, jaxprs=jaxprs))


# --- The primitive --------------------------------------------------------------------------------


def _types(*_: Any, jaxprs: tuple[ClosedJaxpr, ClosedJaxpr]) -> list[Any]:
    return jaxprs[1].out_avals


def _evaluate(*arrays: Any, jaxprs: tuple[ClosedJaxpr, ClosedJaxpr]) -> Any:
    with jax.disable_jit(False):  # a choice is made when a program is lowered
        return jax.jit(functools.partial(_choice_p.bind, jaxprs=jaxprs))(*arrays)


def _lower(ctx: Any, *values: Any, jaxprs: tuple[ClosedJaxpr, ClosedJaxpr]) -> Any:
    kernel, xla = map(jaxpr_as_fun, jaxprs)
    platforms = ctx.platforms or ctx.module_context.platforms
    # One rule for all platforms: JAX finds an operation's inner functions again by their jaxprs
    # alone, so that rules for single platforms would get each other's code.
    if "rocm" not in platforms or not _has_kernels(ctx.module_context):
        chosen = xla
    elif len(platforms) == 1:
        chosen = kernel
    else:
        chosen = functools.partial(lax.platform_dependent, rocm=kernel, default=xla)
    if "cpu" in platforms and not ctx.module_context.lowering_parameters.for_export:
        _warn_of_an_idle_gpu()
    return mlir.lower_fun(chosen, multiple_results=True)(ctx, *values)


def _primitive(name: str) -> Primitive:
    primitive = Primitive(name)
    primitive.multiple_results = True
    primitive.def_abstract_eval(_types)
    primitive.def_impl(_evaluate)
    ad.primitive_jvps[primitive] = refuse_derivatives
    mlir.register_lowering(primitive, _lower)
    return primitive


_choice_p = _primitive("jax_fa_choice")
_local_choice_p = _primitive("jax_fa_local_choice")

try:
    from jax._src.dispatch import prim_requires_devices_during_lowering
except ImportError:  # the choice then goes by all AMD GPUs that JAX has
    pass
else:
    prim_requires_devices_during_lowering.add(_choice_p)


# --- The devices ----------------------------------------------------------------------------------


def _has_kernels(module: Any) -> bool:
    """Whether kernels serve a program's devices, of platform ROCm; a warning says why not."""
    if module.lowering_parameters.for_export:
        return True
    known = _devices_of(module.axis_context)
    candidates = _likely_devices(module.axis_context) if known is None else known
    try:
        found = sorted(set(filter(None, map(_devices.architecture, candidates))))
    except RuntimeError as error:
        _warn_once(f"the GPU's architecture is not known, so attention runs xla: {error}")
        return False
    targets = {_devices.target_of(one) for one in found}
    if known is None:
        targets -= {None} if len(targets) > 1 else set()  # not all of them are the program's
    if not targets or (len(targets) == 1 and None not in targets):
        return True
    _warn_once(_why_not(found, targets))
    return False


def _devices_of(context: Any) -> Sequence[Any] | None:
    """The devices of a program, or of the mesh of a part of it; None where they are not known."""
    devices = getattr(context, "device_assignment", None)
    if devices is None:
        mesh = getattr(context, "mesh", None)
        devices = mesh.devices.flat if isinstance(mesh, Mesh) and not mesh.empty else None
    return None if devices is None else tuple(devices)


def _likely_devices(context: Any) -> Sequence[Any]:
    """The AMD GPUs here that a program may be for, where its mesh has no devices.

    A mesh of Explicit axes that is not set tells the kind of its first one; of an exported program,
    compiled for some of these GPUs, it tells nothing. The handlers refuse a GPU that is not theirs.
    """
    here = _devices.rocm_devices()
    device = getattr(getattr(context, "mesh", None), "abstract_device", None)
    kind = getattr(device, "device_kind", None)
    return [x for x in here if x.device_kind == kind] or here


def _why_not(architectures: Sequence[str], targets: set[str | None]) -> str:
    names = " and ".join(architectures)
    served = " and ".join(x for x in TARGETS if _devices.target_of(x)) or "no architecture"
    if targets == {None}:
        return (
            f'attention runs implementation="xla" on {names}: jax_fa has kernels for {served} '
            'alone; to be told no more, pass implementation="xla"'
        )
    return (
        f'attention runs implementation="xla" over unlike GPUs, {names}: jax_fa has kernels for '
        f"{served}, and one program is for one of them; use a mesh of GPUs that are alike"
    )


@functools.cache
def _warn_of_an_idle_gpu() -> None:
    """Warns where the CPU serves a program because JAX has not found the machine's AMD GPU."""
    if jax.default_backend() != "cpu" or system.is_told_to_leave_gpus():
        return
    idle = [x for x in system.gpu_architectures() if _devices.target_of(x)]
    if idle:
        _warn_once(
            f"an AMD GPU is here, {' and '.join(idle)}, and JAX does not use it, so attention runs "
            "on the CPU; jax-fa check says what is missing, and JAX_PLATFORMS=cpu that it is meant"
        )


@functools.cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=2)
