"""cpu: the same kernels on all cores of the host, compiled by its C++ compiler.

Proves every configuration right without a GPU, and is what runs where there is none. Launches are
synchronous. AUTOTUNE_CPU_THREADS limits the threads; without it, all that this process may run on are used.
"""

import ctypes
import os
import platform
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, repeat
from typing import Any, cast

import numpy as np

from autotune.compile import VIOLATION, Compiled, Geometry, HostCxx, cpu_model, default_root, find_compiler
from autotune.device.backend import EXACTLY, WORDS, Closing, Copy, LaunchError, Placed, make_raw, require_room
from autotune.device.cpu.native import (
    ASCENDING,
    CONSTANT_BYTES,
    DESCENDING,
    DRAWN,
    HostTexture,
    LaunchRequest,
    images,
    runtime,
)
from autotune.errors import CompilerError, DeviceError
from autotune.hardware import Device, Limits
from autotune.layout import Bytes, Stored

_ALIGNMENT = 64
_FLUSHED_BYTES = 32 << 20
_PART = 1 << 18  # numbers that are compared at a time
_NO_LIMIT = 2**31 - 1
_TEXELS = 2**23  # along an axis: a float32 below that has the half at which a texel's centre is
_STEP = 0x9E3779B97F4A7C15  # an odd number without a pattern: its multiples, by 64 bits, lie far apart

# kernels/include/autotune/cpu/abi.hpp: Status.
_REASONS = {
    1: "threads of a block wait at a barrier or a warp operation that others never reach",
    2: "the grid is empty, or a block has no threads or more than 1024",
    3: "the arguments are not as many, or not of the sizes, as the kernel's parameters",
    4: "no memory for the stacks or the shared memory of a block",
    5: "the kernel trapped",
    6: "it waits for the whole grid in a launch that is not cooperative: execution.launch_cooperative makes one",
}


@dataclass
class CpuPlaced:
    """Data in the host's memory; ``buffer`` is empty for constant memory."""

    stored: Stored
    argument: bytes
    buffer: Bytes
    _texture: HostTexture | None = None
    guards: tuple["CpuPlaced", ...] = ()

    def free(self) -> None:
        self.buffer, self.guards, self._texture = np.empty(0, np.uint8), (), None


@dataclass
class CpuModule:
    """One variant's functions, and its image until ``unload``. ``variable`` gives the bytes of one of its source's,
    ``elapsed_ns`` is of its latest launch."""

    functions: dict[str, Any]
    window: Bytes
    lock: AbstractContextManager[Any]
    _unload: Callable[[], None]
    variable: Callable[[str], Bytes]
    numbers: Mapping[str, int]
    elapsed_ns: int = 0

    def unload(self) -> None:
        """May be called more than once; the last module of a library takes the library with it."""
        self.functions = {}
        self.window = np.empty(0, np.uint8)
        unload, self._unload = self._unload, lambda: None
        unload()


class CpuBackend(Closing):
    """The host. ``threads`` at most work on a launch; 0 stands for AUTOTUNE_CPU_THREADS, else every core this
    process may use. Raises DeviceError for a number of threads that is none."""

    def __init__(self, threads: int = 0) -> None:
        self.threads = threads or _threads()
        self._compiler = ""
        self._runtime = 0
        self._flush: Bytes | None = None
        self._kernel_ms: dict[str, float] = {}
        self._orders: Iterator[tuple[int, int]] = repeat((ASCENDING, 0))  # of each launch, with its seed
        self.device = Device(
            kind="cpu",
            name=cpu_model(),
            arch=platform.machine(),
            multiprocessors=self.threads,
            limits=_limits(),
        )

    def current(self) -> AbstractContextManager[None]:
        """Nothing to do: the host is every thread's."""
        return nullcontext()

    def stream(self) -> AbstractContextManager[None]:
        """Nothing to do: a launch returns when it has run."""
        return nullcontext()

    def toolchain(self, compiler: str = "") -> HostCxx:
        """``compiler`` is a command; see ``find_compiler``. Raises CompilerError."""
        self._compiler = compiler or self._compiler
        return HostCxx(find_compiler(compiler))

    # -- modules and data -------------------------------------------------------------------------------

    def load(self, compiled: Compiled) -> CpuModule:
        """Raises LaunchError when the library cannot be loaded."""
        path = compiled.image.resolve()
        try:
            image = images.acquire(path)
        except (OSError, AttributeError) as problem:
            raise LaunchError(f"cannot load the binary {path}: {problem}") from None
        functions = {kernel: getattr(image.library, symbol) for kernel, symbol in compiled.symbols.items()}
        for function in functions.values():
            function.argtypes = (ctypes.POINTER(LaunchRequest),)
        unload = partial(images.release, path)
        return CpuModule(functions, image.window, image.lock, unload, image.variable, compiled.numbers)

    def place(self, stored: Stored, module: Any = None, guard: int = 0) -> CpuPlaced:
        kept = replace(stored, buffer=None)
        if stored.memory == "constant":
            assert isinstance(module, CpuModule), "constant data needs its module"
            assert stored.buffer is not None
            end = stored.constant_offset + stored.nbytes
            if end > module.window.size:
                raise LaunchError(f"constant data end at byte {end} of a window of {module.window.size}")
            module.window[stored.constant_offset : end] = stored.buffer
            return CpuPlaced(kept, stored.argument(0), np.empty(0, np.uint8))
        try:
            room = _allocate_aligned(stored.nbytes + 2 * guard)
        except MemoryError:
            raise LaunchError(f"cannot place {stored.nbytes} bytes: the host has no memory left") from None
        buffer = room[guard : guard + stored.nbytes]
        if stored.buffer is not None:
            buffer[: len(stored.buffer)] = stored.buffer
        rows = stored.plane or (stored.raster.size if stored.raster else (0,))
        made = _view(kept, buffer, rows[0])
        if guard:
            around = (room[:guard], room[guard + stored.nbytes :])
            made.guards = tuple(CpuPlaced(make_raw(guard), b"", one) for one in around)
        return made

    def view(self, stored: Stored, of: Placed) -> CpuPlaced:
        assert isinstance(of, CpuPlaced) and stored.nbytes <= of.buffer.nbytes, "a view is inside its array"
        return _view(stored, of.buffer[: stored.nbytes], stored.strides[0])

    def fill(self, placed: Any, byte: int, begin: int = 0, nbytes: int | None = None) -> None:
        placed.buffer[begin : None if nbytes is None else begin + nbytes].fill(byte)

    def copy(self, placed: Any, source: Any) -> None:
        placed.buffer[:] = source.buffer[: placed.buffer.size]

    def fill_constants(self, module: Any, byte: int) -> None:
        module.window.fill(byte)

    def checksum(self, placed: Any) -> int:
        return zlib.crc32(placed.buffer.data)

    def upload(self, placed: Any, stored: Stored) -> None:
        placed.buffer[:] = stored.buffer

    def fill_window(self, module: Any, resident: Any, begin: int, window: Stored) -> None:
        offset = window.constant_offset
        module.window[offset : offset + window.nbytes] = resident.buffer[begin : begin + window.nbytes]

    def fill_symbol(self, module: Any, symbol: str, placed: Any) -> None:
        variable = module.variable(symbol)
        require_room(symbol, variable.size, placed.stored.nbytes)
        variable[: placed.stored.nbytes] = placed.buffer[: placed.stored.nbytes]

    def download(self, placed: Any, nbytes: int | None = None, into: Bytes | None = None) -> Bytes:
        into = np.empty_like(placed.buffer[:nbytes]) if into is None else into
        into[:] = placed.buffer[:nbytes]
        return into

    def count_mismatches(
        self, placed: Any, expected: Any, kind: np.dtype[Any] = WORDS, within: tuple[float, float] = EXACTLY,
        ignores_nan: bool = False,
    ) -> int:  # fmt: skip
        """In parts that the caches hold."""
        nbytes = min(placed.stored.nbytes, expected.stored.nbytes)
        if kind.kind != "f":
            word = np.uint8 if nbytes % 4 else np.uint32
            return int(
                np.count_nonzero(placed.buffer[:nbytes].view(word) != expected.buffer[:nbytes].view(word))
            )
        got, right = (one.buffer[:nbytes].view(kind) for one in (placed, expected))
        parts = (slice(begin, begin + _PART) for begin in range(0, got.size, _PART))
        pairs = ((got[part], right[part]) for part in parts)
        near = (np.isclose(a, b, *within, equal_nan=True) | (ignores_nan & np.isnan(b)) for a, b in pairs)
        return sum(int(np.count_nonzero(~part)) for part in near)

    # -- launching and timing ---------------------------------------------------------------------------

    @contextmanager
    def shuffle(self, seed: int) -> Iterator[None]:
        """An even seed has every launch in the block begin with its last block and each block with its last thread; an
        odd one draws both orders again for each launch, and with the same seed the same ones. Blocks run side by side
        on all threads even where that is not worth it; with one thread a launch is the same from time to time."""
        before = self._orders
        order = DRAWN if seed % 2 else DESCENDING
        # zip, unlike a generator, may be asked by several threads at once
        self._orders = zip(repeat(order), count((seed + 1) * _STEP, _STEP), strict=False)
        try:
            yield
        finally:
            self._orders = before

    def launch_cooperative(
        self, module: Any, kernel: str, geometry: Geometry, arguments: Sequence[bytes]
    ) -> None:
        """As many blocks as there are threads: each has one to the end of the launch."""
        if geometry.grid[1:] != (1, 1):
            raise LaunchError(f"{kernel}: a cooperative launch has a grid in x alone, not {geometry.grid}")
        blocks = min(geometry.grid[0], self.threads)
        self._launch(module, kernel, replace(geometry, grid=(blocks, 1, 1)), arguments, True)

    def launch(self, module: Any, kernel: str, geometry: Geometry, arguments: Sequence[bytes]) -> None:
        self._launch(module, kernel, geometry, arguments, False)

    def _launch(
        self, module: Any, kernel: str, geometry: Geometry, arguments: Sequence[bytes], at_once: bool
    ) -> None:
        """Returns when the kernel has run. Raises LaunchError when it did not, or not to its end; the first
        launch in a process raises CompilerError when the runtime library cannot be compiled."""
        self._runtime = self._runtime or runtime.table(find_compiler(self._compiler), default_root())
        number = len(arguments)
        pointers = (ctypes.c_char_p * number)(*arguments)
        sizes = (ctypes.c_ulonglong * number)(*map(len, arguments))
        order, seed = next(self._orders)
        request = LaunchRequest(
            self._runtime, geometry.grid, geometry.block, self.threads, number, geometry.shared_bytes,
            ctypes.addressof(pointers), ctypes.addressof(sizes), order, at_once, seed % 2**64,
        )  # fmt: skip
        status = module.functions[kernel](request)
        module.elapsed_ns = request.elapsed_ns
        self._kernel_ms[kernel] = self._kernel_ms.get(kernel, 0.0) + request.elapsed_ns * 1e-6
        if status:
            reason = _REASONS.get(status, f"status {status}")
            with suppress(AttributeError):  # kernels that check no index have no such variable
                told = module.variable(VIOLATION)
                reason = told[1:].tobytes().partition(b"\0")[0].decode() or reason
                told[:] = 0
            raise LaunchError(f"{kernel}: {reason} ({geometry})")

    def stage(self, name: str, work: Callable[[int], None]) -> None:
        begin = time.perf_counter_ns()
        work(0)
        elapsed_ms = (time.perf_counter_ns() - begin) * 1e-6
        self._kernel_ms[name] = self._kernel_ms.get(name, 0.0) + elapsed_ms

    def record(self, steps: Callable[[], None]) -> Callable[[], None]:
        """``steps`` themselves: a launch here costs little more than its kernel."""
        return steps

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def sample(self, plan: Callable[[], None], count: int, cold: bool) -> list[float]:
        """Wall time of each run in milliseconds."""
        times = []
        for _ in range(count):
            if cold:
                self._flush_cache()
            begin = time.perf_counter_ns()
            plan()
            times.append((time.perf_counter_ns() - begin) * 1e-6)
        return times

    def mark(self) -> float:
        """A time: nothing is ever under way."""
        return time.perf_counter()

    def wait(self, mark: float) -> None:
        """Nothing is ever under way."""

    def queue_after(self, mark: float) -> AbstractContextManager[None]:  # noqa: ARG002
        """Nothing to do: a copy is made at once."""
        return nullcontext()

    def fetch(self, copy: Copy) -> None:
        room = cast("CpuPlaced", copy.placed).buffer[copy.begin :]
        rows = np.lib.stride_tricks.as_strided(room, (copy.rows, copy.width), (copy.pitch, 1))
        copy.target.reshape(copy.rows, copy.width)[...] = rows

    def pin(self, host: Bytes) -> bool:  # noqa: ARG002
        return True

    def unpin(self, host: Bytes) -> None:
        """Nothing is held."""

    def between_ms(self, begin: float, end: float) -> float:
        """From one mark to a later one."""
        return (end - begin) * 1e3

    def has_reached(self, _mark: float) -> bool:
        """It is the host."""
        return False

    def kernel_times(self, plan: Callable[[], None]) -> dict[str, float]:
        """Milliseconds inside each kernel during one run of ``plan``."""
        self._kernel_ms = {}
        plan()
        return dict(self._kernel_ms)

    def describe(self) -> dict[str, Any]:
        """Processor, threads and compiler."""
        try:
            compiler = self.toolchain(self._compiler).identity
        except CompilerError as problem:
            compiler = f"not available: {problem}"
        return {"cpu": self.device.name, "threads": self.threads, "compiler": compiler}

    def close(self) -> None:
        """Free what this backend holds. Safe to call twice."""
        self._flush = None

    def _flush_cache(self) -> None:
        """Write more than most caches hold, and no more: a server's shared last level takes longer to fill than the
        kernels that are timed, and other programs keep most of it anyway."""
        if self._flush is None:
            self._flush = np.zeros(_FLUSHED_BYTES, np.uint8)
        self._flush += 1


def _view(stored: Stored, buffer: Bytes, pitch: int) -> CpuPlaced:
    """``buffer`` as ``stored`` says; the rows of a plane, or of an image, are ``pitch`` texels apart."""
    if stored.memory != "texture" and stored.raster is None:
        return CpuPlaced(stored, stored.argument(buffer.ctypes.data), buffer)
    width, height = stored.raster.size[:2] if stored.raster else stored.plane or (stored.texels, 1)
    texture = HostTexture(buffer.ctypes.data, width, height, pitch)
    return CpuPlaced(stored, stored.argument(ctypes.addressof(texture)), buffer, texture)


def _allocate_aligned(nbytes: int) -> Bytes:
    """Zeroed room for ``nbytes`` that begins with a cache line. Raises MemoryError."""
    room = np.zeros(nbytes + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    return room[start : start + nbytes]


def _threads() -> int:
    """As many as AUTOTUNE_CPU_THREADS says, else as this process may run on. Raises DeviceError."""
    named = os.environ.get("AUTOTUNE_CPU_THREADS", "")
    if named:
        if not named.isdigit() or int(named) == 0:
            raise DeviceError(f"AUTOTUNE_CPU_THREADS is {named!r}; it is a number of threads, 1 or more")
        return int(named)
    return len(os.sched_getaffinity(0))


def _limits() -> Limits:
    """The host's memory, constant memory and block size as on a GPU, shared memory above that of any, and rows of
    textures as long as a coordinate is exact."""
    planes = "texture_2d_width texture_2d_height texture_pitched_width texture_pitched_height"
    return Limits(
        **dict.fromkeys(["grid_x", "grid_y", "grid_z", "texture_1d_texels"], _NO_LIMIT),
        **dict.fromkeys(planes.split(), _TEXELS),
        shared_bytes_per_block=1 << 20,
        constant_bytes=CONSTANT_BYTES,
        texture_3d=(_TEXELS,) * 3,
        surface_2d=(_TEXELS,) * 2,
        surface_3d=(_TEXELS,) * 3,
        texture_pitch_bytes=1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )
