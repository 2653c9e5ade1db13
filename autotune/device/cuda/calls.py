"""What the dispatcher needs of CUDA in addition to the tuner: prepared calls, and streams of other libraries."""

import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any

from autotune.compile import Geometry
from autotune.device.backend import Beginning, Constant, Launch, LaunchError, Placed, require_room
from autotune.device.cuda.driver import call
from autotune.layout import members

# Where each array begins in constant memory, and the one on the device that it is a copy of, which counts its
# ``uploads``.
Key = tuple[tuple[int, Any], ...]


class ConstantWindow:
    """``find`` gives the window's address, None when no kernel in the binary reads it. ``lock`` is held from ``hold``
    to the last launch that reads the content, of the window and of the source's own arrays. The context is current in
    every call."""

    def __init__(self, driver: Any, find: Callable[[], int | None]) -> None:
        self.lock: AbstractContextManager[Any] = threading.RLock()
        self._copy, self._synchronize = driver.memcpy_dtod_async, driver.Context.synchronize
        self._find = find
        self._key: Key | None = None  # what it holds, where that is known
        self._uploads: list[int] = []  # of each array, when it was copied
        self._streams: set[int] = set()  # which may read it

    @cached_property
    def address(self) -> int | None:
        """Asked for once."""
        return self._find()

    def hold(self, copies: Iterable[Sequence[int]], key: Key | None, stream: Any) -> None:
        """What is queued on ``stream`` from now on finds ``copies`` (address, source address, bytes), which are those
        of ``key``; without a key they may have changed since."""
        handle = int(stream.handle) if stream else 0
        if key is not None and self._holds(key):
            if handle not in self._streams:
                self._synchronize()  # the copies were queued on another stream
                self._streams.add(handle)
            return
        self.claim(handle)
        self.record(copies, stream)
        self._key, self._uploads = key, [placed.uploads for _, placed in key or ()]

    def _holds(self, key: Key) -> bool:
        held = self._key
        if held is None or len(held) != len(key):
            return False
        return all(
            target == at and placed is source and source.uploads == uploads
            for (target, placed), (at, source), uploads in zip(held, key, self._uploads, strict=True)
        )

    def record(self, copies: Iterable[Sequence[int]], stream: Any) -> None:
        """As ``hold``, for a graph that another library captures on ``stream``. No other uses this window: nothing is
        waited for."""
        for target, source, nbytes in copies:
            self._copy(target, source, nbytes, stream)

    def claim(self, handle: int) -> None:
        """For a change in the order of the stream of that handle: nobody else reads it any more, and what it holds is
        not known."""
        if self._streams - {handle}:
            self._synchronize()
        self._key, self._streams = None, {handle}

    def forget(self) -> None:
        """For a change that is recorded in a graph, which nothing can wait for now: what it holds is not known."""
        self._key = None


_ADDRESS = struct.Struct("<Q")
_FREELY_SHARED = 48 << 10  # bytes of shared memory, static ones too; more needs the kernel's consent


def allow_shared_memory(driver: Any, function: Any, geometry: Geometry) -> None:
    """Let a launch have the dynamic shared memory that it asks for."""
    if geometry.shared_bytes and geometry.shared_bytes + function.shared_size_bytes > _FREELY_SHARED:
        function.set_attribute(driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, geometry.shared_bytes)


class CudaCall:
    """``context`` is PyCUDA's, ``driver`` is pycuda.driver, ``local`` has the calling thread's stream."""

    def __init__(
        self, driver: Any, context: Any, local: Any, fills: Mapping[str, Placed], launches: Sequence[Launch],
        constants: Sequence[Constant] = (), moves: Sequence[Launch] = (), beginnings: Sequence[Beginning] = (),
    ) -> None:  # fmt: skip
        self._error, self._memset = driver.Error, driver.memset_d8_async
        self._push, self._pop = context.push, driver.Context.pop
        self._local = local
        self._copy = driver.memcpy_dtod_async
        placed: dict[str, Any] = dict(fills)
        for each in beginnings:
            placed |= {each.name: each.placed, each.source_name: each.source}
        placed |= {constant.name: constant.resident for constant in constants}
        self._at: dict[str, int] = {name: one.address for name, one in placed.items()}
        self._fills = [(name, one.stored.nbytes) for name, one in fills.items()]
        self._beginnings = [(each.name, each.source_name, each.placed.stored.nbytes) for each in beginnings]
        self._places: dict[str, list[tuple[bytearray, int]]] = {}
        self._moves = self._prepare_launches(driver, moves)
        self._steps = self._prepare_launches(driver, launches)
        self._window: ConstantWindow | None = None
        self._key: Key | None = None
        self._copies: list[tuple[int, str, int]] = []  # address, name of the source, bytes
        held = []
        for constant in constants:
            self._window = constant.module.window  # type: ignore[attr-defined]  # one for all, a CudaModule's
            if (target := _target(constant)) is not None:
                self._copies.append((target, constant.name, constant.window.nbytes))
                held.append((target, constant.resident))
        if constants and all(constant.stays for constant in constants):
            self._key = tuple(held)

    def _prepare_launches(self, driver: Any, launches: Sequence[Launch]) -> list[tuple[Any, ...]]:
        steps = []
        for launch in launches:
            function, geometry = launch.module.functions[launch.kernel], launch.geometry  # type: ignore[attr-defined]
            allow_shared_memory(driver, function, geometry)
            packed, offsets = members(launch.arguments)
            for name, number, byte in launch.addresses:
                self._places.setdefault(name, []).append((packed, offsets[number] + byte))
            run = function._launch_kernel  # noqa: SLF001 - the path PyCUDA's prepared calls take
            steps.append((run, geometry.grid, geometry.block, packed, geometry.shared_bytes))
        return steps

    def point(self, name: str, address: int) -> None:
        for packed, offset in self._places.get(name, ()):
            _ADDRESS.pack_into(packed, offset, address)
        self._at[name] = address

    def __call__(self) -> None:
        stream, at = getattr(self._local, "stream", None), self._at
        self._push()
        try:
            for name, nbytes in self._fills:
                self._memset(at[name], 0, nbytes, stream)
            for run, grid, block, packed, shared_bytes in self._moves:
                run(grid, block, packed, shared_bytes, stream)
            for name, source, nbytes in self._beginnings:
                if at[name] != at[source]:
                    self._copy(at[name], at[source], nbytes, stream)
            if self._window is None:
                for run, grid, block, packed, shared_bytes in self._steps:
                    run(grid, block, packed, shared_bytes, stream)
                return
            copies = [(target, at[source], nbytes) for target, source, nbytes in self._copies]
            with self._window.lock:  # until the launches are queued, no other call may replace what they read
                if getattr(self._local, "captures", False):
                    self._window.record(copies, stream)
                else:
                    self._window.hold(copies, self._key, stream)
                for run, grid, block, packed, shared_bytes in self._steps:
                    run(grid, block, packed, shared_bytes, stream)
        except self._error as problem:
            raise LaunchError(str(problem)) from None
        finally:
            self._pop()


def _target(constant: Constant) -> int | None:
    """Where its content goes; None for what no kernel in the binary reads."""
    module: Any = constant.module  # a CudaModule
    if not constant.symbol:
        begin = module.window.address
        return None if begin is None else begin + constant.window.constant_offset
    if (found := module.variable(constant.symbol)) is None:
        return None
    require_room(constant.symbol, found[1], constant.window.nbytes)
    return int(found[0])


class Joints:
    """Streams of ours that take the place of other libraries' streams. PyCUDA cannot launch on a stream that it did
    not make, so what is queued on ours waits for theirs by an event, and theirs for ours."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self._idle: list[tuple[Any, Any]] = []  # a stream with an event, each in use by one block at a time
        self._captured: list[tuple[int, tuple[Any, Any]]] = []  # part of a capture until it ends

    @contextmanager
    def join(self, stream: int, capture: int = 0) -> Iterator[Any]:
        """A stream of ours whose work in the block comes after what is queued on ``stream`` and before what follows
        there; ``capture`` is the number of the capture that is under way there. The context is current. Raises
        LaunchError."""
        ours, event = self._take(capture)
        handle = int(ours.handle)
        call("cuEventRecord", event, stream)
        call("cuStreamWaitEvent", handle, event, 0)
        try:
            yield ours
        finally:
            call("cuEventRecord", event, handle)
            call("cuStreamWaitEvent", stream, event, 0)
            if capture:
                self._captured.append((capture, (ours, event)))
            else:
                self._idle.append((ours, event))

    def wait_for(self, stream: int) -> None:
        """Until another library's stream has nothing left to do. The context is current. Raises LaunchError."""
        call("cuStreamSynchronize", stream)

    def _take(self, capture: int) -> tuple[Any, Any]:
        """One that is part of ``capture`` already, else one that is part of none."""
        if not self._captured:
            return self._idle.pop() if self._idle else self._make()
        with self._lock:
            held, self._captured = self._captured, []
            idle = None
            for number, pair in held:
                if idle is None and capture and number == capture:
                    idle = pair
                elif number != capture and not int(call("cuStreamIsCapturing", int(pair[0].handle))):
                    self._idle.append(pair)
                else:
                    self._captured.append((number, pair))
            if idle is None:
                idle = self._idle.pop() if self._idle else None
        return idle or self._make()

    def _make(self) -> tuple[Any, Any]:
        # CU_STREAM_NON_BLOCKING, CU_EVENT_DISABLE_TIMING
        return self._driver.Stream(1), call("cuEventCreate", 2)

    def close(self) -> None:
        """The context is current."""
        for _, event in (*self._idle, *(pair for _, pair in self._captured)):
            call("cuEventDestroy", event)
        self._idle.clear()
        self._captured.clear()
