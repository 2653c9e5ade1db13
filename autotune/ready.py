"""The shortest way of a call: the same kinds of arrays on a GPU as the time before, only at other addresses."""

from collections.abc import Callable, Sequence
from typing import Any

from autotune import interop
from autotune.backends import Lender
from autotune.binding import Request
from autotune.bound import Bound

__all__ = ["MISSED", "Ready", "ready"]

# Answers (arrays by place, out, stream) when they differ from the call before in addresses only, else MISSED. Nothing
# is converted, checked or chosen on the way. One thread at a time.
Ready = Callable[[Sequence[Any], Any, Any], Any]
MISSED = object()


def ready(
    lender: Lender, bound: Bound, asked: Request, call: tuple[tuple[Any, ...], Any], result: Any, is_new: bool
) -> Ready | None:
    """The shortest way of the call that was just made: ``call`` is its arrays by place and its stream, ``result`` what
    it gave (``is_new``: made for it). None when something about it has to be looked at each time."""
    arrays, stream = call
    launches, (output,) = bound.call, bound.execution.variant.family.outputs
    if launches is None or len(arrays) != len(asked.sent):
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

    def run(given: Sequence[Any], out: Any, on: Any) -> Any:
        if len(given) != count or on is not stream or (out is None) is not is_new:
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
