"""What a study says first: the winner, by how much, against what, and what a reader should beware of."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from autotune import figures as units
from autotune.declaration import Configuration
from autotune.device import POWER_OR_HEAT
from autotune.record import (
    FAILED,
    MOST,
    STATES,
    TIE,
    Decision,
    Margin,
    Study,
    Trial,
    break_even,
    close_to_winner,
    remarks,
)
from autotune.report.blocks import (
    CONFIGURATION,
    FOOTPRINT,
    OCCUPANCY,
    OVER_WINNER,
    SPREAD,
    TIME,
    Column,
    Table,
    drop_empty_columns,
)
from autotune.report.charts import Bar, Chart, bars
from autotune.report.policy_effects import Timed, contributions

Roles = Mapping[Configuration, tuple[str, ...]]
_WIDE = 0.05  # a 95 % interval wider than this deserves a word

_ELSEWHERE = (  # or of no use here
    "device_name", "title", "policies", "operations", "operation_unit", "bytes", "interrupted", "retime_ratio",
    "searched",
)  # fmt: skip

_NAMES = {"floor_ms": "empty kernel", "phases_s": "wall time", "features": "workload sizes"}
_NOTES = 6  # kinds of remark shown; the table of trials has them all
_MOSTLY = 0.8  # of the winner's lead, on a logarithmic scale, is laid to the policies that are named
_MOST_NAMED = 3


@dataclass(frozen=True)
class Card:
    """One figure of the result: ``value`` is the number itself, ``key`` its name with the unit, ``between`` its 95 %
    interval where it has one."""

    key: str
    label: str
    value: float
    text: str
    note: str = ""
    between: str = ""


@dataclass(frozen=True)
class ResultSection:
    """``sentences`` explain the choice, ``warnings`` what to beware of; ``cards`` hold the figures."""

    headline: str
    cards: tuple[Card, ...]
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Use:
    """Where a winner stands that a program can use: the policy ``file`` that holds it, and the ``call`` that takes it;
    empty where that is not known."""

    file: str = ""
    call: str = ""


@dataclass(frozen=True)
class Headline:
    """The result in one sentence, for the top of the page: ``winner`` is that many ``times`` as fast as the control,
    ``between`` those, mostly by ``because``; how much of the space was ``covered``; and how a program uses it. Without
    ``is_reliable`` noise may have made the difference; ``times`` is empty where the control has no time."""

    winner: Configuration
    is_control: bool
    is_reliable: bool
    times: str
    between: str
    because: tuple[str, ...]
    covered: str
    use: Use


def answer(study: Study, decision: Decision, timed: Timed, use: Use) -> Headline:
    winner, over = decision.winner, decision.over_control
    known, excluded = math.isfinite(over.ratio), study.states().get("excluded", 0)
    tried = f"{len(study.trials) - excluded:,} tried" + (f", {excluded:,} excluded" if excluded else "")
    return Headline(
        winner=winner.configuration,
        is_control=winner.configuration == study.control,
        is_reliable=not remarks.describe_unbeaten(decision),
        times=units.number(over.ratio) if known else "",
        between=_format_range(over, units.number),
        because=tuple(_explain_lead(timed, winner, study.control)),
        covered=str(remarks.coverage(study) or tried),
        use=use,
    )


def _explain_lead(timed: Timed, winner: Trial, control: Configuration) -> Iterable[str]:
    """The policies that make most of the winner's lead, the strongest first."""
    parts = {
        f"{name}={winner.configuration[name]}": math.log(times)
        for name, times in contributions(timed, winner, control).items()
        if times > 1 + MOST
    }
    told = 0.0
    for named, part in list(parts.items())[:_MOST_NAMED]:
        if told < _MOSTLY * sum(parts.values()):
            yield named
        told += part


def _format_range(margin: Margin, text: Callable[[float], str]) -> str:
    return "" if math.isnan(margin.low) else f"{text(margin.low)} to {text(margin.high)}"


def _times(ratio: float) -> str:
    """With as many digits as the ends of an interval need to be distinguished."""
    return f"{units.number(ratio)}×"


def roles_of(study: Study, decision: Decision | None, common: Configuration | None = None) -> Roles:
    """Which configurations have a part in the result: winner, tied, runner-up, control, the presets' names, and the
    choice for all workloads."""
    roles: dict[Configuration, list[str]] = {}
    for trial in decision.tie_set if decision else ():
        roles[trial.configuration] = ["tied"]
    for name, configuration in study.roles(decision, common).items():
        if name == "winner":
            roles[configuration] = ["winner"]
        else:
            roles.setdefault(configuration, []).append("best for all" if name == "minimax" else name)
    return {configuration: tuple(names) for configuration, names in roles.items()}


def make_result_section(study: Study, decision: Decision | None, effects: pd.DataFrame) -> ResultSection:
    states = study.states()
    failed: dict[str, int] = {state: states[state] for state in FAILED if state in states}
    tried = sum(n for state, n in states.items() if state != "excluded")
    ended = ", ".join(f"{states[state]:,} {state}" for state in STATES if state in states)
    covered = remarks.coverage(study)
    of = f"{tried:,} of {covered.whole:,}" if covered and covered.whole else units.count(tried)
    how = ", ".join(covered.how) if covered else ""
    counts = Card("trials", "configurations tried", tried, of, "; ".join(filter(None, (how, ended))))
    warnings = list(_warnings(study, decision, effects, failed))
    if decision is None:
        return ResultSection("Nothing was timed, so there is no winner.", (counts,), (), tuple(warnings))
    winner = decision.winner
    assert winner.measurement is not None
    tied = ", which is tied" if decision.runner_up in decision.tie_set else ""
    others = []
    for key, label, trial, margin in (
        ("control", "control", decision.control, decision.over_control),
        ("runner_up", f"runner-up{tied}", decision.runner_up, decision.over_runner_up),
    ):
        if trial and trial.measurement:
            took = f"{units.duration(trial.time_ms)} {units.spread(trial.measurement.spread)}"
            shown = margin.ratio, _times(margin.ratio), took, _format_range(margin, _times)
            others.append(Card(f"margin_over_{key}", f"margin over the {label}", *shown))
    ties = len(decision.tie_set)
    cards = (
        Card("time_ms", "time of one call", winner.time_ms, units.duration(winner.time_ms),
             f"{units.spread(winner.measurement.spread)} over {winner.measurement.samples:,} samples"),
        *others,
        *_compare_with_baseline(study, winner),
        Card("tie_set", "in the tie set", ties, units.count(ties), "within noise of the best, with it"),
        *_rates(study, winner),
        counts,
    )  # fmt: skip
    return ResultSection("Winner", cards, tuple(_sentences(decision)), tuple(warnings))


def _compare_with_baseline(study: Study, winner: Trial) -> Iterable[Card]:
    baseline = study.about.baseline
    if baseline and baseline.over_winner:
        ratio = baseline.over_winner
        told = f"{units.duration(baseline.beside_ms(winner.time_ms))} {units.spread(baseline.spread)}"
        about = f"{baseline.kernel} in {baseline.source}, timed in turn with the winner"
        yield Card("margin_over_baseline", "margin over the baseline", ratio, _times(ratio), told, about)


def ladder(
    study: Study, decision: Decision | None, common: Configuration | None = None
) -> tuple[Table, Chart | None]:
    """The presets in declared order, the choice for all workloads (``common``), the runner-up and the winner: times,
    ratios and rates, as a table and as bars."""
    columns = (
        Column("preset", "preset"),
        TIME,
        SPREAD,
        OVER_WINNER,
        Column("operations_per_s", f"{_unit(study)}/s", "rate"),
        Column("bytes_per_s", "bytes/s", "rate"),
        Column("state", "not timed"),
        CONFIGURATION,
    )
    roles = study.roles(decision, common)
    names: dict[Configuration, list[str]] = {}
    for role in dict.fromkeys([*study.presets, "control", "minimax", "runner-up", "winner"]):
        if role in roles:
            told = "best for all workloads" if role == "minimax" else role
            names.setdefault(roles[role], []).append(told)
    trials = {trial.configuration: trial for trial in study.trials}
    best = decision.winner.time_ms if decision else math.nan
    rows: list[tuple[Any, ...]] = []
    entries = []

    def add(label: str, role: str, ms: float, spread: float, one: Configuration | None) -> None:
        rates = [_rate(study, name, ms) for name in ("operations", "bytes")]
        rows.append((label, ms, spread, ms / best, *rates, None, one))
        short = "baseline" if one is None else label
        entries.append(Bar(short, short, ms, role, f"{units.duration(ms)}  ({units.ratio(ms / best)})"))

    for configuration, known in names.items():
        trial, label = trials.get(configuration), ", ".join(known)
        if trial and trial.measurement:
            role = "winner" if "winner" in known else "control" if "control" in known else "preset"
            add(label, role, trial.time_ms, trial.measurement.spread, configuration)
        else:
            state = f"{trial.state}: {trial.reason}".strip(": ") if trial else "not tried"
            rows.append((label, None, None, None, None, None, state, configuration))
    baseline = study.about.baseline
    if baseline and baseline.median_ms:
        label = f"baseline: {baseline.kernel} in {baseline.source}"
        ms = baseline.beside_ms(best) if decision else baseline.median_ms
        add(label, "preset", ms, baseline.spread, None)
    caption = "Presets in declared order, then the runner-up and the winner"
    table = drop_empty_columns(Table("presets", caption, columns, tuple(rows)))
    if not entries:
        return table, None
    return table, bars("presets", "Times of the presets; the table has the figures", entries)


def tie_table(decision: Decision) -> Table:
    """The tie set in order of preference, with what broke the tie."""
    columns = (TIME, SPREAD, OCCUPANCY, FOOTPRINT, CONFIGURATION)
    return Table.make("tie_set", "The tie set, the winner first", columns, decision.tie_set)


def facts(study: Study) -> tuple[tuple[str, str], ...]:
    """What a reader needs to trust or repeat the figures: name and value, what is unknown left out."""
    shown: dict[str, object] = {"device": study.about.device_name or study.device, "identity": study.identity}
    for key, value in study.about.to_dict().items():
        if key not in _ELSEWHERE and value not in (None, "", {}, []):
            name = key.removesuffix("_ms").removesuffix("_mhz").replace("_", " ")
            shown[_NAMES.get(key, name)] = _fact(key, value)
    return tuple((name, _flatten(value)) for name, value in shown.items())


def _fact(key: str, value: Any) -> object:
    if key == "phases_s":
        return {phase: f"{units.format_plain(float(seconds))} s" for phase, seconds in value.items()}
    if key.endswith("_ms"):
        return units.duration(float(value))
    if key.endswith("_share"):
        return units.share(float(value))
    return f"{value} MHz" if key.endswith("_mhz") else value


def _unit(study: Study) -> str:
    return str(study.about.operation_unit or "operations")


def _rate(study: Study, name: str, ms: float) -> float | None:
    amount = getattr(study.about, name)
    return float(amount) / (ms / 1000) if amount and ms > 0 else None


def _rates(study: Study, winner: Trial) -> Iterable[Card]:
    if rate := _rate(study, "operations", winner.time_ms):
        moved = _rate(study, "bytes", winner.time_ms)
        note = f"and {units.si(moved)}B/s of the workload's bytes" if moved else ""
        yield Card("operations_per_s", f"{_unit(study)} per second", rate, units.si(rate).strip(), note)


def _sentences(decision: Decision) -> Iterable[str]:
    winner, control = decision.winner, decision.control
    if len(decision.tie_set) > 1:
        yield (
            f"{len(decision.tie_set)} configurations are within noise of the best. Among those near it "
            f"{'the higher occupancy wins, then ' if winner.profiles[0:1] and winner.profiles[0].occupancy else ''}"
            "the smaller footprint wins, then fewer changes from the control."
        )
    if not (control and control.measurement) or not decision.is_reliable:  # noise has no break-even
        return
    if pays := break_even(winner, control):
        yield (
            f"Its layout costs {units.duration(winner.once_ms)} once (transform and transfer; the control's costs "
            f"{units.duration(control.once_ms)}), which pays after {pays.launches:,} "
            f"{'call' if pays.launches == 1 else 'calls'}."
        )


def _warnings(
    study: Study, decision: Decision | None, effects: pd.DataFrame, failed: Mapping[str, int]
) -> Iterable[str]:
    if failed:
        kinds = ", ".join(f"{n:,} {state}" for state, n in failed.items())
        yield (
            f"{sum(failed.values()):,} of {len(study.trials):,} configurations failed: {kinds}. "
            "The last table has the reasons."
        )
    if decision and (told := remarks.describe_unbeaten(decision)):
        yield f"{told[0].upper()}{told[1:]}."
    if told := remarks.describe_move(study.trials):
        yield f"{told[0].upper()}{told[1:]}."
    yield from _describe_comparison(study)
    if study.about.interrupted:
        yield "The sweep was interrupted: configurations that it did not reach are missing."
    if (study.about.throttle_reasons or 0) & POWER_OR_HEAT:
        yield "Power or heat held the clock down at the end of the sweep."
    if decision:
        winner = decision.winner
        if decision.control is None:
            control = next((t for t in study.trials if t.configuration == study.control), None)
            state = f"{control.state}, {control.reason}" if control else "not tried"
            yield f"The control was not measured: {state}."
        if winner.measurement and winner.measurement.spread > _WIDE:
            near = close_to_winner(study.trials, decision)
            more = f", and {near:,} others are within it: noise may have decided" if near else ""
            yield f"The winner's own interval is wide ({units.spread(winner.measurement.spread)}){more}."
        floor = study.about.floor_ms or 0
        if floor and winner.time_ms < 3 * floor:
            yield f"The winner takes less than three empty kernels ({units.duration(floor)} each)."
        yield from (f"Of the winner: {note}" for note in winner.remarks)
    largest = effects.assign(change=effects[["minimum_percent", "maximum_percent"]].abs().max(axis=1))
    for policy, change in largest.groupby("policy", sort=False)["change"].max().items():
        if change < 100 * TIE:
            yield f"Policy {policy} changed nothing beyond noise (at most {change:.1f} %)."
    # "same code as a=1,b=2" is one kind of remark, whatever the configuration.
    kinds_of_note = Counter(re.sub(r"\S+=\S+", "…", note) for trial in study.trials for note in trial.remarks)
    for note, n in kinds_of_note.most_common(_NOTES):
        yield f"{note} ({n:,} {'configuration' if n == 1 else 'configurations'})"
    if len(kinds_of_note) > _NOTES:
        yield f"{len(kinds_of_note) - _NOTES:,} more kinds of remark are in the last table."


def _describe_comparison(study: Study) -> Iterable[str]:
    """Of what the configurations are compared with."""
    if against := study.about.proof.get("against"):
        yield f"Results were compared with those of {against}. There is no independent reference."
    baseline = study.about.baseline
    if baseline and baseline.reason:
        yield f"The baseline {baseline.kernel} was not timed: {baseline.cause}"


def _flatten(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flatten(item)}" for key, item in value.items() if item not in ("", None))
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_flatten, value))
    return f"{value:,}" if type(value) is int else str(value)
