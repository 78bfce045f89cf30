"""The handlers of ROCm, called as XLA calls them on a GPU, above a stand-in for HIP.

Addresses of operands lead nowhere: a handler that read what they point to would crash.
"""

from pathlib import Path

import jaxlib
import pytest
from compilers import build_library

SOURCE = Path(__file__).parent / "fake_xla" / "fake_xla.cc"
SUPPORT = Path(__file__).parents[1] / "support"

# After the prelude of conftest.py.
PRELUDE = """
import re
sys.path.insert(0, sys.argv[3])
from fake_xla import FakeXla

ROCM = _native.registrations()["ROCM"]
plugins = [FakeXla(path) for path in sys.argv[4:]]
xla = plugins[0]
for library in libraries:
    library.hip_stand_in_log.restype = ctypes.c_char_p

B, T, S, N, K, H = 2, 100, 70, 4, 2, 64
TQ, TK, P, PAGE, M = 600, 900, 90, 16, 40
CALLS = {
    "jax_fa_flash": (
        {"query": (B, T, N, H), "key": (B, S, K, H), "value": (B, S, K, H), "query_lengths": (0,),
         "key_lengths": (B,)},
        (B, T, N, H), {},
    ),
    "jax_fa_varlen": (
        {"query": (TQ, N, H), "key": (TK, K, H), "value": (TK, K, H), "cu_seqlens_q": (B + 1,),
         "cu_seqlens_k": (B + 1,), "num_sequences": (1,)},
        (TQ, N, H), {"grid_sequences": B},
    ),
    "jax_fa_paged": (
        {"query": (B, T, N, H), "k_pages": (P, PAGE, K, H), "v_pages": (P, PAGE, K, H),
         "block_tables": (B, M), "key_lengths": (B,), "query_lengths": (B,), "cu_seqlens_q": (0,)},
        (B, T, N, H), {"hnd": False},
    ),
}
HALF = {"query", "key", "value", "k_pages", "v_pages"}

def address(place):
    "Of an operand or result: 4 GiB of device memory each."
    return (1 << 44) + (place << 32)
for library in libraries:
    library.hip_stand_in_memory(ctypes.c_uint64(address(0)), ctypes.c_uint64(13 << 32))

def frame(name, num_splits=1, memory=0, **attributes):
    "Operands, results and attributes of a right call, `memory` bytes beyond their addresses."
    shapes, out, own = CALLS[name]
    rows = 1
    for size in out[:-1]:
        rows *= size
    workspace = num_splits * rows * (H + 1) * 4 if num_splits > 1 else 0
    operands = [(s, "bf16" if x in HALF else "s32", address(i) + memory)
                for i, (x, s) in enumerate(shapes.items())]
    results = [(out, "bf16", address(10) + memory), (out[:-1], "f32", address(11) + memory),
               ((workspace,), "u8", address(12) + memory)]
    options = {"target": "any", "scale": 0.125, "soft_cap": 0.0, "window_left": -1,
               "window_right": -1, "top_left": False, "num_splits": num_splits}
    return operands, results, options | own | attributes

def call(name, *stages, xla=xla, stream=None, device=0, **changes):
    "The errors of these stages; streams of the stand-in are numbered 256 * device + n."
    stream = 256 * device + 7 if stream is None else stream
    return [xla.call(ROCM[name][stage], stage, *frame(name, **changes), stream=stream,
                     device=device) for stage in stages or ("initialize", "execute")]

def log(library=hip):
    lines = [(line.split()[0], dict(re.findall(r"(\\w+)=(\\S*)", line)))
             for line in library.hip_stand_in_log().decode().splitlines()]
    library.hip_stand_in_clear()
    return lines
"""


@pytest.fixture(scope="session")
def plugin(stand_in, tmp_path_factory):
    """Builds a plugin that depends on the stand-in of a HIP major version: plugin(7) -> path."""
    folder = tmp_path_factory.mktemp("plugin")
    include = [str(Path(jaxlib.__file__).parent / "include")]
    built = {}

    def build(major):
        if major not in built:
            path = folder / f"plugin_of_{major}.so"
            source = f'#include "{SOURCE}"\n'
            built[major] = build_library(path, source, stand_in(major), include=include)
        return built[major]

    return build


@pytest.fixture
def call(run, plugin):
    """Runs Python code with plugins loaded and gives what it answered."""

    def run_code(code, devices="gfx950:sramecc+:xnack-", majors=(7,)):
        files = (str(SUPPORT), *(plugin(major) for major in majors))
        return run(code, devices, majors, prelude=PRELUDE, files=files)

    return run_code


def address(place):
    return (1 << 44) + (place << 32)


def pointers(launch, count):
    """The first pointers of a launch's arguments (csrc/kernels/params.h)."""
    arguments = bytes.fromhex(launch["arguments"])
    return [int.from_bytes(arguments[i : i + 8], "little") for i in range(0, 8 * count, 8)]


def test_traits_keep_calls_out_of_command_buffers(call):
    code = """
answer([xla.traits(handler) for stages in ROCM.values() for handler in stages.values()])
"""
    assert call(code) == [0] * 6


@pytest.mark.parametrize(("device", "lanes"), [("gfx950:sramecc+:xnack-", 512), ("gfx1201", 256)])
@pytest.mark.parametrize("name", ["jax_fa_flash", "jax_fa_varlen", "jax_fa_paged"])
def test_stages_load_and_then_launch(call, name, device, lanes):
    code = f"""
first = call("{name}", "initialize"), log()
again = call("{name}", "initialize"), log()
executed = call("{name}", "execute"), log()
split = call("{name}", "initialize", "execute", num_splits=2), log()
answer([first, again, executed, split, xla.refused_allocations(), xla.last_error()])
"""
    first, again, executed, split, allocations, last_error = call(code, devices=device)
    assert first == [[""], [["load", {"device": "0"}]]]
    assert again == [[""], []]
    assert executed[0] == [""]
    ((kind, launch),) = executed[1]
    assert kind == "launch"
    assert launch["stream"] == "7"
    assert launch["device"] == "0"
    paged = name == "jax_fa_paged"
    assert launch["kernel"].startswith("flash_bfloat16_h64_" + ("paged" if paged else "plain"))
    assert int(launch["block"]) == lanes
    got = pointers(launch, 14)
    assert got[:5] == [address(place) for place in (0, 1, 2, 10, 11)]
    integers = {
        "jax_fa_flash": [0, address(4), 0, 0, 0, 0],
        "jax_fa_varlen": [0, 0, address(3), address(4), address(5), 0],
        "jax_fa_paged": [address(5), address(4), 0, 0, 0, address(3)],
    }
    assert got[8:14] == integers[name]
    assert got[5:7] == [0, 0]  # one split needs no workspace

    assert split[0] == ["", ""]
    assert [kind for kind, _ in split[1]] == ["launch", "launch"]
    partial = pointers(split[1][0][1], 7)[5:]
    assert partial[0] == address(12)
    assert address(12) < partial[1] < address(13)
    merge = split[1][1][1]
    assert merge["kernel"] == "merge_bfloat16"
    assert merge["stream"] == "7"
    assert pointers(merge, 4) == [*partial, address(10), address(11)]
    assert allocations == 0
    assert last_error == 0


def test_each_device_has_its_own_target_and_stream(call):
    code = """
errors = [call("jax_fa_flash", device=device, stream=stream)
          for device, stream in [(1, 256 + 3), (0, 9), (1, 256), (0, 0)]]
answer([errors, log(), hip.hip_stand_in_current_device()])
"""
    errors, lines, current = call(code, devices="gfx950,gfx1201")
    assert errors == [["", ""]] * 4
    launches = [fields for kind, fields in lines if kind == "launch"]
    assert [x["device"] for x in launches] == ["1", "0", "1", "0"]
    assert [x["stream"] for x in launches] == ["259", "9", "256", "0"]
    assert [x["block"] for x in launches] == ["256", "512", "256", "512"]
    assert sum(kind == "load" for kind, _ in lines) == 2
    assert current == 0


def test_stages_of_several_threads(call):
    code = """
errors = []
def work(device):
    for _ in range(20):
        errors.extend(call("jax_fa_flash", device=device))
threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
lines = log()
answer([errors, [sum(kind == x for kind, _ in lines) for x in ("load", "launch")],
        [fields["device"] == str(int(fields["stream"]) // 256) for kind, fields in lines
         if kind == "launch"]])
"""
    errors, counts, streams_fit = call(code, devices="gfx950,gfx950")
    assert set(errors) == {""}
    assert counts == [2, 160]
    assert all(streams_fit)


def test_execution_while_a_stream_is_captured(call):
    code = """
hip.hip_stand_in_capture(1)
early = call("jax_fa_flash", "initialize")
hip.hip_stand_in_capture(0)
loaded = call("jax_fa_flash", "initialize")
hip.hip_stand_in_capture(1)
answer([early, loaded, call("jax_fa_flash", "execute"), xla.last_error()])
"""
    early, loaded, captured, last_error = call(code)
    assert "hipErrorStreamCaptureUnsupported" in early[0]
    assert loaded == captured == [""]
    assert last_error == 0


def test_each_plugins_calls_go_to_its_own_library(call):
    code = """
errors = [call("jax_fa_flash", xla=plugin) for plugin in (*plugins, plugins[0])]
answer([errors, [[kind for kind, _ in log(library)] for library in libraries]])
"""
    errors, (seven, eight) = call(code, majors=(7, 8))
    assert errors == [["", ""]] * 3
    assert seven == ["load", "launch", "launch"]
    assert eight == ["load", "launch"]


def test_a_call_without_a_stream_is_an_error(call):
    code = """
errors = [xla.call(ROCM[name][stage], stage, *frame(name), stream=None)
          for name in ROCM for stage in ROCM[name]]
answer([errors, log()])
"""
    errors, lines = call(code)
    assert len(errors) == 6
    assert all("Failed to get platform stream" in error for error in errors)
    assert lines == []


@pytest.mark.parametrize(
    ("devices", "changes", "message"),
    [
        ("gfx1201", {"target": "gfx950"}, "gfx950 was asked for, but HIP device 0 is gfx1201"),
        ("gfx1100", {}, "jax_fa has kernels for gfx950 and gfx1201; HIP device 0 is gfx1100"),
        ("gfx950", {"target": "gfx942"}, "target must be gfx950, gfx1201 or any; got gfx942"),
        ("gfx950", {"device": 1}, "hipErrorInvalidDevice"),
        ("gfx950", {"stream": 256 + 7}, "hipErrorInvalidHandle"),  # that of another device
        ("gfx950", {"scale": float("inf")}, "scale must be finite"),
        ("gfx950", {"num_splits": 0}, "num_splits must be 1 or more; got 0"),
    ],
    ids=str,
)
def test_what_cannot_be_is_an_error_and_nothing_runs_elsewhere(call, devices, changes, message):
    code = f"""
inf = float("inf")
emulated = _native.EmulatorRecorder()
errors = call("jax_fa_flash", **{changes!r})
launches = sum(kind == "launch" for kind, _ in log())
answer([errors, launches + len(emulated.launches), xla.last_error(), call("jax_fa_flash")])
"""
    errors, launches, last_error, next_call = call(code, devices=devices)
    assert message in errors[1]
    assert launches == 0
    assert last_error == 0  # XLA would take it for one of its own
    assert next_call == ["", ""] or devices == "gfx1100"


def test_no_keys_fill_the_results_on_the_stream(call):
    code = """
CALLS["jax_fa_flash"][0].update(key=(B, 0, K, H), value=(B, 0, K, H))
answer([call("jax_fa_flash"), log(), call("jax_fa_flash", "execute", memory=1 << 40)])
"""
    errors, (_, *fills), beyond = call(code)
    assert errors == ["", ""]
    assert [kind for kind, _ in fills] == ["memset", "memset"]
    assert [int(fill["data"]) for _, fill in fills] == [address(10), address(11)]
    assert "hipErrorInvalidValue" in beyond[0]  # no memory of the device


def test_a_fault_of_a_kernel_is_the_error_of_every_later_call(call):
    code = """
host = ctypes.create_string_buffer(8)
# The launch is accepted; its kernel would read the host's memory.
first = call("jax_fa_flash", memory=ctypes.addressof(host) - address(0))
later = [error for device in (0, 1) for error in call("jax_fa_flash", device=device)]
answer([first, later])
"""
    first, later = call(code, devices="gfx950,gfx950")
    assert first == ["", ""]
    # What is loaded is loaded.
    assert later[0] == ""
    assert all("hipErrorIllegalAddress 700" in error for error in later[1:])


def test_no_rows_launch_nothing(call):
    code = """
B = 0
CALLS["jax_fa_flash"] = (
    {"query": (0, T, N, H), "key": (0, S, K, H), "value": (0, S, K, H), "query_lengths": (0,),
     "key_lengths": (0,)}, (0, T, N, H), {})
answer([call("jax_fa_flash"), log()])
"""
    errors, lines = call(code)
    assert errors == ["", ""]
    assert [kind for kind, _ in lines] == ["load"]
