"""What stands on the core: a line names a package and the modules by which it extends autotune.

Without its line, and its folder, a package is gone and the rest works on. The modules are

- ``commands``: ``COMMANDS``, functions of the command line by their name;
- ``families``: ``SUFFIXES`` of files that declare a family, ``read_family(path)``;
- ``records``: ``SUFFIXES`` of files that hold a record, ``read_study(path)``.
"""

from importlib import import_module
from types import ModuleType

EXTENSIONS = {
    "adopt": ("commands",),
    "export": ("commands",),
    "kernel_tuner": ("commands", "families", "records"),
    "ranking": ("commands",),
    "spread": ("commands",),
}


def extending(module: str) -> list[ModuleType]:
    """Import the modules of that name that extensions have: ``commands``, ``families`` or ``records``."""
    return [
        import_module(f"autotune.{package}.{module}")
        for package, modules in EXTENSIONS.items()
        if module in modules
    ]


def reader_of(path: str, module: str) -> ModuleType | None:
    """The module of an extension that reads files of the name ``path``; None where none does."""
    return next((one for one in extending(module) if path.endswith(one.SUFFIXES)), None)
