"""One run of two kernels, the one as it was and the rewritten one, on the same arrays: by a process of its own, since a
guess about sizes may be wrong and a kernel then writes where it likes."""

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Compiled, Geometry
from autotune.device import CpuBackend, LaunchError
from autotune.errors import AutotuneError

GUARD = 1 << 21  # bytes around an array, whose size may be a guess
MOST_EVENTS = 1 << 23
_READ, _WRITE, _CHANGE = range(3)
_WINDOW = 64
_BORDER = 4
_UNSEEN = (
    "no access of its arrays was seen, so nothing was compared: either it makes none, or it stores what a function "
    "returns as a whole record, which the compiler does not show"
)

Events = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Rows = NDArray[np.int64]  # array, byte, size, kind; a column for each access


@dataclass(frozen=True)
class TracedArray:
    """``rest`` is what an accessor has besides the place of its data. ``record_bytes`` is 0 where it holds numbers."""

    content: Bytes
    shape: tuple[int, ...]
    rest: bytes
    element_bytes: int
    record_bytes: int
    is_written: bool
    is_open: bool


@dataclass(frozen=True)
class TracedLaunch:
    """``images`` are the kernels ``original`` and ``rewritten``, each with its symbol, ``trace`` the library that notes
    accesses. ``arguments`` are names of arrays, and numbers."""

    kernel: str
    trace: str
    images: Mapping[str, tuple[Path, str]]
    arrays: Mapping[str, TracedArray]
    symbols: Mapping[str, Bytes]
    arguments: Sequence[str | bytes]
    geometry: Geometry


@dataclass
class Outcome:
    """What runs said: ``is_proved``, or ``why`` not. ``left`` are arrays whose indices left an inner extent, ``beyond``
    the bytes that were touched outside of an array. By array, ``written`` is the least part of a written one that was
    written in any run, ``touched`` that read or written."""

    is_proved: bool
    why: str = ""
    runs: int = 0
    accesses: int = 0
    turned: int = 0
    unseen: bool = False
    left: set[str] = field(default_factory=set)
    beyond: dict[str, tuple[int, int]] = field(default_factory=dict)
    written: dict[str, float] = field(default_factory=dict)
    touched: dict[str, float] = field(default_factory=dict)
    crashed: bool = False
    differs: bool = False

    def take(self, other: "Outcome") -> None:
        """Add that of one more run."""
        self.runs += 1
        self.accesses += other.accesses
        self.turned += other.turned
        self.unseen |= other.unseen
        self.left |= other.left
        for name, (first, last) in other.beyond.items():
            before = self.beyond.get(name, (0, 0))
            self.beyond[name] = (min(before[0], first), max(before[1], last))
        for mine, theirs in ((self.written, other.written), (self.touched, other.touched)):
            mine |= {name: min(part, mine.get(name, 1.0)) for name, part in theirs.items()}
        self.is_proved, self.why = other.is_proved, other.why


@dataclass
class _Run:
    events: Events
    count: int
    bytes: dict[str, Bytes]
    left: set[str]


def run(launch: TracedLaunch, which: str, trace: ctypes.CDLL) -> _Run:
    """Launch one of the kernels once."""
    backend = CpuBackend(1)
    image, symbol = launch.images[which]
    module = backend.load(Compiled(which, image, {launch.kernel: symbol}))
    for name, content in launch.symbols.items():
        module.variable(name)[:] = content
    rooms = {name: np.full(a.content.nbytes + 2 * GUARD, 0x11, np.uint8) for name, a in launch.arrays.items()}
    for name, array in launch.arrays.items():
        rooms[name][GUARD : GUARD + array.content.nbytes] = array.content
    arguments = []
    for given in launch.arguments:
        if isinstance(given, bytes):
            arguments.append(given)
        else:
            rest = launch.arrays[given].rest if which == "rewritten" else b""
            arguments.append((rooms[given].ctypes.data + GUARD).to_bytes(8, "little") + rest)
    events = np.zeros(MOST_EVENTS, np.uint64)
    trace.autotune_trace_begin(ctypes.c_void_p(events.ctypes.data), ctypes.c_uint64(events.size))
    for begin, size in ((room.ctypes.data, room.nbytes) for room in rooms.values()):
        trace.autotune_trace_range(ctypes.c_void_p(begin), ctypes.c_void_p(begin + size))
    backend.launch(module, launch.kernel, launch.geometry, arguments)
    count = int(trace.autotune_trace_count())
    left = {name for number, name in enumerate(rooms) if trace.autotune_trace_left(number)}
    return _Run(events[:count], count, rooms, left)


def normalise(events: Events, record_bytes: list[int], with_record_writes: bool = True) -> Rows:
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


def compare(launch: TracedLaunch) -> Outcome:
    """What is to be said of one launch."""
    trace = ctypes.CDLL(launch.trace, mode=ctypes.RTLD_GLOBAL)
    trace.autotune_trace_count.restype = ctypes.c_uint64
    which = "kernel as it was"
    try:
        original = run(launch, "original", trace)
        which = "rewritten kernel"
        rewritten = run(launch, "rewritten", trace)
    except LaunchError as problem:
        return Outcome(False, f"the {which} does not run: {problem}")
    names, sizes = list(launch.arrays), [array.record_bytes for array in launch.arrays.values()]
    one, other = (normalise(r.events, sizes) for r in (original, rewritten))
    is_cut = max(original.count, rewritten.count) > MOST_EVENTS
    if is_cut:  # in the middle of an expression, maybe
        shorter = min(one.shape[1], other.shape[1]) - _WINDOW
        one, other = one[:, :shorter], other[:, :shorter]
    at, turned = first_difference(one, other)
    outcome = Outcome(True, accesses=original.count, turned=turned, left=rewritten.left)
    for number, (name, array) in enumerate(launch.arrays.items()):
        mine = one[:, one[0] == number]
        outcome.touched[name] = part(mine, array, with_reads=True)
        if array.is_written:
            outcome.written[name] = part(mine, array, with_reads=False)
        first, last = (int(mine[1].min()), int((mine[1] + mine[2]).max())) if mine.shape[1] else (0, 0)
        if first < 0 or last > array.content.nbytes:
            outcome.beyond[name] = first, last
    if at >= 0 and any(sizes):
        seen = [normalise(r.events, sizes, with_record_writes=False) for r in (original, rewritten)]
        if not is_cut and first_difference(*seen)[0] < 0:
            at, outcome.unseen = -1, True
    differing = (n for n in names if not np.array_equal(original.bytes[n], rewritten.bytes[n]))
    if at >= 0 and not (is_cut and at >= one.shape[1] - _WINDOW):
        was, became = (describe_access(rows, at, names) for rows in (one, other))
        outcome.why = f"other addresses: access {at}: {was} in the kernel as it was, {became} rewritten"
    elif name := next(differing, ""):
        place = int(np.flatnonzero(original.bytes[name] != rewritten.bytes[name])[0]) - GUARD
        outcome.why = f"other values: {name} differs first at byte {place}"
    outcome.differs = bool(outcome.why)
    outcome.why = outcome.why or ("" if one.shape[1] else _UNSEEN)
    outcome.is_proved = not outcome.why
    return outcome


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


def describe_access(rows: Rows, at: int, names: list[str]) -> str:
    if at >= rows.shape[1]:
        return "nothing"
    array, offset, size, kind = (int(row[at]) for row in rows)
    return f"{('reads', 'writes', 'changes')[kind]} {size} bytes at byte {offset} of {names[array]}"


def part(rows: Rows, array: TracedArray, with_reads: bool) -> float:
    """The part of an array's elements that is written, or touched at all; but for a border of a few rows at each side,
    which a stencil leaves out. Of an array whose size nothing tells it is that up to the last element touched."""
    mask = np.zeros(array.shape, bool)
    places, widths = rows[1:3, with_reads | (rows[3] != _READ)] // array.element_bytes
    for further in range(max(1, int(widths.max(initial=0)))):  # several at once
        reached = places[widths > further] + further if further else places
        mask.reshape(-1)[reached[(reached >= 0) & (reached < mask.size)]] = True
    if array.is_open:
        mask = mask[: int(rows[1].max(initial=0)) // array.element_bytes // max(1, mask[:1].size) + 1]
    inner = []
    for axis, extent in enumerate(mask.shape):
        others = tuple(other for other in range(mask.ndim) if other != axis)
        places = np.flatnonzero(mask.any(axis=others))
        first, last = (int(places[0]), int(places[-1])) if len(places) else (0, extent - 1)
        is_border = max(first, extent - 1 - last) <= min(_BORDER, extent // 4)
        inner.append(slice(first, last + 1) if is_border else slice(None))
    return float(mask.mean()) if mask.all() or not mask.size else min(0.999, float(mask[tuple(inner)].mean()))


def serve(pipe: Connection, launch: TracedLaunch) -> None:
    """What the process does. What the kernel prints is nothing to anybody."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        pipe.send(compare(launch))
    except (AutotuneError, MemoryError, OSError) as problem:
        pipe.send(Outcome(False, f"the run died: {type(problem).__name__}: {problem}", crashed=True))
