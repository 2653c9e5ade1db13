"""``autotune lint``: each mistake is found, at its line, with what to do; what is right is left alone."""

import json
from pathlib import Path

import pytest
from fakes import FAMILY, write_family
from hypothesis import given, settings
from hypothesis import strategies as st
from lint_mistakes import CONSTRAINTS, MISTAKES, POLICIES, PYTHON, SOURCE, WORKLOAD, YAML, Mistake

from autotune.authoring.lint import Finding, lint
from autotune.authoring.lint import __file__ as lint_file
from autotune.authoring.new import new_family
from autotune.cli.commands import main
from autotune.declaration.family import families
from autotune.declaration.family import load_family as load

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "family.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return new_family("mine", tmp_path)[0]


def change(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {file}"
    (folder / file).write_text(text.replace(old, new), encoding="utf-8")


def at_line(finding: Finding) -> str:
    """The text of the line that a finding points to."""
    return finding.path.read_text(encoding="utf-8").splitlines()[finding.line - 1]


@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake[0] for mistake in MISTAKES])
def test_a_mistake_is_found_where_it_is(mistake: Mistake, folder: Path) -> None:
    _, file, old, new, rule, is_error, line, parts = mistake
    change(folder, file, old, new)
    found = [finding for finding in lint(str(folder)) if finding.rule == rule]
    assert {finding.is_error for finding in found} == {is_error}
    assert line in at_line(found[0])
    for part in parts:
        assert part in found[0].message


def test_a_reference_that_is_the_kernel_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "family.py").unlink()
    change(folder, YAML, CONSTRAINTS, f"{CONSTRAINTS}reference: control\n")
    (found,) = lint(str(folder))
    assert (found.rule, found.is_error, at_line(found)) == (
        "reference-is-kernel",
        False,
        "reference: control",
    )
    assert "write reference(arrays, options) in family.py" in found.message
    assert main(["lint", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{folder}: 0 errors, 1 warning"
    assert main(["lint", str(folder), "--strict"]) == 3
    assert "0 errors, 1 warning; fix what is listed above" in capsys.readouterr().err


def test_an_input_that_never_varies(folder: Path) -> None:
    """All sizes are constants, so that no two inputs differ in one."""
    text = (folder / YAML).read_text()
    text = text.replace("count: items", "count: {value: '1000'}").replace(
        "fields: numbers in one item", "fields: {value: '4'}"
    )
    (folder / YAML).write_text(text)
    (folder / WORKLOAD).write_text("schema: 1\nworkload: small\nfamily: mine\n")
    (found,) = [finding for finding in lint(str(folder)) if finding.rule == "no-features"]
    assert not found.is_error
    assert "no feature changes with the input (features: count, fields)" in found.message
    change(folder, YAML, "{value: '1000'}", "{value: n}")
    change(folder, YAML, POLICIES, f"scalars:\n  n: {{type: uint32}}\n{POLICIES}")
    assert not [finding for finding in lint(str(folder)) if "no feature changes" in finding.message]


def test_a_family_without_a_workload(folder: Path) -> None:
    (folder / WORKLOAD).unlink()
    rules = [finding.rule for finding in lint(str(folder))]
    assert rules == ["no-workload", "no-workload"]  # there is none, and the default one is not there


def test_a_layout_policy_of_data_that_no_kernel_takes(folder: Path) -> None:
    change(
        folder,
        YAML,
        "  scores: {role",
        "  spare: {role: input, type: int32, shape: [count]}\n  scores: {role",
    )
    change(
        folder, YAML, POLICIES,
        "policies:\n  spare_memory: {layout: memory, data: [spare], values: [global, readonly], default: global}\n",
    )  # fmt: skip
    found = [finding for finding in lint(str(folder)) if finding.rule == "unread-policy"]
    assert [at_line(finding).split(":")[0].strip() for finding in found] == ["spare_memory"]
    assert "decides the layout of spare, which no kernel takes" in found[0].message


def test_a_policy_that_only_a_comment_and_a_constraint_name(folder: Path) -> None:
    change(folder, YAML, POLICIES, "policies:\n  unroll: {values: [1, 2], default: 1}\n")
    change(
        folder, YAML, CONSTRAINTS, f"constraints:\n  - {{require: unroll < 3, reason: few}}\n{CONSTRAINTS}"
    )
    change(folder, SOURCE, "  float sum = 0;", "  float sum = 0;  // Policy::unroll at a time")
    assert [finding.rule for finding in lint(str(folder)) if finding.is_error] == ["unread-policy"]


# -- what is right is left alone --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (SOURCE, "  float sum = 0;", "  float sum = 0;  // Policy::gone, and weights.memory.base too\n"),
        (SOURCE, "  float sum = 0;", "  float sum = 0; /* reinterpret_cast<float*>(items)\n */"),
        (SOURCE, "typename Policy::scores scores)", "typename Policy::scores result)"),
        (SOURCE, "float sum = 0;", "float sum = 0; unsigned bits = *reinterpret_cast<unsigned*>(&sum); (void)bits;"),
        (SOURCE, "__launch_bounds__(Policy::block_size)", "__launch_bounds__(256)"),
        (YAML, CONSTRAINTS, f"constraints:\n  - {{require: fields > 8, reason: many}}\n{CONSTRAINTS}"),
        (PYTHON, "def reference(", "def oracle(*_: Any) -> None: ...\n\n\nreference = oracle\n\n\ndef unused("),
    ],
)  # fmt: skip
def test_what_is_right_is_left_alone(file: str, old: str, new: str, folder: Path) -> None:
    change(folder, file, old, new)
    if "result)" in new:
        change(folder, SOURCE, "scores.store", "result.store")
    assert not [str(finding) for finding in lint(str(folder))]


def test_places_are_told_from_where_the_folder_was_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(folder, WORKLOAD, "  weights:", "  wieghts:")
    change(folder, SOURCE, "typename Policy::weights weights", "const float* weights")
    monkeypatch.chdir(folder.parent)
    assert {str(finding.path) for finding in lint("./mine")} == {f"mine/{WORKLOAD}", f"mine/{SOURCE}"}


def test_what_is_included_is_read_and_what_lies_beside_is_not(folder: Path) -> None:
    (folder / "plain.cu").write_text("__global__ void weighted_sum(const float* items) { Policy::gone; }\n")
    assert not lint(str(folder))
    unread = "policies:\n  unroll: {values: [1, 2], default: 1}\n"
    change(folder, YAML, POLICIES, unread)
    (folder / "sum.cuh").write_text("template <class Policy>\nconstexpr int kUnroll = Policy::unroll;\n")
    assert [finding.rule for finding in lint(str(folder))] == ["unread-policy", "stale-header"]
    change(
        folder, SOURCE, '#include "autotune/array.cuh"', '#include "autotune/array.cuh"\n#include "sum.cuh"'
    )
    assert [finding.rule for finding in lint(str(folder))] == ["stale-header"]


@pytest.mark.parametrize("name", families())
def test_shipped_families_have_no_errors(name: str) -> None:
    assert not [str(finding) for finding in lint(name) if finding.is_error]


@pytest.mark.parametrize(("name", "code"), [("allpair", 2), ("no/such", 2), (".", 3)])
def test_a_place_without_a_family(
    name: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["lint", name]) == code
    told = capsys.readouterr()
    assert ("did you mean 'allpairs'?" if name == "allpair" else "family") in told.out + told.err


def test_errors_come_first_and_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(
        folder,
        YAML,
        CONSTRAINTS,
        f"constraints:\n  - {{require: block_size <= 128, reason: small}}\n{CONSTRAINTS}",
    )
    change(folder, SOURCE, "typename Policy::weights weights", "const float* weights")
    assert main(["lint", str(folder)]) == 3
    told = capsys.readouterr()
    assert [line.split(": ")[1] for line in told.out.splitlines()] == ["error", "warning"]
    assert f"{folder}: 1 error, 1 warning; fix what is listed above and lint again" in told.err


def test_every_rule_is_on_the_page() -> None:
    code = Path(lint_file).read_text()
    on_page = {
        line.split("`")[1]
        for line in PAGE.split("## What lint reports")[1].splitlines()
        if line.startswith("| `")
    }
    tested = {mistake[4] for mistake in MISTAKES} | {
        "argument-type",
        "redefined-policy",
        "reference-is-kernel",
        "no-features",
    }
    assert on_page == tested
    assert all(f'"{rule}"' in code for rule in on_page)


WORDS = ["__global__", "weighted_sum", "typename Policy::items", "items", "float", ".memory", "reinterpret_cast<",
         *"(){}<>,;*&\n\"", "/*", "*/", " "]  # fmt: skip


@pytest.fixture(scope="module")
def scribbled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_family("mine", tmp_path_factory.mktemp("scribbled"))[0]


@settings(max_examples=60, deadline=None)
@given(words=st.lists(st.sampled_from(WORDS), max_size=40))
def test_any_text_as_source_is_read(words: list[str], scribbled: Path) -> None:
    text = " ".join(words)
    (scribbled / SOURCE).write_text(text)
    for finding in lint(str(scribbled)):
        assert 1 <= finding.line <= len(finding.path.read_text().splitlines()) + 1
        assert finding.message


def test_findings_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    change(folder, "family.yaml", "schema: 1", "schema: 1\nshema: 2")
    assert main(["lint", str(folder), "--json"]) == 3
    (found,) = json.loads(capsys.readouterr().out)
    assert set(found) == {"path", "line", "severity", "rule", "message"}
    assert (found["path"], found["severity"]) == (str(folder / "family.yaml"), "error")
    assert at_line(Finding(**{**found, "path": Path(found["path"])})) == "shema: 2"


def test_a_tab_that_one_parser_takes_is_linted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_family(tmp_path / "doubler", FAMILY.replace("title: y", "title:\ty"))
    load(folder)
    assert main(["lint", str(folder)]) in (0, 3)
    assert "Traceback" not in capsys.readouterr().err


def test_a_product_of_products_is_for_the_sweep_to_refuse(tmp_path: Path) -> None:
    lines = ["  e0: {value: 'n ** 200'}", "  e1: {value: 'e0 * e0'}"]
    extents = "\nextents:\n" + "\n".join(lines) + "\ndata:"
    assert main(["lint", str(write_family(tmp_path / "doubler", FAMILY.replace("\ndata:", extents)))]) == 0


def test_it_runs_no_python_of_the_family(tmp_path: Path) -> None:
    """As SECURITY.md says."""
    folder = write_family(tmp_path / "doubler")
    (folder / "family.py").write_text(
        "import pathlib\n\npathlib.Path(__file__).with_name('imported').touch()\n"
    )
    assert main(["lint", str(folder)]) in (0, 3)
    assert not (folder / "imported").exists()
    security = (Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8")
    (row,) = [line for line in security.splitlines() if "`lint`" in line and line.startswith("|")]
    assert row.split("|")[2].strip().startswith("no")
