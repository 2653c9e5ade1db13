"""What stands on the core: a line names a package and what it adds to autotune.

Without its line, and its folder, a package is gone and the rest works on. Its modules are imported when they are used:

- ``commands``: ``NAME_command`` for each command of the line;
- ``families``: ``read_family(path)`` for files that declare a family and end so;
- ``records``: ``read_study(path)`` for files that hold a record and end so;
- ``loads``: ``load(folder, device, policies, cache)`` of the package for folders that have a file of that name;
- ``ranks``: ``agreement.check_ranks(files, families, out)`` for ``autotune check --ranks``;
- ``names``: what ``autotune`` itself gives by these names;
- ``reports``: ``make_blocks(study, family, folder)`` of these modules, for the report of a record in ``folder``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What a package adds, as above; ``commands`` with their help."""

    commands: Mapping[str, str] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    loads: str = ""
    names: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    ranks: bool = False


EXTENSIONS = {
    "adopt": Extension(
        commands={
            "adopt": "Turn an unmodified kernel into a family. Pointers become accessors, and both kernels are run "
            "and compared."
        }
    ),
    "advise": Extension(
        commands={
            "advise": "Which layouts would help, without a GPU. From traced accesses of a plain kernel or a family.",
            "why": "Explain why one configuration is faster than another. Policy by policy, with hardware counters.",
        },
        reports=("why", "receipt"),
    ),
    "authoring": Extension(
        commands={
            "new": "Create the folder of a new family. Its small kernel runs at once; replace it with yours.",
            "lint": "Check a family without a GPU or a compiler. Exit code 0 without errors, 3 with them.",
        }
    ),
    "callables": Extension(
        names=("tune", "tuned"),
    ),
    "export": Extension(
        commands={
            "export": "Export the winners as CUDA C++17 for programs without Python. Kernels, layouts, dispatch "
            "table, an example."
        },
        names=("torch",),
    ),
    "kernel_tuner": Extension(
        commands={
            "convert": "Write a record in the form of other tuners. Each study as a Kernel Tuner cache file or T4 "
            "results, or all of them as one results.csv.",
            "import": "Import other tuners' files as a results.csv. All commands on records read it.",
        },
        families=(".json",),
        records=(".json", ".json.gz"),
    ),
    "program": Extension(
        commands={"program": "Tune a whole program: one layout for each array that its kernels share."},
        loads="program.yaml",
        names=("Program",),
    ),
    "ranking": Extension(
        commands={
            "rank": "Rank configurations by their traced accesses, without a GPU. A search in that folder begins with "
            "the first."
        }
    ),
    "registry": Extension(
        commands={
            "pull": "Take a policy file from a registry. What it names is proved here before a program uses it.",
            "push": "Put a policy file into a registry: a folder, or a git working tree. Sends nothing anywhere.",
        },
        names=("pull", "push"),
    ),
    "spread": Extension(
        commands={
            "spread": "Run the tuned kernel once on several devices, or on the ranks of an MPI program."
        },
        names=("Agreement",),
        ranks=True,
    ),
}


def reader_of(path: str, module: Literal["families", "records"]) -> Any:
    """The module of an extension that reads files of the name ``path``; None where none does."""
    for package, extension in EXTENSIONS.items():
        if path.endswith(getattr(extension, module)):
            return import_module(f"autotune.{package}.{module}")
    return None


def blocks_of(study: Any, family: Any, folder: Path) -> list[Any]:
    """What extensions add to the report on a study of ``family`` (None where it is not known)."""
    modules = [f"autotune.{name}.{module}" for name, one in EXTENSIONS.items() for module in one.reports]
    return [block for name in modules for block in import_module(name).make_blocks(study, family, folder)]


def loader_of(folder: Any) -> Any:
    """``load`` of the extension that has ``folder`` to load; None where none has."""
    for package, extension in EXTENSIONS.items():
        if extension.loads and Path(folder, extension.loads).is_file():
            return import_module(f"autotune.{package}").load
    return None


def check_of_ranks() -> Any:
    """``check_ranks`` of the extension that knows of ranks; None where none does."""
    of = [package for package, extension in EXTENSIONS.items() if extension.ranks]
    return import_module(f"autotune.{of[0]}.agreement").check_ranks if of else None
