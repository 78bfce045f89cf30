"""The HIP runtime against a strict stand-in for the library, in processes of their own."""

import re

import pytest

INVALID_HANDLE = "hipErrorInvalidHandle"


def fields(line):
    return dict(re.findall(r"(\w+)=(\S*)", line))


def test_no_library(run):
    errors = run("answer([attempt(_native.hip_devices), attempt(flash)])", majors=())
    assert all("libamdhip64.so) is not loaded" in error for error in errors)


@pytest.mark.parametrize("major", [7, 6, 5])
def test_devices_without_feature_flags(run, major):
    listed = run(
        "answer(_native.hip_devices())",
        devices="gfx950:sramecc+:xnack-,gfx1100,gfx1201",
        majors=(major,),
    )
    assert listed == ["gfx950", "gfx1100", "gfx1201"]


def test_library_without_devices(run):
    code = "answer([_native.hip_devices(), hip.hip_stand_in_last_error()])"
    assert run(code, devices="") == [[], 0]


def test_two_majors_are_refused(run):
    error = run("answer(attempt(flash))", majors=(7, 6))
    assert "libamdhip64.so.7" in error
    assert "libamdhip64.so.6" in error


def test_launch(run):
    lines = run("flash(); answer(log())")
    assert lines[0] == "load device=0"
    launch = fields(lines[1])
    assert launch["kernel"] == "flash_bfloat16_h64_plain"
    assert launch["stream"] == "7"
    assert launch["lds"] == "0"
    assert launch["block"] == "512"
    assert int(launch["grid"]) == 2 * 4  # one tile of queries a head: B * N
    arguments = bytes.fromhex(launch["arguments"])
    assert [int.from_bytes(arguments[i : i + 8], "little") for i in range(0, 40, 8)] == [
        1 << 47
    ] * 5
    assert len(lines) == 2


def test_module_is_loaded_once_a_device(run):
    lines = run(
        "for device in (0, 1, 0, 1): flash(device)\nanswer(log())", devices="gfx950,gfx1201"
    )
    assert [line.split()[0] for line in lines].count("load") == 2
    launches = [fields(line) for line in lines if line.startswith("launch")]
    assert [launch["device"] for launch in launches] == ["0", "1", "0", "1"]
    assert [launch["block"] for launch in launches] == ["512", "256", "512", "256"]


def test_current_device_is_restored(run):
    code = """
hip.hipSetDevice(1)
flash(0)
answer([hip.hip_stand_in_current_device(), attempt(flash, 0, stream=256 + 7),
        hip.hip_stand_in_current_device(), hip.hip_stand_in_last_error()])
"""
    current, error, current_after_error, last_error = run(code, devices="gfx950,gfx950")
    assert (current, current_after_error) == (1, 1)
    assert INVALID_HANDLE in error
    assert last_error == 0  # a reported failure is not left for others to find


def test_threads_start_on_device_0_and_load_once(run):
    code = """
errors, together = [], threading.Barrier(8)
def work(device):
    together.wait()
    errors.append(attempt(flash, device))
threads = [threading.Thread(target=work, args=(n % 2,)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
lines = log()
answer([errors, sum(line.startswith("load") for line in lines),
        sum(line.startswith("launch") for line in lines)])
"""
    errors, loads, launches = run(code, devices="gfx950,gfx1201")
    assert errors == [None] * 8
    assert (loads, launches) == (2, 8)


@pytest.mark.parametrize("major", [7, 6])
def test_after_a_fault_every_call_is_an_error(run, major):
    code = """
flash(0)
hip.hipSetDevice(1)
hip.hip_stand_in_fault(700)
errors = [attempt(flash, 0), attempt(flash, 1), attempt(flash, 0, shape=(2, 3, 0, 4, 2, 64))]
answer([errors, hip.hip_stand_in_current_device(), len(log())])
"""
    errors, current, lines = run(code, devices="gfx950,gfx950", majors=(major,))
    assert all("hipErrorIllegalAddress 700" in error for error in errors)
    assert current == 1
    assert lines == 2  # the first load and launch


@pytest.mark.parametrize("major", [7, 6])
def test_others_errors_stay_theirs(run, major):
    code = """
hip.hipSetDevice(99)  # fails, and whoever called it has not asked yet
flash()
answer(hip.hip_stand_in_last_error())
"""
    assert run(code, majors=(major,)) == (101 if major == 7 else 0)


def test_foreign_architecture(run):
    error = run("answer(attempt(flash))", devices="gfx942:sramecc+:xnack-")
    assert "gfx950" in error
    assert "gfx1201" in error
    assert "gfx942" in error
    assert 'implementation="xla"' in error


def test_an_architecture_that_anothers_code_object_serves(run):
    lines = run("flash(0); flash(1); answer(log())", devices="gfx1200,gfx1201")
    assert [line for line in lines if line.startswith("load")] == ["load device=0", "load device=1"]
    launches = [fields(line) for line in lines if line.startswith("launch")]
    assert [launch["block"] for launch in launches] == ["256", "256"]


def test_missing_device(run):
    assert "hipErrorInvalidDevice" in run("answer(attempt(flash, 3))")


def test_loading_under_capture_fails_with_a_message(run):
    code = """
hip.hip_stand_in_capture(1)
first = attempt(flash)
hip.hip_stand_in_capture(0)
flash()
hip.hip_stand_in_capture(1)
answer([first, attempt(flash)])
"""
    first, loaded_before = run(code)
    assert "hipErrorStreamCaptureUnsupported" in first
    assert loaded_before is None


def test_no_keys_fills_and_launches_nothing(run):
    lines = run("flash(shape=(2, 3, 0, 4, 2, 64)); answer(log())")
    memsets = [fields(line) for line in lines if line.startswith("memset")]
    assert [(m["width"], m["count"]) for m in memsets] == [
        ("8", str(2 * 3 * 4 * 64 * 2)),
        ("32", "24"),
    ]
    assert int(memsets[1]["value"]) & 0xFFFFFFFF == 0xFF800000  # -inf
    assert not any(line.startswith("launch") for line in lines)


def test_no_queries_do_nothing(run):
    assert run("flash(shape=(0, 3, 5, 4, 2, 64)); answer(log())") == ["load device=0"]


def test_rows_too_wide_for_offsets_of_32_bits(run):
    heads = 2**20
    message, lines = run(f"answer([attempt(flash, shape=(1, 1, 1, {heads}, {heads}, 256)), log()])")
    assert "consecutive rows of query span in memory, in bytes, must be between 0 and" in message
    assert str(2**31 - 1) in message
    assert not any(line.startswith("launch") for line in lines)


def test_large_batches_take_several_launches(run):
    batch, heads = 100_000, 128
    lines = run(f"flash(shape=({batch}, 65, 1, {heads}, {heads}, 64)); answer(log())")
    launches = [fields(line) for line in lines if line.startswith("launch")]
    assert len(launches) == 2
    assert sum(int(launch["grid"]) for launch in launches) == batch * heads
