"""Calls made ready for cuda and streams of others, on a driver that only takes notes."""

import struct
import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from autotune.compile.variant import Geometry
from autotune.device.backend import Constant, Launch, LaunchError
from autotune.device.cuda import calls as cuda_calls
from autotune.device.cuda.calls import ConstantWindow, CudaCall, Joints
from autotune.layout.stored import members, struct_of


class DriverError(Exception):
    pass


@dataclass
class Function:
    """A loaded kernel; ``launched`` has the arguments of each launch, the parameter buffer as it was then."""

    launched: list[Any] = field(default_factory=list)
    attributes: list[Any] = field(default_factory=list)
    fails: bool = False
    shared_size_bytes: int = 0  # static

    def _launch_kernel(self, grid: Any, block: Any, buffer: Any, shared: int, stream: Any) -> None:
        if self.fails:
            raise DriverError("cuLaunchKernel failed: an illegal address")
        self.launched.append((grid, block, bytes(buffer), shared, stream))

    def set_attribute(self, *what: Any) -> None:
        self.attributes.append(what)


class Notes:
    """The driver and its context."""

    Error = DriverError
    function_attribute = SimpleNamespace(MAX_DYNAMIC_SHARED_SIZE_BYTES="shared")

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.Context = SimpleNamespace(
            pop=lambda: self.log.append("pop"), synchronize=lambda: self.log.append("synchronize")
        )
        self.Stream = self._stream
        self.made = 0

    def push(self) -> None:
        self.log.append("push")

    def memset_d8_async(self, *what: Any) -> None:
        self.log.append(("memset", *what))

    def memcpy_dtod_async(self, *what: Any) -> None:
        self.log.append(("copy", *what[:3]))

    def _stream(self, flags: int) -> Any:
        self.made += 1
        return SimpleNamespace(handle=100 * self.made, flags=flags)


def accessor(address: int) -> bytes:
    return address.to_bytes(8, "little") + b"extents."


def launch(function: Function, shared: int = 0) -> Launch:
    module: Any = SimpleNamespace(functions={"k": function})
    arguments = (accessor(16), struct.pack("<i", 5), accessor(32))
    return Launch(module, "k", Geometry((3, 1, 1), (64, 1, 1), shared), arguments, (("x", 0, 0), ("y", 2, 0)))


def call(driver: Notes, function: Function, local: Any, fills: Any = (), shared: int = 0) -> CudaCall:
    return CudaCall(driver, driver, local, dict(fills), [launch(function, shared)])


def test_arguments_lie_at_their_alignment() -> None:
    arguments = [b"\1", b"\2\2", b"\4\4\4\4", accessor(1), b"\1", b"8bytes..", b"\3"]
    buffer, offsets = members(arguments)
    assert offsets == [0, 2, 4, 8, 24, 32, 40]
    assert buffer == b"\1\0\2\2\4\4\4\4" + accessor(1) + b"\1" + bytes(7) + b"8bytes..\3"
    assert struct_of(arguments) == buffer + bytes(7)  # its elements in an array are aligned, too
    assert struct_of([b"\2\2", b"\1"]) == b"\2\2\1\0"


def test_a_call_is_repeated_at_other_addresses() -> None:
    driver, function, local = Notes(), Function(), threading.local()
    placed = SimpleNamespace(address=32, stored=SimpleNamespace(nbytes=400))
    made = call(driver, function, local, {"y": placed})
    made()
    made.point("y", 0x1122)
    made.point("nothing of that name", 1)
    local.stream = "mine"
    made()
    first, second = function.launched
    assert first == ((3, 1, 1), (64, 1, 1), accessor(16) + struct.pack("<i4x", 5) + accessor(32), 0, None)
    assert second == (
        (3, 1, 1),
        (64, 1, 1),
        accessor(16) + struct.pack("<i4x", 5) + accessor(0x1122),
        0,
        "mine",
    )
    assert driver.log == [
        "push", ("memset", 32, 0, 400, None), "pop", "push", ("memset", 0x1122, 0, 400, "mine"), "pop",
    ]  # fmt: skip


def test_an_address_inside_of_a_struct_is_another_one() -> None:
    driver, function = Notes(), Function()
    module: Any = SimpleNamespace(functions={"k": function})
    arguments = (b"\1\2\3\4", struct_of([b"\5", accessor(16), accessor(32)]))
    one = Launch(module, "k", Geometry((1, 1, 1), (32, 1, 1)), arguments, (("x", 1, 8), ("y", 1, 24)))
    made = CudaCall(driver, driver, threading.local(), {}, [one])
    made.point("y", 0x1122)
    made()
    (launched,) = function.launched
    assert launched[2] == b"\1\2\3\4" + bytes(4) + struct_of([b"\5", accessor(16), accessor(0x1122)])


def test_a_launch_that_fails_leaves_no_context() -> None:
    driver, function = Notes(), Function(fails=True)
    made = call(driver, function, threading.local())
    with pytest.raises(LaunchError, match="illegal address"):
        made()
    assert driver.log == ["push", "pop"]


def test_much_shared_memory_is_asked_for_once() -> None:
    function = Function()
    made = call(Notes(), function, threading.local(), shared=100_000)
    made()
    made()
    assert function.attributes == [("shared", 100_000)]
    assert [launched[3] for launched in function.launched] == [100_000] * 2


def test_constants_are_copied_when_the_window_holds_others() -> None:
    """Two calls of one binary, one of whose arrays come with each call; and a binary that reads no constants."""
    driver, function, local = Notes(), Function(), threading.local()
    module: Any = SimpleNamespace(functions={"k": function}, window=ConstantWindow(driver, lambda: 4096))

    def made(resident: Any, stays: bool = True) -> CudaCall:
        where: Any = SimpleNamespace(constant_offset=64, nbytes=20)
        constant = Constant("w", module, where, resident, stays)
        move = Launch(module, "k", Geometry((1, 1, 1), (32, 1, 1)), (accessor(8),), (("w as given", 0, 0),))
        return CudaCall(driver, driver, local, {}, [launch(function)], [constant], [move])

    def said(call: CudaCall) -> list[Any]:
        driver.log.clear()
        call()
        assert (driver.log.pop(0), driver.log.pop()) == ("push", "pop")
        return list(driver.log)

    first, second = (SimpleNamespace(address=address, uploads=0) for address in (512, 1024))
    one, same, other, changing = made(first), made(first), made(second), made(first, stays=False)
    copies = {address: ("copy", 4096 + 64, address, 20) for address in (512, 1024, 2048)}
    assert said(one) == [copies[512]]
    assert [launched[0][0] for launched in function.launched] == [1, 3]  # the move comes first
    assert said(one) == said(same) == []
    assert said(other) == [copies[1024]]
    assert said(one) == [copies[512]]
    first.uploads += 1
    assert said(same) == [copies[512]]
    assert said(changing) == said(changing) == [copies[512]]
    changing.point("w", 2048)
    assert said(changing) == [copies[2048]]
    local.stream = SimpleNamespace(handle=7)
    assert said(one) == ["synchronize", copies[512]]
    assert said(one) == []
    local.stream = None
    assert said(one) == ["synchronize"]  # the copy was queued on stream 7
    assert said(one) == []
    assert said(other) == ["synchronize", copies[1024]]  # stream 7 may still read the other
    local.stream, local.captures = SimpleNamespace(handle=8), True  # a graph of another library's
    assert said(one) == said(one) == [copies[512]]  # nothing is waited for
    local.stream, local.captures = None, False
    module.window = ConstantWindow(driver, lambda: None)
    assert said(made(first)) == []
    local.captures = True
    assert said(made(first)) == []


def test_a_joint_waits_both_ways_and_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    monkeypatch.setattr(
        cuda_calls, "call", lambda name, *rest: called.append((name, *rest)) or f"event {len(called)}"
    )
    joints = Joints(Notes())
    with joints.join(7) as ours:
        assert ours.handle == 100
        with joints.join(8) as nested:
            assert nested.handle == 200
    before = len(called)
    with joints.join(9) as again:
        assert again.handle == 100
    event = called[before][1]
    assert called[before:] == [
        ("cuEventRecord", event, 9), ("cuStreamWaitEvent", 100, event, 0),
        ("cuEventRecord", event, 100), ("cuStreamWaitEvent", 9, event, 0),
    ]  # fmt: skip
    joints.close()
    assert [name for name, *_ in called[-2:]] == ["cuEventDestroy"] * 2


def test_a_joint_stays_with_its_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the capture ends, nothing outside of it may wait for what is in it."""
    captured: set[int] = set()
    asked = {"cuStreamIsCapturing": lambda handle: handle in captured}
    monkeypatch.setattr(cuda_calls, "call", lambda name, *rest: asked.get(name, lambda *_: "event")(*rest))
    joints = Joints(Notes())

    def used(capture: int = 0) -> int:
        with joints.join(7, capture) as ours:
            return int(ours.handle)

    assert used() == 100
    captured.add(100)
    assert used(capture=1) == used(capture=1) == 100
    assert used() == 200
    captured.add(200)
    assert used(capture=2) == 200
    assert used() == 300
    captured.remove(100)
    assert {used() for _ in range(2)} <= {100, 300}
    with joints.join(7) as one, joints.join(8) as other:
        assert {one.handle, other.handle} == {100, 300}
    joints.close()
