"""Samples of a plan's time on one device: between events, behind a delay, with the L2 cache flushed or warm."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from autotune.compile import (
    Batch,
    Cache,
    Compiled,
    Geometry,
    Toolchain,
    VariantSource,
    compile_one,
    default_root,
)
from autotune.device.cuda.memory import CudaModule

_SOURCE = VariantSource(
    "autotune-probe-4", "Probe", "struct Probe {};\n",
    ("empty", "delay", "mismatches", "apart_float32", "apart_float64", "strays", "checksum"),
)  # fmt: skip

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

    def apart(
        self,
        kind: np.dtype[Any],
        address: int,
        expected: int,
        count: int,
        within: tuple[float, float],
        blocks: int,
    ) -> int:
        """How many of ``count`` numbers differ by more than ``within``: relative, absolute."""
        bits = [int(one) for one in np.array(within, np.float64).view(np.uint64)]
        return self._added(f"apart_{kind.name}", (address, expected, count, *bits), blocks)

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
            failed = "the measuring kernels do not compile: "
            self._module = self._load(compile_one(batch, self._toolchain(), Cache(default_root()), failed))
        return self._module


_QUEUE_NS = 10_000  # about what the host needs for a sample of one launch
_LONGEST_DELAY_NS = 20_000_000


class Timer:
    """Times plans of one device, whose context is current at every call."""

    def __init__(self, driver: Any, probe: Probe, l2_bytes: int) -> None:
        self._driver = driver
        self._probe = probe
        self._flush: Any = None
        self._flush_bytes = 2 * max(l2_bytes, 4 << 20)
        self._queue_ns = _QUEUE_NS  # what queueing a sample took the last time

    def sample(self, plan: Callable[[], None], count: int, cold: bool) -> list[float]:
        """``count`` times of ``plan`` in milliseconds.

        All samples wait behind a delay, so that none has the host's queueing in it. Where the delay turns out too
        short for this plan, and the device was not busy all the while, they are taken again behind a longer one."""
        events = [(self._driver.Event(), self._driver.Event()) for _ in range(count)]
        for _ in range(2):
            delay_ns = min(2 * count * self._queue_ns, _LONGEST_DELAY_NS)
            self._probe.delay(delay_ns)
            begin = time.perf_counter_ns()
            for start, end in events:
                if cold:
                    self._flush_l2()
                start.record()
                plan()
                end.record()
            queued_ns = time.perf_counter_ns() - begin
            self._queue_ns = max(_QUEUE_NS // 2, queued_ns // count)
            events[-1][1].synchronize()
            if queued_ns < delay_ns or events[-1][1].time_since(events[0][0]) * 1e6 > 2 * queued_ns:
                break
        return [end.time_since(start) for start, end in events]

    def floor_ms(self, count: int) -> float:
        """The median time of an empty kernel under the same protocol."""
        return float(np.median(self.sample(self._probe.empty, count, False)))

    def _flush_l2(self) -> None:
        if self._flush is None:
            self._flush = self._driver.mem_alloc(self._flush_bytes)
        self._driver.memset_d8_async(self._flush, 0, self._flush_bytes)

    def free(self) -> None:
        if self._flush is not None:
            self._flush.free()
            self._flush = None
