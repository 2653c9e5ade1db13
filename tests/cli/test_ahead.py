"""A kernel opened while its input is read: on a GPU that is found, and for nobody else earlier than asked for."""

import threading
from pathlib import Path
from typing import Any

import pytest

from autotune.cli import ahead
from autotune.declaration import Family, load_family
from autotune.errors import DeviceError
from autotune.hardware import Device, EarlyContext


class Early:
    """In place of a context that is made: of ``device``, ``made`` says whether it could be."""

    def __init__(self, device: Device | None, made: bool = True) -> None:
        self._device, self._made = device, made

    def device(self) -> Device | None:
        return self._device

    def is_made(self) -> bool:
        return self._made


class Kernel:
    """What was opened, where, and whether it was closed."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


GPU = Device(kind="cuda", name="NVIDIA H200", arch="sm_90")
read: list[tuple[str, Device, list[Path]]] = []


@pytest.fixture(scope="module")
def family() -> Family:
    return load_family("mummergpu", check=False)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    read.clear()
    monkeypatch.setattr(ahead, "import_ahead", lambda: None)
    monkeypatch.setattr(
        ahead, "find_ahead", lambda family, device, folders: read.append((family.name, device, folders))
    )
    return []


def beginning(monkeypatch: pytest.MonkeyPatch, early: Early | None) -> None:
    monkeypatch.setattr(EarlyContext, "current", early)


def opening(opened: list[Kernel]) -> Any:
    def open_kernel() -> Kernel:
        opened.append(Kernel())
        return opened[-1]

    return open_kernel


def test_it_is_open_before_it_is_asked_for(
    family: Family, opened: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    beginning(monkeypatch, Early(GPU))
    with ahead.Ahead(family, Path("mine"), opening(opened)) as coming:
        kernel: Any = coming.kernel()
        assert opened == [kernel] and kernel.thread != threading.get_ident()
        ((name, device, folders),) = read
        assert (name, device, folders[0]) == ("mummergpu", GPU, Path("mine"))
        coming.kernel()  # another one
        assert len(opened) == 2
    assert not any(kernel.is_closed for kernel in opened)  # who asks closes it


@pytest.mark.parametrize(
    "early", [None, Early(None), Early(GPU, made=False)], ids=["no", "no GPU", "no context"]
)
def test_without_a_context_it_is_opened_when_asked_for(
    early: Early | None, family: Family, opened: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    beginning(monkeypatch, early)
    with ahead.Ahead(family, None, opening(opened)) as coming:
        if early is not None and coming._coming is not None:
            coming._coming.result()
        assert not opened
        kernel: Any = coming.kernel()
        assert opened == [kernel] and kernel.thread == threading.get_ident()


def test_what_nobody_asked_for_is_closed(
    family: Family, opened: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    beginning(monkeypatch, Early(GPU))
    with pytest.raises(ValueError, match="bad input"), ahead.Ahead(family, None, opening(opened)):
        raise ValueError("bad input")
    assert [kernel.is_closed for kernel in opened] == [True]


@pytest.mark.usefixtures("opened")
def test_what_goes_wrong_is_told_to_who_asks(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Any:
        raise DeviceError("no room")

    beginning(monkeypatch, Early(GPU))
    with ahead.Ahead(family, None, refuse):
        pass
    with ahead.Ahead(family, None, refuse) as coming, pytest.raises(DeviceError, match="no room"):
        coming.kernel()
