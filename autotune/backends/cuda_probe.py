"""The measuring kernels of ``probe.cu`` on one device: an empty one, a delay, differing words counted, a checksum."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from autotune.backends.cuda_data import CudaModule
from autotune.cache import Cache, default_root
from autotune.compiler import compile_batch
from autotune.errors import CompilerError
from autotune.toolchain import Batch, Compiled, CompileFailure, Toolchain, VariantSource
from autotune.variant import Geometry

_SOURCE = VariantSource(
    "autotune-probe-3", "Probe", "struct Probe {};\n", ("empty", "delay", "mismatches", "strays", "checksum")
)
_ONE_THREAD = Geometry((1, 1, 1), (1, 1, 1))
_ONE_WARP = Geometry((1, 1, 1), (32, 1, 1))


class Probe:
    """Compiled when first used. ``launch`` is the backend's, on the calling thread's stream."""

    def __init__(
        self,
        driver: Any,
        toolchain: Callable[[], Toolchain],
        load: Callable[[Compiled], CudaModule],
        launch: Callable[[CudaModule, str, Geometry, list[bytes]], None],
    ) -> None:
        self._driver = driver
        self._toolchain = toolchain
        self._load = load
        self._launch = launch
        self._module: CudaModule | None = None
        self._total: Any = None  # 8 bytes on the device, kept: to allocate takes longer than to count

    def empty(self) -> None:
        self._launch(self._loaded(), "empty", _ONE_WARP, [])

    def delay(self, nanoseconds: int) -> None:
        """Keeps the stream busy for so long, so that what is queued behind it starts without the host."""
        wait = np.array([nanoseconds], np.uint64).tobytes()
        self._launch(self._loaded(), "delay", _ONE_THREAD, [wait])

    def mismatches(self, address: int, expected: int, nbytes: int, blocks: int) -> int:
        """How many 4-byte words (or tail bytes) of two buffers differ, counted by so many blocks."""
        return self._added("mismatches", (address, expected, nbytes), blocks)

    def strays(self, address: int, nbytes: int, guard: int, byte: int, blocks: int) -> int:
        """How many bytes differ from ``byte`` in the ``guard`` bytes before a buffer and behind it."""
        return self._added("strays", (address, nbytes, guard, byte), blocks)

    def checksum(self, address: int, nbytes: int, blocks: int) -> int:
        """A number made of every 4-byte word (and tail byte) of a buffer and of its place, by so many blocks."""
        return self._added("checksum", (address, nbytes), blocks)

    def _added(self, kernel: str, arguments: tuple[int, ...], blocks: int) -> int:
        """What the kernel adds to a number in the device's memory, whose address is its last argument."""
        self._total = self._total or self._driver.mem_alloc(8)
        self._driver.memset_d8(self._total, 0, 8)
        words = np.array([*arguments, int(self._total)], np.uint64)
        self._launch(self._loaded(), kernel, Geometry((blocks, 1, 1), (256, 1, 1)), [words.tobytes()])
        found = np.zeros(1, np.uint64)
        self._driver.memcpy_dtoh(found, self._total)
        return int(found[0])

    def forget(self) -> None:
        """The module goes with its context."""
        self._module = self._total = None

    def _loaded(self) -> CudaModule:
        if self._module is None:
            batch = Batch(Path(__file__).parent / "probe.cu", (), (_SOURCE,))
            (built,) = compile_batch(batch, self._toolchain(), Cache(default_root()))
            if isinstance(built, CompileFailure):
                raise CompilerError(f"the measuring kernels do not compile: {built.message}")
            self._module = self._load(built)
        return self._module
