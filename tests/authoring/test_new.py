"""``autotune new``: what it writes works at once, and the page about it is so."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import autotune
from autotune.authoring.lint import lint
from autotune.authoring.new import PLACEHOLDER, TEMPLATE, new_family, rename
from autotune.cli.commands import main
from autotune.compile.variant import default_header
from autotune.declaration import family
from autotune.declaration.workload import bind, prepare
from autotune.declaration.workload import load_workload as load
from autotune.errors import WorkloadError
from autotune.measure.reference import compute_expected

FILES = {"family.yaml", "mine.cu", "default.cuh", "family.py", "workloads/small.yaml"}
DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "guides" / "layouts.md").read_text(encoding="utf-8")
PAGE = (DOCS / "reference" / "family.md").read_text(encoding="utf-8")


# -- what is written --------------------------------------------------------------------------------------


def test_the_folder_is_whole_and_the_placeholder_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine"]) == 0
    told = capsys.readouterr().out
    written = {p.relative_to("mine").as_posix() for p in Path("mine").rglob("*") if p.is_file()}
    assert written == FILES
    assert all(name in told for name in FILES)
    assert not any(PLACEHOLDER in (tmp_path / "mine" / name).read_text() for name in FILES)
    assert family.load_family(tmp_path / "mine").name == "mine"
    for command in re.findall(r"autotune (.*)", told):  # what it tells to do next
        assert command.split()[1] == "./mine"
    assert main(["lint", "./mine", "--strict"]) == 0


def test_editors_find_the_schemas(tmp_path: Path) -> None:
    folder, made = new_family("mine", tmp_path)
    for path in (path for path in made if path.suffix == ".yaml"):
        first = path.read_text(encoding="utf-8").splitlines()[0]
        schema = Path(first.removeprefix("# yaml-language-server: $schema=file://"))
        kind = "family" if path.parent == folder else "workload"
        jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), json.loads(schema.read_text()))
        assert schema.name == f"{kind}.json"


def test_the_folder_can_be_made_elsewhere(tmp_path: Path) -> None:
    assert main(["new", "mine", "--out", str(tmp_path / "a" / "b")]) == 0
    assert not lint(str(tmp_path / "a" / "b" / "mine"))


def test_it_is_swept_proved_and_dispatched(tmp_path: Path) -> None:
    folder, _ = new_family("mine", tmp_path)
    workload = folder / "workloads" / "small.yaml"
    workload.write_text(workload.read_text().replace("[100000, 16]", "[5000, 16]"))  # for the test's sake
    places = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]
    held = ["--set", "block_size=64,128"]
    assert main(["sweep", str(folder), "--device", "cpu", *held, *places]) == 0
    frame = pd.read_csv(tmp_path / "out" / "results.csv")
    assert set(frame["state"]) == {"measured"}
    assert len(frame) == 12
    generator = np.random.default_rng(3)
    items, weights = generator.random((321, 5), np.float32), generator.random(5, np.float32)
    with autotune.load(folder, device="cpu", policies=tmp_path / "policies") as kernel:
        np.testing.assert_allclose(kernel(items, weights), items @ weights, rtol=1e-5)


def test_its_reference_is_not_its_kernel(tmp_path: Path) -> None:
    folder, _ = new_family("mine", tmp_path)
    source = folder / "mine.cu"
    source.write_text(source.read_text().replace("sum += weights.load(k) *", "sum -= weights.load(k) *"))
    loaded = family.load_family(folder)
    arrays = {"items": np.ones((3, 4), np.float32), "weights": np.arange(4, dtype=np.float32)}
    outputs, _ = compute_expected(loaded, bind(loaded, arrays, {}, {}), tmp_path)
    np.testing.assert_array_equal(outputs["scores"], [6, 6, 6])


@pytest.mark.nvrtc
def test_every_configuration_compiles_for_a_gpu(tmp_path: Path) -> None:
    folder, _ = new_family("mine", tmp_path)
    assert main(["sweep", str(folder), "--static", "--arch", "sm_90", "--out", str(tmp_path / "out")]) == 0
    frame = pd.read_csv(tmp_path / "out" / "static.csv")
    assert len(frame) == 18
    assert frame["registers"].notna().all()


def test_the_template_is_a_family_of_its_own() -> None:
    template = family.load_family(TEMPLATE)
    assert template.name == PLACEHOLDER
    assert (TEMPLATE / "default.cuh").read_text() == default_header(template)
    assert not lint(str(TEMPLATE))


# -- what is rejected -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "My-Kernel",
            "'My-Kernel' is not a valid family name; did you mean 'my_kernel'? (allowed: lower-case letters",
        ),
        (
            "3d",
            "'3d' is not a valid family name (allowed: lower-case letters, digits and _, beginning with a letter)",
        ),
        ("../up", "did you mean 'up'?"),
        ("", "'' is not a valid family name (allowed"),
        ("mine\n", "did you mean 'mine'?"),
        ("allpairs", "a family named 'allpairs' ships with autotune"),
    ],
)
def test_a_name_that_cannot_be(
    name: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", name, "--out", str(tmp_path)]) == 2
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    assert main(["new", "mine", "--out", str(tmp_path)]) == 2
    assert "already exists, and nothing is overwritten" in capsys.readouterr().err
    assert not list((tmp_path / "mine").iterdir())
    (tmp_path / "yours").symlink_to("nowhere")
    assert main(["new", "yours", "--out", str(tmp_path)]) == 2


def test_a_place_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["new", "mine", "--out", str(tmp_path / "file")]) == 7
    assert "name another folder with --out DIR" in capsys.readouterr().err


@given(st.from_regex(r"[a-z][a-z0-9_]*", fullmatch=True), st.text())
def test_only_the_whole_word_is_replaced(name: str, text: str) -> None:
    apart = text.replace(PLACEHOLDER, "")
    assert rename(apart, name) == apart.replace(PLACEHOLDER, name)
    assert rename(f"({PLACEHOLDER}) a_{PLACEHOLDER} {PLACEHOLDER}s", name) == (
        f"({name}) a_{PLACEHOLDER} {PLACEHOLDER}s"
    )


# -- docs/guides/layouts.md and docs/reference/family.md ---------------------------------------------------


def files_of(page: str) -> list[tuple[str, str]]:
    """(name, content) of the blocks that begin with a comment with a file's name, in order."""
    blocks = re.findall(r"^```\w+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    matches = (re.match(r"(?:#|//) ([\w./]+\.\w+)\n", block) for block in blocks)
    return [(match[1], match.string) for match in matches if match]


def test_the_page_leads_from_a_plain_kernel_to_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "closest"]) == 0
    files = [(name, text) for name, text in files_of(GUIDE) if name.startswith(("closest/", "use.py"))]
    before = dict(files[:-2])
    assert [name for name, _ in files[-2:]] == ["closest/closest.cu", "use.py"]
    for name, content in before.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    capsys.readouterr()
    assert main(["lint", "./closest"]) == 3
    (shown,) = re.findall(r"<!-- lint-output -->\n```text\n(.*?)```", GUIDE, re.DOTALL)
    assert capsys.readouterr().out == shown
    after = dict(files[-2:])
    (tmp_path / "closest/closest.cu").write_text(after["closest/closest.cu"], encoding="utf-8")
    assert main(["show", "./closest", "control", "--header"]) == 0  # as the last line of lint says
    (tmp_path / "closest/default.cuh").write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["lint", "./closest", "--strict"]) == 0
    assert main(["sweep", "./closest", "--device", "cpu"]) == 0
    frame = pd.read_csv("autotune-results/closest/results.csv")
    assert list(frame["state"]) == ["measured"] * 12
    assert 'autotune.load("./closest")' in after["use.py"]
    names: dict[str, Any] = {}
    exec(after["use.py"].replace('("./closest")', '("./closest", device="cpu")'), names)
    names["closest"].close()
    assert len(capsys.readouterr().out.strip().splitlines()[-1].strip("[]").split()) == 3


@pytest.mark.parametrize(("folder", "count"), [("chains", 12), ("smooth", 4)])
def test_the_other_families_of_the_page_are_whole(
    folder: str,
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in files_of(PAGE):
        if name.startswith(f"{folder}/"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content, encoding="utf-8")
    assert main(["lint", f"./{folder}", "--strict"]) == 0, capsys.readouterr().out
    assert main(["sweep", f"./{folder}", "--device", "cpu"]) == 0
    frame = pd.read_csv(f"autotune-results/{folder}/results.csv")
    assert list(frame["state"]) == ["measured"] * count


def test_fixed_sizes_scalars_and_inputs_that_are_made_are_as_the_page_says(tmp_path: Path) -> None:
    folder, _ = new_family("mine", tmp_path)
    text = (folder / "family.yaml").read_text()
    for old, new in (
        ("  fields: numbers in one item", '  fields: {value: 7, doc: "2 * radius + 1, always"}'),
        ("kernels:\n", "scalars: {steepness: {type: float32, default: 50}}\nkernels:\n"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (folder / "family.yaml").write_text(text)
    (folder / "family.py").write_text("""import numpy as np

def inputs(parameters, root):
    return {"items": np.ones((parameters["count"], 7)), "weights": np.ones(7)}

def reference(arrays, options):
    return {"scores": (arrays["items"] @ arrays["weights"] * options["steepness"]).astype(np.float32)}
""")
    workload = folder / "workloads" / "small.yaml"
    head = "schema: 1\nworkload: small\nfamily: mine\n"
    workload.write_text(f"{head}parameters: {{count: 3}}\nscalars: {{steepness: 2}}\n")
    loaded = family.load_family(folder)
    inputs = prepare(loaded, load(loaded), tmp_path)
    outputs, _ = compute_expected(loaded, inputs, tmp_path)
    np.testing.assert_array_equal(outputs["scores"], [14, 14, 14])
    assert list(loaded.features) == ["count"]
    with pytest.raises(WorkloadError, match=r"^items: fields is 8, and must be 7$"):
        bind(loaded, {"items": np.ones((3, 8)), "weights": np.ones(8)}, {}, {})
    workload.write_text(
        f"{head}parameters: {{count: 3}}\narrays:\n  weights: {{random: uniform, shape: [7]}}\n"
    )
    with pytest.raises(
        WorkloadError, match=r"go to inputs in family\.py, which then makes every array: delete"
    ):
        prepare(loaded, load(loaded), tmp_path)
