"""Assembles small kernels for the emulator's tests with the clang of the ziglang package."""

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

# User SGPRs: s[0:1] the kernel arguments; gfx950 puts the workgroup ids into s2, s3, s4, gfx1201
# into ttmp9 and ttmp7.
_TEMPLATE = """
.amdgcn_target "amdgcn-amd-amdhsa--{target}"
.text
.globl kernel
.p2align 8
.type kernel,@function
kernel:
{body}
.Lend:
.size kernel, .Lend-kernel

.rodata
.p2align 6
.amdhsa_kernel kernel
  .amdhsa_next_free_vgpr {vgprs}
  .amdhsa_next_free_sgpr 64
  .amdhsa_group_segment_fixed_size {lds_bytes}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_system_sgpr_workgroup_id_y 1
  .amdhsa_system_sgpr_workgroup_id_z 1
  {extra}
.end_amdhsa_kernel

.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: kernel
    .symbol: kernel.kd
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
.end_amdgpu_metadata
"""

_KINDS = {"pointer": ("global_buffer", 8), "i32": ("by_value", 4), "f32": ("by_value", 4)}


def assemble(
    target: str,
    body: str,
    args: tuple[str, ...] = ("pointer",),
    *,
    vgprs: int = 32,
    lds_bytes: int = 0,
    extra: str = "",
    hidden: tuple[tuple[str, int], ...] = (),
) -> bytes:
    """The code object of one kernel named "kernel".

    ``args`` are "pointer", "i32" or "f32", each aligned to its size; ``hidden`` are (kind, bytes).
    """
    offset, lines = 0, []
    for place, (kind, size) in enumerate([*(_KINDS[arg] for arg in args), *hidden]):
        offset = -(-offset // size) * size
        lines.append(
            f"      - {{.name: a{place}, .offset: {offset}, .size: {size}, .value_kind: {kind}}}"
        )
        offset += size
    source = _TEMPLATE.format(
        target=target,
        body=body,
        vgprs=vgprs,
        lds_bytes=lds_bytes,
        extra=extra + ("\n.amdhsa_accum_offset 32" if target == "gfx950" else ""),
        kernarg_bytes=-(-offset // 8) * 8,
        wave_size=64 if target == "gfx950" else 32,
        args="\n".join(lines),
    )
    return assemble_source(target, source)


@functools.cache
def assemble_source(target: str, source: str) -> bytes:
    """The code object of a whole assembly file."""
    zig = [sys.executable, "-m", "ziglang"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernel.s").write_text(source)
        flags = ["-target", "amdgcn-amd-amdhsa", f"-mcpu={target}"]
        _run([*zig, "clang", *flags, "-c", "kernel.s", "-o", "kernel.o"], folder)
        _run([*zig, "ld.lld", "-shared", "kernel.o", "-o", "kernel.co"], folder)
        return (Path(folder) / "kernel.co").read_bytes()


def _run(command: list[str], folder: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
