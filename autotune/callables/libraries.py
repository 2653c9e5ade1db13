"""Arrays of the libraries whose kernels are called: what they hold, and memory of ours as an array of theirs."""

import ctypes
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.device import LaunchError, elements, foreign
from autotune.errors import UsageError
from autotune.layout import ELEMENTS, SCALAR_TYPES

LIBRARIES = ("numpy", "torch", "cupy", "numba", "warp")
_BITS = {1: "uint8", 2: "uint16"}  # numpy's name for elements that it has none for


@dataclass(frozen=True)
class Kind:
    """What sort of array an argument is: the ``library`` that made it, its elements by the ``name`` that a family
    declares, and what numpy (or else torch) calls them where that is another (bool). ``vector`` is warp's name for
    elements that are several numbers, which are a last extent here."""

    library: str
    name: str
    own: str = ""
    vector: str = ""
    is_scalar: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the memory."""
        if self.name in ELEMENTS and self.name != "float16":
            return np.dtype(_BITS[1 if "8" in self.name else 2])
        return np.dtype(self.own or self.name)


@dataclass(frozen=True)
class Memory:
    """An array in memory of ours: ``strides`` in bytes. ``__cuda_array_interface__`` is how libraries see it on a GPU;
    ``ordinal`` is None for the host's."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    ordinal: int | None
    owner: Any

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3, "shape": self.shape, "strides": self.strides, "typestr": self.dtype.str,
            "data": (self.address, False),
        }  # fmt: skip

    @property
    def nbytes(self) -> int:
        """From the first element to the last."""
        reach = sum((extent - 1) * step for extent, step in zip(self.shape, self.strides, strict=True))
        return reach + self.dtype.itemsize

    def on_host(self) -> NDArray[Any]:
        """As numpy sees it; not of a GPU."""
        room = memoryview((ctypes.c_uint8 * self.nbytes).from_address(self.address))
        seen: NDArray[Any] = np.ndarray(self.shape, self.dtype, room, 0, self.strides)
        return seen


def library_of(value: Any) -> str:
    """Which of ``LIBRARIES`` an array is of, by the module of its type; empty for what is no array."""
    package = type(value).__module__.partition(".")[0]
    if package not in LIBRARIES or not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return ""
    return "" if isinstance(value, np.generic) or not len(value.shape) else package


def kind_of(name: str, value: Any) -> Kind:
    """Of an array. Raises UsageError for elements that cannot be declared."""
    library = library_of(value)
    text = _vector_base(value) if library == "warp" else str(value.dtype).removeprefix("torch.")
    known = elements.TORCH_NAMES.get(text, text)
    if known == "bool":
        return Kind(library, "uint8", "bool")
    if known not in SCALAR_TYPES and known not in ELEMENTS:
        raise UsageError(
            f"{name} has elements of {text}, which cannot be verified: give {', '.join((*SCALAR_TYPES, *ELEMENTS))} or "
            "bool (complex numbers as a last extent of two)"
        )
    vector = value.dtype.__name__ if library == "warp" and hasattr(value.dtype, "_shape_") else ""
    return Kind(library, known, vector=vector)


def kind_of_result(name: str, value: Any) -> Kind:
    """Of what a call gave back: an array, or a number, which is one of one element. Raises LaunchError."""
    if library_of(value):
        return kind_of(name, value)
    is_one = hasattr(value, "item") and hasattr(value, "dtype")
    if not is_one and not isinstance(value, bool | int | float | np.generic):
        raise LaunchError(
            f"gives back a {type(value).__name__} as {name}: only arrays and numbers can be verified"
        )
    return Kind("numpy", _number(value).dtype.name, is_scalar=True)


def _number(value: Any) -> NDArray[Any]:
    number = np.asarray(value.item() if hasattr(value, "item") else value).reshape(1)
    return number.astype(np.uint8) if number.dtype == np.bool_ else number


def _vector_base(value: Any) -> str:
    base = getattr(value.dtype, "_wp_scalar_type_", value.dtype)
    return str(base.__name__)


def content(value: Any) -> NDArray[Any]:
    """A canonical copy in the host's memory: float32 for 16 bits and less, bytes for bool, of a number one element."""
    library = library_of(value)
    if not library:
        return _number(value)
    if library == "warp":
        array = value.numpy()
    else:
        array = np.asarray(foreign.fetch(value.detach() if library == "torch" else value))
    if array.dtype == np.float16:
        return np.asarray(array, np.float32)
    return np.array(array, np.uint8 if array.dtype == np.bool_ else array.dtype, copy=True, order="C")


def axes_of(value: Any) -> tuple[int, ...] | None:
    """The axes by their steps, slowest first, where the array fills its memory so; None where it does not."""
    shape, strides = tuple(value.shape), _steps(value)
    axes = tuple(sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis)))
    expected = 1
    for axis in reversed(axes):
        if shape[axis] > 1 and strides[axis] != expected:
            return None
        expected *= shape[axis]
    return axes


def _steps(value: Any) -> tuple[int, ...]:
    """In elements."""
    if library_of(value) == "torch":
        return tuple(value.stride())
    size = getattr(value, "itemsize", None) or np.dtype(value.dtype).itemsize
    return tuple(step // size for step in value.strides)


def _is_on_gpu(value: Any) -> bool:
    library = library_of(value)
    if library in ("torch", "warp"):  # torch refuses to tell where it computes gradients
        return bool(value.is_cuda if library == "torch" else value.device.is_cuda)
    return foreign.is_on_gpu(value)


def device_of(values: Mapping[str, Any]) -> str:
    """Where the arrays are: ``cuda:N`` of the first one on a GPU, else ``cpu``."""
    for value in values.values():
        if library_of(value) and _is_on_gpu(value):
            place = getattr(value, "device", None)
            return f"cuda:{int(getattr(place, 'index', getattr(place, 'id', None)) or 0)}"
    return "cpu"


def hand_over(kind: Kind, memory: Memory) -> Any:
    """The memory as an array of the argument's library."""
    library = kind.library
    if library == "numpy" and memory.ordinal is not None:
        library = "cupy"  # a numpy array that is given for a GPU
    return _HANDED[library](kind, memory)


def _numpy(kind: Kind, memory: Memory) -> Any:  # noqa: ARG001 - one signature for all
    return memory.on_host()


def _torch(kind: Kind, memory: Memory) -> Any:
    torch = import_module("torch")
    # Types that all versions of torch take, of as many bits.
    plain = {"uint16": "int16", "uint32": "int32", "uint64": "int64", "bool": "uint8"}
    seen = replace(memory, dtype=np.dtype(plain.get(memory.dtype.name, memory.dtype.name)))
    if memory.ordinal is None:
        made = torch.from_numpy(seen.on_host())
    else:
        made = torch.as_tensor(seen, device=f"cuda:{memory.ordinal}")
    own = elements.TORCH_NAMES
    name = kind.own or next((ours for ours, declared in own.items() if declared == kind.name), kind.name)
    dtype = getattr(torch, name)
    return made if made.dtype == dtype else made.view(dtype)


def _cupy(kind: Kind, memory: Memory) -> Any:  # noqa: ARG001
    cupy = import_module("cupy")
    whole = cupy.cuda.UnownedMemory(memory.address, memory.nbytes, memory, memory.ordinal or 0)
    return cupy.ndarray(memory.shape, memory.dtype, cupy.cuda.MemoryPointer(whole, 0), memory.strides)


def _numba(kind: Kind, memory: Memory) -> Any:  # noqa: ARG001
    if memory.ordinal is None:  # its simulator takes numpy's arrays
        return memory.on_host()
    return import_module("numba.cuda").as_cuda_array(memory)


def _warp(kind: Kind, memory: Memory) -> Any:
    warp = import_module("warp")
    shape, strides = memory.shape, memory.strides
    dtype = warp.dtype_from_numpy(memory.dtype)
    if kind.vector:
        dtype, shape, strides = getattr(warp, kind.vector), shape[:-1], strides[:-1]
    device = "cpu" if memory.ordinal is None else f"cuda:{memory.ordinal}"
    return warp.array(ptr=memory.address, dtype=dtype, shape=shape, strides=strides, device=device)


_HANDED = {"numpy": _numpy, "torch": _torch, "cupy": _cupy, "numba": _numba, "warp": _warp}


_PACKAGES = {"cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"), "warp": ("warp-lang",)}


def versions(libraries: Sequence[str]) -> str:
    """What those are here."""
    told = []
    for name in libraries:
        for package in _PACKAGES.get(name, (name,)):
            with suppress(PackageNotFoundError):
                told.append(f"{name} {version(package)}")
                break
    return "; ".join(told)


def copy_back(name: str, kind: Kind, memory: Memory, value: Any) -> None:
    """What a call gave back into memory of ours. Raises LaunchError where it is another sort of array."""
    if kind.is_scalar:
        _write(memory, _number(value))
        return
    if not library_of(value) or kind_of(name, value) != kind or _shape(kind, value) != memory.shape:
        told = f"{value.dtype} of shape {tuple(value.shape)}" if library_of(value) else type(value).__name__
        raise LaunchError(f"{name} is {told}, and the first call gave {kind.name} of shape {memory.shape}")
    target = hand_over(kind, memory)
    match kind.library:
        case "torch":
            target.copy_(value.detach())
        case "numba" if memory.ordinal is not None:
            target.copy_to_device(value)
        case "warp":
            import_module("warp").copy(target, value)
        case _:
            target[...] = value


def _shape(kind: Kind, value: Any) -> tuple[int, ...]:
    shape = tuple(value.shape)
    return (*shape, *value.dtype._shape_) if kind.vector else shape


def _write(memory: Memory, array: NDArray[Any]) -> None:
    """A number that a call gave back; on a GPU by way of cupy or torch, whichever made it."""
    if memory.ordinal is None:
        memory.on_host()[...] = array
        return
    library = "torch" if "torch" in sys.modules else "cupy"
    hand_over(Kind(library, memory.dtype.name), memory)[...] = import_module(library).asarray(array)
