"""One run of two kernels, the one as it was and the rewritten one, on the same arrays: a process of its own, since a
guess about sizes may be wrong and a kernel then writes where it likes.

``python -m autotune.adopt.trial FOLDER`` reads request.json and arrays.npz there, and writes answer.json.
"""

import ctypes
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Compiled, Geometry
from autotune.device import CpuBackend, LaunchError

GUARD = 1 << 21  # bytes around an array, whose size may be a guess
MOST_EVENTS = 1 << 23
_READ, _WRITE, _CHANGE = range(3)
_WINDOW = 64
_BORDER = 4
_UNWRITTEN = (
    "the kernel as it was reads a variable that nothing wrote: its result is another with other content there"
)

Events = NDArray[np.uint64]
Contents = dict[str, NDArray[np.uint8]]
Rows = NDArray[np.int64]  # array, byte, size, kind; a column for each access


@dataclass
class _Run:
    events: Events
    count: int
    bytes: dict[str, NDArray[np.uint8]]
    left: dict[str, int]

    def is_like(self, other: "_Run") -> bool:
        """Whether both touched the same places and left the same bytes."""
        same = self.count == other.count and np.array_equal(self.events, other.events)
        return same and all(np.array_equal(made, other.bytes[name]) for name, made in self.bytes.items())


class Trace:
    """The library that writes accesses down."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        self.library.autotune_trace_count.restype = ctypes.c_uint64
        self.room = np.zeros(MOST_EVENTS, np.uint64)

    def begin(self, rooms: dict[str, NDArray[np.uint8]]) -> None:
        self.library.autotune_trace_begin(
            ctypes.c_void_p(self.room.ctypes.data), ctypes.c_uint64(self.room.size)
        )
        for room in rooms.values():
            begin = room.ctypes.data
            self.library.autotune_trace_range(ctypes.c_void_p(begin), ctypes.c_void_p(begin + room.nbytes))

    def end(self) -> tuple[Events, int]:
        count = int(self.library.autotune_trace_count())
        return self.room[: min(count, MOST_EVENTS)].copy(), count

    def left(self, array: int) -> int:
        """A bit for each axis whose index left its extent."""
        return int(self.library.autotune_trace_left(array))


def run(request: dict[str, Any], which: str, arrays: Contents, symbols: Contents, trace: Trace) -> _Run:
    """Launch one of the kernels once."""
    backend = CpuBackend(1)
    image = request[which]
    compiled = Compiled(which, Path(image["image"]), {image["kernel"]: image["symbol"]})
    module = backend.load(compiled)
    for symbol, content in symbols.items():
        module.variable(symbol)[:] = content
    rooms = {}
    for name, content in arrays.items():
        room = np.full(content.nbytes + 2 * GUARD, 0x11, np.uint8)
        room[GUARD : GUARD + content.nbytes] = content
        rooms[name] = room
    arguments = []
    for argument in request["arguments"]:
        if "array" in argument:
            place = rooms[argument["array"]].ctypes.data + GUARD
            rest = bytes.fromhex(argument.get(which, ""))
            arguments.append(place.to_bytes(8, "little") + rest)
        else:
            arguments.append(bytes.fromhex(argument["bytes"]))
    geometry = Geometry(tuple(request["grid"]), tuple(request["block"]), request["shared_bytes"])
    trace.begin(rooms)
    backend.launch(module, image["kernel"], geometry, arguments)
    events, count = trace.end()
    left = {name: trace.left(number) for number, name in enumerate(arrays)}
    return _Run(events, count, rooms, left)


def normal(events: Events, record_bytes: list[int], with_record_writes: bool = True) -> Rows:
    """(array, byte, size, kind) of each access. Of a record: which one, and reads or writes of the same one that follow
    each other once, since an accessor reads all of a record where the kernel takes a part of it."""
    array = (events >> np.uint64(56)).astype(np.int64)
    kind = ((events >> np.uint64(54)) & np.uint64(3)).astype(np.int64)
    size = ((events >> np.uint64(48)) & np.uint64(63)).astype(np.int64)
    offset = (events & np.uint64((1 << 48) - 1)).astype(np.int64) - GUARD
    sizes = np.array(record_bytes, np.int64)[array] if len(events) else np.zeros(0, np.int64)
    is_record = sizes > 0
    offset = np.where(is_record, offset // np.maximum(sizes, 1) * np.maximum(sizes, 1), offset)
    size = np.where(is_record, sizes, size)
    rows = np.stack([array, offset, size, kind])
    if not with_record_writes:
        kept = ~is_record | (kind == _READ)
        rows, is_record = rows[:, kept], is_record[kept]
    if rows.shape[1]:
        same = np.concatenate([[False], (rows[:, 1:] == rows[:, :-1]).all(axis=0)]) & is_record
        rows = rows[:, ~same]
    return rows


def compare(request: dict[str, Any], arrays: Contents, symbols: Contents, trace: Trace) -> dict[str, Any]:
    """What is to be said of one launch."""
    names = list(arrays)
    try:
        original = run(request, "original", arrays, symbols, trace)
        if "filled" in request and not run(request, "filled", arrays, symbols, trace).is_like(original):
            return {"status": "unwritten", "why": _UNWRITTEN}
    except LaunchError as problem:
        return {"status": "original", "why": str(problem)}
    try:
        rewritten = run(request, "rewritten", arrays, symbols, trace)
    except LaunchError as problem:
        return {"status": "rewritten", "why": str(problem)}
    sizes = [request["record_bytes"][name] for name in names]
    one, other = (normal(r.events, sizes) for r in (original, rewritten))
    is_cut = max(original.count, rewritten.count) > MOST_EVENTS
    if is_cut:  # in the middle of an expression, maybe
        shorter = min(one.shape[1], other.shape[1]) - _WINDOW
        one, other = one[:, :shorter], other[:, :shorter]
    answer: dict[str, Any] = {
        "status": "same",
        "events": original.count,
        "compared": int(one.shape[1]),
        "left": {name: axes for name, axes in rewritten.left.items() if axes},
        "beyond": beyond(one, arrays, names),
        "written": {n: part(one, names.index(n), request, with_reads=False) for n in request["written"]},
        "touched": {n: part(one, names.index(n), request, with_reads=True) for n in names},
    }
    at, answer["turned"] = first_difference(one, other)
    answer["unseen"] = False
    if at >= 0 and any(sizes):
        seen = [normal(r.events, sizes, with_record_writes=False) for r in (original, rewritten)]
        if not is_cut and first_difference(*seen)[0] < 0:
            at, answer["unseen"] = -1, True
    if at >= 0 and not (is_cut and at >= one.shape[1] - _WINDOW):
        told = [said(rows, at, names) for rows in (one, other)]
        answer |= {
            "status": "addresses",
            "why": f"access {at}: {told[0]} in the kernel as it was, {told[1]} rewritten",
        }
        return answer
    for name in names:
        if not np.array_equal(original.bytes[name], rewritten.bytes[name]):
            place = int(np.flatnonzero(original.bytes[name] != rewritten.bytes[name])[0]) - GUARD
            answer |= {"status": "values", "why": f"{name} differs first at byte {place}"}
            return answer
    return answer


def first_difference(one: Rows, other: Rows) -> tuple[int, int]:
    """Where the two differ first, or -1; and how often a few reads that follow each other come in another order, as an
    expression leaves it to the compiler which of its operands is loaded first."""
    shorter = min(one.shape[1], other.shape[1])
    differs = np.flatnonzero((one[:, :shorter] != other[:, :shorter]).any(axis=0))
    done, turned = 0, 0
    for at in map(int, differs):
        if at < done:
            continue
        for end in range(at + 2, min(at + _WINDOW, shorter) + 1):
            here, there = one[:, at:end], other[:, at:end]
            if (here[3] != _READ).any() or (there[3] != _READ).any():
                return at, turned
            if (here[:, np.lexsort(here)] == there[:, np.lexsort(there)]).all():
                done, turned = end, turned + 1
                break
        else:
            return at, turned
    return (-1 if one.shape[1] == other.shape[1] else shorter), turned


def said(rows: Rows, at: int, names: list[str]) -> str:
    if at >= rows.shape[1]:
        return "nothing"
    array, offset, size, kind = (int(row[at]) for row in rows)
    return f"{('reads', 'writes', 'changes')[kind]} {size} bytes at byte {offset} of {names[array]}"


def beyond(rows: Rows, arrays: dict[str, NDArray[np.uint8]], names: list[str]) -> dict[str, list[int]]:
    """The first and the last byte that is touched of each array of which the kernel touches what is outside."""
    found = {}
    for number, name in enumerate(names):
        mine = rows[:, rows[0] == number]
        if mine.shape[1]:
            first, last = int(mine[1].min()), int((mine[1] + mine[2]).max())
            if first < 0 or last > arrays[name].nbytes:
                found[name] = [first, last]
    return found


def part(rows: Rows, array: int, request: dict[str, Any], with_reads: bool) -> float:
    """The part of an array's elements that is written, or touched at all; but for a border of a few rows at each side,
    which a stencil leaves out. Of an array whose size nothing tells it is that up to the last element touched."""
    name = request["arrays"][array]
    mask = np.zeros(request["shapes"][name], bool)
    mine = rows[1, (rows[0] == array) & (with_reads | (rows[3] != _READ))] // request["element_bytes"][name]
    row = max(1, mask[:1].size)
    mask.reshape(-1)[mine[(mine >= 0) & (mine < mask.size)]] = True
    if name in request["open"]:
        mask = mask[
            : int(rows[1, rows[0] == array].max(initial=0)) // request["element_bytes"][name] // row + 1
        ]
    inner = []
    for axis, extent in enumerate(mask.shape):
        others = tuple(other for other in range(mask.ndim) if other != axis)
        places = np.flatnonzero(mask.any(axis=others))
        first, last = (int(places[0]), int(places[-1])) if len(places) else (0, extent - 1)
        is_border = max(first, extent - 1 - last) <= min(_BORDER, extent // 4)
        inner.append(slice(first, last + 1) if is_border else slice(None))
    return float(mask.mean()) if mask.all() or not mask.size else min(0.999, float(mask[tuple(inner)].mean()))


def main(folder: Path) -> None:
    request = json.loads((folder / "request.json").read_text())
    trace = Trace(Path(request["trace"]))
    with np.load(folder / "arrays.npz") as stored:
        arrays = {name: stored[name] for name in request["arrays"]}
        symbols = {name: stored[key] for name, key in request["symbols"].items()}
    answer = compare(request, arrays, symbols, trace)
    (folder / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
