"""Small gfx1201 programs written in assembly, for tests of single instructions.

A program is a list of cases that run one after the other in one wave of 32 lanes. Inputs, rows of
32 dwords, stand in v16, v17, ... and are loaded again before each case; a case leaves its results
in v64, v65, .... Workgroup w of W takes input w of W.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from assemble import assemble_source

from jax_fa import emulator

LANES = 32
# Four ds_nop in a row drop the vector ALU's copies of scalar registers, so that a case does not
# depend on which of them the cases before it have read.
FORGET = "  ds_nop\n" * 4
FIRST_INPUT = 16
FIRST_OUTPUT = 64


@dataclasses.dataclass(frozen=True)
class Case:
    """One case: its lines, and how many rows of results it leaves."""

    body: str
    outputs: int = 1


_TEXT = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx1201"
.amdhsa_code_object_version 5
.text
.globl kernel
.p2align 8
.type kernel,@function
kernel:
  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  s_wait_kmcnt 0x0
  s_mul_i32 s8, ttmp9, {input_bytes}
  s_add_co_u32 s4, s4, s8
  s_add_co_ci_u32 s5, s5, 0
  s_mul_i32 s8, ttmp9, {output_bytes}
  s_add_co_u32 s6, s6, s8
  s_add_co_ci_u32 s7, s7, 0
{cases}
  s_endpgm

.rodata
.p2align 6
.amdhsa_kernel kernel
  .amdhsa_next_free_vgpr 256
  .amdhsa_next_free_sgpr 96
  .amdhsa_float_denorm_mode_32 3
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_group_segment_fixed_size {lds_bytes}
.end_amdhsa_kernel

.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: kernel
    .symbol: kernel.kd
    .kernarg_segment_size: 16
    .group_segment_fixed_size: {lds_bytes}
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: 32
    .sgpr_count: 96
    .vgpr_count: 256
    .max_flat_workgroup_size: 32
    .args:
      - {{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}}
      - {{.size: 8, .offset: 8, .value_kind: global_buffer, .address_space: global}}
.end_amdgpu_metadata
"""


@functools.cache
def _code(text: str) -> emulator.CodeObject:
    return emulator.CodeObject(assemble_source("gfx1201", text))


def run(
    cases: dict[str, Case], rows: np.ndarray, *, lds_bytes: int = 0, **options
) -> dict[str, np.ndarray]:
    """Runs all cases on rows [W, inputs, 32] of dwords; gives uint32 [W, outputs, 32] for each."""
    rows = np.ascontiguousarray(rows).view(np.uint32).copy()
    groups, inputs, lanes = rows.shape
    assert lanes == LANES, rows.shape
    loads = "\n".join(
        f"  global_load_b32 v{FIRST_INPUT + i}, v1, s[4:5] offset:{4 * LANES * i}"
        for i in range(inputs)
    )
    text, row = [], 0
    for case in cases.values():
        text.append(f"{FORGET}{loads}\n  s_wait_loadcnt 0x0\n{case.body}\n  s_mov_b32 exec_lo, -1")
        for i in range(case.outputs):
            text.append(
                f"  global_store_b32 v1, v{FIRST_OUTPUT + i}, s[6:7] offset:{4 * LANES * row}"
            )
            row += 1
    source = _TEXT.format(
        cases="\n".join(text),
        input_bytes=inputs * LANES * 4,
        output_bytes=row * LANES * 4,
        lds_bytes=lds_bytes,
    )
    out = np.zeros((groups, row, LANES), np.uint32)
    _code(source).launch("kernel", groups, LANES, [rows, out], **options)
    results, row = {}, 0
    for name, case in cases.items():
        results[name] = np.ascontiguousarray(out[:, row : row + case.outputs])
        row += case.outputs
    return results
