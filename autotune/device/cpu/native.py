"""The compiled side of the cpu backend: its structs, the libraries of kernels, the one runtime library."""

import _ctypes
import ctypes
import shlex
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Cache, RuntimeCxx, compile_one, runtime_batch, symbol_function

CONSTANT_BYTES = 65536
ASCENDING, DESCENDING, DRAWN = range(3)  # kernels/include/autotune/cpu/abi.hpp: Order


class LaunchRequest(ctypes.Structure):
    """kernels/include/autotune/cpu/abi.hpp: Launch."""

    _fields_ = (
        ("runtime", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("workers", ctypes.c_uint),
        ("arguments_count", ctypes.c_uint),
        ("shared_bytes", ctypes.c_ulonglong),
        ("arguments", ctypes.c_void_p),
        ("argument_bytes", ctypes.c_void_p),
        ("order", ctypes.c_uint),
        ("cooperative", ctypes.c_uint),
        ("seed", ctypes.c_ulonglong),
        ("elapsed_ns", ctypes.c_longlong),
    )


class HostTexture(ctypes.Structure):
    """kernels/include/autotune/cpu/texture.hpp: autotune_texture."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("width", ctypes.c_ulonglong),
        ("height", ctypes.c_ulonglong),
        ("pitch", ctypes.c_ulonglong),
    )


@dataclass
class LoadedLibrary:
    """A loaded library, its constant window, the lock for that and for the source's own arrays, and how many modules
    use them."""

    handle: int
    library: ctypes.CDLL
    window: NDArray[np.uint8]
    lock: threading.RLock = field(default_factory=threading.RLock)
    users: int = 0

    def variable(self, symbol: str) -> NDArray[np.uint8]:
        """The bytes of a variable of the source (see ``compile.symbol_function``)."""
        size = ctypes.c_ulonglong()
        find = getattr(self.library, symbol_function(symbol))
        find.restype = ctypes.c_void_p
        address = find(ctypes.byref(size))
        return np.frombuffer(memoryview((ctypes.c_ubyte * size.value).from_address(address)), np.uint8)


@dataclass
class _Images:
    """Libraries by path: a library is one for all variants in it and has one constant window."""

    loaded: dict[Path, LoadedLibrary] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def acquire(self, path: Path) -> LoadedLibrary:
        with self.lock:
            if path not in self.loaded:
                handle = _ctypes.dlopen(str(path), ctypes.DEFAULT_MODE)
                library = ctypes.CDLL(str(path), handle=handle)
                library.autotune_constant_window.restype = ctypes.c_void_p
                address = library.autotune_constant_window()
                raw = (ctypes.c_ubyte * CONSTANT_BYTES).from_address(address)
                self.loaded[path] = LoadedLibrary(handle, library, np.frombuffer(memoryview(raw), np.uint8))
            image = self.loaded[path]
            image.users += 1
            return image

    def release(self, path: Path) -> None:
        with self.lock:
            image = self.loaded[path]
            image.users -= 1
            if image.users == 0:
                del self.loaded[path]
                _ctypes.dlclose(image.handle)


images = _Images()


class _Runtime:
    """The library with the pool of threads: one in a process, whichever compiler made it, to its end."""

    def __init__(self) -> None:
        self._table = 0
        self._lock = threading.Lock()

    def table(self, command: tuple[str, ...], root: Path) -> int:
        """The address of its functions; compiled by ``command`` and cached in ``root`` when it is first wanted."""
        with self._lock:
            if not self._table:
                failed = f"{shlex.join(command)} does not compile the cpu runtime: "
                built = compile_one(runtime_batch(), RuntimeCxx(command), Cache(root), failed)
                library = ctypes.CDLL(str(built.image))
                library.autotune_runtime.restype = ctypes.c_void_p
                self._table = int(library.autotune_runtime())
            return self._table


runtime = _Runtime()
