"""The fast path of a call: the same kinds of arrays on a GPU as the time before, only at other addresses."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from autotune.device import Lender, foreign
from autotune.dispatch.call import Request
from autotune.dispatch.launcher import Launcher

# Answers (arrays by place, out, stream, what was named) when they differ from the call before in addresses only, else
# MISSED. Nothing is converted, checked or chosen on the way. One thread at a time.
FastCall = Callable[[Sequence[Any], Any, Any, Mapping[str, Any]], Any]
MISSED = object()

# Of an array like the one it was made for: the address. Of any other: -1.
_Address = Callable[[Any], int]


class RawCall(NamedTuple):
    """A call as it was made: arrays by place, the stream, and what was named, options and scalars for one."""

    arrays: tuple[Any, ...]
    stream: Any
    named: Mapping[str, Any]


def fast_call(
    lender: Lender, launcher: Launcher, request: Request, call: RawCall, result: Any, is_new: bool
) -> FastCall | None:
    """The fast path of ``call``, which was just made: ``result`` is what it gave (``is_new``: made for it). None when
    something about it has to be looked at each time."""
    (output,) = launcher.execution.variant.family.outputs
    may_change = not all(isinstance(value, int | float | str | np.generic) for value in call.named.values())
    if launcher.call is None or len(call.arrays) != len(request.sent) or may_change:
        return None
    places: list[tuple[_Address, str]] = []
    for name, array in zip((*request.sent, output.name), (*call.arrays, result), strict=True):
        address_of = _address_of(launcher, request, name, array)
        if address_of is None:
            return None
        places.append((address_of, launcher.place(name)))
    *inputs, (output_address, output_place) = places
    shape = output.shape_for(request.inputs.sizes)
    make = foreign.allocator(request.example, shape, output.element_dtype) if is_new else None
    current = foreign.stream_asker(request.example) if call.stream is None else None
    count, stream, known_names = len(call.arrays), call.stream, call.named
    handle, point, launches = request.stream, launcher.point, launcher.call

    def is_same(item: tuple[str, Any]) -> bool:
        known = known_names.get(item[0])
        return known is not None and type(item[1]) is type(known) and bool(item[1] == known)

    def run(arrays: Sequence[Any], out: Any, on: Any, named: Mapping[str, Any]) -> Any:
        if (
            len(arrays) != count
            or on is not stream
            or (out is None) is not is_new
            or len(named) != len(known_names)
            or (named and not all(map(is_same, named.items())))
            or (current is not None and current() != handle)
        ):
            return MISSED
        given = []
        for array, (address_of, place) in zip(arrays, inputs, strict=True) if count else ():
            address = address_of(array)
            if address < 0:
                return MISSED
            given.append((place, address))
        made = out if make is None else make()
        address = output_address(made)
        if address < 0:
            return MISSED
        if handle:
            with lender.on(handle) as capture:
                if capture:
                    return MISSED
                go(address, given)
        else:
            go(address, given)
        return made

    def go(output: int, given: Sequence[tuple[str, int]]) -> None:
        point(output_place, output)
        for place, address in given:
            point(place, address)
        launches()

    return run


def leave_out(call: FastCall, is_due: Callable[[], bool]) -> FastCall:
    """``call``, but for those calls that are to go the long way."""
    return lambda *given: MISSED if is_due() else call(*given)


def _address_of(launcher: Launcher, request: Request, name: str, array: Any) -> _Address | None:
    """For arrays like ``array``, which was given for ``name``; None where each has to be looked at."""
    if not launcher.place(name):  # it goes through the host
        return None
    kind, read, misaligned = type(array), foreign.reader(array), launcher.alignment(name) - 1
    at, signature = read(array)
    waits = getattr(request.inputs.arrays.get(name), "stream", None) not in (None, request.stream)
    if at & misaligned or waits:
        return None

    def get_address(other: Any) -> int:
        if type(other) is not kind:
            return -1
        at, seen = read(other)
        return at if seen == signature and not at & misaligned else -1

    return get_address
