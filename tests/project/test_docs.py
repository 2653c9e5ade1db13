"""What the documents say is so: their example runs, their commands parse, their lists are complete."""

import re
import shlex
import tomllib
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import pytest

from autotune import errors
from autotune.cli.commands import app, main
from autotune.declaration import expression
from autotune.layout import DIMENSIONS
from autotune.record import trial
from autotune.record.results_csv import COLUMNS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in DOCUMENTS}
README, ARCHITECTURE = TEXTS["README.md"], TEXTS["docs/concepts/architecture.md"]
COMMANDS_PAGE = TEXTS["docs/reference/commands.md"]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = DECLARED["project"]
GROUP: Any = {
    name: app.get_command(click.Context(app), name) for name in app.list_commands(click.Context(app))
}
EVERY_DOCUMENT = pytest.mark.parametrize("name", TEXTS)


def fences(text: str) -> list[tuple[str, str]]:
    """(language, content) of every fenced block."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    """The text without fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def example_files() -> dict[str, str]:
    """The README's blocks whose first line is a comment with a file's name."""
    named = (re.match(r"(?:#|//) ([\w./]+\.\w+)\n", content) for _, content in fences(README))
    return {match[1]: match.string for match in named if match}


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    level = heading.split(maxsplit=1)[0]
    match = re.search(
        rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert match, f"no section {heading!r}"
    return match[1]


def first_cells(text: str) -> list[str]:
    """What stands in backticks in the first column of the tables in ``text``."""
    return [
        name
        for row in re.findall(r"^\|([^|]+)\|", text, re.MULTILINE)
        for name in re.findall(r"`([^`]+)`", row)
    ]


# -- the README's own example -----------------------------------------------------------------------------


def test_the_family_in_the_readme_is_swept_and_dispatched(tmp_path: Path) -> None:
    files = example_files()
    assert set(files) == {
        "lengths/family.yaml",
        "lengths/lengths.cu",
        "lengths/workloads/cloud.yaml",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    folder, out, policies = tmp_path / "lengths", tmp_path / "out", tmp_path / "policies"
    places = ["--out", str(out), "--policies", str(policies)]
    assert main(["sweep", str(folder), "--device", "cpu", *places]) == 0
    frame = pd.read_csv(out / "results.csv")
    assert set(frame["state"]) == {"measured"}
    assert set(frame["axes"]) == {"aos", "soa"}
    assert len(frame) == 12 and "all twelve configurations" in README
    assert (out / "report.html").is_file()

    import autotune

    points = np.random.default_rng(11).normal(size=(501, 3)).astype(np.float32)
    assert 'autotune.load("./lengths")' in README
    with autotune.load(folder, device="cpu", policies=policies) as kernel:
        np.testing.assert_allclose(kernel(points), np.linalg.norm(points, axis=1), rtol=1e-6)
        chosen, _ = kernel.explain(kernel.bind(points))
        assert chosen.match == "nearest"


def test_the_three_lines_that_use_allpairs(capsys: pytest.CaptureFixture[str]) -> None:
    (lines,) = [content for language, content in fences(README) if 'load("allpairs")' in content]
    genotypes = np.random.default_rng(0).integers(0, 3, (9, 70))
    names: dict[str, Any] = {"genotypes": genotypes}
    with pytest.warns(UserWarning, match="no usable policy file") as warned:
        exec(lines.replace('("allpairs")', '("allpairs", device="cpu", policies="no-such-folder")'), names)
    assert len(warned) == 1
    expected = (genotypes[:, None, :] != genotypes[None, :, :]).sum(axis=2)
    np.testing.assert_array_equal(names["D"], expected)
    np.testing.assert_array_equal(names["distance"](genotypes, missing="masked"), expected)


# -- commands ---------------------------------------------------------------------------------------------


def commands(text: str) -> list[list[str]]:
    """The arguments of every ``autotune …`` in code blocks of shell and in inline code."""
    shell = [line for language, content in fences(text) if language == "sh" for line in content.splitlines()]
    inline = re.findall(r"`([^`\n]+)`", prose(text))
    found = []
    for line in (*shell, *inline):
        for part in re.split(r"&&|\||>|;", line.split(" #")[0]):
            words = shlex.split(part.replace("…", "")) if re.search(r"\bautotune\b", part) else []
            if words[:3][1:] == ["-m", "autotune"]:
                words = words[2:]
            if words and Path(words[0]).name == "autotune" and len(words) > 1:
                found.append(words[1:])
    return found


COMMANDS = [(name, words) for name, text in TEXTS.items() for words in commands(text)]


def test_every_command_shown_can_be_parsed() -> None:
    for name, (command, *arguments) in COMMANDS:
        assert command in GROUP, f"{name} shows autotune {command}"
        if arguments:  # else the command is only named
            GROUP[command].make_context(command, arguments)


def test_set_up_is_two_commands_on_the_first_screen() -> None:
    first_screen = "\n".join(README.splitlines()[:16])
    made = "python3 -m venv .venv && .venv/bin/pip install"
    assert f"{made} . && .venv/bin/autotune sweep allpairs\n" in first_screen
    assert f"{made} -e '.[test]' && .venv/bin/pytest\n" in first_screen
    assert ("README.md", ["sweep", "allpairs"]) in COMMANDS


def test_every_command_is_shown_and_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {words[0] for _, words in COMMANDS}
    table = re.findall(r"`autotune (\w+)", section(COMMANDS_PAGE, "## Commands"))
    for command in GROUP:
        assert command in shown
        assert command in table
        assert main([command, "--help"]) == 0
        assert f"{command} [OPTIONS]" in capsys.readouterr().out


def test_options_named_in_prose_exist() -> None:
    known = {option for command in (app, *GROUP.values()) for one in command.params for option in one.opts}
    for name, text in TEXTS.items():
        for option in re.findall(r"`(--?[a-z][\w-]*)", prose(text)):
            assert option in known | {"--help"}, f"{name} names {option}"


def test_extras_that_are_installed_exist() -> None:
    extras = {
        extra
        for text in TEXTS.values()
        for extra in re.findall(r"(?:'\.|autotune-layouts)\[(\w+)[\],]", text)
    }
    assert extras == set(PROJECT["optional-dependencies"])


def test_exit_codes_are_all_named() -> None:
    listed = {
        int(code)
        for code in re.findall(r"^\| (\d+) \|", section(COMMANDS_PAGE, "## Exit codes"), re.MULTILINE)
    }
    classes = [item for item in vars(errors).values() if isinstance(item, type)]
    raised = {item.exit_code for item in classes if issubclass(item, errors.AutotuneError)}
    assert listed == raised | {0, 130}


def test_environment_variables_are_all_named() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "autotune").rglob("*.py"))
    read = set(re.findall(r"\b(AUTOTUNE_[A-Z_]+)\b", sources)) - {
        "AUTOTUNE_ARRAY",
        "AUTOTUNE_CPU",
        "AUTOTUNE_VARIANTS",
    }
    assert read == set(re.findall(r"`(AUTOTUNE_[A-Z_]+)` \|", COMMANDS_PAGE))


# -- links and places -------------------------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of headings."""
    headings = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@EVERY_DOCUMENT
def test_links_lead_somewhere_inside(name: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(TEXTS[name])):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = ((ROOT / name).parent / path).resolve() if path else ROOT / name
        assert linked.exists(), f"{name} links to {target}"
        assert linked.is_relative_to(ROOT), f"{name} links out of the project: {target}"
        if anchor:
            assert anchor in anchors(linked.read_text(encoding="utf-8")), f"{name} links to {target}"


@EVERY_DOCUMENT
def test_no_document_names_a_place_of_one_machine(name: str) -> None:
    absolute = re.findall(r"(?<![\w.:/])/[A-Za-z][\w.-]*/[\w./-]*", TEXTS[name])
    assert not [place for place in absolute if not place.startswith(("/usr/local/cuda", "/dev/"))]
    links = set(re.findall(r"\]\(([^)\s]+)\)", TEXTS[name]))
    outside = [
        m for m in re.findall(r"[\w./]*\.\./[\w./-]+", TEXTS[name]) if not any(m in link for link in links)
    ]
    assert not outside


# -- lists that must be complete --------------------------------------------------------------------------


def test_dependencies_are_those_of_the_project() -> None:
    text = TEXTS["docs/reference/dependencies.md"]

    def names(requirements: list[str]) -> list[str]:
        return sorted(re.split(r"[<>=!~; ]", requirement)[0] for requirement in requirements)

    groups = {"## Run time": PROJECT["dependencies"], "## Build": DECLARED["build-system"]["requires"]}
    groups |= {f"## Extra {extra}": listed for extra, listed in PROJECT["optional-dependencies"].items()}
    groups |= {
        f"## Group {group}": listed
        for group, listed in DECLARED["dependency-groups"].items()
        if group != "dev"
    }
    weighed = "## Weighed and not taken: readers of standard formats"
    assert set(re.findall(r"^## .+$", text, re.MULTILINE)) == {*groups, weighed}
    for heading, requirements in groups.items():
        rows = re.findall(r"^\| `([^`]+)` \|", section(text, heading), re.MULTILINE)
        assert sorted(rows) == names(requirements), heading


def test_columns_of_results_are_all_described() -> None:
    assert first_cells(section(TEXTS["docs/reference/results-csv.md"], "## results.csv")) == list(COLUMNS)


@pytest.mark.nvrtc
def test_columns_of_the_static_pass_are_all_described(tmp_path: Path) -> None:
    assert main(["sweep", "allpairs", "--static", "--preset", "control", "--out", str(tmp_path)]) == 0
    written = list(pd.read_csv(tmp_path / "static.csv").columns)
    described = first_cells(section(TEXTS["docs/reference/results-csv.md"], "## static.csv"))
    start, stop = described.index("<policy>"), written.index("state")
    head, tail = described[:start], described[start + 1 :]
    assert written[: len(head)] == head
    assert set(written[stop:]) <= set(tail) <= set(written)


PACKAGE = ROOT / "autotune"
ENDINGS = {"csv", "cu", "cuh", "h", "hpp", "html", "json", "py", "yaml"}  # `report.html` is a file
PACKAGES = [path.parent.name for path in PACKAGE.glob("*/__init__.py") if path.parent.name != "_bundled"]


def test_every_package_has_its_line() -> None:
    house = section(ARCHITECTURE, "## The house")
    modules = [path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")]
    assert sorted(first_cells(house)) == sorted([*PACKAGES, *modules])
    drawing = next(content for language, content in fences(house))
    for name in (*PACKAGES, *modules):
        assert re.search(rf"\b{name}\b", drawing), f"{name} is not in the drawing"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_for_what_it_says_itself(package: str) -> None:
    says = (import_module(f"autotune.{package}").__doc__ or "").strip().splitlines()[0]
    assert f"| `{package}` | {says} |" in ARCHITECTURE


def test_names_of_packages_are_those_that_others_may_use() -> None:
    """What a package does not list may be named anything tomorrow."""
    dotted = [
        (name, *match)
        for name, text in TEXTS.items()
        for match in re.findall(r"`(?:autotune\.)?(\w+)\.(\w+)", text)
    ]
    for page, package, name in dotted:
        if package in PACKAGES and name not in ENDINGS:
            assert name in import_module(f"autotune.{package}").__all__, f"{page} names {package}.{name}"


GUIDES = [
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/README.md",
    *(
        p.relative_to(ROOT).as_posix()
        for folder in ("kernels", "examples", "policies")
        for p in sorted((ROOT / folder).rglob("*.md"))
    ),
]


@pytest.mark.parametrize("name", [*TEXTS, *GUIDES])
def test_files_that_are_named_are_there(name: str) -> None:
    text = re.sub(r"--out \S+", "", (ROOT / name).read_text(encoding="utf-8"))
    for place in re.findall(
        r"(?<![\w./-])(?:autotune|tests|kernels|benchmarks|docs|examples)/[\w./-]+\.\w+", text
    ):
        assert (ROOT / place).exists() or (ROOT / "kernels/include" / place).exists(), f"{name} names {place}"


def test_the_first_page_and_the_house_are_short() -> None:
    assert sum(not line.startswith("<!--") for line in README.splitlines()) <= 150
    assert len(ARCHITECTURE.splitlines()) <= 250


def test_every_header_has_its_line() -> None:
    include = ROOT / "kernels" / "include" / "autotune"
    named = set(first_cells(TEXTS["docs/reference/layouts.md"]))
    assert {path.name for path in include.glob("*.*")} <= named


@pytest.mark.parametrize(
    ("page", "heading", "words"),
    [
        ("concepts/glossary", "## States of a trial", trial.STATES),
        ("reference/layouts", "# Layouts", (*DIMENSIONS, "order")),
        ("reference/layouts", "# Layouts", [value for each in DIMENSIONS.values() for value in each.values]),
        ("reference/family", "## Expressions in family.yaml", expression.FUNCTIONS),
    ],
)
def test_every_word_of_the_code_is_explained(page: str, heading: str, words: Any) -> None:
    text = section(TEXTS[f"docs/{page}.md"], heading)
    missing = [word for word in words if f"`{word}`" not in text]
    assert not missing


def test_protocols_are_described_whole() -> None:
    text = section(ARCHITECTURE, "## Two protocols")
    for module, protocol in (("autotune.device", "Backend"), ("autotune.compile", "Toolchain")):
        members = vars(getattr(import_module(module), protocol))
        public = [name for name in members if not name.startswith("_")]
        assert public
        assert not [name for name in public if f"`{name}`" not in text]


def test_policies_presets_and_workloads_of_allpairs_are_described() -> None:
    from autotune.declaration import family, workload

    text, allpairs = TEXTS["docs/results/allpairs.md"], family.load_family("allpairs")
    policies = first_cells(section(text, "## Policies"))
    assert policies == [policy.name for policy in allpairs.space.policies]
    for policy in allpairs.space.policies:
        for value in policy.values:
            assert re.search(rf"(?<!\w){value}(?!\w)", section(text, "## Policies"))
    presets = first_cells(section(text, "## Presets"))
    assert presets == [
        name for name in allpairs.space.preset_names if name not in ("control", "full", "possible")
    ]
    assert sorted(first_cells(section(text, "## Inputs"))) == sorted(workload.workloads(allpairs))


@EVERY_DOCUMENT
def test_tables_are_whole(name: str) -> None:
    rows = [line for line in TEXTS[name].splitlines() if line.startswith("|")]
    lines = TEXTS[name].splitlines()
    for before, row in pairwise(lines):
        if before.startswith("|") and row.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", before)) == len(re.findall(r"(?<!\\)\|", row)), row
    assert all(row.rstrip().endswith("|") for row in rows)


def test_places_that_are_filled_by_hand_are_marked() -> None:
    assert README.count("<!-- sweep-output -->") == README.count("<!-- /sweep-output -->") == 1
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").lstrip().startswith("Apache License")
