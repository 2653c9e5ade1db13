"""examples/tour.ipynb runs from its first cell to its last on the cpu, and is kept without outputs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from import_path import import_path

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "examples" / "tour.ipynb"
# A process of its own: the client talks to the kernel over sockets that it leaves to the collector, which warns.
EXECUTE = """
import sys, nbformat, nbclient
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=".")
nbformat.write(notebook, "executed.ipynb")
"""


def cells(path: Path) -> list[dict[str, Any]]:
    """The code cells."""
    return [
        cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
    ]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory, compile_cache: str) -> Path:
    folder = tmp_path_factory.mktemp("tour")
    own = {name: str(folder / name) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR")}
    own["AUTOTUNE_CACHE"] = compile_cache
    environment = os.environ | own | {"PYTHONPATH": import_path(), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(TOUR)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def shown(executed: Path, kind: str) -> str:
    """Everything of a kind of output (``text/html``, ``text/plain``) that the notebook shows."""
    outputs = [output for cell in cells(executed / "executed.ipynb") for output in cell["outputs"]]
    return "".join("".join(output.get("data", {}).get(kind, [])) for output in outputs)


@pytest.mark.notebook
def test_it_sweeps_shows_the_study_and_dispatches(executed: Path) -> None:
    results = executed / "autotune-results" / "allpairs"
    assert (results / "report.html").is_file()
    assert list((executed / "policies" / "allpairs").glob("cpu-*.yaml"))
    html = shown(executed, "text/html")
    assert "allpairs on given-112x512-" in html  # the study's own display
    for role in ("winner", "control", "coalesced"):
        assert role in html
    assert "'exact'" in shown(executed, "text/plain")


@pytest.mark.notebook
def test_nothing_is_said_unasked(executed: Path) -> None:
    """No warning either, of what is imported."""
    streams = [
        [output["name"] for output in cell["outputs"] if output["output_type"] == "stream"]
        for cell in cells(executed / "executed.ipynb")
    ]
    printed = [set(names) for names in streams if names]  # a print may arrive in pieces
    assert printed == [{"stdout"}, {"stdout"}]  # what the tour itself prints


def test_it_is_kept_without_outputs() -> None:
    for cell in cells(TOUR):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
