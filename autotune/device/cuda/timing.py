"""Samples of a plan's time on one device: between events, behind a delay, with the L2 cache flushed or warm."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from autotune.compile import Cache, default_root
from autotune.device.backend import Backend
from autotune.device.program import DeviceProgram

_KERNELS = (
    "empty", "delay", "mismatches", "apart_float32", "apart_float64", "checksum", "displace", "release",
)  # fmt: skip
_BLOCK = 256
_QUEUE_NS = 10_000  # about what the host needs for a sample of one launch
_LONGEST_DELAY_NS = 20_000_000


class Probe:
    """Times plans of ``backend`` and counts in its memory, on the calling thread's stream. Its kernels are compiled
    when first used. ``driver`` is pycuda.driver; the context is current at every call."""

    def __init__(self, driver: Any, backend: Backend, l2_bytes: int) -> None:
        self._driver, self._backend = driver, backend
        self._program: DeviceProgram | None = None
        self._total: Any = None  # 8 bytes on the device, kept: to allocate takes longer than to count
        self._flush: Any = None
        self._flush_bytes = 2 * max(l2_bytes, 4 << 20)
        self._queue_ns = _QUEUE_NS  # what queueing a sample took the last time

    def _launch(self, kernel: str, threads: int, *arguments: bytes) -> None:
        if self._program is None:
            source, block = Path(__file__).with_name("probe.cu"), {"block_size": _BLOCK}
            self._program = DeviceProgram(self._backend, Cache(default_root()), source, _KERNELS, block)
        self._program.launch(kernel, threads, *arguments)

    def delay(self, nanoseconds: int) -> None:
        """Keeps the stream busy for so long, so that what is queued behind it starts without the host."""
        self._launch("delay", _BLOCK, nanoseconds.to_bytes(8, "little"))

    def count(self, kernel: str, *arguments: int) -> int:
        """What the kernel adds to a number in the device's memory, whose address is its last argument."""
        self._total = self._total or self._driver.mem_alloc(8)
        self._driver.memset_d8(self._total, 0, 8)
        words = np.array([*arguments, int(self._total)], np.uint64)
        self._launch(kernel, 8 * self._backend.device.multiprocessors * _BLOCK, words.tobytes())
        found = np.zeros(1, np.uint64)
        self._driver.memcpy_dtoh(found, self._total)
        return int(found[0])

    def sample(self, plan: Callable[[], None], count: int, cold: bool) -> list[float]:
        """``count`` times of ``plan`` in milliseconds.

        All samples wait behind a delay, so that none has the host's queueing in it. Where the delay turns out too
        short for this plan, and the device was not busy all the while, they are taken again, and then once more behind
        a longer one."""
        events = [(self._driver.Event(), self._driver.Event()) for _ in range(count)]
        delay_ns = min(2 * count * self._queue_ns, _LONGEST_DELAY_NS)
        for attempt in range(3):
            self.delay(delay_ns)
            begin = time.perf_counter_ns()
            for start, end in events:
                if cold:
                    self._flush_l2()
                start.record()
                plan()
                end.record()
            queued_ns = time.perf_counter_ns() - begin
            events[-1][1].synchronize()
            if queued_ns < delay_ns or events[-1][1].time_since(events[0][0]) * 1e6 > 2 * queued_ns:
                break
            if attempt:  # the first one may have loaded what it launches
                delay_ns = min(2 * queued_ns, _LONGEST_DELAY_NS)
        self._queue_ns = max(_QUEUE_NS // 2, queued_ns // count)
        return [end.time_since(start) for start, end in events]

    def floor_ms(self, count: int) -> float:
        """The median time of an empty kernel under the same protocol."""
        return float(np.median(self.sample(lambda: self._launch("empty", _BLOCK), count, False)))

    def _flush_l2(self) -> None:
        """Displace every line of the L2 cache, those that kernels marked evict_last among them."""
        if self._flush is None:
            self._flush = self._driver.mem_alloc(self._flush_bytes)
        threads = 8 * self._backend.device.multiprocessors * _BLOCK
        for kernel, bytes_each in (("displace", 16), ("release", 128)):
            words = np.array([int(self._flush), self._flush_bytes // bytes_each], np.uint64)
            self._launch(kernel, threads, words.tobytes())
        self._driver.memset_d8_async(self._flush, 0, self._flush_bytes)

    def free(self) -> None:
        """What it holds goes with its context, or before."""
        self._program = self._total = self._flush = None
