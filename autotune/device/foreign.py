"""Arrays of other libraries: where they are, and new ones of their kind.

What is on a GPU is known by ``__cuda_array_interface__`` (cupy, torch, numba, PyCUDA: the CUDA Array Interface,
version 3) or by DLPack (``__dlpack__`` with a CUDA device). Everything else is the host's and goes through numpy.
"""

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.device import elements
from autotune.errors import UsageError, WorkloadError
from autotune.layout import SCALAR_TYPES

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
    managed = _DLTensor.from_address(_pointer(capsule, b"dltensor"))
    kind, bits = _KINDS.get(managed.dtype.code), managed.dtype.bits
    narrow = elements.find_dlpack_type(managed.dtype.code, bits)
    if (kind is None and narrow is None) or managed.dtype.lanes != 1 or bits % 8:
        raise WorkloadError(
            f"DLPack elements of code {managed.dtype.code}, {bits} bits and {managed.dtype.lanes} lanes have no name "
            "in numpy; convert them first"
        )
    axes = range(managed.ndim)
    strides = tuple(managed.strides[axis] for axis in axes) if managed.strides else None
    shape = tuple(managed.shape[axis] for axis in axes)
    return (managed.data or 0) + managed.byte_offset, shape, strides, narrow or np.dtype(f"{kind}{bits // 8}")


_CUDA, _CUDA_MANAGED = 2, 13  # DLDeviceType
_LEGACY_STREAM = 1  # CU_STREAM_LEGACY, the default stream by another name


@dataclass(frozen=True, eq=False)
class View:
    """An array on a GPU that its owner keeps (and ``hold``, where it is not None). ``strides`` are in bytes.
    ``ordinal`` is the GPU's number, -1 where the array does not say. ``stream`` is the handle of the stream on which
    its content may still be made (0 is the default one), None when there is nothing to wait for."""

    owner: Any
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    ordinal: int = -1
    stream: int | None = None
    hold: Any = None

    @property
    def nbytes(self) -> int:
        """Of the elements alone."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether the last index is the contiguous one, with no gaps."""
        return self.strides == _compute_packed_strides(self.shape, self.dtype.itemsize)

    @property
    def can_be_fetched(self) -> bool:
        """Whether the owner's library can copy it to the host."""
        return any(hasattr(self.owner, name) for name, _ in _TO_HOST)

    def to_host(self) -> NDArray[Any]:
        """A copy in the host's memory, made by the owner's library. Raises WorkloadError where it knows no way."""
        owner = self.owner
        for name, finish in _TO_HOST:
            if hasattr(owner, name):
                return np.asarray(finish(getattr(owner, name)()))
        kind = type(owner)
        raise WorkloadError(
            f"an array of {kind.__module__}.{kind.__qualname__} on a GPU has to be copied here, and has none of "
            f"{', '.join(name for name, _ in _TO_HOST)}: copy it to a numpy array first"
        )


_TO_HOST: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("cpu", lambda moved: _numbers(moved.detach())),  # torch
    ("get", lambda moved: moved),  # cupy, PyCUDA
    ("copy_to_host", lambda moved: moved),  # numba
)


def view(array: Any, stream: int = 0) -> View | None:
    """``array`` as what is on a GPU, or None when it is the host's; ``stream`` is the handle of the stream that will
    use it. Raises WorkloadError for one that cannot be used where it is."""
    if not is_on_gpu(array):
        return None
    if dtype := _get_unnamed_type(array):
        return _view_torch(array, dtype)
    described = getattr(array, "__cuda_array_interface__", None)
    if described is not None:
        return _view_interface(array, described)
    return _view_dlpack(array, int(array.__dlpack_device__()[1]), stream)


def is_on_gpu(array: Any) -> bool:
    """Whether ``view`` gives one of ``array``; asks its library for nothing."""
    if isinstance(array, (np.ndarray, np.generic, list, tuple, int, float)):
        return False
    if _get_unnamed_type(array):
        return bool(array.is_cuda)
    if getattr(array, "__cuda_array_interface__", None) is not None:
        return True
    place = getattr(array, "__dlpack_device__", None)
    return place is not None and int(place()[0]) in (_CUDA, _CUDA_MANAGED)


def to_host(array: Any) -> Any:
    """What numpy can take: a GPU's array is copied, one that only knows DLPack is wrapped, the rest is left alone."""
    if isinstance(array, View):
        return array.to_host()
    if _get_unnamed_type(array):
        return _numbers(array)
    if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
        return np.from_dlpack(array)
    return array


def fetch(array: Any) -> Any:
    """What numpy can take of an array that may lie on a GPU. Raises WorkloadError where there is no way to copy it."""
    if reason := obstacle(array):
        raise WorkloadError(f"a tensor is given that no kernel can take: {reason}")
    return to_host(view(array) or array)


def get_writable(array: Any) -> NDArray[Any] | None:
    """The host's memory of ``array`` as numpy sees it: what is written there is in ``array``. None for anything but
    numpy's arrays and torch's tensors of the host."""
    if isinstance(array, np.ndarray):
        return array
    if _library(array) == "torch" and not obstacle(array) and array.device.type == "cpu":
        memory: NDArray[Any] = elements.codes_of_torch(array) if _get_unnamed_type(array) else array.numpy()
        return memory
    return None


def obstacle(array: Any) -> str:
    """Why a kernel cannot take a tensor of torch, and what to do; empty for one that it can, and anything else."""
    if _library(array) != "torch" or not hasattr(array, "requires_grad"):
        return ""
    if array.requires_grad:
        return "it requires a gradient, and a tuned kernel computes none: give tensor.detach()"
    kind = str(array.dtype).removeprefix("torch.")
    if kind not in _ELEMENTS:
        other = "tensor.float()" if array.dtype.is_floating_point else "a tensor of a declared type"
        return f"its elements are {kind}, which no family declares: give {other}"
    if str(array.layout) != "torch.strided":
        return f"its layout is {array.layout}: give tensor.to_dense(), or its parts"
    if array.device.type not in ("cpu", "cuda"):
        return f"it is on {array.device}, where no kernel runs: give tensor.cpu() or tensor.cuda()"
    return ""


_ELEMENTS = frozenset(("bool", *SCALAR_TYPES, *elements.TORCH_NAMES))  # what torch calls what can be declared


def _get_unnamed_type(array: Any) -> np.dtype[Any] | None:
    """The elements of a tensor of torch that numpy has no name for; None for all else."""
    return elements.find_torch_type(array) if _library(array) == "torch" and hasattr(array, "dtype") else None


def _numbers(tensor: Any) -> Any:
    """A tensor of the host as numpy takes it: what it has no name for as float."""
    return tensor.float().numpy() if _get_unnamed_type(tensor) else tensor.numpy()


def _view_torch(tensor: Any, dtype: np.dtype[Any]) -> View:
    """A tensor on a GPU whose elements the CUDA Array Interface has no name for."""
    strides = tuple(int(step) * dtype.itemsize for step in tensor.stride())
    return _view(tensor, int(tensor.data_ptr()), tensor.shape, strides, dtype, ordinal=_ordinal(tensor))


def _view_interface(array: Any, described: dict[str, Any]) -> View:
    if described.get("mask") is not None:
        raise WorkloadError("an array with a mask is given; fill the masked elements first")
    kind = described["typestr"]
    if kind.startswith("|V") and described.get("descr"):
        kind = [tuple(member) for member in described["descr"]]
    stream, address = described.get("stream"), int(described["data"][0] or 0)
    handle = None if stream is None else stream_handle(int(stream))
    shape, strides = described["shape"], described.get("strides")
    return _view(array, address, shape, strides, np.dtype(kind), ordinal=_ordinal(array), stream=handle)


def _view_dlpack(array: Any, ordinal: int, stream: int) -> View:
    """The producer makes the content ready for ``stream``."""
    capsule = array.__dlpack__(stream=stream or _LEGACY_STREAM)
    address, shape, steps, dtype = tensor(capsule)
    strides = None if steps is None else tuple(step * dtype.itemsize for step in steps)
    return _view(array, address, shape, strides, dtype, ordinal=ordinal, hold=capsule)


def _view(
    owner: Any,
    address: int,
    shape: Sequence[Any],
    strides: Sequence[Any] | None,
    dtype: np.dtype[Any],
    **more: Any,
) -> View:
    """Without ``strides``: packed. That of an extent of 1 is never used, and libraries differ in what they say."""
    extents = tuple(map(int, shape))
    packed = _compute_packed_strides(extents, dtype.itemsize)
    steps = zip(extents, strides or packed, packed, strict=True)
    used = tuple(p if extent == 1 else int(step) for extent, step, p in steps)
    return View(owner, address, extents, used, dtype, **more)


def _compute_packed_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _ordinal(array: Any) -> int:
    """The number of the GPU an array is on: torch has device.index, cupy device.id."""
    device = getattr(array, "device", None)
    for name in ("index", "id"):
        number = getattr(device, name, None)
        if isinstance(number, int):
            return number
    return -1


def stream_handle(stream: Any) -> int:
    """The driver's handle of a stream: an int, anything with ``__cuda_stream__``, a stream of torch, cupy or PyCUDA;
    0 is the default stream. Raises UsageError for anything else."""
    if stream is None or (isinstance(stream, int) and not isinstance(stream, bool)):
        handle = stream or 0
    elif (protocol := getattr(stream, "__cuda_stream__", None)) is not None:
        handle = (protocol() if callable(protocol) else protocol)[1]
    else:
        named = [getattr(stream, name, None) for name in ("cuda_stream", "ptr", "handle")]
        handles = [value for value in named if isinstance(value, int)]
        if not handles:
            raise UsageError(
                f"stream={stream!r} is no stream: give an int, or an object with __cuda_stream__ (torch, cupy, "
                "cuda.core), cuda_stream, ptr or handle"
            )
        handle = handles[0]
    return 0 if int(handle) == _LEGACY_STREAM else int(handle)


def current_stream(array: Any) -> int:
    """The handle of the stream on which the library of ``array`` works in this thread; 0 where it has no such idea."""
    ask = stream_asker(array)
    return 0 if ask is None else ask()


def stream_asker(array: Any) -> Callable[[], int] | None:
    """What ``current_stream`` asks for arrays of that kind and GPU; None where there is nothing to ask."""
    library = _library(array)
    if library == "torch" and array.is_cuda:
        torch, ordinal = sys.modules["torch"], array.get_device()
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001 - the public way makes an object
        return partial(raw, ordinal) if raw else lambda: int(torch.cuda.current_stream(ordinal).cuda_stream)
    if library == "cupy":
        current = sys.modules["cupy"].cuda.get_current_stream
        return lambda: stream_handle(int(current().ptr))
    return None


def like(example: Any, array: NDArray[Any], dtype: np.dtype[Any] | None = None) -> Any:
    """``array`` as the library of ``example``, which is the host's, has it: a torch tensor for a torch tensor. Its
    elements are of ``dtype`` (its own when absent) where that library has a name for them."""
    dtype = dtype or array.dtype
    if _library(example) == "torch" and array.dtype.names is None:
        torch = sys.modules["torch"]
        made = torch.from_numpy(array)
        return made if dtype == array.dtype else made.to(getattr(torch, elements.torch_name(dtype)))
    return array if dtype == array.dtype or elements.element_of(dtype) else array.astype(dtype)


def allocator(example: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[], Any]:
    """What makes a new array on the GPU, of the kind of ``example`` where its library is known and has the elements,
    else a PyCUDA GPUArray. Records become a last extent of bytes in torch, which has no records; bfloat16 and float8
    are float32 but in torch."""
    library = _library(example)
    if library == "torch":
        torch = sys.modules["torch"]
        if dtype.names and not elements.element_of(dtype):
            shape, dtype = (*shape, dtype.itemsize), np.dtype(np.uint8)
        kind = getattr(torch, elements.torch_name(dtype))
        return partial(torch.empty, shape, dtype=kind, device=example.device)
    if elements.element_of(dtype):  # which no other library has
        dtype = np.dtype(np.float32)
    if library == "cupy":
        return partial(sys.modules["cupy"].empty, shape, dtype)
    if library == "numba":
        return partial(sys.modules["numba"].cuda.device_array, shape, dtype)
    from pycuda import gpuarray

    return partial(gpuarray.empty, shape, dtype)


def reader(array: Any) -> Callable[[Any], tuple[int, Any]]:
    """A fast ``f(array) -> (address, signature)`` for arrays of this type; equal signatures mean the same shape,
    elements, device and contiguity."""
    return _READERS.get(_library(array), _read_interface)


def _read_torch(tensor: Any) -> tuple[int, Any]:
    kind = tensor.dtype, tensor.device, tensor.requires_grad
    return tensor.data_ptr(), (tensor.shape, tensor.is_contiguous(), *kind)


def _read_cupy(array: Any) -> tuple[int, Any]:
    memory = array.data
    return memory.ptr, (array.shape, array.dtype, array.strides, memory.device_id)


def _read_interface(array: Any) -> tuple[int, Any]:
    seen = view(array)
    assert seen is not None, "a reader is asked of arrays on a GPU only"
    return seen.address, (seen.shape, seen.dtype, seen.strides, seen.ordinal, seen.stream)


_READERS: dict[str, Callable[[Any], tuple[int, Any]]] = {"torch": _read_torch, "cupy": _read_cupy}


def _library(array: Any) -> str:
    """The top package of an array's type, when that package is the one that is loaded."""
    name = type(array).__module__.partition(".")[0]
    return name if name in sys.modules else ""
