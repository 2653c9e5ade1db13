"""Elements of 16 and 8 bits in arrays of other libraries: what torch and DLPack call them, and how numpy, which has a
name for float16 alone, reads and writes the others."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.layout import ELEMENTS, STORAGES

_TORCH = {"float8_e4m3": "float8_e4m3fn"}  # where torch's name is another
TORCH_NAMES = {_TORCH.get(name, name): name for name in ELEMENTS}
_CODES = {(4, 16): "bfloat16", (10, 8): "float8_e4m3", (12, 8): "float8_e5m2"}  # DLDataTypeCode, bits


def find_dlpack_type(code: int, bits: int) -> np.dtype[Any] | None:
    """The elements of a DLPack tensor that numpy has no name for."""
    name = _CODES.get((code, bits))
    return STORAGES[name].dtype if name else None


def find_torch_type(tensor: Any) -> np.dtype[Any] | None:
    """The elements of a tensor that numpy has no name for; None for others."""
    name = TORCH_NAMES.get(str(tensor.dtype).removeprefix("torch."))
    return None if name in (None, "float16") else STORAGES[name].dtype


def torch_name(dtype: np.dtype[Any]) -> str:
    """What torch calls elements of ``dtype``."""
    name = element_of(dtype) or dtype.name
    return _TORCH.get(name, name)


def element_of(dtype: np.dtype[Any]) -> str:
    """The name of elements that numpy has none for; empty for all others."""
    fields = dtype.names or ()
    return fields[0] if len(fields) == 1 and fields[0] in ELEMENTS else ""


def codes_of_torch(tensor: Any) -> NDArray[Any]:
    """The memory of a tensor of the host whose elements numpy has no name for, as those elements."""
    dtype = find_torch_type(tensor)
    assert dtype is not None, "other tensors have numpy()"
    import torch

    whole = tensor.view(torch.int16 if dtype.itemsize == 2 else torch.int8)
    memory: NDArray[Any] = whole.numpy().view(dtype)
    return memory


def write(memory: NDArray[Any], made: NDArray[Any]) -> None:
    """``made`` into ``memory``, in the elements that it has."""
    name = element_of(memory.dtype)
    if not name:
        np.copyto(memory, made, casting="same_kind")
        return
    storage = STORAGES[name]
    memory[name] = storage.narrow(made, np.ones(1, np.float32))
