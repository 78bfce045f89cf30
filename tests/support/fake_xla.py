"""FFI calls as XLA makes them on a GPU, through tests/runtime/fake_xla. Knows no JAX."""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

# As XLA's C interface numbers them.
DTYPES = {"pred": 1, "s64": 5, "s32": 4, "u8": 6, "f16": 10, "bf16": 16, "f32": 11}
STAGES = {"initialize": 2, "execute": 3}


class _Array(ctypes.Structure):
    _fields_ = (
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_int64 * 6),
        ("data", ctypes.c_void_p),
    )


class _Attribute(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("text", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("value", ctypes.c_ubyte * 8),
    )


def _array(shape: Sequence[int], dtype: str, address: int) -> _Array:
    return _Array(DTYPES[dtype], len(shape), (ctypes.c_int64 * 6)(*shape), address)


def _attribute(name: str, value: Any) -> _Attribute:
    if isinstance(value, str):
        return _Attribute(name.encode(), value.encode())
    dtype = {bool: "pred", int: "s64", float: "f32"}[type(value)]
    scalar = {"pred": ctypes.c_bool, "s64": ctypes.c_int64, "f32": ctypes.c_float}[dtype](value)
    data = bytes(scalar).ljust(8, b"\0")
    return _Attribute(name.encode(), None, DTYPES[dtype], (ctypes.c_ubyte * 8)(*data))


class FakeXla:
    """A stand-in for JAX's plugin, which depends on a HIP library, built at this path."""

    def __init__(self, path: str):
        self._library = ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL)
        self._library.fake_xla_call.restype = ctypes.c_char_p
        self._library.fake_xla_traits.restype = ctypes.c_int64

    @staticmethod
    def handler(capsule: Any) -> ctypes.c_void_p:
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        return ctypes.c_void_p(get(capsule, None))

    def traits(self, capsule: Any) -> int:
        return self._library.fake_xla_traits(self.handler(capsule))

    def call(
        self,
        capsule: Any,
        stage: str,
        operands: Sequence[tuple[Sequence[int], str, int]],
        results: Sequence[tuple[Sequence[int], str, int]],
        attributes: Mapping[str, Any],
        *,
        stream: int | None,
        device: int = 0,
    ) -> str:
        """The error of a stage, empty on success.

        operands and results: (shape, dtype, address) each.
        stream: None where the platform has none.
        """
        given = [(_Array * len(x))(*(_array(*y) for y in x)) for x in (operands, results)]
        options = [_attribute(*item) for item in sorted(attributes.items())]
        return self._library.fake_xla_call(
            self.handler(capsule),
            STAGES[stage],
            stream is not None,
            ctypes.c_void_p(stream or None),
            device,
            *(given[0], len(given[0]), given[1], len(given[1])),
            *((_Attribute * len(options))(*options), len(options)),
        ).decode()

    def refused_allocations(self) -> int:
        """How many calls for scratch memory there were."""
        return self._library.fake_xla_refused_allocations()

    def last_error(self) -> int:
        """The error that XLA's own next look at HIP would find."""
        return self._library.fake_xla_last_error()
