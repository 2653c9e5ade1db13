"""cuda: PyCUDA owns context, memory, modules, launches and events.

The device's primary context is used, so cupy and torch in the same process share its memory. Every entry
point makes that context current and restores what was current before: nothing is ever left pushed.
"""

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Compiled, Geometry, Nvcc, Nvrtc, Toolchain
from autotune.device.backend import (
    EXACTLY,
    WORDS,
    Beginning,
    Closing,
    Constant,
    Copy,
    Launch,
    LaunchError,
    Placed,
    require_room,
)
from autotune.device.clocks import ClockWatch
from autotune.device.cuda.calls import CudaCall, Joints, allow_shared_memory
from autotune.device.cuda.driver import call, describe_device, open_device, open_driver
from autotune.device.cuda.graph import (
    Graph,
    capture,
    capture_of,
    get_captured_function,
    launch_cooperative,
    relax_captures,
    resident_blocks,
)
from autotune.device.cuda.memory import CONSTANT_BYTES, CudaModule, CudaPlaced, load_module, place, place_at
from autotune.device.cuda.timing import Probe
from autotune.errors import DeviceError, UnknownName
from autotune.layout import Stored, members

COMPILERS = ("nvrtc", "nvcc")
_TRACE_DELAY_NS = 200_000  # a plan of a few launches is queued by then
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING


class CudaBackend(Closing):
    """One GPU. Use as a context manager, or call ``close``. Raises DeviceError when it is not there."""

    def __init__(self, ordinal: int = 0) -> None:
        self._driver = open_driver()
        self.driver_error: type[Exception] = self._driver.Error
        self._handle, self._context = open_device(self._driver, ordinal)
        self._opened_by = threading.get_ident()
        self._local = threading.local()  # depth: how often current() is nested; the rest: see _restored
        self._images: dict[Path, Any] = {}
        self._joints = Joints(self._driver)
        self._traced: list[tuple[str, Any, Any]] | None = None
        self._aside: Any = None  # the stream of ``queue_after``
        self._graphs: weakref.WeakSet[Graph] = weakref.WeakSet()
        self.device = describe_device(self._driver, self._handle, ordinal)
        l2_bytes = self._handle.get_attribute(self._driver.device_attribute.L2_CACHE_SIZE)
        self._probe = Probe(self._driver, self, l2_bytes)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make this device's context current in the block; nests at no cost."""
        depth = getattr(self._local, "depth", 0)
        if self._context is None:
            raise DeviceError(f"{self.device.name} was closed; load the kernel again")
        if depth == 0:
            self._context.push()
        self._local.depth = depth + 1
        try:
            yield
        finally:
            self._local.depth = depth
            if depth == 0:
                self._driver.Context.pop()

    @contextmanager
    def _drive(self, what: str = "") -> Iterator[None]:
        """The context is current, and what the driver refuses is a LaunchError that begins with ``what``."""
        with self.current():
            try:
                yield
            except self._driver.Error as problem:
                raise LaunchError(f"{what}{problem}") from None

    @contextmanager
    def stream(self) -> Iterator[None]:
        """The calling thread's work in the block goes to a stream of its own; none waits for the default one."""
        with self.current():
            self._local.stream = self._driver.Stream(_NON_BLOCKING)
            try:
                yield
                self.synchronize()
            finally:
                self._local.stream = None

    def shuffle(self, seed: int) -> AbstractContextManager[None]:  # noqa: ARG002
        """Nothing changes: the GPU takes blocks and warps as it likes."""
        return nullcontext()

    @contextmanager
    def on(self, stream: int) -> Iterator[int]:
        """The calling thread's work in the block runs in the order of another library's stream, by its handle, or is
        recorded with it: the number of that capture, 0 for none."""
        if not stream:
            yield 0
            return
        with self.current():
            if capture := capture_of(stream):
                with self._restore_stream(), relax_captures(), self._joints.join(stream, capture) as ours:
                    self._local.stream, self._local.captures = ours, True
                    yield capture
                return
            before = self._stream
            try:
                with self._joints.join(stream) as self._local.stream:
                    yield 0
            finally:
                self._local.stream = before

    @contextmanager
    def suspend_capture(self) -> Iterator[None]:
        """What the calling thread does in the block is done at its end, and no capture has it."""
        with self._restore_stream():
            self._local.captures = False
            with self.stream():
                yield

    @contextmanager
    def _restore_stream(self) -> Iterator[None]:
        """What the block says of the calling thread's stream holds to its end."""
        names = ("stream", "captures")
        before = [getattr(self._local, name, None) for name in names]
        try:
            yield
        finally:
            for name, value in zip(names, before, strict=True):
                setattr(self._local, name, value)

    def wait_for(self, stream: int) -> None:
        with self.current():
            self._joints.wait_for(stream)

    @property
    def _stream(self) -> Any:
        return getattr(self._local, "stream", None)

    def toolchain(self, compiler: str = "") -> Toolchain:
        if compiler not in ("", *COMPILERS):
            raise UnknownName("compiler", compiler, COMPILERS)
        return Nvcc(self.device.arch) if compiler == "nvcc" else Nvrtc(self.device.arch)

    def load(self, compiled: Compiled) -> CudaModule:
        with self._drive("cannot load the binary: "):
            return load_module(self._driver, self._images, compiled)

    def load_separately(self, compiled: Compiled) -> CudaModule:
        with self._drive("cannot load the binary: "):
            return load_module(self._driver, {}, compiled)

    def place(self, stored: Stored, module: Any = None, guard: int = 0) -> CudaPlaced:
        with self._drive(f"cannot place {stored.nbytes} bytes in {stored.memory} memory: "):
            return place(self._driver, self, stored, module, guard)

    def view(self, stored: Stored, of: Any) -> CudaPlaced:
        return self.borrow(stored, of.address)

    def borrow(self, stored: Stored, address: int) -> CudaPlaced:
        with self._drive("cannot make a texture: ") if stored.memory == "texture" else nullcontext():
            return place_at(self, stored, address)

    def fill(self, placed: Any, byte: int, begin: int = 0, nbytes: int | None = None) -> None:
        many = placed.stored.nbytes - begin if nbytes is None else nbytes
        with self.current():
            self._driver.memset_d8_async(placed.address + begin, byte, many, self._stream)
            placed.push(self._stream_handle)

    def copy(self, placed: Any, source: Any) -> None:
        with self._drive():
            source.pull(self._stream_handle)
            self._driver.memcpy_dtod_async(placed.address, source.address, placed.stored.nbytes, self._stream)
            placed.push(self._stream_handle)

    def settle(self, placed: Any) -> None:
        with self._drive():
            placed.push(self._stream_handle)

    def fill_constants(self, module: Any, byte: int) -> None:
        with self._drive("cannot fill constant memory: "), module.window.lock:
            if (constants := module.window.address) is not None:
                module.window.claim(0)
                self._driver.memcpy_htod(constants, np.full(CONSTANT_BYTES, byte, np.uint8))

    def checksum(self, placed: Any) -> int:
        return self._count("checksum", placed, placed.stored.nbytes) if placed.address else 0

    def _count(self, kernel: str, placed: Any, *arguments: int) -> int:
        """What a kernel of the probe finds in ``placed``."""
        with self._drive():
            placed.pull(self._stream_handle)
            return self._probe.count(kernel, placed.address, *arguments)

    def upload(self, placed: Any, stored: Stored) -> None:
        assert stored.nbytes == placed.stored.nbytes, "memory of the same size"
        with self._drive():
            if placed.image is not None:
                self.synchronize()  # launches may still read it
                placed.image.fill(stored.buffer)
            else:
                assert placed.address, "linear memory"
                self._driver.memcpy_htod_async(placed.address, stored.buffer, self._stream)
        placed.uploads += 1

    def fill_window(self, module: Any, resident: Any, begin: int, window: Stored) -> None:
        with self._drive("cannot fill constant memory: "), module.window.lock:
            if (constants := module.window.address) is not None:
                self._claim(module.window)
                target, source = constants + window.constant_offset, resident.address + begin
                self._driver.memcpy_dtod_async(target, source, window.nbytes, self._stream)

    def fill_symbol(self, module: Any, symbol: str, placed: Any) -> None:
        with self._drive(f"cannot fill {symbol}: "), module.window.lock:
            if (found := module.variable(symbol)) is not None:
                address, room = found
                require_room(symbol, room, placed.stored.nbytes)
                self._claim(module.window)
                self._driver.memcpy_dtod_async(address, placed.address, placed.stored.nbytes, self._stream)

    def _claim(self, window: Any) -> None:
        if getattr(self._local, "captures", False):
            window.forget()
        else:
            window.claim(self._stream_handle)

    def download(
        self, placed: Any, nbytes: int | None = None, into: NDArray[np.uint8] | None = None
    ) -> NDArray[np.uint8]:
        many = placed.stored.nbytes if nbytes is None else nbytes
        buffer = np.empty(many, np.uint8) if into is None else into
        assert buffer.nbytes == many and buffer.flags.c_contiguous, "as many bytes as are fetched"
        with self._drive():
            placed.pull(self._stream_handle)
            self._driver.memcpy_dtoh_async(buffer, placed.address, self._stream)
            self.synchronize()
        return buffer

    def count_mismatches(
        self, placed: Any, expected: Any, kind: np.dtype[Any] = WORDS, within: tuple[float, float] = EXACTLY,
        ignores_nan: bool = False,
    ) -> int:  # fmt: skip
        nbytes = min(placed.stored.nbytes, expected.stored.nbytes)
        if kind.kind != "f":
            return self._count("mismatches", placed, expected.address, nbytes)
        bits = (*map(int, np.array(within, np.float64).view(np.uint64)), int(ignores_nan))
        return self._count(f"apart_{kind.name}", placed, expected.address, nbytes // kind.itemsize, *bits)

    def launch(self, module: Any, kernel: str, geometry: Geometry, arguments: Sequence[bytes]) -> None:
        function, packed = module.functions[kernel], bytes(members(arguments)[0])
        with self._guard_launch(kernel):
            allow_shared_memory(self._driver, function, geometry)
            run = function._launch_kernel  # noqa: SLF001 - the path PyCUDA's prepared calls take
            run(geometry.grid, geometry.block, packed, geometry.shared_bytes, self._stream)

    def launch_cooperative(
        self, module: Any, kernel: str, geometry: Geometry, arguments: Sequence[bytes]
    ) -> None:
        with self._guard_launch(kernel):
            allow_shared_memory(self._driver, module.functions[kernel], geometry)
            if kernel not in module.handles:
                module.handles[kernel] = get_captured_function(
                    self._capture(lambda: self.launch(module, kernel, geometry, arguments))
                )
            handle = module.handles[kernel]
            most = resident_blocks(handle, self.device.multiprocessors, geometry)
            if geometry.grid[1:] != (1, 1) or not most:
                raise LaunchError(
                    f"{kernel}: a grid of {geometry.grid} blocks cannot be launched cooperatively: it has one "
                    f"dimension, and {most} blocks of {geometry.block_size} threads with {geometry.shared_bytes} "
                    "bytes of shared memory run at a time"
                )
            blocks = min(geometry.grid[0], most)
            launch_cooperative(handle, blocks, geometry, arguments, self._stream_handle)

    @contextmanager
    def _guard_launch(self, kernel: str) -> Iterator[None]:
        """One launch: on this device, between events when launches are traced, its failure as LaunchError."""
        with self._drive(f"{kernel}: "):
            start = self._driver.Event().record() if self._traced is not None else None
            yield
            if self._traced is not None:
                self._traced.append((kernel, start, self._driver.Event().record()))

    def stage(self, name: str, work: Callable[[int], None]) -> None:
        with self._guard_launch(name):
            work(self._stream_handle)

    def record(self, steps: Callable[[], None]) -> Callable[[], None]:
        with self.current():
            graph = Graph(self._capture(steps), self.current)
        self._graphs.add(graph)

        def replay() -> None:
            if self._traced is not None:
                steps()  # so that each of its launches has its own events
                return
            with self.current():
                graph.launch(self._stream_handle)

        return replay

    def _capture(self, steps: Callable[[], None]) -> Any:
        """The graph of what ``steps`` launches, on a stream of its own: the default one cannot be captured."""
        before = self._stream, self._traced
        try:
            self._local.stream, self._traced = self._driver.Stream(_NON_BLOCKING), None
            self._local.captures = True
            with self._drive():
                return capture(self._stream_handle, steps)
        finally:
            self._local.stream, self._traced = before
            self._local.captures = False

    @property
    def _stream_handle(self) -> int:
        return int(self._stream.handle) if self._stream else 0

    def bind(
        self, fills: Mapping[str, Placed], launches: Sequence[Launch],
        constants: Sequence[Constant] = (), moves: Sequence[Launch] = (), beginnings: Sequence[Beginning] = (),
    ) -> CudaCall:  # fmt: skip
        with self.current():
            return CudaCall(
                self._driver, self._context, self._local, fills, launches, constants, moves, beginnings
            )

    def kernel_times(self, plan: Callable[[], None]) -> dict[str, float]:
        """Run ``plan`` once, queued behind a delay, with events around each launch: milliseconds by kernel."""
        with self._drive():
            self._probe.delay(_TRACE_DELAY_NS)
            self._traced = []
            try:
                plan()
                self.synchronize()
                times: dict[str, float] = {}
                for kernel, start, end in self._traced:
                    times[kernel] = times.get(kernel, 0.0) + end.time_since(start)
                return times
            finally:
                self._traced = None

    def synchronize(self) -> None:
        with self._drive():
            (self._stream or self._driver.Context).synchronize()

    def sample(self, plan: Callable[[], None], count: int, cold: bool) -> list[float]:
        with self._drive():
            return self._probe.sample(plan, count, cold)

    def mark(self) -> Any:
        with self._drive():
            return self._driver.Event().record(self._stream)

    def wait(self, mark: Any) -> None:
        with self._drive():
            mark.synchronize()

    @contextmanager
    def queue_after(self, mark: Any) -> Iterator[None]:
        with self._drive(), self._restore_stream():
            self._aside = self._aside or self._driver.Stream(_NON_BLOCKING)
            self._aside.wait_for_event(mark)
            self._local.stream = self._aside
            yield

    def fetch(self, copy: Copy) -> None:
        placed: Any = copy.placed
        source = placed.address + copy.begin
        with self._drive():
            if copy.pitch == copy.width:
                self._driver.memcpy_dtoh_async(copy.target, source, self._stream)
                return
            plane = self._driver.Memcpy2D()
            plane.set_src_device(source)
            plane.set_dst_host(copy.target)
            plane.src_pitch, plane.dst_pitch = copy.pitch, copy.width
            plane.width_in_bytes, plane.height = copy.width, copy.rows
            plane(self._stream)

    def pin(self, host: NDArray[np.uint8]) -> bool:
        """By NVIDIA's bindings: PyCUDA's register_host_memory sets an array's base twice, which numpy refuses."""
        with self.current(), suppress(LaunchError):
            call("cuMemHostRegister", host.ctypes.data, host.nbytes, 0)
            return True
        return False

    def unpin(self, host: NDArray[np.uint8]) -> None:
        with suppress(LaunchError, self._driver.Error), self.current():  # safe after a lost context
            call("cuMemHostUnregister", host.ctypes.data)

    def between_ms(self, begin: Any, end: Any) -> float | None:
        with self._drive():
            return float(end.time_since(begin)) if end.query() else None

    def has_reached(self, mark: Any) -> bool:
        with self._drive():
            return bool(mark.query())

    def floor_ms(self, count: int = 50) -> float:
        """The median time of an empty kernel under the same protocol: nothing can measure less."""
        with self._drive():
            return self._probe.floor_ms(count)

    def describe(self) -> dict[str, Any]:
        """Clocks in MHz and the reasons that hold them down, where NVML is there; versions."""
        import pycuda

        about: dict[str, Any] = {
            "pycuda": pycuda.VERSION_TEXT, "driver": self.device.driver, "multiprocessors": self.device.multiprocessors,
        }  # fmt: skip
        return about | ClockWatch(self.device).describe()

    def close(self) -> None:
        """Free what this backend holds and release the primary context. Safe to call twice."""
        if self._context is None:
            return
        with suppress(LaunchError, self._driver.Error):  # a lost context has nothing left to free
            with self.current():
                for graph in list(self._graphs):
                    graph.free()
                self._joints.close()
                self._probe.free()
                self._images.clear()
                self._aside = None
            self._context.detach()
            if threading.get_ident() != self._opened_by:
                # PyCUDA keeps its hands off a context that another thread has retained: nobody would release it.
                call("cuDevicePrimaryCtxRelease", call("cuDeviceGet", self.device.ordinal))
        self._context = None
