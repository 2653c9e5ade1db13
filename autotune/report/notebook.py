"""A study as a notebook shows it: the verdict in words, and the configurations that have a name as a table."""

from html import escape

import pandas as pd

from autotune.files import clean
from autotune.record import Study, Timed, effects_frame
from autotune.report.blocks import CONFIGURATION, OCCUPANCY, OVER_WINNER, SPREAD, TIME, Column
from autotune.report.tables import summary_frame
from autotune.report.verdict import verdict

_COLUMNS = (
    Column("role", "role"), TIME, SPREAD, OVER_WINNER, Column("in_tie_set", "tied"),
    Column("registers", "registers", "count"), OCCUPANCY,
    Column("footprint_bytes", "footprint", "bytes"), CONFIGURATION,
)  # fmt: skip


def study_html(study: Study) -> str:
    """Every name and message of the record is escaped."""
    said = verdict(study, study.decision, effects_frame(Timed.of(study)))
    device = study.about.device_name or study.device
    head = f"{study.family} on {study.workload}, {device}"
    headline = "" if study.decision else f"{_text(said.headline)} "
    cards = ", ".join(
        f"{card.label} {card.text}{f' ({card.between})' if card.between else ''}" for card in said.cards
    )
    parts = [f"<p><b>{_text(head)}</b><br>{headline}{_text(cards)}</p>"]
    parts += [f"<p>{_text(sentence)}</p>" for sentence in said.sentences]
    parts += [f"<p>⚠ {_text(warning)}</p>" for warning in said.warnings]
    frame = summary_frame([study]).dropna(axis="columns", how="all")
    frame["in_tie_set"] = ["yes" if tied else "" for tied in frame["in_tie_set"]]
    shown = {
        column.label: [column.show(value) if pd.notna(value) else "" for value in frame[column.key]]
        for column in _COLUMNS
        if column.key in frame
    }
    return "".join(parts) + pd.DataFrame(shown).to_html(index=False, border=0, escape=True)


def _text(text: object) -> str:
    return escape(clean(str(text)))
