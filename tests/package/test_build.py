"""What the installed package holds: code objects that load on the targets, and no link to ROCm."""

import importlib.metadata
import re
import struct
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from jax_fa import _native

# EF_AMDGPU_MACH, with xnack and sramecc "any" where the target has them: explicit settings would
# have to equal the device's.
ELF_FLAGS = {"gfx950": 0x54F, "gfx1201": 0x04E}
ABI_VERSION_OF_CODE_OBJECT_V5 = 3
ELF_OSABI_HSA = 64
ELF_MACHINE_AMDGPU = 224
ELF_TYPE_DYN = 3

targets = pytest.mark.parametrize("target", sorted(ELF_FLAGS))


@targets
def test_code_object_header(target):
    image = _native.code_object(target)
    assert image[:4] == b"\x7fELF"
    assert image[7] == ELF_OSABI_HSA
    assert image[8] == ABI_VERSION_OF_CODE_OBJECT_V5
    kind, machine = struct.unpack_from("<HH", image, 16)
    (flags,) = struct.unpack_from("<I", image, 48)
    assert (kind, machine, flags) == (ELF_TYPE_DYN, ELF_MACHINE_AMDGPU, ELF_FLAGS[target])


@targets
def test_code_object_names_its_target(target):
    assert f"amdgcn-amd-amdhsa--{target}".encode() in _native.code_object(target)


@targets
def test_code_object_holds_no_path(target):
    assert not re.search(rb"/(home|root|tmp|work|usr)/", _native.code_object(target))


def test_both_targets_have_the_same_kernels():
    def kernels(target):
        return set(re.findall(rb"\0(flash_\w+)\0", _native.code_object(target)))

    assert kernels("gfx950") == kernels("gfx1201")
    assert b"flash_bfloat16_h128_plain" in kernels("gfx950")


def test_unknown_target():
    with pytest.raises(ValueError, match="gfx942"):
        _native.code_object("gfx942")


def needed_libraries(path):
    """The DT_NEEDED names of a 64-bit little-endian ELF file."""
    data = path.read_bytes()
    (offset,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    needed = []
    for section in sections:
        if section[1] != 6:  # SHT_DYNAMIC
            continue
        strings = sections[section[6]][4]
        for entry in range(section[4], section[4] + section[5], 16):
            tag, value = struct.unpack_from("<QQ", data, entry)
            if tag == 1:
                end = data.index(b"\0", strings + value)
                needed.append(data[strings + value : end].decode())
    return needed


def test_extension_links_system_libraries_only():
    needed = needed_libraries(Path(_native.__file__))
    assert any(name.startswith("libc.so") for name in needed)
    allowed = r"(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|ld-linux.*)\.so\..*"
    assert [name for name in needed if not re.fullmatch(allowed, name)] == []


def test_metadata():
    metadata = importlib.metadata.metadata("jax_fa")
    assert metadata["License-Expression"] == "Apache-2.0"
    assert set(metadata.get_all("Provides-Extra") or []) >= {"test", "models"}
    scripts = importlib.metadata.entry_points(group="console_scripts", name="jax-fa")
    assert [script.value for script in scripts] == ["jax_fa._cli:main"]


def test_bounds_stand_in_the_extra_rocm_alone():
    """JAX pins its plugin; who wants none may have any newer JAX."""
    path = Path(__file__).parents[2] / "pyproject.toml"
    project = tomllib.loads(path.read_text())["project"]
    base = [Requirement(line) for line in project["dependencies"]]
    assert {requirement.name for requirement in base} == {"jax", "jaxlib", "numpy"}
    for requirement in base:
        assert {bound.operator for bound in requirement.specifier} == {">="}
    (rocm,) = (Requirement(line) for line in project["optional-dependencies"]["rocm"])
    assert (rocm.name, rocm.extras) == ("jax", {"rocm7-local"})
