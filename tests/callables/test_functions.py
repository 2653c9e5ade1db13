"""A function as another process imports it, and what its digest is of."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from called_functions import scaled

from autotune.callables import functions
from autotune.callables.functions import Importable
from autotune.errors import UsageError

SCALE = 3


def helper(x: int) -> int:
    return x * SCALE


def with_helper(x: int) -> int:
    """Calls another."""
    return helper(x)


def test_a_function_is_found_by_its_name() -> None:
    found = Importable.make(scaled)
    assert (found.module, found.name) == ("called_functions", "scaled")
    assert found.load() is scaled


def test_a_function_inside_another_is_sent_as_it_is_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def inner(x: int) -> int:
        return x

    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(UsageError, match="put it at the top of a module, or pip install cloudpickle"):
        Importable.make(inner)


def test_a_module_that_cannot_be_imported_is_said() -> None:
    with pytest.raises(UsageError, match="a measuring process cannot import no_such_module, which defines f"):
        Importable("f", module="no_such_module").load()


def made(tmp_path: Path, name: str, text: str) -> ModuleType:
    (tmp_path / f"{name}.py").write_text(text)
    sys.modules.pop(name, None)
    spec: Any = functions.importlib.util.spec_from_file_location(name, tmp_path / f"{name}.py")
    module: ModuleType = functions.importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TEXT = "SIZE = {size}\ndef inner(x):\n    return x + {more}\n{ahead}def f(x):\n    return inner(x) * SIZE\n"


def test_the_digest_is_of_what_the_function_does(tmp_path: Path) -> None:
    def digest(number: int, size: int = 1, more: int = 1, ahead: str = "") -> str:
        module = made(tmp_path, f"module{number}", TEXT.format(size=size, more=more, ahead=ahead))
        module.f.__module__ = module.inner.__module__ = "module"
        return functions.digest(module.f)

    assert digest(1) == digest(2)
    assert digest(3, ahead="# a comment\n") == digest(1)
    assert digest(4, size=2) != digest(1), "a number that it reads"
    assert digest(5, more=2) != digest(1), "a function that it calls"


def test_the_digest_follows_helpers_of_its_own_module() -> None:
    before = functions.digest(with_helper)
    assert before == functions.digest(with_helper)
    assert before != functions.digest(helper)
