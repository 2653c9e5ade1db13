"""The pages and notebooks for those who come from Triton, CuPy and Numba: their programs run where the library is."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from import_path import import_path
from test_docs import fences, section
from test_notebook import EXECUTE, cells

ROOT = Path(__file__).parents[2]
NAMES = ("from-triton", "from-cupy", "from-numba", "python")
PAGES = {name: (ROOT / "docs" / "guides" / f"{name}.md").read_text(encoding="utf-8") for name in NAMES}
NOTEBOOKS = sorted(path.stem for path in (ROOT / "examples").glob("from_*.ipynb"))
WITHOUT_A_GPU = {"TRITON_INTERPRET": "1", "NUMBA_ENABLE_CUDASIM": "1"}
MARKED = {"triton": pytest.mark.triton, "numba": pytest.mark.numba, "cupy": pytest.mark.gpu}


def program(page: str) -> tuple[str, str]:
    """The page's whole program, with the name of its file."""
    (found,) = [
        text for language, text in fences(PAGES[page]) if language == "python" and text.startswith("# ")
    ]
    return found.splitlines()[0].removeprefix("# "), found


def run(command: list[str], folder: Path, cache: str) -> str:
    own = {name: str(folder / name) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR")} | {
        "AUTOTUNE_CACHE": cache
    }
    own |= {"PYTHONPATH": import_path(), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    environment = {**WITHOUT_A_GPU, **os.environ, **own}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("from-triton", marks=pytest.mark.triton),
        pytest.param("from-numba", marks=pytest.mark.numba),
        pytest.param("from-cupy", marks=pytest.mark.gpu),
        "python",
    ],
)
def test_the_program_of_a_page_runs(page: str, tmp_path: Path, compile_cache: str) -> None:
    name, text = program(page)
    (tmp_path / name).write_text(text)
    assert run([name], tmp_path, compile_cache)
    (record,) = (tmp_path / "autotune-results").iterdir()
    assert (record / "store.journal").is_file()


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_python_can_be_read(page: str) -> None:
    blocks = [text for language, text in fences(PAGES[page]) if language == "python"]
    assert blocks
    for text in blocks:
        ast.parse(text)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKED[name.removeprefix("from_")]) for name in NOTEBOOKS]
)
def test_a_notebook_runs(name: str, tmp_path: Path, compile_cache: str) -> None:
    run(["-c", EXECUTE, str(ROOT / "examples" / f"{name}.ipynb")], tmp_path, compile_cache)
    outputs = [one for cell in cells(tmp_path / "executed.ipynb") for one in cell["outputs"]]
    assert not [one for one in outputs if one["output_type"] == "error"]


def test_there_is_a_notebook_for_each_and_it_is_kept_without_outputs() -> None:
    assert NOTEBOOKS == ["from_cupy", "from_numba", "from_triton"]
    for name in NOTEBOOKS:
        for cell in cells(ROOT / "examples" / f"{name}.ipynb"):
            assert cell["outputs"] == [] and cell["execution_count"] is None
        assert json.loads((ROOT / "examples" / f"{name}.ipynb").read_text())["nbformat"] == 4


@pytest.mark.triton
def test_every_argument_of_tritons_decorator_is_in_a_table() -> None:
    import inspect

    import triton

    from autotune.callables.triton import autotune

    told = section(PAGES["from-triton"], "## Arguments")
    own = set(inspect.signature(triton.autotune).parameters)
    assert own <= set(inspect.signature(autotune).parameters)
    assert not [name for name in own if f"`{name}`" not in told]
