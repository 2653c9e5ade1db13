"""What a family's Python, and a program that builds on families, may import of autotune; no other module is for them.

Importing it loads the errors and nothing else; every other name is loaded by the ``from autotune.family import`` that
asks for it.
"""

import weakref
from collections.abc import Callable, Hashable, Mapping
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

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
    from autotune.layout import Links, named_orders

__all__ = [
    "Application", "AutotuneError", "CompilerError", "DeviceProgram", "Execution", "Inputs", "Latest", "Links",
    "Prepared", "Room", "StoreError", "TunedKernel", "Units", "UnknownName", "UsageError", "WorkloadError",
    "cuda_library", "data_root", "family_module", "find_data", "library", "load_family", "load_workload",
    "named_orders", "on_demand", "pip_install", "prepare", "read_npy", "suggestion",
]  # fmt: skip

_ON_DEMAND = {  # by package
    "compile": "cuda_library library",
    "declaration": "Inputs Units find_data load_family load_workload prepare read_npy",
    "device": "DeviceProgram Execution Room",
    "dispatch": "TunedKernel Prepared",
    "files": "data_root pip_install",
    "layout": "Links named_orders",
}

Made = TypeVar("Made")


def __getattr__(name: str) -> Any:
    """Load what a package offers to families when it is asked for."""
    for package, names in _ON_DEMAND.items():
        if name in names.split():
            return getattr(import_module(f"autotune.{package}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class Application(Protocol):
    """What ``autotune run FAMILY -i NAME=TEXT … -o FILE`` runs if its inputs are not the kernels' arrays: the function
    ``application`` of family.py.

    ``given`` are the texts by name, ``output`` is the file to write (None without ``-o``), which becomes FILE when this
    returns. ``open_kernel()`` opens the device and returns the family's kernel, ``open_kernel(NAME)`` another family's;
    check the input before. ``note`` prints a line.
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
    def application(*given: Any, **named: Any) -> None:
        imported()(*given, **named)

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
            f"family {family} has no family.py, so no modules either: write one next to {name}.py"
        )
    return import_module(f"{package.__name__}.{name}")


class Latest(Generic[Made]):
    """What was made of an object the last time: made again for another object or key, freed with the object. So what
    takes long, or much memory, is made once for many configurations and never held twice."""

    def __init__(self) -> None:
        self._kept: tuple[weakref.ref[Any], Hashable, Made] | None = None

    def get(self, owner: object, key: Hashable, make: Callable[[], Made]) -> Made:
        kept = self._kept
        if kept is None or kept[0]() is not owner or kept[1] != key:
            self._kept = kept = None  # before the next is made: each may be large
            kept = self._kept = weakref.ref(owner, self._forget), key, make()
        return kept[2]

    def _forget(self, owner: "weakref.ref[Any]") -> None:
        if self._kept is not None and self._kept[0] is owner:
            self._kept = None
