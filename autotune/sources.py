"""The C++ files that decide a family's binaries: its folder's, and what they include of the layout library."""

import re
from collections.abc import Iterable
from pathlib import Path

__all__ = ["SUFFIXES", "included_names", "sources"]

SUFFIXES = frozenset(
    {".cu", ".cuh", ".h"}
)  # the cpu device's shim (.hpp) is part of its toolchain's identity instead
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def included_names(path: Path) -> list[str]:
    """What a file includes by name in quotes, whether a condition leaves it out or not."""
    names = _INCLUDE.findall(path.read_text(encoding="utf-8"))
    return [name for name in names if Path(name).suffix in SUFFIXES]


def sources(folder: Path, library: Path) -> dict[str, Path]:
    """Every C++ file of ``folder`` and every header of ``library`` that one of them reaches, by its name below either.

    A header of the library that no file reaches decides nothing: a new one there leaves what was measured valid."""
    found = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    todo = [name for path in found.values() for name in included_names(path)]
    while todo:
        name = todo.pop()
        path = library / name
        if name not in found and path.is_file():
            found[name] = path
            todo += included_names(path)
    return dict(sorted(found.items()))


def _files(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
