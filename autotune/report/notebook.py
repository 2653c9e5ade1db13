"""A study as a notebook shows it: the verdict in words, and the configurations that have a name as a table."""

from html import escape

import pandas as pd

from autotune import figures as units
from autotune.files import clean
from autotune.record import Study, Timed, effects_frame
from autotune.report.conclusions import summary_frame
from autotune.report.verdict import verdict

_SHOWN = {
    "role": "role", "time_ms": "time", "spread_relative": "±", "time_over_winner": "× winner", "in_tie_set": "tied",
    "registers": "registers", "occupancy": "occupancy", "footprint_bytes": "footprint",
    "configuration": "configuration",
}  # fmt: skip

_AS_READ = {
    "time_ms": units.duration, "spread_relative": units.spread, "time_over_winner": units.ratio,
    "occupancy": units.share, "footprint_bytes": units.size, "registers": units.count,
}  # fmt: skip


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
    frame = summary_frame([study])[list(_SHOWN)].dropna(axis="columns", how="all")
    for column, read in _AS_READ.items():
        if column in frame:
            shown = [read(float(value)) if pd.notna(value) else "" for value in frame[column]]
            frame[column] = pd.Series(shown, index=frame.index, dtype=object)
    frame["in_tie_set"] = ["yes" if tied else "" for tied in frame["in_tie_set"]]
    return "".join(parts) + frame.rename(columns=_SHOWN).to_html(index=False, border=0, escape=True)


def _text(text: object) -> str:
    return escape(clean(str(text)))
