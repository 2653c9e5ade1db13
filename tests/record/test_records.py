"""A study as a notebook shows it, and what docs/reference/records.md says."""

import subprocess
import sys
from dataclasses import replace

from report_pages import HOSTILE, Page, fake_study

from autotune.report.tables import study_html

# ---- a notebook


def test_a_notebook_shows_verdict_and_table() -> None:
    study = fake_study(f"hapmap {HOSTILE}")
    made = study_html(study)
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
