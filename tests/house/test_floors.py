"""The floors of the C++ sources: an #include points down, never up and never in a circle."""

import re
from pathlib import Path

import pytest

CSRC = Path(__file__).parents[2] / "csrc"

# From the ground up. Device code and the emulator stand side by side: neither knows the other.
FLOORS = [{"kernels", "emulator"}, {"runtime"}, {"launch"}, {"ffi"}, {"python"}]
# The emulator's own; "" are the files that lie in csrc/emulator itself.
EMULATOR_FLOORS = [
    "",
    "state",
    "chip",
    "decode",
    "check",
    "object",
    "simd",
    "exec",
    "timing",
    "target/<name>",
    "target",
    "run",
]

# Device code's own; "" are the ground of all: device.h, params.h, target.h, variants.def.
KERNEL_FLOORS = ["", "arch", "tile", "attention", "mainloop", "*.hip"]
ROOMS = {"kernels": KERNEL_FLOORS, "emulator": EMULATOR_FLOORS}

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# The header of whichever target is compiled for (csrc/kernels/target.h): folder and file.
_TARGET_INCLUDE = re.compile(r"^#include JAX_FA_TARGET_HEADER\((\w+), (\S+)\)", re.MULTILINE)
_SOURCES = {".h", ".cc", ".hip", ".def"}


def _room(path: Path) -> tuple[str, str, str]:
    """The folder of csrc, the room in it, and the target's name, of a path below csrc."""
    house, *rooms = path.parts[:-1] or ("",)
    if house == "kernels":
        top = "*.hip" if path.suffix == ".hip" else ""
        return house, rooms[0] if rooms else top, rooms[1] if len(rooms) > 1 else ""
    if house != "emulator" or not rooms:
        return house, "", ""
    if rooms[0] == "target" and len(rooms) > 1:
        return house, "target/<name>", rooms[1]
    return house, rooms[0], ""


def _includes(csrc: Path) -> dict[Path, list[Path]]:
    """The other sources that each source below csrc includes."""
    files = {p.relative_to(csrc): p for p in csrc.rglob("*") if p.suffix in _SOURCES}
    found = {}
    for path, file in files.items():
        text = file.read_text()
        candidates = ((Path(name), path.parent / name) for name in _INCLUDE.findall(text))
        found[path] = [p for pair in candidates for p in pair if p in files]
        for folder, name in _TARGET_INCLUDE.findall(text):
            found[path] += [p for p in files if p.match(f"kernels/{folder}/*/{name}")]
    return found


def _upward(path: Path, included: Path) -> str:
    """Why the one may not include the other; empty when it may."""
    (house, room, target), (other_house, other_room, other_target) = _room(path), _room(included)
    floors = {name: i for i, names in enumerate(FLOORS) for name in names}
    for name in (house, other_house):
        if name not in floors:
            return f"csrc/{name} has no floor"
    if house != other_house:
        return "" if floors[other_house] < floors[house] else "points up"
    if house not in ROOMS:
        return ""
    for name in (room, other_room):
        if name not in ROOMS[house]:
            return f"csrc/{house}/{name} has no floor"
    if ROOMS[house].index(other_room) > ROOMS[house].index(room):
        return "points up"
    if target and other_target and target != other_target:
        return "points to another target"
    return ""


def _circles(includes: dict[Path, list[Path]]) -> list[str]:
    """Files that include themselves by way of others."""
    state: dict[Path, bool] = {}  # True: on the way down from a file to what it includes
    found = []

    def visit(path: Path, way: tuple[Path, ...]) -> None:
        if state.get(path):
            found.append(" -> ".join(map(str, (*way[way.index(path) :], path))))
        if path in state:
            return
        state[path] = True
        for included in includes.get(path, ()):
            visit(included, (*way, path))
        state[path] = False

    for path in includes:
        visit(path, ())
    return found


def violations(csrc: Path) -> list[str]:
    """What is wrong with the #include lines below csrc, one line each."""
    includes = _includes(csrc)
    upward = [
        f"{path} includes {included}: {why}"
        for path, all_included in includes.items()
        for included in all_included
        if (why := _upward(path, included))
    ]
    return upward + _circles(includes)


def test_includes_point_down():
    assert len(_includes(CSRC)) > 100
    assert violations(CSRC) == []


@pytest.mark.parametrize(
    ("path", "included"),
    [
        ("emulator/state/wave.h", "emulator/exec/scalar.h"),
        ("emulator/check/checker.cc", "emulator/object/program.h"),
        ("emulator/timing/unit.cc", "emulator/target/gfx950/chip.h"),
        ("emulator/target/gfx950/rows.cc", "emulator/target/gfx1201/decode.h"),
        ("emulator/run/launch.cc", "runtime/runtime.h"),
        ("emulator/run/launch.cc", "kernels/params.h"),
        ("kernels/params.h", "emulator/emulator.h"),
        ("runtime/runtime.h", "launch/attention.h"),
        ("emulator/attic/old.h", "emulator/emulator.h"),
        ("kernels/params.h", "kernels/arch/arch.h"),
        ("kernels/arch/gfx950/limits.h", "kernels/attention/tiles.h"),
        ("kernels/attention/softmax.h", "kernels/mainloop/forward.h"),
        ("kernels/mainloop/forward.h", "kernels/flash.hip"),
        ("kernels/mainloop/gfx950/mainloop.h", "kernels/arch/gfx1201/lane.h"),
    ],
)
def test_planted_include_is_found(tmp_path, path, included):
    for name in (path, included):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("#pragma once\n")
    assert violations(tmp_path) == []
    (tmp_path / path).write_text(f'#include <vector>\n#include "{included}"\n')
    (found,) = violations(tmp_path)
    assert f"{path} includes {included}" in found


def test_circle_is_found(tmp_path):
    folder = tmp_path / "emulator" / "exec"
    folder.mkdir(parents=True)
    for name, included in (("a", "b"), ("b", "c"), ("c", "a")):
        (folder / f"{name}.h").write_text(f'#include "emulator/exec/{included}.h"\n')
    (found,) = violations(tmp_path)
    assert found.count(" -> ") == 3


def test_circle_through_the_header_of_a_target_is_found(tmp_path):
    folder = tmp_path / "kernels" / "arch" / "gfx950"
    folder.mkdir(parents=True)
    (folder.parent / "arch.h").write_text("#include JAX_FA_TARGET_HEADER(arch, lane.h)\n")
    (folder / "lane.h").write_text('#include "kernels/arch/arch.h"\n')
    (found,) = violations(tmp_path)
    assert found.count(" -> ") == 2


@pytest.mark.parametrize("room", ["emulator/target", "kernels/arch"])
def test_targets_have_the_same_files(room):
    folders = [path for path in (CSRC / room).iterdir() if path.is_dir()]
    names = [{path.name for path in folder.iterdir()} for folder in folders]
    assert len(folders) > 1
    assert all(each == names[0] for each in names), names


def _names_of_targets(csrc: Path) -> list[str]:
    """Lines of code of the emulator, its targets apart, that name one of them."""
    emulator = csrc / "emulator"
    targets = [path.name for path in (emulator / "target").iterdir() if path.is_dir()]
    name = re.compile("|".join(f'"{target}"|k{target.capitalize()}' for target in targets))
    return [
        f"{path.relative_to(csrc)}:{number}"
        for path in sorted(emulator.rglob("*"))
        if path.suffix in _SOURCES and "target" not in path.relative_to(emulator).parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if name.search(line.split("//")[0])
    ]


def test_no_shared_file_asks_which_target_it_is(tmp_path):
    assert _names_of_targets(CSRC) == []
    (tmp_path / "emulator" / "target" / "gfx950").mkdir(parents=True)
    (tmp_path / "emulator" / "run.cc").write_text(
        '// "gfx950" is a chip\nbool wide = name == "gfx950";\nuse(kGfx950Chip);\n'
    )
    assert _names_of_targets(tmp_path) == ["emulator/run.cc:2", "emulator/run.cc:3"]
