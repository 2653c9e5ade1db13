"""What a release and a contributor's tools say: one name on the package index, one version of each tool, one gate."""

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import autotune

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NAME = PROJECT["project"]["name"]
GROUPS = PROJECT["dependency-groups"]
PRE_COMMIT = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
HOOKS = {repository["repo"].rpartition("/")[2]: repository for repository in PRE_COMMIT["repos"]}
WORKFLOWS = {
    path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").iterdir()
}
_TEXTS = {
    ".md",
    ".py",
    ".pyi",
    ".toml",
    ".yaml",
    ".yml",
    ".ipynb",
    ".sh",
    ".cff",
    ".j2",
    ".cuh",
    ".cu",
    ".hpp",
    "",
}
_FOLDERS = (
    ".ci",
    ".github",
    "autotune",
    "benchmarks",
    "conda",
    "docs",
    "examples",
    "kernels",
    "policies",
    "workloads",
)


def texts() -> dict[str, str]:
    """Everything that a reader or an installer sees, but for results."""
    files = [path for path in ROOT.iterdir() if path.is_file()]
    files += [path for folder in _FOLDERS for path in (ROOT / folder).rglob("*")]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in files
        if path.suffix in _TEXTS and path.is_file() and not {"results", "__pycache__"} & {*path.parts}
    }


# The name as what an installer is given: in the command that begins with `pip install` and the like, or with an extra.
_INSTALLERS = r"(?:pip3?|uv|uv pip|pipx|conda|mamba|pixi) (?:install|add|download|tool install)"
_OTHERS_NAME = re.compile(
    rf"{_INSTALLERS} [^&|;,`\n]*?(?<![\w./-])autotune(?![\w./-])|(?<![\w./-])autotune\[[a-z_,]+\]"
)


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("pip install autotune", True),
        ("python -m pip install -U 'autotune[cuda]'", True),
        ("uv add autotune", True),
        ("conda install -c conda-forge autotune", True),
        ("pip install ziglang, and then autotune", False),
        ("needs autotune[grpc] on each host", True),
        ("pip install autotune-layouts", False),
        ("pip install 'autotune-layouts[cuda]'", False),
        ("pip install -e '.[test]' && autotune doctor", False),
    ],
)
def test_what_is_taken_for_the_others_name(text: str, is_refused: bool) -> None:
    assert bool(_OTHERS_NAME.search(text)) == is_refused


def test_nobody_is_sent_to_the_other_project_of_that_name() -> None:
    seen = texts()
    assert {
        "README.md",
        "pyproject.toml",
        "action.yml",
        "docs/reference/dependencies.md",
        "autotune/files.py",
    } <= seen.keys()
    for place, text in seen.items():
        assert not (found := _OTHERS_NAME.search(text)), f"{place}: {found[0]} is not {NAME}"


def test_the_name_is_the_same_everywhere() -> None:
    assert NAME != "autotune" and PROJECT["project"]["scripts"] == {
        "autotune": "autotune.__main__:entry_point"
    }
    assert autotune.files._DISTRIBUTION == NAME
    assert f" {NAME}\n" in (ROOT / ".ci" / "release").read_text(encoding="utf-8")


def pinned(requirements: list[Any]) -> dict[str, str]:
    """Package to exact version."""
    found = [Requirement(text) for text in requirements if isinstance(text, str)]
    return {
        one.name: str(one.specifier).removeprefix("==") for one in found if str(one.specifier)[:2] == "=="
    }


def test_hooks_are_the_gates_tools_at_the_gates_versions() -> None:
    tools = {
        "ruff-pre-commit": "ruff", "mirrors-clang-format": "clang-format", "mirrors-mypy": "mypy",
        "codespell": "codespell", "zizmor-pre-commit": "zizmor",
    }  # fmt: skip
    versions, gate = pinned(GROUPS["lint"]), (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for repository, tool in tools.items():
        assert HOOKS[repository]["rev"] == f"v{versions[tool]}"
        assert f'"$venv/bin/{tool}"' in gate
    # What mypy reads is what the gate's mypy reads.
    project = PROJECT["project"]
    allowed = {*project["dependencies"], *project["optional-dependencies"]["test"], *GROUPS["lint"]}
    allowed |= {*project["optional-dependencies"]["postgresql"]}
    (hook,) = HOOKS["mirrors-mypy"]["hooks"]
    assert {*hook["additional_dependencies"]} <= allowed
    assert {name for name in versions if name.startswith("types-") or name.endswith("-stubs")} <= {
        *pinned(hook["additional_dependencies"])
    }


@pytest.mark.parametrize(
    ("message", "is_refused"),
    [
        ("Name the distribution autotune-layouts", False),
        ("Name the distribution\n\nThe index has another project of that name.\n", False),
        (f"Say {'x' * 68}", False),
        (f"Say {'x' * 69}", True),
        ("fix it", True),
        ("Fix it.", True),
        ("Fix it\nwithout a blank line\n", True),
        ("Fix it\n# Please enter the commit message\n", False),
    ],
)
def test_a_commit_has_a_short_subject(message: str, is_refused: bool) -> None:
    (hook,) = HOOKS["local"]["hooks"]
    assert hook["stages"] == ["commit-msg"] and "--multiline" in hook["args"]
    assert bool(re.search(hook["entry"], message, re.MULTILINE)) == is_refused


def test_groups_are_what_the_gate_installs() -> None:
    """And the extra test is light: a newcomer's tests begin within a minute."""
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (installed,) = re.findall(r"^install -e '\.\[([\w,]+)\]' --group dev$", gate, re.MULTILINE)
    assert {"test"} < {*installed.split(",")} <= {*PROJECT["project"]["optional-dependencies"]}
    assert GROUPS["dev"] == [{"include-group": group} for group in GROUPS if group != "dev"]
    assert all(
        pinned(GROUPS[group]).keys() == {Requirement(r).name for r in GROUPS[group]}
        for group in GROUPS
        if group != "dev"
    )
    light = {Requirement(text).name for text in PROJECT["project"]["optional-dependencies"]["test"]}
    assert not light & {
        "mypy",
        "mkdocs-material",
        "playwright",
        "pyscf",
        "z3-solver",
        "ziglang",
        "ipykernel",
        "mpich",
    }


def test_the_gate_requires_genomes_only_where_they_are() -> None:
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^needed=\(([\w ]+)\)$", gate, re.MULTILINE)
    markers = {marker.partition(":")[0] for marker in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    assert {*listed.split()} <= markers - {"shared", "gpu"}
    assert "[[ -d shared/data || -d ../shared/data ]] && needed+=(shared)\n" in gate


def test_workflows_run_the_gate_and_keep_no_token() -> None:
    assert WORKFLOWS.keys() == {"gate.yml", "release.yml"}
    for text in WORKFLOWS.values():
        assert re.search(r"^ +- run: \.ci/run$", text, re.MULTILINE)
        assert "secrets." not in text
        for program in re.findall(r"\.ci/[\w-]+", text):
            assert os.access(ROOT / program, os.X_OK)


def released(version: str, changes: str, repository: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What .ci/check-release says of the tag v1.2.3 in a checkout with these."""
    for name in (".ci/check-release", "pyproject.toml", "CITATION.cff"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "autotune").mkdir()
    (folder / "autotune" / "__init__.py").write_text(f'__version__ = "{version}"\n')
    (folder / "CHANGELOG.md").write_text(changes)
    told = {"GITHUB_REF_TYPE": "tag", "GITHUB_REF_NAME": "v1.2.3", "GITHUB_REPOSITORY": repository}
    command = ["bash", str(folder / ".ci" / "check-release")]
    environment = {**os.environ, **told, "GITHUB_SERVER_URL": "https://github.com"}
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True)


_DATED = "# Changelog\n\n## 1.2.3 - 2026-01-31\n"


@pytest.mark.parametrize(
    ("version", "changes", "repository", "said"),
    [
        ("1.2.3", _DATED, "", ""),
        ("1.2.4", _DATED, "", "the tag is v1.2.3, and autotune/__init__.py has version 1.2.4"),
        ("1.2.3", "## 1.2.3 - unreleased\n", "", "CHANGELOG.md has no line"),
        ("1.2.3", _DATED, "somebody/else", "pyproject.toml does not name this repository"),
    ],
)
def test_a_tag_is_of_the_version_and_the_repository(
    version: str, changes: str, repository: str, said: str, tmp_path: Path
) -> None:
    own = PROJECT["project"]["urls"]["Source"].removeprefix("https://github.com/")
    done = released(version, changes, repository or own, tmp_path)
    assert done.returncode == bool(said)
    assert said in done.stderr


def test_addresses_are_one() -> None:
    source = PROJECT["project"]["urls"]["Source"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["repository-code"] == source
    assert all(address.startswith(source) for address in PROJECT["project"]["urls"].values())
    assert [one["name"] for one in PROJECT["project"]["authors"]] == [
        one["name"] for one in citation["authors"]
    ]
