"""A study as a notebook shows it, and what docs/records.md says."""

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from report_pages import HOSTILE, Page, fake_study

from autotune.cli.commands import main
from autotune.report.tables import study_html

# ---- a notebook


def test_a_notebook_shows_verdict_and_table() -> None:
    study = fake_study(f"hapmap {HOSTILE}")
    made = study._repr_html_()
    assert made == study_html(study)
    page = Page()
    page.feed(made.replace("<table", '<table data-name="shown"'))
    decision = study.decision
    assert decision
    assert decision.winner.configuration.id.split(",")[0] in page.text
    assert "margin over the control" in page.text
    assert "texture" in page.text
    assert not [tag for tag, _ in page.tags if tag == "script"]
    assert "<script>" in page.text  # as text


def test_a_study_without_a_winner_shows_that() -> None:
    study = fake_study()
    failed = tuple(replace(t, state="crashed", reason="x", measurement=None) for t in study.trials)
    assert "no winner" in study_html(replace(study, trials=failed))


def test_a_record_costs_no_pandas_until_it_is_shown() -> None:
    program = (
        "import sys, autotune.record; assert 'pandas' not in sys.modules and 'plotly' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# ---- docs/records.md


def test_the_commands_in_the_document_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that need no GPU, in a folder that has what they name."""
    root = Path(__file__).parents[2]
    text = (root / "docs" / "records.md").read_text(encoding="utf-8")
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    monkeypatch.chdir(tmp_path)
    for name in ("benchmarks", "policies"):
        (tmp_path / name).symlink_to(root / name)
    ran = []
    for line in lines:
        program, command, *words = shlex.split(line)
        assert program == "autotune"
        if command in ("compare", "convert", "import", "report"):
            assert main([command, *words]) == 0, line
            ran.append(command)
    assert ran == ["compare", "compare", "convert", "convert", "import", "report"]
    assert (tmp_path / "imported-report" / "report.html").is_file()
    described = re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE)
    columns = {name for cell in described for name in re.findall(r"`(\w+)`", cell)}
    assert set(pd.read_csv(tmp_path / "moved.csv").columns) <= columns


def test_ncu_and_ceilings_in_the_document_are_all_there_are() -> None:
    from autotune.measure.ceilings import CEILINGS
    from autotune.measure.ncu import COUNTERS

    text = (Path(__file__).parents[2] / "docs" / "records.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z]\w+)`", text))
    assert set(CEILINGS) <= named
    assert {name for name in COUNTERS if not name.startswith("stall_")} <= named
