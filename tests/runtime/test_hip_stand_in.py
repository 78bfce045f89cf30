"""The stand-in refuses what the real HIP library refuses: each violation, planted."""

import pytest

from jax_fa import _native, emulator

# `launch(...)` is one launch of a kernel that works; each case breaks one thing of it.
PRELUDE = """
import struct
SIZES = {"gfx950": 512, "gfx1201": 256}
image = _native.code_object(ARCHITECTURE)

def name(error):
    return hip.hipGetErrorName(error).decode()

def load(data=image):
    module = ctypes.c_void_p()
    kept.append(ctypes.create_string_buffer(bytes(data), len(data)))
    return hip.hipModuleLoadData(ctypes.byref(module), kept[-1]), module

def function(module, kernel=b"flash_bfloat16_h64_plain"):
    found = ctypes.c_void_p()
    return hip.hipModuleGetFunction(ctypes.byref(found), module, kernel), found

def launch(handle, grid=(1, 1, 1), block=None, lds=0, stream=7, size=344, tags=(1, 2, 3),
           arguments=None, both=False, neither=False):
    block = block or (SIZES[ARCHITECTURE], 1, 1)
    data = ctypes.create_string_buffer(arguments or struct.pack("Q", MEMORY) * 43, 344)
    bytes_ = ctypes.c_size_t(size)
    extra = (ctypes.c_void_p * 5)(tags[0], ctypes.addressof(data), tags[1],
                                  ctypes.addressof(bytes_), tags[2])
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(data)) if both else None
    return hip.hipModuleLaunchKernel(handle, *grid, *block, lds, ctypes.c_void_p(stream),
                                     parameters, None if neither else extra)

def patched(old, new):
    assert image.count(old) and len(old) == len(new)
    return image.replace(old, new)

def with_flags(flags):
    return image[:48] + struct.pack("I", flags) + image[52:]

kept = []
"""


@pytest.fixture
def refuse(run):
    """What the stand-in says to `code`, which has a loaded `module` and a `kernel` of it."""

    def refuse(code, architecture="gfx950", device=None, loaded=True, **options):
        prelude = f'ARCHITECTURE = "{architecture}"\n{PRELUDE}'
        if loaded:
            prelude += "_, module = load()\n_, kernel = function(module)\n"
        devices = device or {"gfx950": "gfx950:sramecc+:xnack-,gfx950:sramecc+:xnack-"}.get(
            architecture, architecture
        )
        return run(code, devices, prelude=prelude, **options)

    return refuse


@pytest.mark.parametrize("architecture", ["gfx950", "gfx1201"])
def test_what_is_right_is_accepted(refuse, architecture):
    assert refuse("answer(name(launch(kernel)))", architecture) == "hipSuccess"


LAUNCHES = {
    "grid=(0, 1, 1)": "hipErrorInvalidValue",
    "grid=(1, 65536, 1)": "hipErrorInvalidConfiguration",
    "grid=(1 << 31, 1, 1)": "hipErrorInvalidConfiguration",
    "block=(512, 0, 1)": "hipErrorInvalidConfiguration",
    "block=(1025, 1, 1)": "hipErrorInvalidValue",
    "block=(1024, 1, 1)": "hipErrorLaunchFailure",  # the kernel is for 512
    "block=(513, 1, 1)": "hipErrorLaunchFailure",
    "lds=(160 << 10) + 1": "hipErrorInvalidValue",
    "lds=160 << 10": "hipErrorLaunchOutOfResources",  # with what the kernel itself has
    "size=340": "hipErrorInvalidValue",
    "size=352": "hipErrorInvalidValue",
    "tags=(2, 1, 3)": "hipErrorInvalidValue",
    "tags=(1, 2, 0)": "hipErrorInvalidValue",
    "both=True": "hipErrorInvalidValue",
    "neither=True": "hipErrorInvalidValue",
    "stream=256 + 7": "hipErrorInvalidHandle",  # the other device's
    "stream=1 << 20": "hipErrorInvalidHandle",
}


def test_launches(refuse):
    code = f"""
cases = {list(LAUNCHES)}
said = [name(eval(f"launch(kernel, {{case}})")) for case in cases]
answer([said, name(launch(kernel)), len(log())])
"""
    said, after, lines = refuse(code)
    assert dict(zip(LAUNCHES, said, strict=True)) == LAUNCHES
    assert after == "hipSuccess"
    assert lines == 2  # a load and a launch


def test_limits_are_each_chips_own(refuse):
    code = """
answer([name(launch(kernel, block=(257, 1, 1))), name(launch(kernel, lds=(64 << 10) + 1))])
"""
    assert refuse(code, "gfx1201") == ["hipErrorLaunchFailure", "hipErrorInvalidValue"]


def _of_lds(size):
    return repr(b".group_segment_fixed_size\xce" + size.to_bytes(4, "big"))


# MessagePack has 1 as 01, 512 as cd 02 00; one text of the same length for another.
_LDS = (
    emulator.CodeObject(_native.code_object("gfx950"))
    .kernels["flash_bfloat16_h128_plain"]
    .lds_bytes
)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (r"b'.uniform_work_group_size\x01'", r"b'.uniform_work_group_size\x00'", "InvalidValue"),
        (
            r"b'.max_flat_workgroup_size\xcd\x02\x00'",
            r"b'.max_flat_workgroup_size\xcd\x01\x00'",
            "LaunchFailure",
        ),
        (  # of 344 bytes of arguments, 340
            r"b'.size\xcd\x01\x58'",
            r"b'.size\xcd\x01\x54'",
            "InvalidValue",
        ),
        (  # more static LDS than the device has
            r"b'.group_segment_fixed_size\xcd\x84\x00'",
            r"b'.group_segment_fixed_size\xcd\xff\xff'",
            "Success",
        ),
        (_of_lds(_LDS), _of_lds(2**20), "LaunchOutOfResources"),
    ],
)
def test_metadata_decides(refuse, old, new, error):
    kernel = "b'flash_bfloat16_h128_plain'" if "xce" in old else "b'flash_bfloat16_h64_plain'"
    code = f"""
_, module = load(patched({old}, {new}))
answer(name(launch(function(module, {kernel})[1])))
"""
    expected = "hipSuccess" if error == "Success" else f"hipError{error}"
    assert refuse(code) == expected


def test_images(refuse):
    code = """
answer([name(load(data)[0]) for data in (
    b"\\0" + image[1:],                       # no ELF file
    image[:8] + b"\\4" + image[9:],           # code object version 6
    with_flags(0x54e),                        # another chip
    patched(b"amdhsa.kernels", b"amdhsa.kernel_"),
    image[:image.index(b".name")] + b"\\xc1" + image[image.index(b".name") + 1:],
    image,
)])
"""
    assert refuse(code, loaded=False) == [
        *("hipErrorInvalidImage", "hipErrorInvalidImage", "hipErrorNoBinaryForGpu"),
        *("hipErrorInvalidImage", "hipErrorInvalidImage", "hipSuccess"),
    ]


# e_flags: bits 8 and 9 for xnack, 10 and 11 for sramecc; 1 any, 2 off, 3 on.
@pytest.mark.parametrize(
    ("device", "right"),
    [
        ("gfx950:sramecc+:xnack-", {0x54F, 0x64F, 0xD4F, 0xE4F}),
        ("gfx950:sramecc-:xnack+", {0x54F, 0x74F, 0x94F, 0xB4F}),
    ],
)
def test_features_of_a_chip(refuse, device, right):
    flags = [
        0x4F | xnack << 8 | sramecc << 10 for xnack in (0, 1, 2, 3) for sramecc in (0, 1, 2, 3)
    ]
    code = f"answer([name(load(with_flags(x))[0]) for x in {flags}])"
    said = dict(zip(flags, refuse(code, device=device, loaded=False), strict=True))
    assert {x for x, error in said.items() if error == "hipSuccess"} == right
    assert set(said.values()) == {"hipSuccess", "hipErrorNoBinaryForGpu"}


def test_handles_and_pointers(refuse):
    code = """
answer([name(error) for error in (
    function(ctypes.c_void_p(MEMORY))[0],
    function(module, b"flash")[0],
    function(module, None)[0],
    launch(None),
    launch(ctypes.c_void_p(MEMORY)),
    launch(module),
    hip.hipModuleLoadData(None, image),
    hip.hipModuleLoadData(ctypes.byref(ctypes.c_void_p()), None),
    hip.hipGetDevice(None),
    hip.hipSetDevice(2),
    hip.hipMemsetAsync(ctypes.c_void_p(1), 0, ctypes.c_size_t(8), None),
    hip.hipMemsetD32Async(ctypes.c_void_p(MEMORY), 0, ctypes.c_size_t((1 << 28) + 1), None),
    hip.hipMemsetAsync(image, 0, ctypes.c_size_t(8), None),
    hip.hipMemsetD32Async(ctypes.c_void_p(MEMORY), 0, ctypes.c_size_t(1 << 28), None),
)])
"""
    said = refuse(code)
    assert said == [
        *("hipErrorInvalidHandle", "hipErrorNotFound", "hipErrorInvalidValue"),
        *("hipErrorInvalidHandle",) * 3,
        *("hipErrorInvalidValue",) * 3,
        "hipErrorInvalidDevice",
        *("hipErrorInvalidValue",) * 3,
        "hipSuccess",
    ]


def test_an_image_must_stay_as_it_was(refuse):
    code = """
first = name(launch(kernel))
kept[0][2000] = bytes([kept[0].raw[2000] ^ 1])
answer([first, name(launch(kernel))])
"""
    assert refuse(code) == ["hipSuccess", "hipErrorLaunchFailure"]


@pytest.mark.parametrize("major", [7, 6])
def test_the_last_error(refuse, major):
    code = """
hip.hipSetDevice(9)
hip.hipSetDevice(0)
answer([name(hip.hipGetLastError()) for _ in range(2)])
"""
    kept = "hipErrorInvalidDevice" if major == 7 else "hipSuccess"
    assert refuse(code, loaded=False, majors=(major,)) == [kept, "hipSuccess"]


def test_a_host_pointer_faults_and_the_fault_stays(refuse):
    code = """
address = ctypes.addressof(kept[0])
first = launch(kernel, arguments=struct.pack("Q", MEMORY) * 42 + struct.pack("Q", address))
errors = [launch(kernel), load()[0], function(module)[0],
          hip.hipMemsetAsync(ctypes.c_void_p(MEMORY), 0, ctypes.c_size_t(8), None)]
asked = [hip.hipGetLastError() for _ in range(3)]
answer([name(first), [name(e) for e in errors + asked], name(hip.hipSetDevice(1))])
"""
    first, later, set_device = refuse(code)
    assert first == "hipSuccess"
    assert set(later) == {"hipErrorIllegalAddress"}
    assert set_device == "hipSuccess"
