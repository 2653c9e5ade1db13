"""The C++ files that decide a family's binaries: those of its folder, and all that they include from any folder.

A family's identity must be known before the compiler runs, so this module follows the includes as text, in the order in
which a compiler looks for them, also those that a condition leaves out. After each call the compiler's own list of the
files that it read is compared with this one (see ``batches``). Headers that are neither next to the file that includes
them, nor in the layout library, nor in the family's folder are the compiler's; its version is part of its identity.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from autotune.errors import FamilyError, explained

SUFFIXES = frozenset({".cu", ".cuh", ".h"})  # of a folder's files that count whether they are included or not
EDITORS_HEADER = "default.cuh"  # made by `autotune show … --header`; no compiler reads it (AUTOTUNE_VARIANTS)
LIBRARY = "autotune/array.cuh"  # in the library: included before a source that is compiled unmodified
CONVERT = "autotune/convert.cuh"  # in the library: what makes copies of arrays in another layout
_SHIM = ".hpp"  # in the library: the cpu device's stand-in for CUDA, part of its toolchain's identity
_DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:)[ \t]*(?:include|include_next|import)\b[ \t]*(.*)$", re.MULTILINE)
_NAMED = re.compile(r'"([^"\n]+)"|<([^>\n]+)>')


def find_quoted_includes(text: str) -> list[str]:
    """What a text includes by name in quotes, whether a condition leaves it out or not."""
    named = (_NAMED.match(directive[1]) for directive in _DIRECTIVE.finditer(text))
    return [match[1] for match in named if match and match[1]]


def sources(folder: Path, library: Path, ahead: Iterable[Path] = ()) -> dict[str, Path]:
    """Every C++ file of ``folder`` but the editors' header, those that every unit has ``ahead``, and every file that
    one of them reaches, by its name below the folder or the library (or as seen from the folder).

    A header of the library that no file reaches decides nothing: a new one there leaves what was measured valid. Raises
    FamilyError for an include whose file is only known to a preprocessor."""
    own = (path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    roots = sorted(path for path in own if path != folder / EDITORS_HEADER)
    return follow_includes([*roots, *ahead], folder, library)


def follow_includes(roots: Iterable[Path], folder: Path, library: Path | None = None) -> dict[str, Path]:
    """``roots`` and all that they include, by name. Raises FamilyError as ``sources`` does."""
    folders = [place for place in (library, folder) if place]
    left_out = {folder / EDITORS_HEADER}
    todo = list(roots)
    files = set(todo)
    while todo:
        path = todo.pop()
        for name, is_quoted in _includes(path):
            target = _target(name, [*([path.parent] if is_quoted else []), *folders])
            is_shim = target and library and target.suffix == _SHIM and target.is_relative_to(library)
            if target and not is_shim and target not in files | left_out:
                files.add(target)
                todo.append(target)
    return dict(sorted((_name(path, folder, library), path) for path in files))


def hash_files(files: Mapping[str, Path]) -> dict[str, tuple[Path, str]]:
    """Each file with the sha256 of its bytes. Raises FamilyError."""
    try:
        return {name: (path, hashlib.sha256(path.read_bytes()).hexdigest()) for name, path in files.items()}
    except OSError as problem:
        raise FamilyError(f"{problem.filename} cannot be read: {problem.strerror or problem}") from None


def combine(files: Mapping[str, tuple[Path, str]]) -> str:
    """sha256 over names and contents of what ``hash_files`` gives."""
    lines = "".join(f"{digest} {name}\n" for name, (_, digest) in files.items())
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def _includes(path: Path) -> list[tuple[str, bool]]:
    """The names that a file includes, and whether in quotes. Raises FamilyError."""
    with explained(FamilyError, f"{path} cannot be read:"):
        content = path.read_bytes()
    text = os.fsdecode(content).replace("\r\n", "\n").replace("\\\n", "")
    includes = []
    for directive in _DIRECTIVE.finditer(text):
        if named := _NAMED.match(directive[1]):
            includes.append((named[1] or named[2], bool(named[1])))
        elif re.match(r"[A-Za-z_]", directive[1]):
            raise FamilyError(
                f"{path} has `{directive[0].strip()}`: only a preprocessor knows which file that is, so autotune "
                "could not detect that a measurement is out of date; write the file's name, under #if for each "
                "case where there are several"
            )
    return includes


def _target(name: str, places: Iterable[Path]) -> Path | None:
    """The file that a compiler takes; None for one that it has of its own."""
    paths = (Path(os.path.normpath(place / name)) for place in places)
    return next(filter(Path.is_file, paths), None)


def _name(path: Path, folder: Path, library: Path | None) -> str:
    if path.is_relative_to(folder):
        return path.relative_to(folder).as_posix()
    if library and path.is_relative_to(library):
        name = path.relative_to(library).as_posix()
        return name if not (folder / name).is_file() else f"library/{name}"
    return Path(os.path.relpath(path, folder)).as_posix()
