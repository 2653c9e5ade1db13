"""docs/guides/unmodified-kernel.md carried out: files written, commands and programs run, on the cpu device."""

import runpy
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from test_docs import TEXTS, fences, section
from test_how_to import carried_out, named_files

from autotune.cli.commands import main
from autotune.declaration import load_family

pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")
PAGE = "docs/guides/unmodified-kernel.md"
STEPS = (("const float* matrix", "Policy::matrix matrix"),
         ("matrix[(first + r) * n + begin + j]", "matrix.load(first + r, begin + j)"))  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, compile_cache: str) -> Path:
    """A folder in which the page was carried out up to the call."""
    folder = tmp_path_factory.mktemp("plain")
    for name, content in named_files(TEXTS[PAGE]).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOTUNE_CACHE", compile_cache)
        patch.chdir(folder)
        run(folder, "times.py")
        carried_out(PAGE, "")
    return folder


def run(folder: Path, name: str) -> str:
    program = (folder / name).read_text()
    for call in ('load("./times"', "load(blur", 'sweep("./times"', "sweep(kernel", "load(study"):
        program = program.replace(call, f'{call}, device="cpu"')
    (folder / name).write_text(program)
    with chdir(folder), redirect_stdout(StringIO()) as printed:
        runpy.run_path(name, run_name="__main__")
    return printed.getvalue()


def test_the_kernel_is_swept_and_called(place: Path) -> None:
    frame = pd.read_csv(place / "autotune-results" / "times" / "results.csv")
    assert set(frame.state) == {"measured"}
    assert len(frame) == 8
    assert f"Each of the {len(frame)} configurations" in TEXTS[PAGE]
    assert run(place, "use.py") == "True\n"
    assert run(place, "tune.py") == "True\n"


def test_all_of_it_in_one_program(place: Path) -> None:
    assert run(place, "all-in-one.py") == "True\n"


def test_the_yaml_by_hand_declares_what_save_wrote(place: Path) -> None:
    (place / "by-hand" / "times.cu").write_text((place / "times.cu").read_text())
    saved, ours = load_family(place / "times"), load_family(place / "by-hand")
    assert saved.space == ours.space
    for name in ("data", "accesses", "extents", "kernels", "choices", "reference"):
        assert getattr(saved, name) == getattr(ours, name), name


def test_a_filter_in_constant_memory(place: Path) -> None:
    printed = run(place, "blur.py")
    assert "0.33" in printed and "4.66" in printed


def test_one_array_becomes_an_accessor_beside_the_kernel_as_it_was(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepwise, text = place / "stepwise", (place / "times.cu").read_text()
    (stepwise / "before.cu").write_text(text)
    said = section(TEXTS[PAGE], "## One array at a time")
    for before, after in STEPS:
        assert before in text and f"`{before}`" in said and f"`{after}`" in said
        text = text.replace(before, after)
    (stepwise / "times.cu").write_text(text)
    monkeypatch.chdir(place)
    words = [
        "sweep",
        "./stepwise",
        "--workload",
        "small.yaml",
        "--device",
        "cpu",
        "--samples",
        "3",
        "--out",
        "step",
    ]
    assert main([*words, "--policies", "step"]) == 0
    assert set(pd.read_csv(place / "step" / "results.csv").state) == {"measured"}
    summary = pd.read_csv(place / "step" / "summary.csv")
    assert summary[summary.role == "baseline"].configuration.tolist() == ["before.cu:times"]


def test_every_block_of_the_page_is_a_file_or_a_command() -> None:
    named = set(named_files(TEXTS[PAGE]).values())
    assert all(language == "sh" or content in named for language, content in fences(TEXTS[PAGE]))
