"""What a DLPack capsule says of an array (dlpack.h, the tensor without a version)."""

import ctypes
from typing import Any

import numpy as np

from autotune.errors import WorkloadError

__all__ = ["tensor"]

_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}  # DLDataTypeCode


class _DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _DLTensor(ctypes.Structure):
    """The first member of DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def tensor(capsule: Any) -> tuple[int, tuple[int, ...], tuple[int, ...] | None, np.dtype[Any]]:
    """(address, shape, strides in elements or None for none, elements). The capsule is not marked as used, so that its
    own end gives the memory back: keep it as long as the array. Raises WorkloadError for elements without a name in
    numpy."""
    found = _DLTensor.from_address(_pointer(capsule, b"dltensor"))
    kind, bits = _KINDS.get(found.dtype.code), found.dtype.bits
    if kind is None or found.dtype.lanes != 1 or bits % 8:
        raise WorkloadError(
            f"DLPack elements of code {found.dtype.code}, {bits} bits and {found.dtype.lanes} lanes have no name "
            "in numpy; convert them first"
        )
    axes = range(found.ndim)
    strides = tuple(found.strides[axis] for axis in axes) if found.strides else None
    shape = tuple(found.shape[axis] for axis in axes)
    return (found.data or 0) + found.byte_offset, shape, strides, np.dtype(f"{kind}{bits // 8}")
