"""The GitHub Action: its steps, run by bash as a runner runs them, with a stand-in for GitHub's own program."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from autotune.__main__ import entry_point

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
TABLE = str(ROOT / "benchmarks" / "results" / "mummergpu-h200.csv.xz")

_GH = """#!/bin/sh
echo "$@" >>"$GH_LOG"
for word in "$@"; do case "$word" in --paginate) printf '%s' "$GH_FOUND";; esac; done
"""


def ran(
    name: str,
    folder: Path,
    environment: dict[str, str],
    autotune: str = f'exec "{sys.executable}" -m autotune "$@"',
) -> subprocess.CompletedProcess[str]:
    """One step. What of its ``env`` is not given is the input's default. ``autotune`` is a script."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    for program, text in (("gh", _GH), ("autotune", f"#!/bin/sh\n{autotune}\n")):
        (programs / program).write_text(text)
        (programs / program).chmod(0o755)
    defaults = {key: str(_default(value)) for key, value in STEPS[name]["env"].items()}
    told = {
        **os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{programs}:{os.environ['PATH']}", **defaults,
        "TABLE": str(folder / "autotune.md"), "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GH_LOG": str(folder / "gh.log"), **environment,
    }  # fmt: skip
    command = ["bash", "-e", "-o", "pipefail", "-c", STEPS[name]["run"]]
    return subprocess.run(command, check=False, env=told, cwd=ROOT, capture_output=True, text=True)


def _default(value: str) -> Any:
    name = value.removeprefix("${{ inputs.").removesuffix(" }}")
    return ACTION["inputs"].get(name, {}).get("default", "")


def test_every_input_is_used_and_every_used_one_declared() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert {name for name in ACTION["inputs"] if f"inputs.{name}" in text} == set(ACTION["inputs"])
    assert all("${{" not in step["run"] for step in STEPS.values())  # an input is never a part of a script


@pytest.mark.parametrize(
    ("environment", "status", "said"),
    [
        ({"COMMAND": "compare", "BEFORE": TABLE, "AFTER": TABLE}, 0, "no regression"),
        ({"COMMAND": "check", "POLICIES": "policies/coulomb/nvidia-h200.yaml"}, 0, "### Policy files: "),
        ({"COMMAND": "check", "FAMILIES": "kernels/coulomb"}, 0, "| `coulomb` |"),
        ({"COMMAND": "check", "POLICIES": "policies/none.yaml"}, 8, "**1 of 1 rejected**"),
    ],
)
def test_the_table_becomes_the_summary(
    environment: dict[str, str], status: int, said: str, tmp_path: Path
) -> None:
    done = ran("Run", tmp_path, environment)
    assert done.returncode == status, done.stderr
    assert said in (tmp_path / "summary.md").read_text()
    assert ("::error::autotune" in done.stdout) == bool(status)


def test_a_command_that_is_none(tmp_path: Path) -> None:
    done = ran("Run", tmp_path, {"COMMAND": "sweep"})
    assert done.returncode == 2
    assert "::error::command 'sweep' is not one of: check, measure, compare" in done.stdout


@pytest.mark.parametrize(("found", "called"), [("", "pr comment 7 --body-file"), ("31\n", "PATCH")])
def test_one_comment_is_written_anew(found: str, called: str, tmp_path: Path) -> None:
    (tmp_path / "autotune.md").write_text("### allpairs\n")
    done = ran("Comment", tmp_path, {"GH_REPO": "a/b", "NUMBER": "7", "GH_FOUND": found})
    assert done.returncode == 0, done.stderr
    assert called in (tmp_path / "gh.log").read_text().splitlines()[-1]
    assert (tmp_path / "autotune.md.comment").read_text() == "<!-- autotune -->\n### allpairs\n"


HOSTILE = "w\n::error file=README.md::x\r::stop-commands::t <img src=x>@everyone|`"


def hostile(folder: Path) -> str:
    """A table whose family, workload and preset say what a runner, or GitHub's pages, would take for their own."""
    path = folder / "hostile.csv"
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["family", "workload", "device", "preset", "p", "state", "median_ms"])
        table.writerow(["::error::f", HOSTILE, "d", "control ##[error]x", 1, "measured", 1.0])
        table.writerow(["::error::f", HOSTILE, "d", "", 2, "measured", 2.0])
    return str(path)


def test_what_files_say_is_no_command_and_no_markup(tmp_path: Path) -> None:
    table = hostile(tmp_path)
    done = ran("Run", tmp_path, {"COMMAND": "compare", "BEFORE": table, "AFTER": table})
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert re.fullmatch(r"::stop-commands::[0-9a-f]{32}", first)
    assert rest[-1] == f"::{first.rpartition(':')[2]}::"
    again = ran("Run", tmp_path / "again", {"COMMAND": "compare"}, "exit 0")
    assert again.stdout.splitlines()[0] != first
    heading = (tmp_path / "summary.md").read_text().splitlines()[0]
    assert re.fullmatch(r"### `::error::f on w ::error [^`]*'[^`]*`: no regression", heading)


@pytest.mark.parametrize("name", ["hostile.csv", "none\n::error::x.csv"])
def test_a_command_in_a_job_prints_no_command_of_the_runner(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = hostile(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setattr(sys, "argv", ["autotune", "compare", str(tmp_path / name), table])
    for stream in ("stdout", "stderr"):  # which it puts others in front of
        monkeypatch.setattr(sys, stream, getattr(sys, stream))
    with pytest.raises(SystemExit):
        entry_point()
    said = "".join(capsys.readouterr())
    assert "error" in said
    assert not [line for line in re.split(r"[\r\n]+", said) if line.strip().startswith("::") or "##[" in line]
