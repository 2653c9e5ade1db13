"""``report.html``: one self-contained file from the record alone.

Everything it needs is inside, and a content security policy forbids it to ask for more.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from autotune import figures as units
from autotune.declaration import Configuration
from autotune.files import clean, write_text
from autotune.record import Study
from autotune.report.across import Across, compare_across
from autotune.report.blocks import Block
from autotune.report.effects import effects_blocks
from autotune.report.policy_effects import Timed, effects_frame
from autotune.report.ranking import configurations, explain_untied
from autotune.report.result_section import (
    Use,
    answer,
    facts,
    ladder,
    make_result_section,
    roles_of,
    tie_table,
)
from autotune.report.search_section import search_blocks
from autotune.report.static_pass import Static
from autotune.report.tables import groups
from autotune.report.trade_offs import choice_blocks
from autotune.report.trials import Code, as_script, every_trial, rows
from autotune.report.why import make_blocks

MOST_TRIALS = 20_000  # in the page's table, over all studies, to keep the file under 8 MB
_FOLDER = Path(__file__).parent


def write_report(
    studies: Iterable[Study],
    path: str | Path,
    *,
    ceilings: Mapping[str, Any] | None = None,
    code: Code | None = None,
    static: Static | None = None,
    use: Callable[[Study], Use] = lambda study: Use(),
    more: Callable[[Study], Sequence[Block]] = lambda study: (),
) -> Path:
    """Write the report of ``studies`` to ``path``, whole or not at all. Raises StoreError.

    ``ceilings`` are the device's measured ceilings (``read_ceilings``); ``code`` gives the code that is generated
    for a configuration, so that two can be compared by it; ``static`` is a static pass (``read_static``), a part
    of its own; ``use`` says how a program gets at a study's winner; ``more`` is what extensions add to its section
    *Why*. The page has what it is given and says so of the rest.
    """
    studies = tuple(studies)
    most = max(1, MOST_TRIALS // max(1, len(studies)))
    texts = len({(trial.reason, trial.remarks) for study in studies for trial in study.trials})
    view = partial(_view, ceilings=ceilings, code=code, use=use, more=more, most=most, texts=texts)
    views: list[dict[str, Any]] = []
    wholes: dict[str, Across] = {}
    for group in groups(studies):
        anchor = f"across-{len(wholes) + 1}" if len(group) > 1 else ""
        common = wholes.setdefault(anchor, compare_across(group)).minimax if anchor else None
        chosen = common.configuration if common else None
        for study in group:
            views.append(view(study, f"study-{len(views) + 1}", anchor, chosen))
    script = "".join(
        (_FOLDER / name).read_text(encoding="utf-8") for name in ("page.js", "charts.js", "trials.js")
    )
    page = _templates().get_template("page.html.j2")
    text = page.render(
        views=views,
        percent=lambda value: f"{units.format_plain(value)} %",
        wholes=wholes,
        static=static,
        several=len(groups(studies)) > 1,
        css=_trust((_FOLDER / "page.css").read_text(encoding="utf-8")),
        dark=_trust((_FOLDER / "dark.css").read_text(encoding="utf-8")),
        js=_trust(script),
        plotly=_trust(get_plotlyjs()),
        data=_trust(as_script(_data(views, wholes, static))),
    )
    return write_text(path, text)


@cache
def _templates() -> jinja2.Environment:
    """One for all pages: each template is compiled once."""
    return jinja2.Environment(
        autoescape=True,
        loader=jinja2.FileSystemLoader(_FOLDER),
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: clean(value) if type(value) is str else value,  # Markup stays as it is
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _trust(text: str) -> Markup:
    """Code of ours, or data that ``as_script`` made safe where it stands: not to be escaped again."""
    return Markup(text)  # noqa: S704


def _view(
    study: Study, anchor: str, whole: str, common: Configuration | None, *, ceilings: Mapping[str, Any] | None,
    code: Code | None, use: Callable[[Study], Use], more: Callable[[Study], Sequence[Block]], most: int, texts: int,
) -> dict[str, Any]:  # fmt: skip
    """One study as the template shows it: the blocks of the six sections, and what stands between them. ``anchor`` is
    its id in the page, ``whole`` that of the page's part on all workloads. At most ``most`` trials are shown; all
    studies together have ``texts`` different reasons and notes; the other keywords are those of ``write_report``."""
    decision, timed = study.decision, Timed.make(study)
    trials = rows(study, decision, most)
    roles = roles_of(study, decision, common)
    table, chart = ladder(study, decision, common)
    shown_ladder = Block(title="Presets, runner-up and winner", table=table, chart=chart)
    effects, search = effects_blocks(study, timed, trials), search_blocks(study)
    ranking, why, choice, chips = None, [], [], []
    if decision:
        # The winner's policies, those first that it changed.
        chips = sorted(decision.winner.configuration.items(), key=lambda one: one[1] == study.control[one[0]])
        why = [*make_blocks(study, decision, trials, roles, ceilings), *more(study)]
        choice = choice_blocks(study, decision, trials, roles)
        by_rank, ranks = configurations(study, decision, roles)
        ranking = Block(
            title="The fastest and the slowest", text=explain_untied(study, decision), table=by_rank, chart=ranks,
            stacked=True,
            folded_table=True,
        )  # fmt: skip
    return {
        "anchor": anchor, "across": whole, "study": study, "title": f"{study.family} on {study.workload}",
        "answer": answer(study, decision, timed, use(study)) if decision else None, "chips": chips,
        "result": make_result_section(study, decision, effects_frame(timed)), "facts": facts(study),
        "ladder": shown_ladder, "ranking": ranking,
        "ties": tie_table(decision) if decision and len(decision.tie_set) > 1 else None,
        "effects": effects, "kernels": timed.kernels, "why": why, "choice": choice, "search": search,
        "blocks": [shown_ladder, *([ranking] if ranking else []), *effects, *why, *choice, *search],
        "trials": every_trial(study, trials, texts, roles, code, ceilings),
    }  # fmt: skip


def _data(
    views: Sequence[Mapping[str, Any]], wholes: Mapping[str, Across], static: Static | None
) -> dict[str, Any]:
    parts = {view["anchor"]: view["blocks"] for view in views}
    parts |= {anchor: (whole.result, *whole.choice) for anchor, whole in wholes.items()}
    if static:
        parts["static-1"] = static.blocks
    charts = {
        f"{anchor}-chart-{block.chart.name}": block.chart.figure
        for anchor, blocks in parts.items()
        for block in blocks
        if block.chart
    }
    return {"charts": charts, "trials": {view["anchor"]: view["trials"] for view in views}}
