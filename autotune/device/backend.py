"""What a device backend does. Two packages follow the protocol: ``cuda`` and ``cpu``.

Results leave a device by a CopyQueue while it goes on computing: each chunk's, as soon as the chunk is done.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Compiled, Geometry, Toolchain
from autotune.errors import DeviceError
from autotune.hardware import Device
from autotune.layout import Stored

WORDS, EXACTLY = np.dtype(np.uint32), (0.0, 0.0)


class LaunchError(DeviceError):
    """A launch or a copy that the device rejected; the text is the driver's."""


def require_room(symbol: str, room: int, nbytes: int) -> None:
    """Raise LaunchError for an array of a kernel's source that cannot hold what it is filled from."""
    if room < nbytes:
        raise LaunchError(
            f"the source's {symbol} has {room} bytes, and what it is filled from has {nbytes}: make it larger "
            "there, or constrain the sizes"
        )


def make_raw(nbytes: int) -> Stored:
    """Return room for ``nbytes`` bytes without a layout."""
    unit = 1 if nbytes < 2**32 else 16  # an accessor's extent has 32 bits
    return Stored(None, nbytes, unit, "global", (-(-nbytes // unit),), (1,), 0)


class Placed(Protocol):
    """Data resident on a device. ``argument`` is the accessor's bytes, passed by value at each launch. ``guards`` are
    the bytes before and behind it that are its own as well, where it has any."""

    @property
    def argument(self) -> bytes: ...

    @property
    def stored(self) -> Stored: ...

    @property
    def guards(self) -> "Sequence[Placed]": ...

    def free(self) -> None: ...


class Module(Protocol):
    """A loaded binary of one variant. ``lock`` is held from the filling of its constant memory to the end of what reads
    it, or until that is queued where other streams are waited for; modules that share the memory share the lock, and
    one thread may take it twice. ``numbers`` are those that the source exports."""

    @property
    def numbers(self) -> Mapping[str, int]: ...

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    def unload(self) -> None: ...


@dataclass(frozen=True)
class Copy:
    """``target``'s bytes come from ``placed``, from byte ``begin``: rows of ``width`` bytes that lie ``pitch`` bytes
    apart there and without gaps in ``target``."""

    placed: Placed
    begin: int
    width: int
    pitch: int
    target: NDArray[np.uint8]

    @property
    def rows(self) -> int:
        return self.target.size // self.width


class Closing(ABC):
    """A context manager that closes what it is."""

    @abstractmethod
    def close(self) -> None:
        """Release what is held. Safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Backend(Protocol):
    """Memory, launch and timing on one device.

    ``launch``, ``fill``, ``copy`` and ``upload`` are asynchronous on a cuda device; ``download`` and ``synchronize``
    wait. ``sample`` runs ``plan`` ``count`` times and returns each run's time in milliseconds; with ``cold`` the
    last-level cache is flushed before each run.
    """

    device: Device

    def current(self) -> AbstractContextManager[None]:
        """Make the device the calling thread's for a block; nests at no cost."""

    def stream(self) -> AbstractContextManager[None]:
        """Give the calling thread a stream of its own for a block: its launches, fills, uploads, downloads and waits
        run at the same time as other threads' work."""

    def shuffle(self, seed: int) -> AbstractContextManager[None]:
        """Launches in the block run their blocks and threads in an order drawn from ``seed``, where the device lets us
        choose; elsewhere nothing changes. What is right in one order only is wrong in others."""

    def toolchain(self, compiler: str = "") -> Toolchain: ...

    def load(self, compiled: Compiled) -> Module: ...

    def place(self, stored: Stored, module: Module | None = None, guard: int = 0) -> Placed:
        """Allocate ``stored`` in the memory that it names, between guards of ``guard`` bytes (a multiple of 512) for
        out-of-bounds accesses of a kernel; planes and constant memory have no guards."""

    def view(self, stored: Stored, of: Placed) -> Placed:
        """What ``place`` made, read as ``stored`` says (see ``view_room``): the same memory at the same address, and a
        texture over it where ``stored`` asks for one. To be freed before ``of``. Raises LaunchError."""

    def fill(self, placed: Placed, byte: int, begin: int = 0, nbytes: int | None = None) -> None:
        """Set every byte, or ``nbytes`` of them from ``begin``."""

    def copy(self, placed: Placed, source: Placed) -> None:
        """The bytes of ``source``, as many as ``placed`` has, both in linear memory of this device; asynchronous as
        ``fill`` is."""

    def fill_constants(self, module: Module, byte: int) -> None:
        """Set every byte of the binary's constant memory; see ``Execution.prepare``."""

    def checksum(self, placed: Placed) -> int:
        """A number that another content would hardly give; 0 for a texture's plane, which no kernel can write."""

    def upload(self, placed: Placed, stored: Stored) -> None:
        """New content for what ``place`` made of a ``stored`` of the same layout and size."""

    def fill_window(self, module: Module, resident: Placed, begin: int, window: Stored) -> None:
        """Copy the bytes of ``window`` from ``begin`` in ``resident``, linear memory of this device, to its place in
        the module's constant memory: asynchronous, and in order with launches, on a cuda device."""

    def fill_symbol(self, module: Module, symbol: str, placed: Placed) -> None:
        """Copy ``placed``, linear memory of this device, to the array that the module's source calls ``symbol``, as
        ``fill_window`` does. One that no kernel reads, and that the compiler left out, is passed over. Raises
        LaunchError for one that is too small."""

    def download(
        self, placed: Placed, nbytes: int | None = None, into: NDArray[np.uint8] | None = None
    ) -> NDArray[np.uint8]:
        """The buffer, or its first ``nbytes``; not of a 2D texture. With ``into``, that is filled and returned."""

    def count_mismatches(
        self,
        placed: Placed,
        expected: Placed,
        kind: np.dtype[Any] = WORDS,
        within: tuple[float, float] = EXACTLY,
        ignores_nan: bool = False,
    ) -> int:
        """How many elements of two buffers of float32 or float64 are further apart than ``within``, relative and
        absolute together, as numpy.isclose counts them; NaN equals only NaN, or one that is expected equals anything
        where ``ignores_nan``. Of any other ``kind``, how many words of 4 bytes differ, or bytes that make no word."""

    def launch(self, module: Module, kernel: str, geometry: Geometry, arguments: Sequence[bytes]) -> None: ...

    def launch_cooperative(
        self, module: Module, kernel: str, geometry: Geometry, arguments: Sequence[bytes]
    ) -> None:
        """A launch whose blocks all run at the same time, so that they may wait for each other: of a grid in x as
        many blocks as the device holds at once. The kernel learns their number from gridDim."""

    def stage(self, name: str, work: Callable[[int], None]) -> None:
        """Work that is no kernel of the family: a library's on the device, queued on the stream whose handle ``work``
        is given (0 for the default one), or the host's. ``kernel_times`` counts it under ``name``."""

    def record(self, steps: Callable[[], None]) -> Callable[[], None]:
        """What ``steps`` launches and fills as one graph, recorded now and run by each call of the result, in the
        calling thread's order of execution. ``steps`` waits for nothing and moves no data to or from the host."""

    def synchronize(self) -> None: ...

    def sample(self, plan: Callable[[], None], count: int, cold: bool) -> list[float]: ...

    def mark(self) -> Any:
        """A place in the order of what the calling thread queues."""

    def wait(self, mark: Any) -> None:
        """Until the device is past the mark. Raises LaunchError."""

    def queue_after(self, mark: Any) -> AbstractContextManager[None]:
        """Queue what the calling thread does in the block after the mark, on a queue of its own."""

    def fetch(self, copy: Copy) -> None:
        """Queue a copy to the host's memory."""

    def pin(self, host: NDArray[np.uint8]) -> bool:
        """Pin ``host`` until ``unpin``, so that copies to it need no help of the host. Return False if that is not
        possible: copies are then slower."""

    def unpin(self, host: NDArray[np.uint8]) -> None: ...

    def between_ms(self, begin: Any, end: Any) -> float | None:
        """From one mark to a later one; None while the device is not past that. Waits for nothing."""

    def has_reached(self, mark: Any) -> bool:
        """Whether the device got to ``mark`` before now: what was queued behind it may then have come too late to keep
        it busy. False for a device that is the host."""

    def kernel_times(self, plan: Callable[[], None]) -> dict[str, float]:
        """Run ``plan`` once: milliseconds by kernel, a kernel's launches added up."""

    def describe(self) -> dict[str, Any]: ...

    def close(self) -> None: ...


class CopyQueue(Closing):
    """Chunks of work in order; the results of one are copied while the next ones run."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._pinned: list[NDArray[np.uint8]] = []  # mapped for as long as they are registered

    def pin(self, host: NDArray[np.uint8]) -> bool:
        """See Backend; until ``close``."""
        is_pinned = self._backend.pin(host)
        self._pinned += [host] if is_pinned else []
        return is_pinned

    def start(self) -> Any:
        """Before a chunk's launches are queued."""
        return self._backend.mark()

    def finish(self, started: Any, copies: Sequence[Copy]) -> tuple[Any, ...]:
        """After they were: queue ``copies``. Returns what ``wait`` takes."""
        marks = [started, self._backend.mark()]
        if copies:
            with self._backend.queue_after(marks[-1]):
                marks.append(self._backend.mark())
                for copy in copies:
                    self._backend.fetch(copy)
                marks.append(self._backend.mark())
        return tuple(marks)

    def is_done(self, chunk: tuple[Any, ...]) -> bool:
        """Whether ``wait`` would return at once. Raises LaunchError."""
        return self._backend.between_ms(chunk[0], chunk[-1]) is not None

    def wait(self, chunk: tuple[Any, ...]) -> tuple[float, float]:
        """Until the chunk and its copies are done: (seconds on the device, seconds of the copies). Raises
        LaunchError."""
        self._backend.wait(chunk[-1])
        spans = [self._backend.between_ms(*chunk[i : i + 2]) or 0.0 for i in range(0, len(chunk), 2)]
        return spans[0] * 1e-3, sum(spans[1:]) * 1e-3

    def close(self) -> None:
        for host in self._pinned:
            self._backend.unpin(host)
        self._pinned.clear()


@dataclass(frozen=True)
class Launch:
    """One launch with the bytes of its kernel's parameters. ``addresses`` says where those of arrays are: the array's
    name, which of ``arguments``, and the byte in it."""

    module: Module
    kernel: str
    geometry: Geometry
    arguments: tuple[bytes, ...]
    addresses: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Beginning:
    """``placed`` is made a copy of ``source`` before the launches; each with the name of its array."""

    name: str
    placed: Placed
    source_name: str
    source: Placed


@dataclass(frozen=True)
class Constant:
    """What launches of ``module`` find in its constant memory, where ``window`` says, or in the array that its source
    calls ``symbol``: a copy of ``resident``, linear memory of the device. ``stays`` is False for content that changes
    without the backend's knowing, other than by ``upload``."""

    name: str
    module: Module
    window: Stored
    resident: Placed
    stays: bool
    symbol: str = ""


class Call(Protocol):
    """Fills and launches that were made ready once, to be queued again and again; by one thread at a time."""

    def point(self, name: str, address: int) -> None:
        """From now on ``name`` is at ``address``; for a texture, that is its handle."""

    def __call__(self) -> None:
        """Queue it all on the calling thread's stream. Raises LaunchError."""


class Lender(Backend, Protocol):
    """A backend whose kernels can work on arrays and streams of other libraries: ``cuda``."""

    def borrow(self, stored: Stored, address: int) -> Placed:
        """What is at ``address`` already, as ``stored`` says, with a texture over it where that asks for one. Freeing
        it leaves the memory as it is."""

    def settle(self, placed: Placed) -> None:
        """What was written to the linear memory next to an image, where a launch finds its address, is in the image."""

    def on(self, stream: int) -> AbstractContextManager[int]:
        """What the calling thread queues in the block runs in the order of the stream with that handle, which
        another library made; 0 changes nothing. Where that library captures a graph there, it is recorded with it:
        the block gets the number of that capture, which no other one has, else 0."""

    def load_separately(self, compiled: Compiled) -> Module:
        """``load``, with constant memory that no other module shares: a graph of others fills it whenever that is
        launched, and nobody here knows when. Raises LaunchError."""

    def suspend_capture(self) -> AbstractContextManager[None]:
        """In a block of ``on`` that is captured: what is made ready in this block is made now, and not recorded."""

    def wait_for(self, stream: int) -> None:
        """Until the stream with that handle has nothing left to do."""

    def bind(
        self, fills: Mapping[str, Placed], launches: Sequence[Launch],
        constants: Sequence[Constant] = (), moves: Sequence[Launch] = (), beginnings: Sequence[Beginning] = (),
    ) -> Call:  # fmt: skip
        """Clear ``fills``, launch ``moves``, copy ``beginnings``, copy ``constants`` to their module's
        constant memory unless it holds them, then launch in order. Calls of one module with other
        constants may be queued by other threads and on other streams."""
