"""Launches recorded as a CUDA graph, and cooperative launches: made with NVIDIA's cuda-bindings on PyCUDA's context
and streams. PyCUDA knows neither."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from autotune.compile import Geometry
from autotune.device.backend import LaunchError
from autotune.device.cuda.driver import call, call_all


class Graph:
    """What ``capture`` recorded, ready to be launched again and again. ``current`` makes its device the calling
    thread's."""

    def __init__(self, captured: Any, current: Callable[[], AbstractContextManager[None]]) -> None:
        self._current = current
        self._executable: Any = None
        try:
            self._executable = call("cuGraphInstantiate", captured, 0)
        finally:
            call("cuGraphDestroy", captured)

    def launch(self, stream: int) -> None:
        call("cuGraphLaunch", self._executable, stream)

    def free(self) -> None:
        """Safe to call twice, and after a lost context: the driver has freed everything with it."""
        executable, self._executable = self._executable, None
        if executable is not None:
            with suppress(LaunchError), self._current():
                call("cuGraphExecDestroy", executable)

    def __del__(self) -> None:
        self.free()


def capture(stream: int, steps: Callable[[], None]) -> Any:
    """The graph of what ``steps`` puts on ``stream``, none of which runs. The graph is the caller's to destroy."""
    from cuda.bindings import driver as bindings

    # Relaxed: the garbage collector may free device memory meanwhile, which the other modes take for a mistake.
    call("cuStreamBeginCapture", stream, bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        steps()
    except BaseException:
        with suppress(LaunchError):  # what went wrong in steps may have ended the capture
            call("cuGraphDestroy", call("cuStreamEndCapture", stream))
        raise
    return call("cuStreamEndCapture", stream)


def capture_of(stream: int) -> int:
    """The number of the capture that another library has under way on the stream with that handle; 0 for none, and for
    the default stream, which cannot be captured."""
    if not stream or not int(call("cuStreamIsCapturing", stream)):
        return 0
    return int(call_all("cuStreamGetCaptureInfo", stream)[1])


@contextmanager
def relax_captures() -> Iterator[None]:
    """The calling thread may do in the block what others' captures forbid it, such as to allocate memory, since none of
    it is meant to be captured."""
    from cuda.bindings import driver as bindings

    relaxed = bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = call("cuThreadExchangeStreamCaptureMode", relaxed)
    try:
        yield
    finally:
        call("cuThreadExchangeStreamCaptureMode", before)


def get_captured_function(graph: Any) -> int:
    """The function handle of the one launch in ``graph``, which is destroyed: PyCUDA does not show it."""
    try:
        (node,) = call("cuGraphGetNodes", graph, 1)
        return int(call("cuGraphKernelNodeGetParams", node).func)
    finally:
        call("cuGraphDestroy", graph)


def resident_blocks(function: int, multiprocessors: int, geometry: Geometry) -> int:
    """How many blocks of ``geometry`` the device holds at a time."""
    each = call(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", function, geometry.block_size, geometry.shared_bytes
    )
    return multiprocessors * int(each)


def launch_cooperative(
    function: int, blocks: int, geometry: Geometry, arguments: Sequence[bytes], stream: int
) -> None:
    """cuLaunchCooperativeKernel with ``blocks`` blocks in x."""
    held = [ctypes.create_string_buffer(argument, len(argument)) for argument in arguments]
    pointers = (ctypes.c_void_p * len(held))(*map(ctypes.addressof, held))
    call(
        "cuLaunchCooperativeKernel", function, blocks, 1, 1, *geometry.block, geometry.shared_bytes, stream,
        ctypes.addressof(pointers),
    )  # fmt: skip
