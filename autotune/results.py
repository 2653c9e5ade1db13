"""Where the outputs of a call go: into arrays of the caller's, or into new ones of the kind that came with the call."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune import interop
from autotune.binding import Request
from autotune.data import Data
from autotune.errors import UsageError, WorkloadError
from autotune.family import Family
from autotune.interop import View

__all__ = ["Result", "results"]


@dataclass(frozen=True)
class Result:
    """Where one output goes: ``array`` is what the caller gets, None when it is not made yet; ``view`` its place on a
    GPU, None when it comes to the host."""

    data: Data
    array: Any
    view: View | None

    def fetched(self, made: NDArray[Any], example: Any) -> Any:
        """An output that came to the host, as the caller wants it; ``example`` shows the kind of a new array."""
        if self.array is None:
            return interop.like(example, made)
        np.copyto(self.array, made)
        return self.array


def results(family: Family, asked: Request, out: Any, can_lend: bool) -> list[Result]:
    """Where each output of ``asked`` goes: to ``out`` (an array, or a mapping by name), else to the GPU when the call
    is about arrays there and the device ``can_lend``. Raises UsageError for a name that is no output, WorkloadError
    for an array of another shape or other elements."""
    given = _by_name(family, out)
    on_gpu = can_lend and interop.view(asked.example, asked.stream) is not None
    found = []
    for data in family.outputs:
        shape = tuple(asked.inputs.sizes[extent] for extent in data.shape)
        array = given.get(data.name)
        if array is None and on_gpu:
            array = interop.allocator(asked.example, shape, data.dtype)()
        view = None if array is None else interop.view(array, asked.stream)
        if view is not None:
            view = _as_records(view, data, shape)
        if array is not None:
            _check(data, shape, array if view is None else view, can_lend)
        found.append(Result(data, array, view))
    return found


def _by_name(family: Family, out: Any) -> Mapping[str, Any]:
    if out is None:
        return {}
    names = [data.name for data in family.outputs]
    if not isinstance(out, Mapping):
        if len(names) > 1:
            listed = ", ".join(names)
            raise UsageError(f"{family.name} has several outputs: give out={{name: array}} ({listed})")
        return {names[0]: out}
    for name in out:
        if name not in names:
            raise UsageError(f"out names {name!r}, which is no output of {family.name} ({', '.join(names)})")
    return out


def _as_records(view: View, data: Data, shape: tuple[int, ...]) -> View:
    """Bytes of records (interop.allocator for torch) as the records they are."""
    as_bytes = (*shape, data.dtype.itemsize)
    if data.record and view.dtype == np.uint8 and view.shape == as_bytes and view.is_contiguous:
        return replace(view, shape=shape, strides=view.strides[:-1], dtype=data.dtype)
    return view


def _check(data: Data, shape: tuple[int, ...], array: Any, can_lend: bool) -> None:
    if not isinstance(array, (View, np.ndarray)):
        raise WorkloadError(
            f"out: {data.name} is a {type(array).__name__}; give an array of numpy or on a GPU"
        )
    if isinstance(array, View) and not can_lend:
        raise WorkloadError(f"out: {data.name} is on a GPU, and this runs on the cpu; give an array of numpy")
    if tuple(array.shape) != shape or array.dtype != data.dtype:
        raise WorkloadError(
            f"out: {data.name} is {data.dtype} of shape {shape}, an array of {array.dtype} of shape {array.shape} is "
            "given"
        )
    if isinstance(array, View) and not array.is_contiguous:
        raise WorkloadError(f"out: {data.name} has gaps between its elements; give a contiguous array")
