"""How results leave a GPU: the driver's calls in their order, as a driver that only takes notes records them."""

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autotune.device.backend import Copy, CopyQueue, LaunchError
from autotune.device.cpu.backend import CpuBackend
from autotune.device.cuda import backend as cuda
from autotune.device.cuda.memory import CudaPlaced
from autotune.layout.arrays import Data, Field
from autotune.layout.bit_packing import packing
from autotune.layout.layout import Layout
from autotune.spread.worker import rows_of

Y = Data(name="y", role="output", fields=(Field("", "int32"),), shape=("n", "m"))


class Notes:
    """As much of pycuda.driver as a copy queue uses."""

    class Error(Exception):
        pass

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.clock = 0.0
        notes = self

        class Event:
            def record(self, stream: Any = None) -> "Event":
                notes.clock += 1
                self.at = notes.clock
                notes.notes.append(f"record {'copies' if stream else 'launches'}")
                return self

            def synchronize(self) -> None:
                notes.clock = max(notes.clock, self.at + 1)
                notes.notes.append("wait")

            def query(self) -> bool:
                return self.at < notes.clock

            def time_since(self, other: "Event") -> float:
                return self.at - other.at

        class Stream:
            def __init__(self, flags: int) -> None:
                assert flags == 1

            def wait_for_event(self, event: Event) -> None:
                notes.notes.append("copies wait for launches")

        class Memcpy2D:
            def set_src_device(self, address: int) -> None:
                self.source = address

            def set_dst_host(self, target: Any) -> None:
                self.target = target

            def __call__(self, stream: Stream) -> None:
                figures = vars(self)
                notes.notes.append(
                    f"plane {self.source} {figures['src_pitch']} -> {figures['dst_pitch']}, "
                    f"{figures['width_in_bytes']} x {figures['height']}"
                )

        self.Event, self.Stream, self.Memcpy2D = Event, Stream, Memcpy2D
        self.Context = SimpleNamespace(pop=lambda: None)

    def memcpy_dtoh_async(self, target: Any, source: int, stream: Any) -> None:
        self.notes.append(f"copy {source} {target.size}")


def make_copy_queue(driver: Notes) -> CopyQueue:
    """Of the cuda device, whose driver that is."""
    backend = object.__new__(cuda.CudaBackend)
    backend._driver, backend._local, backend._aside = driver, threading.local(), None
    backend._context = SimpleNamespace(push=lambda: None)
    return CopyQueue(backend)


def placed(address: int) -> CudaPlaced:
    return CudaPlaced(Layout(data=Y).room((2, 3)), b"", address, None, [])  # type: ignore[arg-type]


def test_copies_go_behind_their_chunk_and_beside_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: list[Any] = []
    monkeypatch.setattr(cuda, "call", lambda *arguments: pinned.append(arguments))
    driver = Notes()
    copy_queue = make_copy_queue(driver)
    host = np.zeros(64, np.uint8)
    assert copy_queue.pin(host)
    first = copy_queue.finish(copy_queue.start(), [Copy(placed(1000), 24, 40, 40, host[:40])])
    second = copy_queue.finish(copy_queue.start(), [Copy(placed(1000), 64, 12, 32, host[:24])])
    third = copy_queue.finish(copy_queue.start(), [])
    assert [copy_queue.is_done(chunk) for chunk in (first, second, third)] == [True, True, False]
    assert copy_queue.wait(first) == (1e-3, 1e-3)
    assert copy_queue.wait(second)[1] == 1e-3
    assert copy_queue.wait(third) == (1e-3, 0.0)
    behind = ["record launches", "record launches", "copies wait for launches", "record copies"]
    assert driver.notes == [
        *behind, "copy 1024 40", "record copies",
        *behind, "plane 1064 32 -> 12, 12 x 2", "record copies",
        "record launches", "record launches", "wait", "wait", "wait",
    ]  # fmt: skip
    copy_queue.close()
    assert pinned == [
        ("cuMemHostRegister", host.ctypes.data, 64, 0),
        ("cuMemHostUnregister", host.ctypes.data),
    ]


def test_a_device_that_fails_is_a_launch_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise LaunchError("not permitted")

    monkeypatch.setattr(cuda, "call", refused)
    driver = Notes()
    copy_queue = make_copy_queue(driver)
    assert not copy_queue.pin(np.zeros(4, np.uint8))  # slower, and no worse
    chunk = copy_queue.finish(copy_queue.start(), [])

    def fails() -> None:
        raise Notes.Error("an illegal memory access was encountered")

    chunk[-1].synchronize = fails
    chunk[-1].query = fails
    for ask in (copy_queue.wait, copy_queue.is_done):
        with pytest.raises(LaunchError, match="illegal memory access"):
            ask(chunk)
    copy_queue.close()


def test_rows_leave_the_cpu_without_their_padding() -> None:
    layout = Layout(data=Y, padding=4)
    array = np.arange(15, dtype=np.int32).reshape(5, 3)
    with CpuBackend(1) as backend:
        there = backend.place(layout.apply(array))
        host = np.zeros(15, np.int32)
        copy_queue = CopyQueue(backend)
        width, pitch = rows_of(layout, (5, 3)) or (0, 0)
        assert (width, pitch) == (12, 16)
        copy_queue.wait(
            copy_queue.finish(
                copy_queue.start(), [Copy(there, 2 * pitch, width, pitch, host.view(np.uint8)[24:48])]
            )
        )
    assert host.tolist() == [0] * 6 + list(range(6, 12)) + [0] * 3


def test_what_lies_in_the_canonical_order() -> None:
    assert rows_of(Layout(data=Y), (5, 3)) == (12, 12)
    assert rows_of(Layout(data=Y, records="soa"), (5, 3)) == (12, 12)
    assert rows_of(Layout(data=Y, records="aosoa4"), (5, 3)) == (12, 12)
    pair = Data(
        name="y",
        role="output",
        fields=(Field("a", "int32"), Field("b", "int32")),
        shape=("n", "m"),
        record="P",
    )
    assert rows_of(Layout(data=pair), (5, 3)) == (24, 24)
    for other in (
        Layout(data=Y, axes=(1, 0)),
        Layout(data=Y, dims="2d"),
        Layout(data=pair, records="aosoa4"),
        Layout(data=pair, records="soa"),
        Layout(data=Y, group=(2, 0)),
        Layout(data=Data(**{**vars(Y), "packed": "m"}), packing=packing("int8")),
    ):
        assert rows_of(other, (5, 3)) is None
