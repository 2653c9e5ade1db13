"""The shortest way of a call: the same kinds of arrays on a GPU as the time before, only at other addresses."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from autotune.device import Lender
from autotune.device import foreign as interop
from autotune.dispatch.bound import Bound
from autotune.dispatch.call import Request

__all__ = ["MISSED", "Given", "Ready", "ready"]


# Answers (arrays by place, out, stream, what was named) when they differ from the call before in addresses only, else
# MISSED. Nothing is converted, checked or chosen on the way. One thread at a time.
Ready = Callable[[Sequence[Any], Any, Any, Mapping[str, Any]], Any]

MISSED = object()


class Given(NamedTuple):
    """A call as it was made: arrays by place, the stream, and what was named, options and scalars for one."""

    arrays: tuple[Any, ...]
    stream: Any
    named: Mapping[str, Any]


def ready(
    lender: Lender, bound: Bound, asked: Request, call: Given, result: Any, is_new: bool
) -> Ready | None:
    """The shortest way of ``call``, which was just made: ``result`` is what it gave (``is_new``: made for it). None
    when something about it has to be looked at each time."""
    arrays, stream, known_names = call
    launches, (output,) = bound.call, bound.execution.variant.family.outputs
    if launches is None or len(arrays) != len(asked.sent) or not _stay(known_names):
        return None
    known = []
    for array, name in [*zip(arrays, asked.sent, strict=True), (result, output.name)]:
        if interop.view(array) is None or not bound.place(name):
            return None
        read = interop.reader(array)
        address, signature = read(array)
        waits = getattr(asked.inputs.arrays.get(name), "stream", None) not in (None, asked.stream)
        unaligned = bound.alignment(name) - 1
        if address & unaligned or waits:
            return None
        known.append((type(array), read, signature, bound.place(name), unaligned))
    *inputs, (kind, read_result, expected, place, gaps) = known
    count, handle, point = len(inputs), asked.stream, bound.point
    current = interop.stream_asker(asked.example) if stream is None else None
    shape = tuple(asked.inputs.sizes[extent] for extent in output.shape)
    make = interop.allocator(asked.example, shape, output.dtype) if is_new else None

    def run(given: Sequence[Any], out: Any, on: Any, named: Mapping[str, Any]) -> Any:
        if (
            len(given) != count
            or on is not stream
            or (out is None) is not is_new
            or ((named or known_names) and not _are_same(named, known_names))
        ):
            return MISSED
        if current is not None and current() != handle:
            return MISSED
        addresses = []
        for array, (type_, read, signature, _, unaligned) in zip(given, inputs, strict=True) if count else ():
            if type(array) is not type_:
                return MISSED
            address, seen = read(array)
            if seen != signature or address & unaligned:
                return MISSED
            addresses.append(address)
        made = out if make is None else make()
        if type(made) is not kind:
            return MISSED
        address, seen = read_result(made)
        if seen != expected or address & gaps:
            return MISSED
        point(place, address)
        for index, address in enumerate(addresses):
            point(inputs[index][3], address)
        if handle:
            with lender.on(handle):
                launches()
        else:
            launches()
        return made

    return run


def _stay(named: Mapping[str, Any]) -> bool:
    """Whether none of these values can change in place."""
    return all(isinstance(value, int | float | str | np.generic) for value in named.values())


def _are_same(named: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    if len(named) != len(before):
        return False
    for name, value in named.items():
        known = before.get(name)
        if type(value) is not type(known) or value != known:
            return False
    return True
