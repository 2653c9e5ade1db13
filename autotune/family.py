"""What a family's Python, and a program that builds on families, may import of autotune; no other module is for them.

Importing it loads the errors and nothing else; every other name is loaded by the ``from autotune.family import`` that
asks for it.
"""

import os
import time
import weakref
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from autotune import lazy
from autotune.errors import (
    AutotuneError,
    CompilerError,
    FamilyError,
    StoreError,
    UnknownName,
    UsageError,
    WorkloadError,
    suggestion,
)

if TYPE_CHECKING:
    from autotune.compile import cuda_library, library
    from autotune.declaration import Inputs, Units, find_data, load_family, load_workload, prepare, read_npy
    from autotune.device import DeviceProgram, Execution, Room
    from autotune.dispatch import Prepared, TunedKernel
    from autotune.files import data_root, pip_install
    from autotune.hardware import leave_driver
    from autotune.layout import Links, named_orders

__all__ = [
    "Application",
    "AutotuneError",
    "CompilerError",
    "DeviceProgram",
    "Execution",
    "Inputs",
    "Latest",
    "Links",
    "Prepared",
    "Room",
    "StoreError",
    "TunedKernel",
    "Units",
    "UnknownName",
    "UsageError",
    "WorkloadError",
    "command_seconds",
    "cuda_library",
    "data_root",
    "family_module",
    "find_data",
    "leave_driver",
    "library",
    "load_family",
    "load_workload",
    "named_orders",
    "on_demand",
    "pip_install",
    "prepare",
    "read_npy",
    "suggestion",
]

_ON_DEMAND = {  # by package
    "compile": "cuda_library library",
    "declaration": "Inputs Units find_data load_family load_workload prepare read_npy",
    "device": "DeviceProgram Execution Room",
    "dispatch": "TunedKernel Prepared",
    "files": "data_root pip_install",
    "hardware": "leave_driver",
    "layout": "Links named_orders",
}

Made = TypeVar("Made")

_TICKS = "SC_CLK_TCK"
_AFTER_NAME = 19  # /proc/self/stat: the process's begin, counted from what follows its name
_began: float | None = None

__getattr__ = lazy("autotune", _ON_DEMAND, __name__)


def command_begins() -> None:
    """This process is one command and nothing else: called once, where it begins."""
    global _began  # noqa: PLW0603 - of the process
    _began = time.perf_counter()
    with suppress(OSError, ValueError, IndexError):  # some systems do not tell
        told = (
            Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(told[_AFTER_NAME]) / os.sysconf(_TICKS)
        _began -= max(0.0, age)


def command_seconds() -> float:
    """How long the command has run, the start of its process and all imports counted; 0 within another program."""
    return 0.0 if _began is None else time.perf_counter() - _began


class Application(Protocol):
    """What ``autotune run FAMILY -i NAME=TEXT … -o FILE`` does where what is given is not the kernels' own arrays: the
    function ``application`` of family.py.

    ``given`` are the texts by name, ``output`` is the file to write (None without ``-o``), which becomes FILE when this
    returns. ``open_kernel()`` opens the device and gives the family's kernel, ``open_kernel(NAME)`` another family's;
    what can be seen to be wrong before is refused before. ``note`` prints a line.
    """

    def __call__(
        self,
        given: Mapping[str, str],
        output: Path | None,
        open_kernel: Callable[..., "TunedKernel"],
        note: Callable[[str], None],
    ) -> None: ...


def on_demand(imported: Callable[[], Application]) -> Application:
    """The application that ``imported`` imports and returns, so that only ``autotune run`` loads it."""

    @wraps(imported)
    def application(
        given: Mapping[str, str],
        output: Path | None,
        open_kernel: Callable[..., "TunedKernel"],
        note: Callable[[str], None],
    ) -> None:
        imported()(given, output, open_kernel, note)

    return application


@cache  # a family's YAML is read each time
def family_module(family: str, name: str) -> ModuleType:
    """``kernels/FAMILY/NAME.py`` as that family loads it, for a family that builds on another. ``name`` may have dots,
    for a module in a folder. Once a process. Raises UnknownName, FamilyError; ModuleNotFoundError for what is not
    there."""
    from autotune.declaration import load_family

    package = load_family(family, check=False).module
    if package is None:
        raise FamilyError(
            f"family {family} has no family.py, so no modules either: write one beside {name}.py"
        )
    return import_module(f"{package.__name__}.{name}")


class Latest(Generic[Made]):
    """What was made of an object the last time: made anew for another object or key, forgotten with the object. So that
    what takes long, or much memory, is made once for many configurations and never held twice."""

    def __init__(self) -> None:
        self._kept: tuple[weakref.ref[Any], Hashable, Made] | None = None

    def of(self, owner: object, key: Hashable, make: Callable[[], Made]) -> Made:
        kept = self._kept
        if kept is None or kept[0]() is not owner or kept[1] != key:
            self._kept = kept = None  # before the next is made: each may be large
            kept = self._kept = weakref.ref(owner, self._forget), key, make()
        return kept[2]

    def _forget(self, owner: "weakref.ref[Any]") -> None:
        if self._kept is not None and self._kept[0] is owner:
            self._kept = None
