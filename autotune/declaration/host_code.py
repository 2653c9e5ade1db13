"""A family's code for the host: what decides its inputs, orders, plans and reference, next to family.yaml.

That is its Python, and the C++ that this Python has compiled (``host_library``). What counts is what ``family.py``
imports, in functions too, from its own folder or from anywhere else that is the user's: not the standard library,
not installed packages, not autotune. Data files that Python reads cannot be known.
"""

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import all_suffixes
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from autotune.declaration.source_files import follow_includes, hash_files
from autotune.errors import FamilyError

_LIBRARIES = frozenset({".c", ".cc", ".cpp", ".cxx"})
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def host_code(folder: Path, module: ModuleType | None) -> dict[str, Path]:
    """The files by their name as seen from ``folder``. ``module`` is its ``family.py``, loaded: what that has imported
    by a name made at run time counts too."""
    if module is None:
        return {}
    found = _follow_imports(folder / "family.py") | _list_loaded(module.__name__)
    own = sorted(path for path in folder.rglob("*") if path.suffix in _LIBRARIES and path.is_file())
    found |= set(follow_includes(own, folder).values())
    return dict(sorted((Path(os.path.relpath(path, folder)).as_posix(), path) for path in found))


def texts(folder: Path, package: str) -> dict[str, str]:
    """The sha256 of ``family.py``, and of the modules of its ``package`` that are there now, by their paths. Raises
    FamilyError."""
    files = {folder / "family.py"} | _list_loaded(package)
    return {name: digest for name, (_, digest) in hash_files({str(file): file for file in files}).items()}


def is_edited(known: Mapping[str, str]) -> bool:
    """Whether a file is not as it was when ``texts`` gave ``known``."""
    try:
        return any(
            digest != known[name] for name, (_, digest) in hash_files({n: Path(n) for n in known}).items()
        )
    except FamilyError:  # it has gone
        return True


def _follow_imports(file: Path) -> set[Path]:
    """``file`` and all that it imports, and so on."""
    files, todo = {file}, [file]
    while todo:
        path = todo.pop()
        fresh = set(_imports(path)) - files if path.suffix == ".py" else set()
        files |= fresh
        todo += fresh
    return files


def _imports(path: Path) -> Iterator[Path]:
    """The files that the import statements of one file may run."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # Python says so better, when it is imported
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _find_absolute(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            base = node.module.split(".") if node.module else []
            if node.level:
                place = path.parents[min(node.level, len(path.parents)) - 1]
                yield from (file for name in names for file in _find_along(place, [*base, name]))
            else:
                yield from (file for name in names for file in _find_absolute([*base, name]))


def _find_absolute(words: list[str]) -> Iterator[Path]:
    """The files of a module that is imported by its whole name, where it is the user's own."""
    top = words[0]
    if top == "autotune" or top in sys.stdlib_module_names:
        return
    try:
        spec = find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return
    if spec is None:
        return
    origin = [Path(spec.origin)] if spec.has_location and spec.origin else []
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    if any(_INSTALLED & set(place.parts) for place in (*origin, *places)):
        return
    yield from (path.resolve() for path in origin if path.is_file())
    for place in places:
        yield from _find_along(place.resolve(), words[1:])


def _find_along(place: Path, words: list[str]) -> Iterator[Path]:
    """What importing the module ``words`` below ``place`` runs; a last word that is no module is a name in the one
    before."""
    for word in words:
        files = [place / f"{word}{ending}" for ending in all_suffixes()]
        yield from (file for file in files if file.is_file())
        place /= word
        if (package := place / "__init__.py").is_file():
            yield package


def _list_loaded(package: str) -> set[Path]:
    """The files of the package's modules that are there now."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(f"{package}.")]
    files = [getattr(module, "__file__", None) for module in modules]
    return {Path(file).resolve() for file in files if file}
