"""What a machine lacks leaves tests out, by one line of the summary for each thing; nothing else does."""

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest


def load_conftest() -> Any:
    """The one of all tests: a folder of tests may have one of that name, too."""
    spec = spec_from_file_location("conftest_of_tests", Path(__file__).parents[1] / "conftest.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


conftest = load_conftest()


def report(request: pytest.FixtureRequest, name: str) -> pytest.TestReport:
    """What the summary has of a test that imports a module that is not there."""
    call = pytest.CallInfo.from_call(lambda: importlib.import_module(name), "call")
    made = conftest.pytest_runtest_makereport(request.node, call)
    next(made)
    with pytest.raises(StopIteration) as ended:
        made.send(pytest.TestReport.from_item_and_call(request.node, call))
    return ended.value.value


@pytest.mark.parametrize("package", conftest._HEAVY)
def test_a_heavy_package_that_is_not_installed(
    package: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    left_out = report(request, package)
    assert left_out.skipped and left_out.longrepr[2] == f"Skipped: needs {package} (dependency group heavy)"


def test_one_that_is_installed_without_the_module(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", sys)
    monkeypatch.setattr(conftest, "find_spec", lambda _: object())
    assert report(request, "sklearn.none").failed


def test_another_package_that_is_not_installed(request: pytest.FixtureRequest) -> None:
    assert report(request, "no_such_package").failed


def test_a_binding_without_its_library_will_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    class Binding:
        @staticmethod
        def nvrtcVersion() -> tuple[int, int, int]:  # noqa: N802
            raise RuntimeError("No such file: libnvrtc.so.13")

    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", Binding)
    assert not conftest._has_nvrtc()
    monkeypatch.setattr(Binding, "nvrtcVersion", staticmethod(lambda: (0, 13, 0)))
    assert conftest._has_nvrtc()


def test_what_a_marker_names_is_missing(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of conftest.py leaves them all out, so that the summary counts them together."""
    item, config = request.node, request.config
    item.add_marker(pytest.mark.shared)
    monkeypatch.setitem(conftest._NEEDS, "shared", (lambda: False, "the genomes"))
    monkeypatch.setattr(config.option, "require", [])
    conftest.pytest_collection_modifyitems(config, [item])
    with pytest.raises(pytest.skip.Exception, match=r"^needs the genomes$"):
        conftest.pytest_runtest_setup(item)
    item.stash[conftest._MISSING] = ""
    monkeypatch.setattr(config.option, "require", ["shared"])
    conftest.pytest_collection_modifyitems(config, [item])
    conftest.pytest_runtest_setup(item)  # it runs, and fails where the genomes are not
