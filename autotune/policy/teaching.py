"""From sweeps to what predictions are made of: the configurations worth keeping, their times on every entry, whether
predicting is better than taking the nearest entry's winner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from statistics import geometric_mean

from autotune.declaration import Configuration, Expression
from autotune.policy.file import Entry, Kept, Prediction
from autotune.policy.prediction import (
    add_winners,
    compute_left_out_losses,
    compute_nearest_losses,
    cover,
    feature_values,
    fit_shape,
    learn_from_times,
)
from autotune.record import Study, Trial

_FEWEST = 6  # entries; with fewer nobody knows how good predictions are

Needs = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class _Known:
    """What is known of a group of entries: ``rows`` of times in ms, and of each configuration that may be kept its
    ``needs``; ``kernels`` are those that take the most time, ``blocks`` how many their grids have, ``numbers`` what of
    the compiled source these read."""

    rows: Mapping[str, Mapping[Configuration, float]]
    needs: Mapping[Configuration, Needs]
    kernels: Mapping[Configuration, str]
    blocks: Mapping[str, Mapping[Configuration, int]]
    numbers: Mapping[Configuration, Mapping[str, int]]


def teach(
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
        return {name: replace(item, times_ms={}, blocks={}) for name, item in entries.items()}, None
    before = before or Prediction(options={})
    known = _collect_known(group, studies, before)
    winners = [Configuration(item.configuration) for item in group.values()]
    fewest, regret = cover(known.rows, sorted(known.needs, key=lambda c: c.id))
    names = _names(add_winners(fewest, winners), before)
    told = dict(entries)
    for name, item in entries.items():
        row, grids = known.rows.get(name, {}), known.blocks.get(name, {})
        told[name] = replace(
            item, times_ms={names[c]: round(row[c], 7) for c in names if c in row},
            blocks={names[c]: grids[c] for c in names if grids.get(c)},
        )  # fmt: skip
    first = next(iter(group.values()))
    kept = {
        name: Kept(
            name=name, configuration=dict(c), needs=known.needs[c],
            kernel=known.kernels.get(c, ""), numbers=known.numbers.get(c, {}),
        )
        for c, name in names.items()
    }  # fmt: skip
    counts = (int(study.about.more.get("multiprocessors", 0)) for study in studies)
    rule = Prediction(
        options=dict(first.options), accuracy=first.accuracy, kept=kept, kept_regret=round(regret, 4),
        covered=before.covered, covered_regret=before.covered_regret,
        multiprocessors=next(filter(None, counts), before.multiprocessors),
    )  # fmt: skip
    return told, _compare_costs(rule, {name: told[name] for name in group}, known, compared)


def _group(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    groups: dict[tuple[object, ...], dict[str, Entry]] = {}
    for name, item in sorted(entries.items()):
        if item.objective == "kernel":
            key = item.accuracy, *sorted((k, str(v)) for k, v in item.options.items())
            groups.setdefault(key, {})[name] = item
    return max(groups.values(), key=len, default={})


def _collect_known(group: Mapping[str, Entry], studies: Sequence[Study], before: Prediction) -> _Known:
    kept = {name: Configuration(one.configuration) for name, one in before.kept.items()}
    needs: dict[Configuration, Needs] = {kept[name]: one.needs for name, one in before.kept.items()}
    kernels = {kept[name]: one.kernel for name, one in before.kept.items()} | _kernels(studies)
    numbers = {kept[name]: one.numbers for name, one in before.kept.items()}
    swept = {s.workload: s for s in studies}
    rows: dict[str, dict[Configuration, float]] = {}
    blocks: dict[str, dict[Configuration, int]] = {}
    for name, item in group.items():
        study = swept.get(item.workload)
        rows[name] = {kept[at]: ms for at, ms in item.times_ms.items() if at in kept}
        blocks[name] = {kept[at]: count for at, count in item.blocks.items() if at in kept}
        if study:
            rows[name] |= _times(study)
            measured = [t for t in study.trials if t.measurement]
            blocks[name] |= {t.configuration: _blocks(t, kernels.get(t.configuration, "")) for t in measured}
            needs |= {t.configuration: read_needs(t) for t in measured if t.proved}
            numbers |= {t.configuration: p.numbers for t in measured for p in t.profiles if p.numbers}
        rows[name][Configuration(item.configuration)] = item.median_ms
    needs |= {Configuration(item.configuration): item.needs for item in group.values()}
    return _Known(rows, needs, kernels, blocks, numbers)


def _times(study: Study) -> dict[Configuration, float]:
    """Return times in ms; those that were not timed again are scaled as the finalists' times changed."""
    again = study.about.retime_ratio or 1.0
    return {
        t.configuration: t.measurement.retimed_ms or t.measurement.median_ms * again
        for t in study.trials
        if t.measurement
    }


def _kernels(studies: Sequence[Study]) -> dict[Configuration, str]:
    """By configuration, the kernel that takes the most time."""
    spent: dict[Configuration, dict[str, float]] = {}
    for trial in (trial for study in studies for trial in study.trials):
        known = {profile.kernel for profile in trial.profiles}
        each = spent.setdefault(trial.configuration, {})
        for kernel, ms in trial.kernel_ms.items():
            if kernel in known:
                each[kernel] = each.get(kernel, 0.0) + ms
    return {c: max(sorted(each), key=lambda kernel: each[kernel]) for c, each in spent.items() if each}


def _blocks(trial: Trial, kernel: str) -> int:
    return next((profile.blocks for profile in trial.profiles if profile.kernel == kernel), 0)


def read_needs(trial: Trial) -> Needs:
    """What the kernels of a trial need, as an entry has it."""
    return {
        p.kernel: {"block_size": p.block_size, "registers": p.registers, "shared_bytes": p.shared_bytes}
        for p in trial.profiles
        if p.block_size
    }


def _names(chosen: Sequence[Configuration], before: Prediction) -> dict[Configuration, str]:
    """Those that they had, and new ones."""
    old = {Configuration(one.configuration): name for name, one in before.kept.items()}
    taken = {old[c] for c in chosen if c in old}
    free = (name for i in count(1) if (name := f"c{i}") not in taken)
    return {c: old[c] if c in old else next(free) for c in chosen}


def _compare_costs(
    rule: Prediction, group: Mapping[str, Entry], known: _Known, compared: Mapping[str, str]
) -> Prediction:
    """``rule`` with what it costs and what the nearest entry costs, where there are entries enough to say so."""
    declared = {name: Expression(text) for name, text in compared.items()}
    found = {name: feature_values(declared, item.features) for name, item in group.items()}
    # An entry may be older than a feature, and predictions leave it out.
    features = {n: f for n, f in found.items() if f.keys() == declared.keys() and min(f.values()) > 0}
    if len(features) < _FEWEST:
        return rule
    basis = learn_from_times(rule, group, features)
    worth = {Configuration(one.configuration) for one in rule.kept.values()} | {*basis.winners.values()}
    rows = {name: {c: ms for c, ms in known.rows[name].items() if c in worth} for name in features}
    basis = fit_shape(basis, rows)
    lost = {
        "nearest": compute_nearest_losses(basis, rows),
        "prediction": compute_left_out_losses(basis, rows),
    }
    return replace(
        rule, reach=basis.reach, load_counts=basis.load_counts,
        left_out={name: round(geometric_mean(1 + regret for regret in each) - 1, 4) for name, each in lost.items()},
    )  # fmt: skip
