"""The arguments of a call at run time, read and checked: arrays of the host or of a GPU, options, scalars, a stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Family, Inputs
from autotune.device import Lender, View, elements, foreign
from autotune.errors import UnknownName, UsageError, WorkloadError
from autotune.layout import Data, canonical, check_links


@dataclass(frozen=True)
class Arguments:
    """What was given, not looked at yet: arrays, options and scalars by name."""

    arrays: Mapping[str, Any]
    options: Mapping[str, Any]
    scalars: Mapping[str, Any]


NOTHING = Arguments({}, {}, {})


@dataclass(frozen=True)
class Request:
    """One call. ``inputs`` has every array of the family, canonical ones of the host or Views; ``sent`` names those
    that the caller passed. Results are arrays like ``example``, which is in GPU memory if ``is_on_gpu``; ``stream`` is
    a handle."""

    inputs: Inputs
    sent: tuple[str, ...]
    example: Any = None
    is_on_gpu: bool = False
    stream: int = 0


def arguments(
    family: Family, names: Sequence[str], given: Sequence[Any], named: Mapping[str, Any]
) -> Arguments:
    """Arrays by place (``names`` are the inputs that are wanted) or by name, the rest by name. Raises UsageError,
    UnknownName."""
    if len(given) > len(names):
        listed, wanted = ", ".join(names) or "none", f"{len(names)} array{'' if len(names) == 1 else 's'}"
        others = ", ".join(f"{name}=…" for name in (*family.callers_scalars, *family.options))
        told = f": pass numbers and options by name ({others})" if others else ""
        raise UsageError(f"{family.name} takes {wanted} ({listed}), {len(given)} given{told}")
    arrays = dict(zip(names, given, strict=False))
    options, scalars = {}, {}
    inputs = [data.name for data in family.inputs]
    for name, value in named.items():
        if name in arrays:
            raise UsageError(f"{name!r} is given twice")
        if name in family.options:
            options[name] = value
        elif name in family.scalars:
            scalars[name] = value
        elif name in names:
            arrays[name] = value
        elif name in inputs:
            raise UsageError(f"{name} was prepared: new content for it goes through refill({name}=…)")
        else:
            allowed = [*names, *family.callers_scalars, *family.options]
            raise UnknownName("input", name, allowed, f"family {family.name}")
    for name, array in arrays.items():
        if reason := foreign.obstacle(array):
            raise WorkloadError(f"{name}: {reason}")
    return Arguments(arrays, options, scalars)


def take(data: Data, array: Any, stream: int = 0) -> Any:
    """``array`` checked: a View of what is on a GPU, else a canonical array. The values of a View are not looked at,
    since that would have to wait for them. Raises WorkloadError."""
    seen = foreign.view(array, stream)
    if seen is None:
        return canonical(data, _as_host_records(foreign.to_host(array), data))
    seen = _as_records(seen, data)
    if len(seen.shape) != len(data.shape):
        raise WorkloadError(
            f"{data.name}: {len(seen.shape)} dimensions given, {len(data.shape)} needed ({', '.join(data.shape)})"
        )
    if 0 in seen.shape:
        raise WorkloadError(f"{data.name}: shape {seen.shape} is empty; every extent must be at least 1")
    return seen


def request(family: Family, kept: Arguments, given: Arguments, stream: Any, example: Any) -> Request:
    """A call with ``given`` on top of ``kept``, whose arrays were taken before. ``stream`` is the caller's, or
    None for the one on which the library of the first GPU array works. ``example`` stands in where no array is given.
    Raises WorkloadError, UsageError, UnknownName."""
    first = next(filter(foreign.is_on_gpu, given.arrays.values()), None)
    is_on_gpu = first is not None
    if first is None:
        first = example if example is not None else next(iter(given.arrays.values()), None)
        is_on_gpu = foreign.is_on_gpu(example)
    handle = foreign.current_stream(first) if stream is None else foreign.stream_handle(stream)
    family = family.apply_types({**kept.options, **given.options})
    arrays = {**kept.arrays, **{n: take(family.data[n], a, handle) for n, a in given.arrays.items()}}
    inputs = Inputs.make(family, arrays, {**kept.options, **given.options}, {**kept.scalars, **given.scalars})
    if family.has_links:
        _check_links(family, kept, given, inputs)
    return Request(inputs, tuple(given.arrays), first, is_on_gpu, handle)


def _check_links(family: Family, kept: Arguments, given: Arguments, inputs: Inputs) -> None:
    """Raise WorkloadError for links of the host that lead nowhere: of what came with the call; and of what was kept,
    into extents that came with the call. What else was kept was checked by then."""
    known = read_sizes(family, kept.arrays)
    later = {extent: size for extent, size in inputs.sizes.items() if extent not in known}
    for name, array in inputs.arrays.items():
        if not isinstance(array, View):
            check_links(family.data[name], array, inputs.sizes if name in given.arrays else later)


def read_sizes(family: Family, arrays: Mapping[str, Any]) -> dict[str, int]:
    """The extents that the arrays give by themselves."""
    return {
        extent: size
        for name, array in arrays.items()
        for extent, size in zip(family.data[name].shape, array.shape, strict=True)
    }


def wait_for_content(lender: Lender, asked: Request, outputs: Mapping[str, View], capture: int) -> None:
    """Until what came with the call is there, or is made in the order of its stream, of which a ``capture`` may be
    under way. Raises WorkloadError for an array on another GPU, UsageError for one that a capture cannot wait for."""
    sent: dict[str, Any] = {name: asked.inputs.arrays[name] for name in asked.sent}
    for name, array in {**sent, **outputs}.items():
        if not isinstance(array, View):
            continue
        if array.ordinal not in (-1, lender.device.ordinal):
            raise WorkloadError(
                f"{name} is on cuda:{array.ordinal} and the kernel on cuda:{lender.device.ordinal}; move the array, or "
                f"load the kernel with device='cuda:{array.ordinal}'"
            )
        if name in sent and array.stream is not None and array.stream != asked.stream:
            if capture:
                raise UsageError(f"{name} is made on another stream than the one that is captured")
            lender.wait_for(array.stream)


@dataclass(frozen=True)
class Destination:
    """Where one output goes: ``array`` is what the caller gets, None when it is not made yet; ``view`` its place on a
    GPU, ``memory`` that on the host, as numpy sees it; one of them is None."""

    data: Data
    array: Any
    view: View | None
    memory: NDArray[Any] | None

    def fetch(self, made: NDArray[Any], example: Any) -> Any:
        """An output that came to the host, as the caller wants it; ``example`` shows the kind of a new array."""
        if self.array is None:
            return foreign.like(example, made, self.data.element_dtype)
        assert self.memory is not None
        elements.write(self.memory, made)
        return self.array


def results(family: Family, asked: Request, out: Any, can_lend: bool) -> list[Destination]:
    """Where each output of ``asked`` goes: to ``out`` (an array, or a mapping by name), else to the GPU when the call
    is about arrays there and the device ``can_lend``. Raises UsageError for a name that is no output, WorkloadError
    for an array of another shape or other elements."""
    given, destinations = _by_name(family, out), []
    for data in family.apply_types(asked.inputs.options).outputs:
        shape = data.shape_for(asked.inputs.sizes)
        array = given.get(data.name)
        if array is None and can_lend and asked.is_on_gpu:
            array = foreign.allocator(asked.example, shape, data.element_dtype)()
        if reason := foreign.obstacle(array):
            raise WorkloadError(f"out: {data.name}: {reason}")
        view = None if array is None else foreign.view(array, asked.stream)
        memory = None
        if view is not None:
            view = _as_records(view, data)
        elif array is not None and (memory := foreign.get_writable(array)) is not None:
            memory = _as_host_records(memory, data)
        if array is not None:
            seen = memory if view is None else view
            _check(data, shape, array if seen is None else seen, can_lend)
        destinations.append(Destination(data, array, view, memory))
    return destinations


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


def _are_parts(array: View | NDArray[Any], data: Data) -> bool:
    """Whether the last extent of ``array`` holds the parts of a record side by side, for a library that has no records:
    its bytes, or its fields where they are of one type."""
    fields = {field.type for field in data.fields}
    return (
        bool(data.record)
        and len(array.shape) == len(data.shape) + 1
        and (array.dtype == np.uint8 or {array.dtype.name} == fields)
        and array.shape[-1] * array.dtype.itemsize == data.dtype.itemsize
        and array.strides[-1] == array.dtype.itemsize
    )


def _as_records(view: View, data: Data) -> View:
    if not _are_parts(view, data):
        return view
    return replace(view, shape=view.shape[:-1], strides=view.strides[:-1], dtype=data.dtype)


def _as_host_records(array: Any, data: Data) -> Any:
    """The very memory as records; what is no array of parts is left alone."""
    if not data.record or not hasattr(array, "__array__"):
        return array
    parts = np.asarray(array)
    return parts.view(data.dtype)[..., 0] if _are_parts(parts, data) else array


def _check(data: Data, shape: tuple[int, ...], array: Any, can_lend: bool) -> None:
    if not isinstance(array, (View, np.ndarray)):
        raise WorkloadError(
            f"out: {data.name} is a {type(array).__name__}; give a NumPy array, a torch tensor, or an array on a GPU"
        )
    if isinstance(array, View) and not can_lend:
        raise WorkloadError(
            f"out: {data.name} is on a GPU, and this runs on the cpu; give one in host memory"
        )
    if tuple(array.shape) != shape or array.dtype not in (data.dtype, data.element_dtype):
        raise WorkloadError(
            f"out: {data.name} is {data.element or data.dtype} of shape {shape}, an array of {array.dtype} of shape "
            f"{array.shape} is given"
        )
    if isinstance(array, View) and not array.is_contiguous:
        raise WorkloadError(f"out: {data.name} has gaps between its elements; give a contiguous array")
