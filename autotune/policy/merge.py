"""Sweeps into policy files: entries from studies, merged under a lock, the file replaced whole.

A reader never sees half a file, and a measurement is never lost to a worse one.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.declaration import Configuration, Expression
from autotune.errors import PolicyFileError
from autotune.measure import KERNEL, Figure, Objective, find_objective
from autotune.policy.file import (
    Entry,
    NewerSchema,
    PolicyFile,
    entry_name,
    file_name,
    lock,
    make_device,
    read_policy_file,
    write,
)
from autotune.policy.teaching import read_needs, teach
from autotune.record import (
    Decision,
    Measurement,
    Minimax,
    Study,
    Trial,
    accuracy_class,
    decide_classes,
    find_newest,
    minimax,
)

_SOURCES = ("source_digest", "layouts_digest", "space_digest")
_ABOUT = (*_SOURCES, "workload_digest", "compiler", "driver", "autotune", "date")
_ALIKE = ("options", *_SOURCES, "workload_digest", "compiler")


def update(folder: Path, studies: Sequence[Study], objective: str = KERNEL) -> Path:
    """Merge the winners of ``studies`` (one family, one device) by ``objective`` into their policy file below
    ``folder`` and return its path. A link is followed, not replaced. Raises PolicyFileError when the file or folder
    cannot be written, or when the file is of a later autotune."""
    first = studies[-1]
    named = folder / file_name(first.family, first.device)
    with lock(named) as path:
        write(path, merge_winners(_read_before(path, first), studies, objective))
    return named


def record_coverage(path: Path, over: Mapping[str, tuple[int, int]], regret: float) -> None:
    """Tell in the policy file at ``path`` what range a plan covered, and what 95 % of it should keep to."""
    with lock(path) as real:
        now = read_policy_file(real)
        if now.prediction:
            covered = {name: {"low": low, "high": high} for name, (low, high) in over.items()}
            rule = replace(now.prediction, covered=covered, covered_regret=round(regret, 4))
            write(real, replace(now, prediction=rule))


def _read_before(path: Path, study: Study) -> PolicyFile | None:
    """The file as it is, or None. What is no policy file of this family and device is put aside."""
    if not path.exists():
        return None
    try:
        found = read_policy_file(path)
        if (found.family, found.device.kind) == (study.family, study.about.device_kind):
            return found
        trouble = f"it is for {found.family} on {found.device.name}"
    except NewerSchema:
        raise
    except PolicyFileError as problem:
        trouble = str(problem)
    aside = path.with_suffix(".yaml.unreadable")
    path.replace(aside)
    warnings.warn(f"{path} was put aside as {aside.name}: {trouble}", stacklevel=3)
    return None


def merge_winners(before: PolicyFile | None, studies: Sequence[Study], objective: str = KERNEL) -> PolicyFile:
    """``before`` with the winners of those ``studies`` that were made on the same sources as the latest of them. An
    entry of another workload stays; one of the same workload is replaced unless it is the better one (see
    ``_is_better``)."""
    first = find_newest(studies)
    studies = [s for s in studies if all(getattr(s.about, k) == getattr(first.about, k) for k in _SOURCES)]
    about = first.about
    kept: dict[str, Entry] = dict(before.entries) if before else {}
    stayed = False
    for study in studies:
        for new in new_entries(study, objective):
            old = kept.get(new.name)
            if old is not None and _is_better(old, new, study):
                stayed = True
            else:
                kept[new.name] = new
    told, rule = teach(kept, studies, before.prediction if before else None, about.compared)
    chosen, over = _default(before, stayed, studies, kept, objective)
    return PolicyFile(
        family=first.family,
        device=make_device(about.device_kind, about.device_name, about.compute_capability, about.driver),
        entries=dict(sorted(told.items())),
        default=dict(chosen.configuration),
        default_regret=round(chosen.regret, 4),
        default_over=sorted(over),
        prediction=rule,
        refine=before.refine if before else 0,
        frozen=before is not None and before.frozen,
    )


# -- entries ------------------------------------------------------------------------------------------------


def new_entries(study: Study, objective: str = KERNEL) -> list[Entry]:
    """The policy file's entries for a finished study: one for each accuracy class in which something was measured,
    the family's own class under the workload's name, others as ``workload (class)``; by another objective than the
    kernels' time, ``workload (objective)`` and ``workload (class) (objective)``."""
    found = decide_classes(study.selection, study.control, study.about.accuracy, objective, study.beside)
    return [_entry(study, name, decision) for name, decision in found.items()]


def _entry(study: Study, accuracy: str, decision: Decision) -> Entry:
    measurement = decision.winner.measurement
    assert measurement is not None
    about, pair = study.about, decision.break_even
    seen = about.sanitized
    own = accuracy_class(study.control, about.accuracy)
    is_seen = decision.winner.configuration.id in seen.get("configurations", ())
    return Entry(
        name=entry_name(study.workload, "" if accuracy == own else accuracy, decision.objective),
        workload=study.workload,
        features=_select_numbers(about.compared, {**about.features, **about.scalars}),
        options=dict(about.options),
        accuracy=accuracy,
        configuration=dict(decision.winner.configuration),
        median_ms=round(measurement.time_ms, 7),
        spread=round(measurement.spread, 5),
        samples=measurement.samples,
        errors=dict(decision.winner.errors),
        reproducible=decision.winner.reproducible,
        tie_set=[t.configuration.id for t in decision.tie_set],
        **_runner_up(decision.runner_up, find_objective(decision.objective)),
        margin_over_control=decision.over_control.claim,
        binding_resource=_find_binding_resource(decision.winner),
        needs=read_needs(decision.winner),
        transform_ms=round(measurement.value("transform_ms"), 4),
        transfer_ms=round(measurement.value("transfer_ms"), 4),
        objective=decision.objective,
        figures=_figures(measurement, find_objective(decision.objective)),
        proved=_describe_proof(study, decision.winner),
        searched=_describe_searched(study),
        break_even=pair.launches if pair else 0,
        break_even_with=(pair.single if decision.objective == KERNEL else pair.lasting).id if pair else "",
        libraries=dict(about.libraries),
        protocol=dict(about.protocol),
        sanitizer=str(seen["by"]) if is_seen else "",
        **{key: getattr(about, key) for key in _ABOUT},
    )


def _runner_up(trial: Trial | None, objective: Objective) -> dict[str, Any]:
    """Return the runner-up's time by ``objective``; if that is no time, its cost and its time."""
    if trial is None:
        return {}
    cost = {} if objective.is_time else {"runner_up_cost": _figure(trial.cost(objective.name))}
    took = trial.cost(objective.name) if objective.is_time else trial.time_ms
    return {"runner_up": trial.configuration.id, "runner_up_ms": round(took, 7), **cost}


def _figures(measured: Measurement, objective: Objective) -> dict[str, Figure]:
    """Those that ``objective`` names, where it is no time: an entry has its times at any rate."""
    if objective.is_time:
        return {}
    own = measured.figures[objective.figure]
    beside = {name: found for name in objective.beside if (found := measured.figures.get(name))}
    return {
        objective.figure: Figure(_figure(own.value), None if own.spread is None else round(own.spread, 5)),
        **{name: Figure(_figure(found.value)) for name, found in beside.items()},
    }


def _figure(value: float) -> float:
    """Five significant digits: a call may take microjoules."""
    return float(f"{value:.5g}")


def _describe_proof(study: Study, winner: Trial) -> dict[str, Any]:
    """Nothing where a record does not tell."""
    if not winner.proof:
        return {}
    against = study.about.proof.get("against", "")
    sizes = [dict(sorted(size.items())) for size in winner.proved]
    return {"sizes": sizes, "version": winner.proof, **({"against": against} if against else {})}


def _describe_searched(study: Study) -> dict[str, Any]:
    """How much of the whole space the study holds, whichever selections it was swept in."""
    about = study.about.searched
    if not about:
        return {}
    whole = {} if about["space"] is None else {"of": about["space"]}
    limits = {name: about[name] for name in ("by", "seed", "budget") if about.get(name) not in (None, "")}
    return {"tried": len(study.trials), **whole, **limits}


def _select_numbers(told: Mapping[str, str], numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the extents and scalars that the family's features read; all, if the study is too old to know them."""
    read = {name for text in told.values() for name in Expression(text).names} if told else numbers.keys()
    return {name: value for name, value in sorted(numbers.items()) if name in read}


def _find_binding_resource(trial: Trial) -> str:
    """What limits the occupancy of the kernel that takes the most time."""
    assert trial.measurement is not None
    spent = trial.measurement.kernel_ms
    profile = max(trial.profiles, key=lambda p: spent.get(p.kernel, 0.0), default=None)
    return profile.limited_by if profile else ""


def _is_better(old: Entry, new: Entry, study: Study) -> bool:
    """Whether the old entry is the better one. Measured on other sources, input or compiler, the later one is. On the
    same, the old one stays when it is faster and the new sweep did not try its configuration, or when it was measured
    with more samples and a narrower interval and the new one is not faster beyond both intervals."""
    if any(getattr(old, name) != getattr(new, name) for name in _ALIKE):
        return old.date > new.date
    tried = {t.configuration for t in study.trials if t.measurement}
    if old.cost < new.cost and Configuration(old.configuration) not in tried:
        return True
    better_measured = old.samples > new.samples and old.cost_spread < new.cost_spread
    return better_measured and new.cost > old.cost * (1 - old.cost_spread - new.cost_spread)


# -- the default --------------------------------------------------------------------------------------------


def _default(
    before: PolicyFile | None,
    stayed: bool,
    studies: Sequence[Study],
    kept: Mapping[str, Entry],
    objective: str,
) -> tuple[Minimax, list[str]]:
    """Minimax regret over the studies at hand, by the kernels' time, and their names. The default that is there stays
    when it was chosen over workloads that are not at hand, or when a better entry stayed: a part of the record knows
    too little; and for a sweep by another objective than the file's entries."""
    times: dict[str, dict[Configuration, float]] = {}
    for study in studies:
        names = study.about.accuracy
        measured = {t.configuration: t.time_ms for t in study.trials if t.measurement}
        own = accuracy_class(study.control, names)
        times[study.workload] = {c: ms for c, ms in measured.items() if accuracy_class(c, names) == own}
    over = [workload for workload, row in times.items() if row]
    is_other = objective != KERNEL and before and any(e.objective == KERNEL for e in before.entries.values())
    if before and (is_other or stayed or set(before.default_over) - set(over)):
        return Minimax(Configuration(before.default), before.default_regret), list(before.default_over)
    chosen = minimax({w: times[w] for w in over})
    if chosen is None:  # nothing was measured everywhere: the entry that won by most stands in
        best = max(kept.values(), key=lambda e: e.margin_over_control)
        return Minimax(Configuration(best.configuration), 0.0), []
    winners = {Configuration(kept[w].configuration) for w in over if w in kept}
    if len(over) == 1 and len(winners) == 1:  # with one study its winner, tie-break included
        return Minimax(next(iter(winners)), 0.0), over
    return chosen, over
