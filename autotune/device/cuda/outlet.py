"""cuda: results leave by a stream of their own, in memory that the driver has pinned."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.device.backend import Copy, LaunchError
from autotune.device.cuda.driver import call
from autotune.device.cuda.memory import CudaPlaced

_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING


class CudaOutlet:
    """See ``backend.Outlet``. ``driver`` is pycuda.driver; chunks are launched on the default stream."""

    def __init__(self, driver: Any, current: Callable[[], AbstractContextManager[None]]) -> None:
        self._driver, self._current = driver, current
        self._pinned: list[NDArray[np.uint8]] = []  # mapped for as long as they are registered
        with current():
            self._stream = driver.Stream(_NON_BLOCKING)

    def pin(self, host: NDArray[np.uint8]) -> bool:
        """By NVIDIA's bindings: PyCUDA's register_host_memory sets an array's base twice, which numpy refuses."""
        with self._current(), suppress(LaunchError):
            call("cuMemHostRegister", host.ctypes.data, host.nbytes, 0)
            self._pinned.append(host)
            return True
        return False

    def start(self) -> Any:
        with self._current():
            return self._driver.Event().record()

    def finish(self, started: Any, copies: Sequence[Copy]) -> tuple[Any, ...]:
        with self._current():
            try:
                computed = self._driver.Event().record()
                if not copies:
                    return started, computed
                self._stream.wait_for_event(computed)
                begun = self._driver.Event().record(self._stream)
                for copy in copies:
                    self._copy(copy)
                return started, computed, begun, self._driver.Event().record(self._stream)
            except self._driver.Error as problem:
                raise LaunchError(str(problem)) from None

    def _copy(self, copy: Copy) -> None:
        assert isinstance(copy.placed, CudaPlaced)
        source = copy.placed.address + copy.begin
        if copy.pitch == copy.width:
            self._driver.memcpy_dtoh_async(copy.target, source, self._stream)
            return
        plane = self._driver.Memcpy2D()
        plane.set_src_device(source)
        plane.set_dst_host(copy.target)
        plane.src_pitch, plane.dst_pitch = copy.pitch, copy.width
        plane.width_in_bytes, plane.height = copy.width, copy.rows
        plane(self._stream)

    def is_done(self, chunk: tuple[Any, ...]) -> bool:
        with self._current():
            try:
                return bool(chunk[-1].query())
            except self._driver.Error as problem:
                raise LaunchError(str(problem)) from None

    def wait(self, chunk: tuple[Any, ...]) -> tuple[float, float]:
        with self._current():
            try:
                chunk[-1].synchronize()
                started, computed, *copied = chunk
                seconds = computed.time_since(started) * 1e-3
                return seconds, copied[1].time_since(copied[0]) * 1e-3 if copied else 0.0
            except self._driver.Error as problem:
                raise LaunchError(str(problem)) from None

    def close(self) -> None:
        """Safe after a lost context."""
        with suppress(LaunchError, self._driver.Error), self._current():
            for host in self._pinned:
                call("cuMemHostUnregister", host.ctypes.data)
        self._pinned.clear()
