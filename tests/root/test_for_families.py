"""What families get besides the packages' own names: an application that is imported when it runs, and the latest of
what is made of an object."""

import gc
import shutil
import weakref
from pathlib import Path
from typing import Any

import pytest

import autotune.family
from autotune.errors import FamilyError
from autotune.family import Application, Latest, UnknownName, family_module, load_family, on_demand


def test_an_application_is_imported_when_it_runs() -> None:
    calls: list[Any] = []

    def run(*given: Any) -> None:
        calls.append(given)

    @on_demand
    def application() -> Application:
        """What it does."""
        calls.append("imported")
        return run

    assert calls == [] and application.__doc__ == "What it does."

    def open_kernel(name: str = "") -> Any:
        raise AssertionError(name)

    application({"a": "b"}, Path("out"), open_kernel, print)
    assert calls == ["imported", ({"a": "b"}, Path("out"), open_kernel, print)]


def test_a_name_that_is_not_for_families_is_none() -> None:
    with pytest.raises(AttributeError, match=r"'autotune\.family' has no attribute 'Resident'"):
        autotune.family.Resident  # noqa: B018


def test_another_familys_modules_are_those_that_it_loads_itself() -> None:
    family = load_family("coulomb")
    assert family_module("coulomb", "family") is family_module("coulomb", "family")
    assert family_module("coulomb", "family").__spec__.name.startswith(family.module.__name__)  # type: ignore[union-attr]
    assert Path(str(family_module("coulomb", "app.run").__file__)) == family.folder / "app" / "run.py"


def test_what_is_no_module_of_a_family_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'coulomb'"):
        family_module("culomb", "inputs")
    with pytest.raises(ModuleNotFoundError, match=r"\.input'"):
        family_module("coulomb", "input")
    coulomb = load_family("coulomb").folder
    for name in ("family.yaml", "coulomb.cu"):
        shutil.copy(coulomb / name, tmp_path)
    with pytest.raises(
        FamilyError, match=r"has no family\.py, so no modules either: write one next to inputs\.py"
    ):
        family_module(str(tmp_path), "inputs")


class Owner:
    """What can be referred to weakly, as arrays can."""


def test_the_latest_is_made_once_for_an_object_and_a_key() -> None:
    latest, made = Latest[object](), []

    def make() -> object:
        made.append(weakref.ref(thing := Owner()))
        assert all(earlier() is None for earlier in made[:-1]), "the one before is still held"
        return thing

    one, other = Owner(), Owner()
    first = latest.get(one, "a", make)
    assert latest.get(one, "a", make) is first and len(made) == 1
    del first
    latest.get(one, "b", make)
    latest.get(other, "b", make)
    latest.get(one, "b", make)
    assert len(made) == 4


def test_the_latest_is_forgotten_with_its_object() -> None:
    latest, owner = Latest[Owner](), Owner()
    made = weakref.ref(latest.get(owner, None, Owner))
    assert made() is not None
    del owner
    gc.collect()
    assert made() is None


def test_completion_shows_what_is_offered_and_nothing_else() -> None:
    import autotune.record

    assert dir(autotune) == sorted({*autotune.__all__, "torch"})
    assert {"load", "sweep", "Kernel"} <= {*dir(autotune)}
    assert dir(autotune.family) == sorted(autotune.family.__all__)
    for name in dir(autotune.record):
        assert hasattr(autotune.record, name)
