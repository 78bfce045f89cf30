"""The emulator's Python face: launches, arguments, schedules, errors."""

import _thread
import dataclasses
import threading

import ml_dtypes
import numpy as np
import pytest
from assemble import WAVE_SIZE, assemble

from jax_fa import emulator

SCHEDULES = ("round_robin", "run_to_barrier", "reverse", "random")

# out[i] = in[i] * factor + workgroup, for int32.
SCALE_GFX950 = """
s_load_dwordx4 s[8:11], s[0:1], 0x0
s_load_dword s12, s[0:1], 0x10
v_and_b32 v0, 0x3ff, v0
s_lshl_b32 s13, s2, 6
v_add_u32 v1, s13, v0
v_lshlrev_b32 v1, 2, v1
s_waitcnt lgkmcnt(0)
global_load_dword v2, v1, s[8:9]
s_waitcnt vmcnt(0)
v_mul_lo_u32 v2, v2, s12
v_add_u32 v2, s2, v2
global_store_dword v1, v2, s[10:11]
s_endpgm
"""
SCALE_GFX1201 = """
s_load_b128 s[8:11], s[0:1], 0x0
s_load_b32 s12, s[0:1], 0x10
v_and_b32 v0, 0x3ff, v0
s_mov_b32 s2, ttmp9
s_lshl_b32 s13, s2, 6
v_add_nc_u32 v1, s13, v0
v_lshlrev_b32 v1, 2, v1
s_wait_kmcnt 0x0
global_load_b32 v2, v1, s[8:9]
s_wait_loadcnt 0x0
v_mul_lo_u32 v2, v2, s12
v_add_nc_u32 v2, s2, v2
global_store_b32 v1, v2, s[10:11]
s_endpgm
"""
SCALE = {"gfx950": SCALE_GFX950, "gfx1201": SCALE_GFX1201}
ARGS = ("pointer", "pointer", "i32")


@pytest.fixture(scope="module", params=sorted(SCALE))
def scale(request):
    return emulator.CodeObject(assemble(request.param, SCALE[request.param], ARGS))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("threads", [1, 3])
def test_launch_runs_every_workgroup(scale, schedule, threads):
    source = np.arange(64 * 5, dtype=np.int32)
    out = np.zeros_like(source)
    launch = scale.launch(
        "kernel", 5, 64, args=[source, out, 3], schedule=schedule, threads=threads
    )
    np.testing.assert_array_equal(out, source * 3 + np.arange(64 * 5) // 64)
    waves = 5 * 64 // scale.kernels["kernel"].wave_size
    assert launch.counts["class"]["vmem_load"] == waves
    assert sum(launch.counts["class"].values()) == launch.wave_instructions
    assert sum(launch.counts["mnemonic"].values()) == launch.wave_instructions
    assert launch.bytes["operands"]["a0"] == {"read": source.nbytes, "written": 0}
    assert launch.bytes["operands"]["a1"] == {"read": 0, "written": out.nbytes}


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.uint8, np.complex64, bool])
def test_arrays_of_any_type_are_written_in_place(scale, dtype):
    source = np.arange(64, dtype=np.int32)
    out = np.zeros(256 // np.dtype(dtype).itemsize, dtype)
    launch = scale.launch("kernel", 1, 64, args=[source, out, np.int32(5)])
    np.testing.assert_array_equal(out.view(np.int32), source * 5)
    assert launch.findings == []


def test_counts_do_not_depend_on_the_checks(scale):
    source, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    checked, plain = (
        scale.launch("kernel", 1, 64, args=[source, out, 3], checks=checks)
        for checks in (True, False)
    )
    assert dataclasses.replace(checked, findings=[]) == dataclasses.replace(plain, findings=[])


def test_kernarg_with_buffers(scale):
    source, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    kernarg = np.array([source.ctypes.data, out.ctypes.data, 7], np.uint64).tobytes()[:20]
    scale.launch("kernel", 1, 64, kernarg=kernarg, buffers=[source, out])
    np.testing.assert_array_equal(out, source * 7)


def test_one_array_as_two_arguments(scale):
    array = np.arange(64, dtype=np.int32)
    scale.launch("kernel", 1, 64, args=[array, array, 2])
    np.testing.assert_array_equal(array, np.arange(64) * 2)


def test_kernel_attributes(scale):
    kernel = scale.kernels["kernel"]
    assert scale.target in SCALE
    assert kernel.vgprs == 32
    assert kernel.kernarg_bytes == 24
    assert kernel.wave_size == WAVE_SIZE[scale.target]
    assert [argument[3] for argument in kernel.arguments] == [8, 8, 4]


def test_wrong_arguments(scale):
    array = np.zeros(64, np.int32)
    with pytest.raises(emulator.EmulatorError, match="no kernel 'other'"):
        scale.launch("other", 1, 64, args=[array, array, 1])
    with pytest.raises(ValueError, match="takes 3 arguments"):
        scale.launch("kernel", 1, 64, args=[array])
    with pytest.raises(ValueError, match="contiguous"):
        scale.launch("kernel", 1, 64, args=[array[::2], array, 1])
    frozen = array.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        scale.launch("kernel", 1, 64, args=[frozen, array, 1])
    with pytest.raises(ValueError, match="does not fit its 4 bytes"):
        scale.launch("kernel", 1, 64, args=[array, array, 1 << 40])
    with pytest.raises(ValueError, match="takes 4 bytes"):
        scale.launch("kernel", 1, 64, args=[array, array, np.int64(1)])
    with pytest.raises(TypeError, match="numpy array, a number"):
        scale.launch("kernel", 1, 64, args=[array, array, "three"])
    with pytest.raises(TypeError, match="either args= or kernarg="):
        scale.launch("kernel", 1, 64)
    with pytest.raises(
        ValueError, match="kernarg of kernel kernel must have 20 bytes, or up to 24"
    ):
        scale.launch("kernel", 1, 64, kernarg=b"1234")
    with pytest.raises(emulator.EmulatorError, match="at most 1024 lanes"):
        scale.launch("kernel", 1, 1025, args=[array, array, 1])
    with pytest.raises(ValueError, match="grid must be"):
        scale.launch("kernel", 0, 64, args=[array, array, 1])
    with pytest.raises(emulator.EmulatorError, match="bytes of LDS, got 1000000"):
        scale.launch("kernel", 1, 64, args=[array, array, 1], lds_bytes=1_000_000)
    with pytest.raises(ValueError, match="schedule must be"):
        scale.launch("kernel", 1, 64, args=[array, array, 1], schedule="sideways")
    with pytest.raises(ValueError, match="threads must be"):
        scale.launch("kernel", 1, 64, args=[array, array, 1], threads=0)
    for name, value in (
        ("schedule", 1),
        ("timing", "yes"),
        ("threads", "two"),
        ("threads", True),
        ("workgroups", 0),
        ("useful_flops", "many"),
        ("seed", 0.5),
    ):
        with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
            scale.launch("kernel", 1, 64, args=[array, array, 1], **{name: value})
    with pytest.raises(ValueError, match="useful_flops is for the timing model"):
        scale.launch("kernel", 1, 64, args=[array, array, 1], useful_flops=1.0)
    with pytest.raises(TypeError, match="kernarg must be bytes; got int"):
        scale.launch("kernel", 1, 64, kernarg=20)
    with pytest.raises(TypeError, match="buffers must be a sequence of numpy arrays"):
        scale.launch("kernel", 1, 64, args=[array, array, 1], buffers=array)
    for grid in (2.5, -1, (1, 1, 1, 1), "1"):
        with pytest.raises(ValueError, match="grid must be one to three positive integers"):
            scale.launch("kernel", grid, 64, args=[array, array, 1])
    with pytest.raises(ValueError, match="checks must be True, False or 'collect'"):
        scale.launch("kernel", 1, 64, args=[array, array, 1], checks="list")
    with pytest.raises(ValueError, match="lds_bytes must be an integer from 0"):
        scale.launch("kernel", 1, 64, args=[array, array, 1], lds_bytes=-1)
    with pytest.raises(ValueError, match="seed must be an integer from 0"):
        scale.launch("kernel", 1, 64, args=[array, array, 1], seed=-1)


@pytest.mark.parametrize("threads", [1, 4])
def test_first_failing_workgroup_is_reported_whatever_the_threads(scale, threads):
    source, out = np.zeros(64 * 3, np.int32), np.zeros(64 * 40, np.int32)
    with pytest.raises(emulator.EmulatorError, match=r"workgroup \(3, 0, 0\)"):
        scale.launch("kernel", 40, 64, args=[source, out, 1], threads=threads)


def test_null_pointer_is_outside_memory(scale):
    with pytest.raises(emulator.EmulatorError, match=r"lane 0, .*outside all registered memory"):
        scale.launch("kernel", 1, 64, args=[None, np.zeros(64, np.int32), 1])


def test_unknown_instruction_names_its_words():
    code = emulator.CodeObject(assemble("gfx950", "s_nop 0\n.long 0xbfff0000\ns_endpgm"))
    with pytest.raises(emulator.EmulatorError, match=r"unknown SOPP opcode 127.*0xbfff0000"):
        code.launch("kernel", 1, 64, args=[None])


def test_unreached_data_in_the_text_does_no_harm():
    code = emulator.CodeObject(assemble("gfx950", "s_endpgm\n.long 0xbfff0000"))
    assert code.launch("kernel", 1, 64, args=[None]).wave_instructions == 1


def test_endless_loop_hits_the_limit():
    code = emulator.CodeObject(assemble("gfx950", ".Lloop:\ns_branch .Lloop"))
    with pytest.raises(emulator.EmulatorError, match=r"more than the limit .*an endless loop"):
        code.launch("kernel", 1, 64, args=[None], max_instructions_per_wave=100_000)


# Workgroup 1 never ends.
ENDLESS = """
s_cmp_eq_u32 s2, 1
s_cbranch_scc0 .Lout
.Lloop:
s_branch .Lloop
.Lout:
s_endpgm
"""


# One thread: it polls as it runs. Two: the first waits for the second.
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("schedule", ["round_robin", "run_to_barrier"])
def test_interrupt_stops_a_launch(threads, schedule):
    code = emulator.CodeObject(assemble("gfx950", ENDLESS))
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        code.launch("kernel", 2, 64, args=[None], threads=threads, schedule=schedule)
    timer.join()


def test_jump_out_of_the_text():
    body = "s_mov_b64 s[4:5], 0\ns_setpc_b64 s[4:5]"
    code = emulator.CodeObject(assemble("gfx950", body))
    with pytest.raises(emulator.EmulatorError, match="jumps out of the code object"):
        code.launch("kernel", 1, 64, args=[None])


def test_register_outside_the_kernels_own():
    code = emulator.CodeObject(assemble("gfx950", "v_mov_b32 v100, 0\ns_endpgm", vgprs=32))
    with pytest.raises(emulator.EmulatorError, match="uses v100; the kernel has 32 VGPRs"):
        code.launch("kernel", 1, 64, args=[None])


def test_tuples_begin_at_even_registers_on_gfx950():
    # v_mov_b64 v[3:4], 0
    code = emulator.CodeObject(assemble("gfx950", ".long 0x7e067080\ns_endpgm"))
    with pytest.raises(
        emulator.EmulatorError, match=r"uses v\[3:4\]; several registers begin at an"
    ):
        code.launch("kernel", 1, 64, args=[None])


WORK_ITEM_IDS = """
s_load_dwordx2 s[8:9], s[0:1], 0x0
v_and_b32 v1, 0x3ff, v0
v_bfe_u32 v2, v0, 10, 10
v_bfe_u32 v3, v0, 20, 10
v_lshl_add_u32 v4, v2, 2, v1
v_lshl_add_u32 v4, v3, 3, v4
v_lshlrev_b32 v4, 2, v4
s_waitcnt lgkmcnt(0)
global_store_dword v4, v0, s[8:9]
s_endpgm
"""


def test_work_items_of_a_block_with_three_sides():
    out = np.zeros((2, 2, 4), np.int32)
    code = emulator.CodeObject(assemble("gfx950", WORK_ITEM_IDS))
    code.launch("kernel", 1, (4, 2, 2), args=[out])
    z, y, x = np.indices(out.shape)
    np.testing.assert_array_equal(out, x | (y << 10) | (z << 20))


def test_hidden_arguments_and_preload():
    body = """
    s_branch .Lstart
    .p2align 8
    .Lstart:
    s_load_dword s12, s[0:1], 0x8
    s_load_dword s13, s[0:1], 0xc
    v_lshlrev_b32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
    s_and_b32 s13, s13, 0xffff
    s_mul_i32 s12, s12, s13
    v_mov_b32 v2, s12
    global_store_dword v1, v2, s[2:3]
    s_endpgm
    """
    code = emulator.CodeObject(
        assemble(
            "gfx950",
            body,
            extra=".amdhsa_user_sgpr_kernarg_preload_length 2",
            hidden=(("hidden_block_count_x", 4), ("hidden_group_size_x", 2)),
        )
    )
    out = np.zeros(64, np.int32)
    code.launch("kernel", 6, 64, args=[out])
    np.testing.assert_array_equal(out, 6 * 64)
