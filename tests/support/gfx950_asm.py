"""Small gfx950 kernels written in assembly, for tests of single instructions.

A kernel reads rows of 64 dwords (one per lane) into v16, v17, ..., runs its body, and writes rows
from v64, v65, .... Workgroup w of W takes input w of W.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from assemble import assemble_source

from jax_fa import emulator

FIRST_INPUT = 16
FIRST_OUTPUT = 64
LANES = 64


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One kernel: its body, the rows it reads and writes, its LDS, and SGPRs in its output.

    ``masks`` SGPR pairs s[20:21], s[22:23], ... follow the rows, low dword then high, in all lanes.
    """

    body: str
    inputs: int
    outputs: int = 1
    masks: int = 0
    lds_bytes: int = 0
    denormals: int = 3  # in single precision: 3 keeps denormals, 0 flushes them


_TEMPLATE = """
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  s_mul_i32 s8, s2, {input_bytes}
  s_add_u32 s4, s4, s8
  s_addc_u32 s5, s5, 0
  s_mul_i32 s8, s2, {output_bytes}
  s_add_u32 s6, s6, s8
  s_addc_u32 s7, s7, 0
{loads}
  s_waitcnt vmcnt(0)
{body}
  s_nop 15  // what a matrix instruction writes takes up to 20 wait states
  s_nop 3
  s_mov_b64 exec, -1
{stores}
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_next_free_vgpr 512
  .amdhsa_next_free_sgpr 96
  .amdhsa_accum_offset 256
  .amdhsa_float_denorm_mode_32 {denormals}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_group_segment_fixed_size {lds_bytes}
.end_amdhsa_kernel
"""

_METADATA = """
  - .name: {name}
    .symbol: {name}.kd
    .kernarg_segment_size: 16
    .group_segment_fixed_size: {lds_bytes}
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: 64
    .sgpr_count: 96
    .vgpr_count: 512
    .agpr_count: 256
    .max_flat_workgroup_size: 64
    .args:
      - {{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}}
      - {{.size: 8, .offset: 8, .value_kind: global_buffer, .address_space: global}}
"""


def _moves(row: str, first: int, count: int, base: str) -> str:
    # An offset has 13 bits with sign, so the base moves on every 15 rows.
    lines = []
    for i in range(count):
        if i and i % 15 == 0:
            low, high = base
            lines.append(f"  s_add_u32 s{low}, s{low}, {15 * 256}")
            lines.append(f"  s_addc_u32 s{high}, s{high}, 0")
        lines.append(row.format(register=first + i, offset=(i % 15) * 256))
    return "\n".join(lines)


def _text(name: str, kernel: Kernel) -> str:
    outputs = kernel.outputs + 2 * kernel.masks
    masks = "".join(
        f"  v_mov_b32_e32 v{FIRST_OUTPUT + kernel.outputs + i}, s{20 + i}\n"
        for i in range(2 * kernel.masks)
    )
    body = kernel.body + (f"\n  s_mov_b64 exec, -1\n  s_nop 0\n{masks}" if masks else "")
    return _TEMPLATE.format(
        name=name,
        body=body,
        input_bytes=kernel.inputs * LANES * 4,
        output_bytes=outputs * LANES * 4,
        lds_bytes=kernel.lds_bytes,
        denormals=kernel.denormals,
        loads=_moves(
            "  global_load_dword v{register}, v1, s[4:5] offset:{offset}",
            FIRST_INPUT,
            kernel.inputs,
            "45",
        ),
        stores=_moves(
            "  global_store_dword v1, v{register}, s[6:7] offset:{offset}",
            FIRST_OUTPUT,
            outputs,
            "67",
        ),
    )


@functools.cache
def assemble_text(text: str) -> emulator.CodeObject:
    """The code object of an assembly file."""
    return emulator.CodeObject(assemble_source("gfx950", text))


def assemble(kernels: dict[str, Kernel]) -> emulator.CodeObject:
    """One code object that holds all kernels."""
    text = '.amdgcn_target "amdgcn-amd-amdhsa--gfx950"\n.amdhsa_code_object_version 5\n'
    text += "".join(_text(name, kernel) for name, kernel in kernels.items())
    text += ".amdgpu_metadata\namdhsa.version: [1, 2]\namdhsa.kernels:"
    text += "".join(
        _METADATA.format(name=name, lds_bytes=kernel.lds_bytes) for name, kernel in kernels.items()
    )
    return assemble_text(text + ".end_amdgpu_metadata\n")


def run(
    code: emulator.CodeObject, name: str, kernel: Kernel, rows: np.ndarray, **options
) -> np.ndarray:
    """Runs a kernel on rows [W, inputs, 64] of dwords; returns [W, outputs, 64] uint32."""
    rows = np.ascontiguousarray(rows).view(np.uint32).copy()
    assert rows.shape[1:] == (kernel.inputs, LANES), rows.shape
    out = np.zeros((len(rows), kernel.outputs + 2 * kernel.masks, LANES), np.uint32)
    code.launch(name, len(rows), LANES, [rows, out], **options)
    return out
