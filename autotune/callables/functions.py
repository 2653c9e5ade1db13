"""A function as another process imports it, and the text that decides what it does."""

import ast
import hashlib
import importlib.util
import inspect
import pickle
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from autotune.errors import UsageError

_PROGRAM = "__autotune_program__"  # the name under which a measuring process imports one
_KERNELS = (
    "fn",
    "py_func",
    "func",
    "__wrapped__",
    "function",
)  # where a kernel or a wrapper has its function
_loading: list[str] = []  # what this process imports for a function


@dataclass(frozen=True)
class Importable:
    """Where another process finds a function: ``name`` in a ``module``, or in the ``file`` of a program; else the
    function ``pickled``."""

    name: str
    module: str = ""
    file: str = ""
    pickled: bytes = b""

    @classmethod
    def make(cls, function: Callable[..., Any]) -> "Importable":
        """Raises UsageError for a function that no other process can import."""
        name = getattr(function, "__qualname__", type(function).__name__)
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        if module is not None and any(one is function for one in layers(_find_attribute(module, name))):
            if module.__name__ != "__main__":
                return cls(name, module=module.__name__)
            if file := getattr(module, "__file__", ""):
                return cls(name, file=str(Path(file).resolve()))
        return cls(name, pickled=_pickle(function, name))

    def load(self) -> Callable[..., Any]:
        """The function, imported into this process. Raises UsageError."""
        found: Callable[..., Any] = self.find()
        return next((one for one in layers(found) if isinstance(one, FunctionType)), found)

    def find(self) -> Any:
        """What has its name there: the function, or what wraps it. Raises UsageError."""
        if self.pickled:
            return pickle.loads(self.pickled)  # noqa: S301 - the parent process made it
        _loading.append(self.name)
        try:
            module = _program(self.file) if self.file else import_module(self.module)
        except UsageError:
            raise
        except Exception as problem:
            raise UsageError(
                f"a measuring process cannot import {self.file or self.module}, which defines {self.name}: "
                f"{type(problem).__name__}: {problem}"
            ) from problem
        finally:
            _loading.pop()
        return _find_attribute(module, self.name)


def refuse_while_loading(what: str) -> None:
    """Raise UsageError where this process only imports a program to find a function in it."""
    if _loading:
        raise UsageError(
            f"{what} runs while the program is imported for {_loading[-1]}: put what the program does below "
            '`if __name__ == "__main__":`, since each measuring process imports the file'
        )


def _program(file: str) -> ModuleType:
    if _PROGRAM not in sys.modules:
        spec = importlib.util.spec_from_file_location(_PROGRAM, file)
        assert spec is not None and spec.loader is not None
        module = sys.modules[_PROGRAM] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[_PROGRAM]


def _find_attribute(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def layers(found: Any) -> Iterator[Any]:
    """An object, and what it wraps."""
    for _ in range(8):
        if found is None:
            return
        yield found
        inside = [] if isinstance(found, type) else [getattr(found, key, None) for key in _KERNELS]
        found = next((one for one in inside if callable(one) or hasattr(one, "run")), None)


def _pickle(function: Callable[..., Any], name: str) -> bytes:
    with suppress(Exception):
        if not isinstance(function, FunctionType):  # an object of a class that can be imported
            return pickle.dumps(function)
    try:
        cloudpickle = import_module("cloudpickle")
        pickled: bytes = cloudpickle.dumps(function)
    except ImportError:
        raise UsageError(
            f"{name} is defined inside a function or in a notebook, where a measuring process cannot import it: put it "
            "at the top of a module, or pip install cloudpickle, which sends it as it is"
        ) from None
    except Exception as problem:
        raise UsageError(
            f"{name} cannot be sent to a measuring process ({type(problem).__name__}: {problem}): put it at the top of "
            "a module, and give what it needs as arguments"
        ) from problem
    return pickled


def digest(function: Any) -> str:
    """sha256 over the source of the function and of what it uses of the same project, as far as names tell."""
    parts: dict[str, str] = {}
    _collect(function, parts)
    told = "\0".join(f"{name}\0{text}" for name, text in sorted(parts.items()))
    return hashlib.sha256(told.encode()).hexdigest()


def _collect(found: Any, parts: dict[str, str]) -> None:
    for layer in layers(found):
        if not isinstance(layer, FunctionType):
            continue
        name = f"{layer.__module__}.{layer.__qualname__}"
        if name in parts or _is_installed(layer):
            return
        try:
            parts[name] = _strip_source(inspect.getsource(layer))
        except (OSError, TypeError, SyntaxError):
            parts[name] = _code_text(layer.__code__)
        names = set(_names(layer.__code__))
        used = {key: layer.__globals__[key] for key in names if key in layer.__globals__}
        for cell, key in zip(layer.__closure__ or (), layer.__code__.co_freevars, strict=False):
            with suppress(ValueError):  # a cell that is not filled yet
                used[key] = cell.cell_contents
        for key, value in used.items():
            if isinstance(value, bool | int | float | str | None | tuple):
                parts[f"{name}.{key}"] = repr(value)
            elif not isinstance(value, ModuleType | type):
                _collect(value, parts)
        return
    if not isinstance(found, FunctionType) and hasattr(found, "__reduce__") and callable(found):
        parts.setdefault(f"object {type(found).__qualname__}", repr(found))


def _strip_source(source: str) -> str:
    """Without comments and decorators, which do not change what it does."""
    tree = ast.parse(textwrap.dedent(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.decorator_list = []
    return ast.unparse(tree)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _code_text(code: CodeType) -> str:
    constants = [_code_text(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _is_installed(function: FunctionType) -> bool:
    """Whether it is of an installed package or of Python, whose version is part of the identity anyway."""
    path = Path(function.__code__.co_filename)
    return bool({"site-packages", "dist-packages"} & set(path.parts)) or path.is_relative_to(sys.base_prefix)


_measuring: list[bool] = []


def measure() -> None:
    """This process measures from now on: a decorated function that a measured one calls is not tuned here."""
    _measuring.append(True)


def is_measuring() -> bool:
    return bool(_measuring)


def is_elsewhere() -> bool:
    """Whether this process measures, or imports a program for another one to find a function in it."""
    return is_measuring() or bool(_loading)
