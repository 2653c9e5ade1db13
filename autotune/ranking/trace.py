"""A cpu device that says which thread of a launch accesses which byte, for the first blocks of each launch.

The kernels are built so that every access of memory calls a function (the compiler's own instrumentation, made for
finding races); kernels/include/autotune/trace/requests.cpp records it. A launch ends after its first blocks, so its
results are not used.
"""

import ctypes
import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import (
    Batch,
    Built,
    Cache,
    Compiled,
    Geometry,
    HostCxx,
    RuntimeCxx,
    VariantSource,
    compile_one,
    default_root,
    find_compiler,
)
from autotune.device import CpuBackend, CpuModule, CpuPlaced, LaunchError, Placed, Shared, linear
from autotune.errors import CompilerError
from autotune.files import include_dir
from autotune.layout import Stored

OTHER = (
    0xFFFF  # the array of an access outside of all: shared memory, and what the host's code has of its own
)
READ, WRITE, CHANGE = range(3)
ACCESS = np.dtype(  # requests.cpp: Event
    [("address", "u8"), ("site", "u4"), ("thread", "u4"), ("block", "u4"), ("bytes", "u1"), ("kind", "u1"),
     ("array", "u2")], align=True,
)  # fmt: skip
_BLOCKS = 4  # of a launch
_MOST_CALLS = 1_000_000  # accesses after which a launch ends
_MOST_ACCESSES = 1 << 18  # that are kept of it
_MOST_LAUNCHES = 8
_NEWEST_CLANG, _OLDEST_CLANG = 30, 14
_MOST_FURTHER = 4096  # launches that are counted and not run
_NO_BYTES = 32  # of a texture's handle

_PLACE = include_dir() / "autotune" / "trace" / "place.cuh"

Accesses = NDArray[np.void]


class _Session(ctypes.Structure):
    """requests.cpp: Session."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("place", "events")),
        *((name, ctypes.c_ulonglong) for name in ("capacity", "count", "calls", "most_calls")),
        ("ranges", ctypes.c_void_p),
        *((name, ctypes.c_uint) for name in ("range_count", "most_blocks", "blocks", "block")),
    )


@dataclass(frozen=True)
class AddressRange:
    """The addresses of an array: its memory, first address, number of bytes, and ``name``. ``memory`` is empty for what
    is no array."""

    memory: str
    begin: int
    nbytes: int
    name: str = ""


@dataclass(frozen=True)
class Trace:
    """One launch: its ``accesses`` in the order of each thread, ``array`` an index of ``ranges`` or OTHER. ``is_cut``
    where there were more of its first blocks than are kept."""

    kernel: str
    geometry: Geometry
    accesses: Accesses
    ranges: tuple[AddressRange, ...]
    is_cut: bool = False

    @property
    def blocks(self) -> int:
        """How many blocks access an array: before a launch's first one, the last one of the launch before is named."""
        return len(np.unique(self.accesses["block"][self.accesses["array"] != OTHER]))


class EnoughTraced(Exception):
    """Ends a plan: as many of its launches as wanted are traced."""


def find_clang() -> str:
    """clang++, or the newest that has its version in its name; empty where none is installed. It drops what a kernel
    reads of a record and has no use for, as a GPU's compiler does, before accesses are counted; g++ counts these."""
    names = ("clang++", *(f"clang++-{version}" for version in range(_NEWEST_CLANG, _OLDEST_CLANG - 1, -1)))
    return next((name for name in names if shutil.which(name)), "")


def make_tracing_toolchain(compiler: str = "") -> HostCxx:
    """What builds kernels for ``TracingBackend``, by the ``compiler`` that is named. Raises CompilerError."""
    command = find_compiler(compiler)
    if "ziglang" in command or Path(command[0]).stem == "zig":
        raise CompilerError("zig has functions of its own for what is traced: name g++ or clang++ in CXX")
    digest = hashlib.sha256(_PLACE.read_bytes()).hexdigest()[:12]
    last = ("-O1", "-fsanitize=thread", "-nodefaultlibs", "-w", "-include", str(_PLACE), f"-DTRACE_{digest}")
    return _Traced(command, last)


class _Traced(HostCxx):
    def build(self, batch: Batch) -> Built:
        """As of any host compiler; the header that ``last`` includes is in the identity and not among what was read."""
        built = super().build(batch)
        return replace(built, read=tuple(path for path in built.read if path != _PLACE.resolve()))


class TracingBackend(CpuBackend):
    """``traces`` are those of the launches since ``forget``; ``further`` are launches that came after, which are not
    run. Raises CompilerError."""

    def __init__(self) -> None:
        super().__init__(1)
        self.traces: list[Trace] = []
        self.further: list[tuple[str, Geometry]] = []
        self._placed: list[tuple[CpuPlaced, Any]] = []
        self._library = _hooks()
        self._room = np.zeros(_MOST_ACCESSES, ACCESS)
        self._places: dict[int, int] = {}
        self._names: dict[int, str] = {}  # of what is placed, by its identity

    def forget(self) -> None:
        """Begin with the launches of another plan."""
        self.traces.clear()
        self.further.clear()

    def name_arrays(self, placed: Mapping[str, Placed]) -> None:
        """Traces from now on say these names; arrays that are stored together have theirs joined by ``+``."""
        self._names.clear()
        for name, one in placed.items():
            owner = id(one.owner if isinstance(one, Shared) else linear(one))
            self._names[owner] = f"{self._names[owner]}+{name}" if owner in self._names else name

    def load(self, compiled: Compiled) -> CpuModule:
        module = super().load(compiled)
        library = ctypes.CDLL(str(compiled.image.resolve()))
        self._places[id(module)] = ctypes.cast(library.autotune_trace_place, ctypes.c_void_p).value or 0
        return module

    def place(self, stored: Stored, module: Any = None, guard: int = 0) -> CpuPlaced:
        placed = super().place(stored, module, guard)
        self._placed.append((placed, module))
        return placed

    def launch(self, module: Any, kernel: str, geometry: Geometry, arguments: Sequence[bytes]) -> None:
        if len(self.traces) == _MOST_LAUNCHES:
            self.further.append((kernel, geometry))
            if len(self.further) == _MOST_FURTHER:
                raise EnoughTraced
            return
        ranges = tuple(
            replace(found, name=self._names.get(id(placed), ""))
            for placed, of in self._placed
            for found in _ranges(placed, of, module)
        )
        bounds = np.array([(r.begin, r.begin + r.nbytes) for r in ranges], np.uint64)
        session = _Session.from_address(self._library.autotune_trace_session())
        session.place, session.events = self._places[id(module)], self._room.ctypes.data
        session.capacity, session.count, session.calls = len(self._room), 0, 0
        session.most_calls, session.most_blocks, session.blocks = _MOST_CALLS, _BLOCKS, 0
        session.ranges, session.range_count = bounds.ctypes.data, len(ranges)
        try:
            super().launch(module, kernel, geometry, arguments)
        except LaunchError:
            if session.place:  # it did not end for having been traced
                raise
        finally:
            session.place = None
        kept = self._room[: min(session.count, len(self._room))].copy()
        last = session.block if session.blocks > _BLOCKS else None
        is_cut = session.count > len(self._room) or session.calls > _MOST_CALLS
        kept = kept if last is None else kept[kept["block"] != last]
        self.traces.append(Trace(kernel, geometry, kept, ranges, is_cut))

    def launch_cooperative(
        self, module: Any, kernel: str, geometry: Geometry, arguments: Sequence[bytes]
    ) -> None:
        """One block, as on the cpu device."""
        self.launch(module, kernel, replace(geometry, grid=(1, 1, 1)), arguments)


def _ranges(placed: CpuPlaced, of: Any, module: CpuModule) -> list[AddressRange]:
    stored = placed.stored
    if stored.memory == "constant":
        begin = module.window.ctypes.data + stored.constant_offset
        return [AddressRange("constant", begin, stored.nbytes)] if of is module else []
    found = [AddressRange(stored.memory, placed.buffer.ctypes.data, placed.buffer.nbytes)]
    if stored.memory == "texture":
        found.append(AddressRange("", int.from_bytes(placed.argument[:8], "little"), _NO_BYTES))
    return found


@cache
def _hooks() -> ctypes.CDLL:
    """The library that the kernels' calls go to: one in a process. Raises CompilerError."""
    source = include_dir() / "autotune" / "trace" / "requests.cpp"
    digest = hashlib.sha256(source.read_bytes() + source.with_name("tsan.hpp").read_bytes()).hexdigest()
    unit = Batch(source, (include_dir(),), (VariantSource(digest, "trace", "", ()),))
    built = compile_one(
        unit, RuntimeCxx(find_compiler()), Cache(default_root()), "the trace does not compile: "
    )
    library = ctypes.CDLL(str(built.image), mode=ctypes.RTLD_GLOBAL)
    library.autotune_trace_session.restype = ctypes.c_void_p
    return library
