"""The extension module: FFI handlers, embedded code objects, HIP devices, emulator."""

from typing import Any, TypedDict

def registrations() -> dict[str, dict[str, dict[str, Any]]]:
    """FFI targets: ``{platform: {name: {"initialize": capsule, "execute": capsule}}}``.

    Platforms are "cpu", whose handlers emulate, and "ROCM", whose handlers take XLA's stream and
    fail where there is none; all with ``api_version=1``.
    """

class TargetFacts(TypedDict):
    """What csrc/runtime/targets.h states of a chip."""

    compute_units: int
    dies: int
    """Each has its own L2."""
    lds_bytes: int
    """The most that a workgroup may have."""
    packed_rows: int
    """Rows of a key head (tokens x heads of its group) up to which they share a tile."""
    max_head_dim: int
    """The widest head that a kernel takes."""
    min_split_keys: int
    """The fewest keys that a tile of a kernel with splits holds."""

def targets() -> dict[str, TargetFacts]:
    """The targets by name ("gfx950"), in the order in which they are listed everywhere."""

def architectures() -> dict[str, str]:
    """The target whose code object serves an architecture: gfx1201 is gfx1200's too."""

head_dim_multiple: int
"""Kernels take head sizes that are multiples of this."""

def code_object(target: str) -> bytes:
    """The embedded ELF code object of a target; empty where this build has none."""

def hip_library(xla: int = 0) -> str:
    """The loaded HIP library that JAX's plugin uses; initialises nothing.

    xla: an address within the plugin, as a handler's call gives one; 0 where none is known.

    RuntimeError: none is loaded, or several, of which that one cannot be known.
    """

def hip_devices() -> list[str]:
    """Architectures ("gfx950") of the HIP devices. Initialises HIP; RuntimeError where it fails."""

def hip_flash(
    device: int, stream: int, shape: tuple[int, int, int, int, int, int], address: int
) -> None:
    """Enqueue bfloat16 attention of shape (B, T, S, N, K, H) on a HIP device, for tests.

    The path of a custom call below its handler. Every operand lies at ``address``.
    """

class EmulatorError(RuntimeError):
    """An emulated launch was wrong and has stopped: says where and what."""

class EmulatorCode:
    """A loaded code object, behind ``jax_fa.emulator.CodeObject``."""

    @staticmethod
    def parse(elf: bytes) -> EmulatorCode: ...
    @property
    def target(self) -> str: ...
    @property
    def kernels(self) -> dict[str, dict[str, Any]]: ...
    def disassembly(self, kernel: str) -> list[tuple[int, str]]:
        """(pc, text) of each instruction, as findings print it."""

    def instructions(self, kernel: str) -> list[tuple[int, str, str, bool, int | None]]:
        """(pc, mnemonic, class, falls through, branch target) of each instruction."""
    def occupancy(self, kernel: str, lanes: int, lds_bytes: int) -> dict[str, int]:
        """simds, waves_per_simd and workgroups_per_unit."""
    def launch(
        self,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        kernarg: bytes,
        buffers: list[tuple[str, int, int]],
        lds_bytes: int,
        schedule: str,
        arrival: str,
        seed: int,
        checks: bool,
        collect: bool,
        threads: int,
        max_instructions_per_wave: int,
        timing: bool,
        workgroups: list[int],
        follow: tuple[int, int] | None,
    ) -> dict[str, Any]: ...

class EmulatorRecorder:
    """Collects emulated launches of the process until stopped.

    With ``keeps_operands`` what it takes to launch them again: ``arguments``, the argument segment,
    and ``operands``, (name, address, contents before) of each.
    """

    def __init__(self, keeps_operands: bool = False) -> None: ...
    def stop(self) -> None: ...
    @property
    def launches(self) -> list[dict[str, Any]]: ...

def emulator_settings() -> dict[str, Any]:
    """How emulated custom calls run: the arguments of ``set_emulator_settings``."""

def set_emulator_settings(
    schedule: str,
    arrival: str,
    seed: int,
    checks: bool,
    collect: bool,
    threads: int,
    timing: bool,
    workgroups: list[int],
    follow: tuple[int, int] | None,
) -> None: ...

class EmulatorTrace:
    """What some workgroups of a launch executed, to be timed under any constants.

    ``place`` counts in ``groups``; a time is (index in the grid, clk, matrix clk, of it by 32x32
    instructions, bytes missed in L1, clk alone on its unit).
    """

    @property
    def groups(self) -> list[int]: ...
    @property
    def simds(self) -> int:
        """SIMDs of the unit that a workgroup runs on."""
    @property
    def fits(self) -> int:
        """Workgroups that a unit holds."""
    @property
    def target(self) -> str: ...
    def time(
        self, place: int, resident: int, constants: dict[str, float]
    ) -> tuple[int, float, float, float, float, float]: ...
    def slices(
        self, place: int, constants: dict[str, float]
    ) -> list[tuple[int, str, float, float, int]]:
        """(wave, kind, begin clk, end clk, instructions) of one workgroup alone on its unit."""
    def issues(
        self, place: int, resident: int, cold: bool, constants: dict[str, float]
    ) -> list[tuple[int, int, float]]:
        """Instructions as (wave, pc, clk) in order of time; waves go round the SIMDs.

        ``cold``: of the first workgroups of a launch.
        """

def timing_constants(target: str) -> list[tuple[str, float, str, str, str]]:
    """(name, value, unit, confidence, source) of each constant of the timing model."""

def chip_simds(target: str) -> int:
    """SIMDs of the chip that the model stands for."""

def time_grid(
    target: str,
    simds: int,
    resident: int,
    groups: list[tuple[int, float, float, float, float, float]],
    die_bytes: float,
    memory_bytes: float,
    constants: dict[str, float],
) -> dict[str, float]:
    """Modelled time of a launch from the times of all of its workgroups, in order of index."""

host_compiler: str
"""What compiled the emulator: "GNU 12.2.0", "Clang 22.1.8 of zig"."""

def simd_level() -> str:
    """The vector instructions that the emulator's loops use here: sse2, avx2 or avx512."""

def simd_code() -> dict[str, dict[str, int]]:
    """Where each level's functions start in this process: ``{level: {mnemonic: address}}``."""
