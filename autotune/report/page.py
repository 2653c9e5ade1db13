"""``report.html``: one self-contained file from the record alone.

Everything it needs is inside, and a content security policy forbids it to ask for more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from autotune.record import Study
from autotune.report import units
from autotune.report.charts import Chart
from autotune.report.effects import effects_frame
from autotune.report.results import clean, write_text
from autotune.report.sections import across, configurations, effects_section, why
from autotune.report.table import Table
from autotune.report.trials import as_script, every_trial, ranked
from autotune.report.verdict import Verdict, facts, ladder, roles_of, tie_table, verdict
from autotune.space import Configuration

__all__ = ["write_report"]

MOST_TRIALS = 20_000  # in the page's table, over all studies, to keep the file under 8 MB
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class _Block:
    """A chart and the table with its figures; either may be missing. On a wide screen they stand side by side
    unless ``stacked``; ``folded`` hides them until asked for."""

    table: Table | None = None
    chart: Chart | None = None
    stacked: bool = False
    folded: bool = False


@dataclass(frozen=True, kw_only=True)
class _View:
    """One study as the template shows it; ``anchor`` is its id in the page."""

    anchor: str
    title: str
    study: Study
    winner: Configuration | None
    verdict: Verdict
    facts: tuple[tuple[str, str], ...]
    ladder: _Block
    ties: Table | None
    configurations: _Block | None
    effects: tuple[_Block, ...]
    why: tuple[_Block, ...]
    trials: dict[str, Any]


def write_report(studies: Iterable[Study], path: str | Path) -> Path:
    """Write the report of ``studies`` to ``path``, whole or not at all. Raises StoreError."""
    return write_text(path, _render(tuple(studies)))


def _render(studies: Sequence[Study]) -> str:
    most = max(1, MOST_TRIALS // max(1, len(studies)))
    texts = len({(trial.reason, trial.notes) for study in studies for trial in study.trials})
    views = [_view(study, f"study-{i + 1}", most, texts) for i, study in enumerate(studies)]
    groups: dict[tuple[str, str], list[Study]] = {}
    for study in studies:
        groups.setdefault((study.family, study.device), []).append(study)
    choices = [across(group) for group in groups.values() if len(group) > 1]
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FileSystemLoader(_FOLDER),
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: clean(value) if type(value) is str else value,  # Markup stays as it is
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        views=views,
        percent=lambda value: f"{units.bare(value)} %",
        choices=choices,
        several=len(groups) > 1,
        css=_trusted((_FOLDER / "page.css").read_text(encoding="utf-8")),
        js=_trusted((_FOLDER / "page.js").read_text(encoding="utf-8")),
        plotly=_trusted(get_plotlyjs()),
        data=_trusted(as_script(_data(views))),
    )


def _trusted(text: str) -> Markup:
    """Code of ours, or data that ``as_script`` made safe where it stands: not to be escaped again."""
    return Markup(text)  # noqa: S704


def _view(study: Study, anchor: str, most: int, texts: int) -> _View:
    decision = study.decision
    trials = ranked(study, most)
    roles = roles_of(study, decision)
    effects = effects_frame(study)
    table, chart = ladder(study, decision)
    blocks: list[_Block] = []
    ranking = None
    if decision:
        by_rank, ranks = configurations(study, decision, roles)
        ranking = _Block(table=by_rank, chart=ranks, stacked=True)
        by_occupancy, scatters = why(trials, decision, roles)
        blocks = [_Block(chart=c) for c in scatters] + ([_Block(table=by_occupancy)] if by_occupancy else [])
        if len(blocks) == 2:  # one kernel: its chart and the table belong side by side
            blocks = [_Block(chart=scatters[0], table=by_occupancy)]
    main, rest, spans = effects_section(effects, study)
    shown = [_Block(table=main, chart=spans)] if main.rows else []
    shown += [_Block(table=rest, folded=True)] if rest.rows else []
    return _View(
        anchor=anchor,
        title=f"{study.family} on {study.workload}",
        study=study,
        winner=decision.winner.configuration if decision else None,
        verdict=verdict(study, decision, effects),
        facts=facts(study),
        ladder=_Block(table=table, chart=chart),
        ties=tie_table(decision) if decision and len(decision.tie_set) > 1 else None,
        configurations=ranking,
        effects=tuple(shown),
        why=tuple(blocks),
        trials=every_trial(study, trials, texts),
    )


def _data(views: Sequence[_View]) -> dict[str, Any]:
    charts = {
        f"{view.anchor}-{block.chart.name}": block.chart.figure
        for view in views
        for block in (view.ladder, view.configurations, *view.effects, *view.why)
        if block and block.chart
    }
    return {"charts": charts, "trials": {view.anchor: view.trials for view in views}}
