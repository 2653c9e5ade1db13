"""Every script in benchmarks/ can be imported: what it takes from autotune is there."""

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from unittest.mock import MagicMock

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
PEERS = ("torch", "cupy", "pycuda", "pyscf", "numba", "kernel_tuner")  # what scripts compare with


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_script_can_be_imported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in PEERS:
        if find_spec(name) is None:
            monkeypatch.setitem(sys.modules, name, MagicMock())
    name = f"imported_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec and spec.loader
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    assert callable(getattr(module, "main", None)) or not path.read_text().rstrip().endswith("main()")
