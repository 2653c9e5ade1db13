"""The tutorial and the how-to pages, carried out: their files written, their commands run, their programs executed.

One folder for all of them, the tutorial first, since the others go on with its family. A block of code whose first line
is a comment with a file's name is that file, as in the README; every line of a ``sh`` block is run. What differs from
the page stands in ``HERE`` and in ``carried_out``: the device is the cpu, samples are few, addresses this machine's.
"""

import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_docs import TEXTS, fences

from autotune.cli.commands import main
from autotune.policy import read_policy_file

ROOT = Path(__file__).parents[2]
GUIDES = (
    "choose-policies",
    "images",
    "no-gpu",
    "regression-check",
    "several-hosts",
    "tiles",
    "torch",
    "trees-and-records",
)
PAGES = ["docs/getting-started.md", *(f"docs/guides/{name}.md" for name in GUIDES)]
DATABASE = "postgresql://tuner@db.example.org/autotune"
NEEDS = {
    "postgresql": DATABASE,
    "nvrtc": "(?m)^autotune .* --static",
}  # marker -> what a page has that needs it
HERE = {"benchmarks/": f"{ROOT}/benchmarks/", "last-release.csv": "autotune-results/nearest/results.csv"}
ON_A_DEVICE = ("sweep", "check", "explain")
TIMED = {
    ("check", "--measure"): {0, 8}
}  # a claim about time, which may fail on a shared cpu: what it says is checked


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, compile_cache: str) -> Path:
    """A folder in which the tutorial was carried out."""
    folder = tmp_path_factory.mktemp("how-to")
    for name, content in named_files(TEXTS["docs/getting-started.md"]).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOTUNE_CACHE", compile_cache)
        patch.chdir(folder)
        carried_out("docs/getting-started.md", "")
    return folder


def named_files(text: str) -> dict[str, str]:
    """The blocks whose first line is a comment with a file's name."""
    named = (re.match(r"(?:#|//) ([\w./-]+\.\w+)\n", content) for _, content in fences(text))
    return {match[1]: match.string for match in named if match}


def lines(page: str) -> list[str]:
    """Every line of the page's shell blocks."""
    return [
        line for language, content in fences(TEXTS[page]) if language == "sh" for line in content.splitlines()
    ]


def expanded(word: str) -> list[str]:
    """As a shell does it: the files that a pattern names, else the word."""
    return [path.as_posix() for path in sorted(Path().glob(word))] if "*" in word else [word]


def carried_out(page: str, database: str) -> None:
    """Runs the page's commands in the current folder, on the cpu."""
    for line in lines(page):
        text = line.replace(DATABASE, database)
        for there, here in HERE.items():
            text = text.replace(there, here)
        program, *words = [name for word in shlex.split(text) for name in expanded(word)]
        assert program == "autotune", f"{page} shows {line!r}, which this test cannot run"
        words = ["cpu" if word == "cuda" else word for word in words]
        if words[0] in ON_A_DEVICE and not {"--device", "--static"} & set(words):
            words += ["--device", "cpu"]
        if words[0] == "sweep" and "--static" not in words:
            words += [
                "--samples",
                "3",
            ]  # nothing here asks for the times, and a shared machine has little of it
        allowed = next((codes for keys, codes in TIMED.items() if set(keys) <= set(words)), {0})
        assert main(words) in allowed, f"{page}: {line}"


def test_the_tutorial_ends_in_a_dispatcher(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(named_files(TEXTS["docs/getting-started.md"])) == {
        "plain.cu",
        "nearest/family.yaml",
        "nearest/nearest.cu",
        "nearest/family.py",
        "nearest/workloads/clusters.yaml",
        "use.py",
        "tune.py",
    }
    frame = pd.read_csv(place / "autotune-results" / "nearest" / "results.csv")
    assert list(frame["state"]) == ["measured"] * 12
    monkeypatch.chdir(place)
    program = (place / "use.py").read_text(encoding="utf-8")
    assert 'autotune.load("./nearest")' in program
    names: dict[str, Any] = {}
    exec(program.replace('("./nearest")', '("./nearest", device="cpu")'), names)
    apart = np.linalg.norm(names["point"][:, None] - names["centre"][None], axis=2).min(axis=1)
    np.testing.assert_allclose(names["distance"], apart, rtol=1e-5)
    names["nearest"].close()


def test_the_tutorial_sweeps_from_python_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    program = (place / "tune.py").read_text(encoding="utf-8")
    swept = 'autotune.sweep("./nearest", point=point, centre=centre'
    assert swept in program
    names: dict[str, Any] = {}
    exec(program.replace(swept, f'{swept}, device="cpu", samples=3'), names)
    apart = np.linalg.norm(names["point"][:, None] - names["centre"][None], axis=2).min(axis=1)
    np.testing.assert_allclose(names["distance"], apart, rtol=1e-5)
    (file,) = (place / "policies" / "nearest").glob("cpu-*.yaml")
    assert {"clusters", names["study"].workload} <= set(read_policy_file(file).entries)


def test_the_tunable_kernel_differs_from_the_plain_one_as_told(place: Path) -> None:
    """The page's table of what changed is all that changed: put back, the two are the same text."""
    plain, tunable = (
        (place / name).read_text(encoding="utf-8") for name in ("plain.cu", "nearest/nearest.cu")
    )

    def steps(text: str) -> list[str]:
        """The statements, with what the accessors replaced put back."""
        body = text[text.index("  const unsigned i") :]
        for was, now in (
            ("blockDim.x", "Policy::block_size"),
            ("i >= points", "i >= point.extent(0)"),
            ("c < centres", "c < centre.extent(0)"),
            ("k < coordinates", "k < point.extent(1)"),
            ("point[i * coordinates + k]", "point.load(i, k)"),
            ("centre[c * coordinates + k]", "centre.load(c, k)"),
            ("distance[i] = sqrtf(best)", "distance.store(sqrtf(best), i)"),
        ):
            body = body.replace(was, now)
        return body.split()

    assert steps(plain) == steps(tunable)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=[
                getattr(pytest.mark, name) for name, words in NEEDS.items() if re.search(words, TEXTS[page])
            ],
        )
        for page in PAGES
        if page != "docs/getting-started.md"
    ],
)
def test_a_page_is_carried_out(
    page: str, place: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(place)
    for name, content in named_files(TEXTS[page]).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content, encoding="utf-8")
    carried_out(page, request.getfixturevalue("postgresql") if DATABASE in TEXTS[page] else "")
    swept = re.search(
        r"^autotune sweep \./(\w+)\n[\s\S]*^All (\d+) configurations", TEXTS[page], re.MULTILINE
    )
    if swept:
        frame = pd.read_csv(place / "autotune-results" / swept[1] / "results.csv")
        assert list(frame["state"]) == ["measured"] * int(swept[2])
    if "regression" in page:
        out = capsys.readouterr()
        assert "clusters" in out.out + out.err


# -- guides that begin with a plain kernel and end with a program


def programs() -> Iterator[Any]:
    for page in PAGES:
        for name, content in named_files(TEXTS[page]).items() if page != "docs/getting-started.md" else ():
            if name.endswith(".py") and "/" not in name:
                needs = {"torch": "import torch" in content, "gpu": '"cuda"' in content}
                marks = [getattr(pytest.mark, marker) for marker, is_needed in needs.items() if is_needed]
                yield pytest.param(page, name, marks=marks, id=name)


@pytest.mark.filterwarnings("ignore:no usable policy file", "ignore::DeprecationWarning:torch")
@pytest.mark.parametrize(("page", "name"), list(programs()))
def test_the_program_of_a_guide(
    page: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unmodified, but on the cpu where it does not ask for a GPU, and with no compiler of torch's own. What it prints
    stands behind it."""
    files = named_files(TEXTS[page])
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    program = files[name].replace("fullgraph=True)", 'fullgraph=True, backend="aot_eager")')
    if '"cuda"' not in program:
        program = re.sub(r'load\("([^"]+)"\)', r'load("\1", device="cpu")', program)
        assert 'device="cpu"' in program
    Path(name).write_text(program, encoding="utf-8")
    runpy.run_path(name, run_name="__main__")  # torch imports the module that a function is in
    told = re.findall(r"print\(.*\)  # (.*)", program)
    assert capsys.readouterr().out.split() == " ".join(told).split()


@pytest.mark.nvrtc
def test_the_plain_kernels_compile() -> None:
    from cuda.bindings import nvrtc

    plain = {n: c for page in PAGES for n, c in named_files(TEXTS[page]).items() if n.endswith("/plain.cu")}
    assert len(plain) == 4
    for name, content in plain.items():
        _, program = nvrtc.nvrtcCreateProgram(content.encode(), name.encode(), 0, [], [])
        status = nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=sm_90"])
        assert not int(status[0]), name
