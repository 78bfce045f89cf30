"""A kernel of a code object, and how values become its argument segment."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Kernel:
    """What a code object says of one of its kernels.

    Attributes:
      vgprs, agprs, sgprs: registers of a wave (on gfx950 ``vgprs`` counts AGPRs too).
      vgpr_spills, sgpr_spills: registers that the compiler could not keep.
      scratch_bytes: private memory of a lane.
      lds_bytes: static LDS of a workgroup.
      kernarg_bytes: the kernel arguments, hidden ones included.
      wave_size: lanes of a wave.
      max_workgroup_size: lanes of a workgroup, at most.
      arguments: (name, kind, offset, bytes) of each argument that the caller gives.
    """

    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    scratch_bytes: int
    lds_bytes: int
    kernarg_bytes: int
    wave_size: int
    max_workgroup_size: int
    arguments: tuple[tuple[str, str, int, int], ...]

    @property
    def spills(self) -> int:
        """Registers of either kind that the compiler could not keep."""
        return self.vgpr_spills + self.sgpr_spills


def address_of(name: str, array: Any) -> tuple[int, int]:
    """Address and bytes of an array that a kernel may read and write."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a numpy array; got {type(array).__name__}")
    if not array.flags.c_contiguous:
        raise ValueError(
            f"{name} must be contiguous, since it is passed by address; got strides "
            f"{array.strides} for shape {array.shape}. Pass np.ascontiguousarray(...)"
        )
    if not array.flags.writeable:
        raise ValueError(f"{name} is read-only; a kernel may write to it. Pass a copy (np.array)")
    return array.ctypes.data, array.nbytes


def _explicit_bytes(described: Kernel) -> int:
    """Bytes of the arguments that the caller gives."""
    return max((offset + size for _, _, offset, size in described.arguments), default=0)


def check_segment(kernel: str, described: Kernel, segment: bytes) -> None:
    """Raises ValueError unless the raw argument segment has a size that the kernel can have."""
    least, most = _explicit_bytes(described), described.kernarg_bytes
    if not least <= len(segment) <= most:
        raise ValueError(
            f"kernarg of kernel {kernel} must have {least} bytes, or up to {most} with the hidden "
            f"arguments; got {len(segment)}"
        )


def pack(
    kernel: str, described: Kernel, args: Sequence[Any]
) -> tuple[bytes, list[tuple[str, np.ndarray]]]:
    """The argument segment, and the arrays that it holds addresses of."""
    if len(args) != len(described.arguments):
        names = ", ".join(name or kind for name, kind, _, _ in described.arguments)
        raise ValueError(
            f"kernel {kernel} takes {len(described.arguments)} arguments ({names}); got {len(args)}"
        )
    segment = bytearray(_explicit_bytes(described))
    arrays = []
    for place, (value, (name, _, offset, size)) in enumerate(
        zip(args, described.arguments, strict=True)
    ):
        label = name or f"args[{place}]"
        if isinstance(value, np.ndarray):
            arrays.append((label, value))
            value = address_of(label, value)[0]
        segment[offset : offset + size] = _pack_scalar(label, value, size)
    return bytes(segment), arrays


_FLOATS = {2: np.float16, 4: np.float32, 8: np.float64}


def _pack_scalar(label: str, value: Any, size: int) -> bytes:
    if value is None:
        packed = bytes(size)
    elif isinstance(value, bytes | bytearray):
        packed = bytes(value)
    elif isinstance(value, np.generic):
        packed = value.tobytes()
    elif isinstance(value, int):
        signed = value < 0
        bits = size * 8
        if not -(1 << (bits - 1)) <= value < 1 << bits:
            raise ValueError(f"{label} does not fit its {size} bytes; got {value}")
        packed = value.to_bytes(size, "little", signed=signed)
    elif isinstance(value, float) and size in _FLOATS:
        packed = _FLOATS[size](value).tobytes()
    else:
        raise TypeError(
            f"{label} must be a numpy array, a number, bytes or None; got {type(value).__name__}"
        )
    if len(packed) != size:
        raise ValueError(f"{label} takes {size} bytes; got {len(packed)}")
    return packed
