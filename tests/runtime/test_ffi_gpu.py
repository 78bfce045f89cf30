"""The handlers for ROCm, called as XLA's GPU backend calls them, upon the HIP stand-in."""

import re
import subprocess
from pathlib import Path

import jaxlib
import pytest
from compilers import cxx_command

SOURCE = Path(__file__).parent / "ffi_frame" / "ffi_frame.cc"
HEADERS = Path(jaxlib.__file__).parent / "include"

# `call(...)` is one call of a handler: None, or the message of its error.
PRELUDE = """
import struct
xla = ctypes.CDLL(sys.argv[3], mode=ctypes.RTLD_LOCAL)
INITIALIZE, EXECUTE = 2, 3
DTYPES = {"pred": 1, "s32": 4, "s64": 5, "u8": 6, "f16": 10, "f32": 11, "bf16": 16}
BYTES = {"s32": 4, "u8": 1, "f16": 2, "f32": 4, "bf16": 2}

class Array(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p)]

class Attribute(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("name_bytes", ctypes.c_uint64),
                ("dtype", ctypes.c_int32), ("data", ctypes.c_char_p), ("bytes", ctypes.c_uint64)]

def arrays(described, address):
    # Device memory, one array after another.
    made = []
    for dtype, shape in described:
        dims = (ctypes.c_int64 * len(shape))(*shape)
        made.append(Array(DTYPES[dtype], len(shape), dims, address))
        size = BYTES[dtype]
        for extent in shape:
            size *= extent
        address += -(-size // 256) * 256
    return (Array * len(made))(*made), address

def attributes(values):
    made = []
    for name, value in sorted(values.items()):
        name = name.encode()
        if isinstance(value, str):
            made.append(Attribute(name, len(name), 0, value.encode(), len(value)))
        elif isinstance(value, bool):
            made.append(Attribute(name, len(name), DTYPES["pred"], struct.pack("?", value), 0))
        elif isinstance(value, int):
            made.append(Attribute(name, len(name), DTYPES["s64"], struct.pack("q", value), 0))
        else:
            made.append(Attribute(name, len(name), DTYPES["f32"], struct.pack("f", value), 0))
    return (Attribute * len(made))(*made)

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
HANDLERS = {name: {stage: pointer(capsule, None) for stage, capsule in stages.items()}
            for name, stages in _native.registrations()["ROCM"].items()}

B, T, S, N, K, H = 2, 3, 200, 4, 2, 64
OPTIONS = dict(target="any", scale=0.125, soft_cap=0.0, window_left=-1, window_right=-1,
               top_left=False, num_splits=1)

def problem(num_splits=1, s=S, dtype="bf16"):
    operands = [(dtype, (B, T, N, H)), (dtype, (B, s, K, H)), (dtype, (B, s, K, H)),
                ("s32", (0,)), ("s32", (B,))]
    workspace = num_splits * B * T * N * (H + 1) * 4 if num_splits > 1 else 0
    results = [(dtype, (B, T, N, H)), ("f32", (B, T, N)), ("u8", (workspace,))]
    return operands, results

def call(stage=EXECUTE, device=0, stream=None, handler="jax_fa_flash", memory=MEMORY, of=None,
         **options):
    operands, results = of or problem()
    ins, after = arrays(operands, memory)
    outs, _ = arrays(results, after)
    values = attributes({**OPTIONS, **options})
    message = ctypes.create_string_buffer(1000)
    entry = HANDLERS[handler]["initialize" if stage == INITIALIZE else "execute"]
    code = xla.ffi_frame_call(
        ctypes.c_void_p(entry), stage,
        ctypes.c_void_p(256 * device + 7 if stream is None else stream),
        device, ins, ctypes.c_int64(len(ins)), outs, ctypes.c_int64(len(outs)), values,
        ctypes.c_int64(len(values)), message, ctypes.c_size_t(1000))
    return None if code == -1 else message.value.decode()
"""


@pytest.fixture(scope="module")
def frame(stand_in, tmp_path_factory):
    """A library that calls handlers, and depends on a stand-in as JAX's plugin does on HIP."""
    hip = Path(stand_in(7))
    path = tmp_path_factory.mktemp("frame") / "libframe.so"
    flags = ("-std=c++20", "-O1", "-shared", "-fPIC", f"-I{HEADERS}", f"-Wl,-rpath,{hip.parent}")
    command = [*cxx_command(), *flags, str(SOURCE), str(hip), "-o", str(path)]
    subprocess.run(command, check=True)
    return str(path)


@pytest.fixture
def gpu(run, frame):
    def gpu(code, devices="gfx950:sramecc+:xnack-,gfx1201", **options):
        return run(code, devices, prelude=PRELUDE, files=(frame,), **options)

    return gpu


def launches(lines):
    return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in lines if line.startswith("launch")]


def test_initialize_loads_and_execute_launches_on_the_calls_stream(gpu):
    code = """
answers = [call(INITIALIZE), call(INITIALIZE)]
loaded = log()
answers += [call(), call(stream=9)]
answer([answers, loaded, log()])
"""
    answers, loaded, lines = gpu(code)
    assert answers == [None] * 4
    assert loaded == ["load device=0"]
    assert [launch["stream"] for launch in launches(lines)] == ["7", "9"]
    assert len(lines) == 3  # nothing is loaded again
    arguments = bytes.fromhex(launches(lines)[0]["arguments"])
    query, key, value, out, lse = (
        int.from_bytes(arguments[i : i + 8], "little") for i in range(0, 40, 8)
    )
    assert query == 4096  # the addresses are the frame's, in the order of its operands
    assert query < key < value < out < lse


def test_each_device_gets_its_own_kernels(gpu):
    code = """
answers = [call(stage, device) for stage in (INITIALIZE, EXECUTE) for device in (1, 0)]
answer([answers, log(), hip.hip_stand_in_current_device()])
"""
    answers, lines, current = gpu(code)
    assert answers == [None] * 4
    assert [line for line in lines if line.startswith("load")] == ["load device=1", "load device=0"]
    assert [(x["device"], x["stream"]) for x in launches(lines)] == [("1", "263"), ("0", "7")]
    assert current == 0


def test_several_threads_as_xla_has_one_for_each_device(gpu):
    code = """
answers, together = [], threading.Barrier(8)
def work(device):
    together.wait()
    answers.extend(call(stage, device) for stage in (INITIALIZE, EXECUTE, EXECUTE))
threads = [threading.Thread(target=work, args=(n % 2,)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
answer([answers, log()])
"""
    answers, lines = gpu(code)
    assert answers == [None] * 24
    assert sum(line.startswith("load") for line in lines) == 2
    assert len(launches(lines)) == 16


def test_splits_launch_their_merge_on_the_same_stream(gpu):
    code = "answer([call(of=problem(3), num_splits=3), log()])"
    error, lines = gpu(code)
    assert error is None
    found = launches(lines)
    assert len(found) == 2
    assert found[1]["kernel"] == "merge_bfloat16"
    assert {launch["stream"] for launch in found} == {"7"}


def test_no_keys_fill_the_results_on_the_device(gpu):
    error, lines = gpu("answer([call(of=problem(s=0)), log()])")
    assert error is None
    assert [line.split()[:2] for line in lines] == [["memset", "width=8"], ["memset", "width=32"]]


def test_execute_alone_under_capture_is_recorded_once_loaded(gpu):
    code = """
hip.hip_stand_in_capture(1)
unloaded = call(INITIALIZE)
hip.hip_stand_in_capture(0)
call(INITIALIZE)
hip.hip_stand_in_capture(1)
answer([unloaded, call()])
"""
    unloaded, loaded = gpu(code)
    assert "hipErrorStreamCaptureUnsupported" in unloaded
    assert loaded is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("stream=0", "Failed to get platform stream: no stream on this platform"),
        ("stream=256 + 7", "hipErrorInvalidHandle"),  # of another device
        ("device=5", "hipErrorInvalidDevice"),
        ('target="gfx1201"', "gfx1201 was asked for, but HIP device 0 is gfx950"),
        ('target="gfx942"', "target must be gfx950, gfx1201 or any; got gfx942"),
        ("stage=INITIALIZE, stream=0", "Failed to get platform stream"),
        ('stage=INITIALIZE, target="gfx1201"', "gfx1201 was asked for"),
        ("num_splits=0", "num_splits must be 1 or more; got 0"),
        ("memory=1 << 40, of=problem(s=0)", "hipErrorInvalidValue"),  # not the device's memory
    ],
)
def test_an_error_is_the_calls_and_never_a_run_elsewhere(gpu, changes, message):
    code = f"""
emulated = _native.EmulatorRecorder()
error = call({changes})
answer([error, log(), len(emulated.launches), call()])
"""
    error, lines, emulated, next_call = gpu(code)
    assert message in error
    assert not launches(lines)
    assert emulated == 0
    assert next_call is None


def test_a_fault_on_the_device_is_an_error_of_every_later_call(gpu):
    code = """
host = ctypes.create_string_buffer(1 << 20)
first = call(memory=ctypes.addressof(host))  # accepted: the kernel faults when it runs
answer([first, [call(stage) for stage in (EXECUTE, EXECUTE)], call(INITIALIZE, 1)])
"""
    first, later, other = gpu(code)
    assert first is None
    assert all("hipErrorIllegalAddress 700" in error for error in (*later, other))
