"""The cuda backend on a driver that only takes notes: what is pushed is popped, and where work goes."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autotune.device.backend import LaunchError
from autotune.device.cuda import backend as cuda
from autotune.device.cuda import calls as cuda_calls
from autotune.errors import DeviceError
from autotune.layout.stored import Stored

PLAIN = Stored(np.arange(8, dtype=np.uint8), 8, 4, "global", (2,), (1,), 0)


class DriverError(Exception):
    pass


class Names:
    """Every attribute is its own name."""

    def __getattr__(self, name: str) -> str:
        return name


class Driver(ModuleType):
    """pycuda.driver; ``depth`` is how many contexts are pushed, ``log`` what was asked for while one was."""

    Error = DriverError
    device_attribute = Names()
    refuses = ""

    def __init__(self) -> None:
        super().__init__("pycuda.driver")
        self.depth, self.log = 0, []
        self.context = SimpleNamespace(push=self._push, detach=lambda: self.log.append("detach"))
        self.Context = SimpleNamespace(pop=self._pop, synchronize=lambda: self._asked("synchronize"))
        self.Device = type("Device", (), {
            "count": staticmethod(lambda: 1), "__init__": lambda device, ordinal: None,
            "retain_primary_context": lambda device: self._asked("retain", free=True) or self.context,
            "name": lambda device: "Noted GPU", "compute_capability": lambda device: (9, 0),
            "total_memory": lambda device: 1 << 30, "get_attribute": lambda device, name: 1024,
        })  # fmt: skip

    def init(self) -> None:
        pass

    def get_driver_version(self) -> int:
        return 13000

    def _push(self) -> None:
        self.depth += 1

    def _pop(self) -> None:
        self.depth -= 1

    def _asked(self, what: Any, free: bool = False) -> Any:
        assert free or self.depth, f"{what} with no context"
        if self.refuses and self.refuses in str(what):
            raise DriverError(f"{what} failed: out of memory")
        self.log.append(what)

    def mem_alloc(self, nbytes: int) -> Any:
        self._asked(("alloc", nbytes))
        return type("Memory", (), {"__int__": lambda _: 4096, "free": lambda _: self._asked("free")})()

    def memcpy_htod(self, memory: Any, buffer: Any) -> None:
        self._asked(("copy in", int(memory)))

    def memcpy_htod_async(self, address: int, buffer: Any, stream: Any) -> None:
        self._asked(("copy in", address, stream))

    def memcpy_dtoh_async(self, buffer: Any, address: int, stream: Any) -> None:
        self._asked(("copy out", address, stream))

    def memcpy_dtod_async(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        self._asked(("copy", target, source, nbytes, stream))

    def memset_d8_async(self, address: int, byte: int, nbytes: int, stream: Any) -> None:
        self._asked(("fill", address, nbytes, stream))

    def Stream(self, flags: int) -> Any:  # noqa: N802 - PyCUDA's name
        self._asked("stream")
        self.made = SimpleNamespace(handle=100, synchronize=lambda: self._asked("synchronize stream"))
        return self.made


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    made, package = Driver(), ModuleType("pycuda")
    package.driver = made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", made)
    monkeypatch.setattr(cuda_calls, "call", lambda name, *rest: made._asked((name, *rest[-2:])) or "event")
    monkeypatch.setattr(cuda, "capture_of", lambda stream: 0)
    yield made
    assert made.depth == 0


def opened() -> Any:
    from autotune.device.cuda.backend import CudaBackend

    return CudaBackend(0)


def test_a_context_that_another_thread_opened_is_released(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "call", lambda name, *rest: driver._asked((name, *rest), free=True) or 0)
    with ThreadPoolExecutor(1) as pool:
        backend = pool.submit(opened).result()
    backend.close()
    backend.close()
    assert driver.log == ["retain", "detach", ("cuDeviceGet", 0), ("cuDevicePrimaryCtxRelease", 0)]


def test_data_are_placed_lent_and_freed(driver: Driver) -> None:
    with opened() as backend:
        placed = backend.place(PLAIN)
        assert (placed.address, placed.stored.buffer) == (4096, None)
        backend.fill(placed, 0)
        backend.upload(placed, PLAIN)
        assert backend.download(placed).size == 8
        placed.free()
        lent = backend.borrow(PLAIN, 512)
        assert lent.argument[:8] == (512).to_bytes(8, "little")
        lent.free()
    assert driver.log == [
        "retain", ("alloc", 16), ("copy in", 4096), ("fill", 4096, 8, None), ("copy in", 4096, None),
        ("copy out", 4096, None), "synchronize", "free", "detach",
    ]  # fmt: skip


def test_work_in_the_order_of_a_stream_of_others(driver: Driver) -> None:
    with opened() as backend:
        lent = backend.borrow(PLAIN, 512)
        driver.log.clear()
        with backend.on(7):
            backend.fill(lent, 0)
            backend.synchronize()
        ours = driver.log[4][-1]
        assert ours.handle == 100
        assert driver.log == [
            "stream", ("cuEventCreate", 2), ("cuEventRecord", "event", 7), ("cuStreamWaitEvent", "event", 0),
            ("fill", 512, 8, ours), "synchronize stream", ("cuEventRecord", "event", 100),
            ("cuStreamWaitEvent", "event", 0),
        ]  # fmt: skip
        driver.log.clear()
        with backend.on(0):
            backend.fill(lent, 0)
        with pytest.raises(ZeroDivisionError), backend.on(7):
            raise ZeroDivisionError
        backend.fill(lent, 0)
        assert [entry[-1] for entry in driver.log if entry[0] == "fill"] == [None, None]
        backend.wait_for(7)
        assert driver.log[-1][0] == "cuStreamSynchronize"


def test_what_is_made_beside_a_capture_is_not_in_it(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another library captures on stream 7: the call is recorded there, and what it needs is made on a stream of ours,
    in a thread that may allocate."""

    @contextmanager
    def relaxed() -> Iterator[None]:
        driver.log.append("relaxed")
        yield
        driver.log.append("as before")

    monkeypatch.setattr(cuda, "capture_of", lambda stream: 5 if stream == 7 else 0)
    monkeypatch.setattr(cuda, "relax_captures", relaxed)
    with opened() as backend:
        lent = backend.borrow(PLAIN, 512)
        with backend.on(8) as capture:
            assert capture == 0
        driver.log.clear()
        with backend.on(7) as capture:
            assert capture == 5
            recorded = driver.log[-1]
            backend.fill(lent, 0)
            with backend.suspend_capture():
                backend.fill(lent, 1)
            backend.fill(lent, 2)
        assert recorded[0] == "cuStreamWaitEvent"
        what = [entry if isinstance(entry, str) else entry[0] for entry in driver.log]
        assert what == [
            "relaxed", "cuEventRecord", "cuStreamWaitEvent", "fill", "stream", "fill", "synchronize stream",
            "fill", "cuEventRecord", "cuStreamWaitEvent", "as before",
        ]  # fmt: skip
        first, aside, last = (entry[-1] for entry in driver.log if entry[0] == "fill")
        assert first is last is not aside
        assert backend._local.captures is None


def test_a_bound_call_makes_the_context_current_once(driver: Driver) -> None:
    with opened() as backend:
        call = backend.bind({"y": backend.borrow(PLAIN, 512)}, [])
        call.point("y", 1024)
        driver.log.clear()
        call()
        assert driver.log == [("fill", 1024, 8, None)]


def test_the_constants_of_a_binary_are_found_once(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By all of its variants; what is copied in the order of one stream is waited for in that of another."""
    asked: list[str] = []
    binary = SimpleNamespace(
        get_global=lambda name: asked.append(name) or (8192, 65536), get_function=lambda symbol: symbol
    )
    driver.module_from_buffer = lambda content: binary  # type: ignore[attr-defined]
    image = tmp_path / "binary"
    image.write_bytes(b"")
    constant = replace(PLAIN, memory="constant", constant_offset=16)
    with opened() as backend:
        modules = [
            backend.load(SimpleNamespace(image=image, symbols={"k": name}, numbers={})) for name in ("a", "b")
        ]
        assert modules[0].window is modules[1].window
        resident = backend.place(PLAIN)
        driver.log.clear()
        for module in modules:
            backend.place(constant, module)
            backend.fill_window(module, resident, 4, constant)
        with backend.stream():
            backend.fill_window(modules[0], resident, 0, constant)
        assert driver.log == [
            *[("copy in", 8208), ("copy", 8208, 4100, 8, None)] * 2,
            "stream", "synchronize", ("copy", 8208, 4096, 8, driver.made), "synchronize stream",
        ]  # fmt: skip
        driver.log.clear()
        monkeypatch.setattr(cuda, "capture", lambda stream, steps: steps())
        with backend.current():
            backend._capture(lambda: backend.fill_window(modules[0], resident, 0, constant))
        assert driver.log == ["stream", ("copy", 8208, 4096, 8, driver.made)]  # nothing can be waited for
        assert len(asked) == 1
        assert resident.uploads == 0
        backend.upload(resident, PLAIN)
        assert resident.uploads == 1


def test_what_the_driver_refuses_says_what_was_wanted(driver: Driver) -> None:
    with opened() as backend:
        driver.refuses = "alloc"
        with pytest.raises(LaunchError, match=r"cannot place 8 bytes in global memory: .*out of memory"):
            backend.place(PLAIN)
        driver.refuses = "copy out"
        with pytest.raises(LaunchError, match="out of memory"):
            backend.download(backend.borrow(PLAIN, 512))
        driver.refuses = ""
    with pytest.raises(DeviceError, match="was closed; load the kernel again"):
        backend.place(PLAIN)
    driver.refuses = "retain"
    with pytest.raises(
        DeviceError, match="cuda:0 cannot be used: retain failed: out of memory; check nvidia-smi"
    ):
        opened()
