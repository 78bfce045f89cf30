"""Assembles small kernels for the emulator's tests with the clang of the ziglang package."""

import functools
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# User SGPRs: s[0:1] the kernel arguments; gfx950 puts the workgroup ids into s2, s3, s4, gfx1201
# into ttmp9 and ttmp7.
_KERNEL = """
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
{body}
.L{name}_end:
.size {name}, .L{name}_end-{name}

.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_next_free_vgpr {vgprs}
  .amdhsa_next_free_sgpr 64
  .amdhsa_group_segment_fixed_size {lds_bytes}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_system_sgpr_workgroup_id_y 1
  .amdhsa_system_sgpr_workgroup_id_z 1
  {extra}
.end_amdhsa_kernel
"""
_METADATA = """
  - .name: {name}
    .symbol: {name}.kd
    .kernarg_segment_size: {kernarg_bytes}
    .group_segment_fixed_size: {lds_bytes}
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: {wave_size}
    .sgpr_count: 64
    .vgpr_count: {vgprs}
    .max_flat_workgroup_size: 1024
    .args:
{args}
"""

# What differs by target: lanes of a wave, and directives of a kernel.
WAVE_SIZE = {"gfx950": 64, "gfx1201": 32}
_DIRECTIVES = {"gfx950": "\n.amdhsa_accum_offset 32", "gfx1201": ""}

_KINDS = {"pointer": ("global_buffer", 8), "i32": ("by_value", 4), "f32": ("by_value", 4)}


def assemble(target: str, body: str, *args: Any, **options: Any) -> bytes:
    """The code object of one kernel named "kernel"; the rest as ``assemble_kernels``."""
    return assemble_kernels(target, {"kernel": body}, *args, **options)


def assemble_kernels(target: str, bodies: Mapping[str, str], *args: Any, **options: Any) -> bytes:
    """One code object of several kernels; the rest as ``kernels_source``."""
    return assemble_source(target, kernels_source(target, bodies, *args, **options))


def kernels_source(
    target: str,
    bodies: Mapping[str, str],
    args: tuple[str, ...] = ("pointer",),
    *,
    vgprs: int = 32,
    lds_bytes: int = 0,
    extra: str = "",
    hidden: tuple[tuple[str, int], ...] = (),
    version: int = 5,
) -> str:
    """The assembly file of several kernels by name, which differ in their bodies only.

    ``args`` are "pointer", "i32" or "f32", each aligned to its size; ``hidden`` are (kind, bytes).
    ``version`` is that of the code object. Labels begin with ".L" and belong to their kernel.
    """
    offset, lines = 0, []
    for place, (kind, size) in enumerate([*(_KINDS[arg] for arg in args), *hidden]):
        offset = -(-offset // size) * size
        lines.append(
            f"      - {{.name: a{place}, .offset: {offset}, .size: {size}, .value_kind: {kind}}}"
        )
        offset += size
    fields = {
        "vgprs": vgprs,
        "lds_bytes": lds_bytes,
        "extra": extra + _DIRECTIVES[target],
        "kernarg_bytes": -(-offset // 8) * 8,
        "wave_size": WAVE_SIZE[target],
        "args": "\n".join(lines),
    }
    source = f'.amdgcn_target "amdgcn-amd-amdhsa--{target}"\n'
    source += f".amdhsa_code_object_version {version}\n"
    for name, body in bodies.items():
        source += _KERNEL.format(name=name, body=body.replace(".L", f".L{name}_"), **fields)
    source += ".amdgpu_metadata\namdhsa.version: [1, 2]\namdhsa.kernels:"
    source += "".join(_METADATA.format(name=name, **fields) for name in bodies)
    return source + ".end_amdgpu_metadata\n"


@functools.cache
def assemble_source(target: str, *sources: str) -> bytes:
    """The code object of whole assembly files, linked together."""
    zig = [sys.executable, "-m", "ziglang"]
    with tempfile.TemporaryDirectory() as folder:
        flags = ["-target", "amdgcn-amd-amdhsa", f"-mcpu={target}"]
        objects = [f"kernel{place}.o" for place in range(len(sources))]
        for name, source in zip(objects, sources, strict=True):
            text = Path(folder) / "kernel.s"
            text.write_text(source)
            _run([*zig, "clang", *flags, "-c", text.name, "-o", name], folder)
        _run([*zig, "ld.lld", "-shared", *objects, "-o", "kernel.co"], folder)
        return (Path(folder) / "kernel.co").read_bytes()


def _run(command: list[str], folder: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
