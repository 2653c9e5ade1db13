"""From sweeps to what predictions are made of: the configurations worth keeping, their times on every entry, whether
predicting is better than taking the nearest entry's winner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.declaration import Configuration, Expression
from autotune.policy.file import Entry
from autotune.policy.kept import Kept, Prediction
from autotune.policy.neighbours import feature_values, mean_regret
from autotune.policy.prediction import Taught, cover, left_out
from autotune.record import Study, Trial, time_ms

_FEWEST = 6  # entries; of fewer nobody can say what they foretell

Needs = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class _Known:
    """What is known of a group of entries: ``rows`` of times in ms, and of each configuration that may be kept its
    ``needs``."""

    rows: Mapping[str, Mapping[Configuration, float]]
    needs: Mapping[Configuration, Needs]


def taught(
    entries: Mapping[str, Entry],
    studies: Sequence[Study],
    before: Prediction | None,
    compared: Mapping[str, str],
) -> tuple[dict[str, Entry], Prediction | None]:
    """``entries`` with the times of what is kept, and what is kept: of the entries for the kernels' time of those
    options and that accuracy class that most have. ``studies`` have the times of some entries, the others those that
    they had ``before``. ``compared`` are the family's declared features as texts."""
    group = _group(entries)
    if len(group) < 2 or not compared:
        return {name: replace(item, times_ms={}) for name, item in entries.items()}, None
    known = _known(group, studies, before)
    chosen, regret = cover(known.rows, sorted(known.needs, key=lambda c: c.id))
    names = _names(chosen, before)
    told = dict(entries)
    for name, item in entries.items():
        row = known.rows.get(name, {})
        told[name] = replace(item, times_ms={names[c]: round(row[c], 7) for c in chosen if c in row})
    first = next(iter(group.values()))
    kept = {names[c]: Kept(name=names[c], configuration=dict(c), needs=known.needs[c]) for c in chosen}
    rule = Prediction(
        options=dict(first.options), accuracy=first.accuracy, kept=kept, kept_regret=round(regret, 4),
        covered=before.covered if before else {}, covered_regret=before.covered_regret if before else 0.0,
    )  # fmt: skip
    return told, _compared(rule, {name: told[name] for name in group}, known, chosen, compared)


def _group(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    groups: dict[tuple[object, ...], dict[str, Entry]] = {}
    for name, item in sorted(entries.items()):
        if item.objective == "kernel":
            key = item.accuracy, *sorted((k, str(v)) for k, v in item.options.items())
            groups.setdefault(key, {})[name] = item
    return max(groups.values(), key=len, default={})


def _known(group: Mapping[str, Entry], studies: Sequence[Study], before: Prediction | None) -> _Known:
    ratios = {s.workload: s.about.retime_ratio for s in studies}
    trials = {s.workload: {t.configuration: t for t in s.trials if t.measurement} for s in studies}
    kept = {
        name: (Configuration(k.configuration), k.needs) for name, k in (before.kept if before else {}).items()
    }
    needs: dict[Configuration, Needs] = {}
    rows: dict[str, dict[Configuration, float]] = {}
    for name, item in group.items():
        swept = trials.get(item.workload, {})
        again = (
            ratios.get(item.workload) or 1.0
        )  # first medians, as if they had been timed again beside the finalists
        row = {kept[at][0]: ms for at, ms in item.times_ms.items() if at in kept}
        for other, regret in item.regret_with.items():
            if other in group:
                row.setdefault(Configuration(group[other].configuration), item.median_ms * (1 + regret))
        row |= {
            configuration: time_ms(trial) * (1.0 if _is_retimed(trial) else again)
            for configuration, trial in swept.items()
        }
        rows[name] = {**row, Configuration(item.configuration): item.median_ms}
        needs |= {configuration: of_trial(trial) for configuration, trial in swept.items() if trial.proved}
    needs |= {configuration: told for configuration, told in kept.values() if configuration not in needs}
    needs |= {Configuration(item.configuration): item.needs for item in group.values()}
    return _Known(rows, needs)


def _is_retimed(trial: Trial) -> bool:
    return trial.measurement is not None and trial.measurement.retimed_ms > 0


def of_trial(trial: Trial) -> Needs:
    """What the kernels of a trial need, as an entry has it."""
    return {
        p.kernel: {"block_size": p.block_size, "registers": p.registers, "shared_bytes": p.shared_bytes}
        for p in trial.profiles
        if p.block_size
    }


def _names(chosen: Sequence[Configuration], before: Prediction | None) -> dict[Configuration, str]:
    """Those that they had, and new ones."""
    old = {Configuration(k.configuration): name for name, k in (before.kept if before else {}).items()}
    names = {c: old[c] for c in chosen if c in old}
    free = (name for i in range(1, 1 + len(chosen) + len(old)) if (name := f"c{i}") not in names.values())
    for configuration in chosen:
        names.setdefault(configuration, "")
    return {c: name or next(free) for c, name in names.items()}


def _compared(
    rule: Prediction, group: Mapping[str, Entry], known: _Known, chosen: Sequence[Configuration],
    compared: Mapping[str, str],
) -> Prediction:  # fmt: skip
    """``rule`` with what it costs and what the nearest entry costs, where there are entries enough to say so."""
    declared = {name: Expression(text) for name, text in compared.items()}
    features = {name: feature_values(declared, item.features) for name, item in group.items()}
    whole = all(f.keys() == declared.keys() and min(f.values()) > 0 for f in features.values())
    if len(group) < _FEWEST or not whole:
        return rule
    winners = {name: Configuration(item.configuration) for name, item in group.items()}
    worth = {*chosen, *winners.values()}
    rows = {name: {c: ms for c, ms in row.items() if c in worth} for name, row in known.rows.items()}
    kept = {name: {c: ms for c, ms in row.items() if c in chosen} for name, row in rows.items()}
    found = left_out(Taught(features, kept), rows, winners)
    return replace(rule, left_out={name: round(mean_regret(lost), 4) for name, lost in found.items()})
