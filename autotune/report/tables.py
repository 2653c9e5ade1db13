"""``summary.csv`` and ``effects.csv``: what the report concludes, as tables that read into pandas with no options."""

from collections.abc import Iterable
from html import escape
from typing import Any

import pandas as pd

from autotune.declaration import Configuration
from autotune.files import clean
from autotune.record import Baseline, Decision, Study, margin, minimax, times_of
from autotune.report.policy_effects import Timed, effects_frame, every_effect, importance
from autotune.report.result_section import ladder, make_result_section

# In their order; docs/reference/results-csv.md says what each of them is.
SUMMARY = (
    "family", "workload", "device", "role", "configuration", "state", "time_ms", "spread_relative",
    "time_over_winner", "time_over_winner_low", "time_over_winner_high", "in_tie_set", "registers", "occupancy",
    "footprint_bytes", "once_ms", "trials", "measured", "identity",
)  # fmt: skip

EFFECTS = (
    "family", "workload", "device", "kernel", "given_policy", "given_value", "policy", "base", "value", "pairs",
    "mean_percent", "median_percent", "minimum_percent", "maximum_percent", "faster_share", "importance",
    "identity",
)  # fmt: skip


def groups(studies: Iterable[Study]) -> list[list[Study]]:
    """Studies that can be compared workload by workload: of one family and one device."""
    found: dict[tuple[str, str], list[Study]] = {}
    for study in studies:
        found.setdefault((study.family, study.device), []).append(study)
    return list(found.values())


def summary_frame(studies: Iterable[Study]) -> pd.DataFrame:
    """A row for each configuration that has a name in each study, with the columns of ``SUMMARY``."""
    rows = []
    for group in groups(studies):
        common = minimax(times_of(group)) if len(group) > 1 else None
        for study in group:
            decision = study.decision
            roles = study.roles(decision, common.configuration if common else None)
            rows += [_summary(study, decision, *one) for one in roles.items()]
            if baseline := study.about.baseline:
                rows.append(_baseline(study, decision, baseline))
    frame = pd.DataFrame(rows, columns=list(SUMMARY))
    for column in ("registers", "footprint_bytes"):
        frame[column] = frame[column].astype("Int64")
    return frame


def _head(study: Study, role: str, configuration: str, state: str) -> dict[str, Any]:
    return {
        "family": clean(study.family), "workload": clean(study.workload), "device": clean(study.device),
        "role": clean(role), "configuration": clean(configuration), "identity": study.identity, "state": clean(state),
        "trials": len(study.trials), "measured": study.states().get("measured", 0), "in_tie_set": False,
    }  # fmt: skip


def _summary(
    study: Study, decision: Decision | None, role: str, configuration: Configuration
) -> dict[str, Any]:
    trial = next((t for t in reversed(study.trials) if t.configuration == configuration), None)
    row = _head(study, role, configuration.id, trial.state if trial else "not_tried")
    if not (trial and trial.measurement and decision):
        return row
    over = margin(trial, decision.winner)
    return row | {
        "in_tie_set": trial in decision.tie_set,
        "time_over_winner_low": over.low,
        "time_over_winner_high": over.high,
        "time_ms": trial.time_ms,
        "spread_relative": trial.measurement.spread,
        "time_over_winner": trial.time_ms / decision.winner.time_ms,
        "registers": trial.registers,
        "occupancy": trial.occupancy,
        "footprint_bytes": trial.footprint_bytes,
        "once_ms": trial.once_ms,
    }


def _baseline(study: Study, decision: Decision | None, baseline: Baseline) -> dict[str, Any]:
    state = "measured" if baseline.median_ms else f"not_tried: {baseline.cause}"
    row = _head(study, "baseline", f"{baseline.source}:{baseline.kernel}", state)
    if not baseline.median_ms:
        return row
    return row | {
        "time_ms": baseline.beside_ms(decision.winner.time_ms) if decision else baseline.median_ms,
        "spread_relative": baseline.spread,
        "time_over_winner": baseline.over_winner or None,
        "registers": baseline.registers,
    }


def effects_csv_frame(studies: Iterable[Study]) -> pd.DataFrame:
    """A row for each policy's two values, for the whole plan and each kernel, over all pairs and over those in which
    another policy has a given value; with the columns of ``EFFECTS``."""
    rows = []
    for study in studies:
        timed = Timed.make(study)
        shares = {kernel: importance(timed, kernel or None).alone for kernel in ("", *timed.kernels)}
        head = (clean(study.family), clean(study.workload), clean(study.device))
        for kernel, given, value, figures in every_effect(timed):
            share = shares[kernel].get(figures[0]) if not given else None
            texts = [clean(v) if isinstance(v, str) else v for v in (kernel, given, value, *figures)]
            rows.append((*head, *texts, share, study.identity))
    return pd.DataFrame(rows, columns=list(EFFECTS))


def study_html(study: Study) -> str:
    """Every name and message of the record is escaped."""
    said = make_result_section(study, study.decision, effects_frame(Timed.make(study)))
    device = study.about.device_name or study.device
    head = f"{study.family} on {study.workload}, {device}"
    headline = "" if study.decision else f"{_text(said.headline)} "
    cards = ", ".join(
        f"{card.label} {card.text}{f' ({card.between})' if card.between else ''}" for card in said.cards
    )
    parts = [f"<p><b>{_text(head)}</b><br>{headline}{_text(cards)}</p>"]
    parts += [f"<p>{_text(sentence)}</p>" for sentence in said.sentences]
    parts += [f"<p>⚠ {_text(warning)}</p>" for warning in said.warnings]
    table, _ = ladder(study, study.decision)
    shown = {
        column.label: [column.show(row[place]) for row in table.rows]
        for place, column in enumerate(table.columns)
    }
    return "".join(parts) + pd.DataFrame(shown).to_html(index=False, border=0, escape=True)


def _text(text: object) -> str:
    return escape(clean(str(text)))
