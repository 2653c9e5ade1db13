"""What runs a variant: its kind, its name, and the limits that a layout or a launch must respect."""

import ctypes
import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

__all__ = ["Device", "EarlyContext", "Limits", "is_driver_left", "leave_driver"]

_2_31 = 2**31 - 1
# cuda.h: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR; room for a device's name.
_MAJOR, _MINOR, _NAME_BYTES = 75, 76, 256
_OPEN_FILES, _OF_DRIVER = Path("/proc/self/fd"), "/dev/nvidia"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Queried from the device; the defaults are compute capability 9.0's (CUDA C++ Programming Guide,
    "Technical Specifications per Compute Capability"), used where no device is there.

    Texture extents are in texels, sizes in bytes.
    """

    grid_x: int = _2_31
    grid_y: int = 65535
    grid_z: int = 65535
    threads_per_block: int = 1024
    shared_bytes_per_block: int = 232448
    constant_bytes: int = 65536
    texture_1d_texels: int = 2**28
    texture_2d_width: int = 131072
    texture_2d_height: int = 65536
    texture_pitched_width: int = 131072
    texture_pitched_height: int = 65000
    texture_pitch_bytes: int = 32  # rows of pitched memory are apart by a multiple of it
    texture_3d: tuple[int, int, int] = (16384, 16384, 16384)
    surface_2d: tuple[int, int] = (131072, 65536)
    surface_3d: tuple[int, int, int] = (16384, 16384, 16384)
    memory_bytes: int = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Device:
    """``kind`` cuda or cpu; ``arch`` is the compile target (``sm_90``, ``x86_64``); ``multiprocessors`` counts
    SMs or CPU threads. Rankings never mix devices, so ``slug`` is part of every record's identity."""

    kind: Literal["cuda", "cpu"]
    name: str
    arch: str
    ordinal: int = 0
    multiprocessors: int = 1
    driver: str = ""
    limits: Limits = field(default_factory=Limits)

    @property
    def slug(self) -> str:
        """The name as a file name: lower case, words joined by hyphens."""
        text = re.sub(r"\([^)]*\)|@.*", " ", self.name.lower())
        words = re.sub(r"[^a-z0-9]+", "-", text).strip("-") or "unknown"
        return words if self.kind == "cuda" else f"cpu-{words}".replace("cpu-cpu-", "cpu-")

    @property
    def compute_capability(self) -> str:
        """``"9.0"`` for ``sm_90``; empty on a cpu."""
        digits = re.fullmatch(r"sm_(\d+)(\d)[a-z]*", self.arch)
        return f"{digits[1]}.{digits[2]}" if digits else ""


class EarlyContext:
    """The primary context of GPU ``ordinal``, made in a thread while whoever will open that GPU is still imported: the
    driver takes a quarter of a second, and shares the context. Where it cannot be made nothing happens, and who opens
    the GPU says why."""

    current: "EarlyContext | None" = None

    def __init__(self, ordinal: int) -> None:
        self._leave: Callable[[], object] | None = None
        self._was_made = False
        self._device: Device | None = None
        self._is_found, self._is_made = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ordinal,), daemon=True)
        EarlyContext.current = self
        self._thread.start()

    def _run(self, ordinal: int) -> None:
        try:
            with suppress(OSError, AttributeError):  # no driver, or another one
                self._make(ctypes.CDLL("libcuda.so.1"), ordinal)
        finally:
            self._is_found.set()
            self._is_made.set()

    def _make(self, driver: ctypes.CDLL, ordinal: int) -> None:
        device, context = ctypes.c_int(), ctypes.c_void_p()
        if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), ordinal):
            return
        self._device = _named(driver, device, ordinal)
        self._is_found.set()
        if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0:
            self._was_made = True
            self._leave = partial(driver.cuDevicePrimaryCtxRelease, device)

    def device(self) -> Device | None:
        """The GPU, as far as it is known before it has a context: by its name and compute capability. None where there
        is none that works."""
        self._is_found.wait()
        return self._device

    def is_made(self) -> bool:
        """Whether there is a context, once that is known; also after it was left."""
        self._is_made.wait()
        return self._was_made

    def leave(self) -> None:
        """To those that have opened it meanwhile. Safe to call twice."""
        self._is_made.wait()
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    def finish(self) -> None:
        """Leave it, with nothing of the thread going on."""
        self._thread.join()
        self.leave()


_is_left = threading.Event()


def is_driver_left() -> bool:
    """Whether ``leave_driver`` was called: the driver's own end must not be run then."""
    return _is_left.is_set()


def leave_driver() -> None:
    """Close the driver's files: for a process that is one command, has closed what it opened on GPUs, and opens no
    more. The driver then tidies up behind it at once, which takes 60 ms and else comes after its last words."""
    _is_left.set()
    with suppress(OSError):  # a system without these
        for number in _OPEN_FILES.iterdir():
            with suppress(OSError):  # what lists them is closed by now
                if str(number.readlink()).startswith(_OF_DRIVER):
                    os.close(int(number.name))


def _named(driver: ctypes.CDLL, device: ctypes.c_int, ordinal: int) -> Device | None:
    """A device by its name and compute capability alone; None where the driver does not say them."""
    name, major, minor = ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_int(), ctypes.c_int()
    refused = driver.cuDeviceGetName(name, len(name), device)
    for number, which in ((major, _MAJOR), (minor, _MINOR)):
        refused = refused or driver.cuDeviceGetAttribute(ctypes.byref(number), which, device)
    if refused:
        return None
    arch = f"sm_{major.value}{minor.value}"
    return Device(kind="cuda", name=name.value.decode(errors="replace"), arch=arch, ordinal=ordinal)
