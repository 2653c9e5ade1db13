"""All files of a report, in one folder: what a sweep, or ``autotune report``, leaves behind."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from autotune.compile import Variant
from autotune.declaration import Configuration, Family, families
from autotune.declaration import load_family as load
from autotune.errors import AutotuneError, PolicyFileError, StoreError
from autotune.files import policy_folders, write_text
from autotune.policy import file_name, read_policy_file
from autotune.record import Study, Trial, read_ceilings, write_results
from autotune.report.page import write_report
from autotune.report.static_pass import read_static
from autotune.report.tables import write_effects, write_summary
from autotune.report.trials import Code
from autotune.report.verdict import Use

CEILINGS = "limits.json"  # the device's measured ceilings, where they lie beside the record
STATIC = "static.csv"  # a static pass of the family, where one lies there


def write_all(
    studies: Sequence[Study],
    folder: Path,
    known: Mapping[str, Family] | None = None,
    record: Path | None = None,
    policies: Sequence[Path] = (),
) -> dict[str, Path]:
    """Write ``results.csv``, ``summary.csv``, ``effects.csv`` and ``report.html`` to ``folder``: name -> path.

    ``known`` are families that do not ship with autotune, by name. ``record`` is the folder that the record lies in,
    where that is another one: ceilings and a static pass may lie in either. ``policies`` are the
    folders where a program would look for the winners. Raises StoreError.
    """
    ceilings = read_ceilings(_in_either(folder, record, CEILINGS))
    static = read_static(_in_either(folder, record, STATIC), studies)
    code = generated(known or {})
    return {
        "results": write_results(studies, folder / "results.csv"),
        "summary": write_summary(studies, folder / "summary.csv"),
        "effects": write_effects(studies, folder / "effects.csv"),
        "report": write_report(
            studies,
            folder / "report.html",
            ceilings=ceilings,
            code=code,
            static=static,
            use=lambda study: used(study, policies, known or {}),
        ),
    }


def used(study: Study, policies: Sequence[Path], known: Mapping[str, Family]) -> Use:
    """The policy file in ``policies`` that has the study's winner as its own for this workload, and the call that takes
    it."""
    decision = study.decision
    for folder in policies if decision else ():
        path = folder / file_name(study.family, study.device)
        try:
            entries = read_policy_file(path).entries if path.is_file() else {}
        except PolicyFileError:
            continue  # whoever needs it will be told
        entry = entries.get(study.workload)
        if decision and entry and Configuration(entry.configuration) == decision.winner.configuration:
            return Use(str(path), _call(study, folder, known))
    return Use()


def _call(study: Study, folder: Path, known: Mapping[str, Family]) -> str:
    """What a program writes; empty where nobody knows the folder of the family."""
    name = study.family if study.family in families() else ""
    if not name and study.family in known:
        name = str(known[study.family].folder)
    if not name:
        return ""
    told = [json.dumps(name, ensure_ascii=False)]
    if study.about.device_kind == "cpu" or study.device.startswith("cpu-"):
        told.append('device="cpu"')
    if folder not in policy_folders():
        told.append(f"policies={json.dumps(str(folder), ensure_ascii=False)}")
    return f"autotune.load({', '.join(told)})"


def _in_either(folder: Path, record: Path | None, name: str) -> Path:
    return folder / name if record is None or (folder / name).exists() else record / name


def write_static_report(folder: Path, studies: Sequence[Study], known: Mapping[str, Family]) -> Path:
    """``report.html`` in ``folder`` with the static pass that lies there, after the ``studies`` of the record beside it
    where there are any. Raises StoreError."""
    ceilings, static = read_ceilings(folder / CEILINGS), read_static(folder / STATIC)
    return write_report(
        studies, folder / "report.html", ceilings=ceilings, code=generated(known), static=static
    )


def generated(known: Mapping[str, Family]) -> Code:
    """What gives the policy struct that a family generates for a configuration; empty where the family is not there,
    was declared otherwise when it was measured, or knows no such configuration."""

    @cache
    def family_of(name: str) -> Family | None:
        if name in known:
            return known[name]
        try:
            return load(name) if name in families() else None
        except AutotuneError:
            return None

    def struct(study: Study, configuration: Configuration) -> str:
        family = family_of(study.family)
        if family is None or study.about.space_digest not in ("", family.space_digest):
            return ""
        try:
            asked = family.space.configuration(configuration.id)
            options = family.chosen_options(study.about.options)
            made = Variant.of(family, asked, options).source.struct
        except AutotuneError:
            return ""
        made = re.sub(r"^struct \w+", "struct Policy", made)  # the name is a hash of the rest
        return made.replace(">, autotune::", ">,\n      autotune::")

    return struct


_PHASES = ("place", "verify", "measure", "fault")  # of a trial, one behind the other
_COLOURS = {"measured": "good", "wrong_result": "terrible", "crashed": "terrible", "timed_out": "bad"}


def write_trace(studies: Sequence[Study], path: Path) -> Path:
    """A sweep's timeline as a Chrome trace: Perfetto (ui.perfetto.dev) and chrome://tracing open it. Raises StoreError
    where no trial says when it began, as in a table.

    A process of the trace is a host with a study, a thread of it one measuring process. Times are microseconds (Trace
    Event Format, "complete events") from the first trial on, and whole: a trial ends exactly with its last phase, or a
    viewer draws the next one inside of it."""
    begun = [trial.begun_s for study in studies for trial in study.trials if trial.begun_s]
    if not begun:
        raise StoreError(
            "no trial of this record says when it began, so there is no timeline: only a sweep's own folder or --store "
            "has that"
        )
    events = list(_events(studies, min(begun)))
    return write_text(path, json.dumps({"displayTimeUnit": "ms", "traceEvents": events}) + "\n")


def _events(studies: Sequence[Study], first_s: float) -> Iterator[dict[str, Any]]:
    for number, (where, trials) in enumerate(_by_host(studies).items(), 1):
        yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": where}}
        for process in dict.fromkeys(_process(trial) for trial in trials):
            told = {"name": f"measuring process {process}"}
            yield {"ph": "M", "name": "thread_name", "pid": number, "tid": process, "args": told}
        for trial in trials:
            for event in _of_trial(trial, (trial.begun_s - first_s) * 1e6):
                yield {"pid": number, "tid": _process(trial), **event}


def _by_host(studies: Sequence[Study]) -> dict[str, list[Trial]]:
    """The trials that have a place in time, in its order."""
    found: dict[str, list[Trial]] = {}
    for study in studies:
        for trial in sorted(study.trials, key=lambda trial: trial.begun_s):
            if trial.begun_s:
                host = trial.worker.rpartition(":")[0]
                found.setdefault(f"{study.family} on {study.workload}, {host}", []).append(trial)
    return found


def _process(trial: Trial) -> int:
    return int(trial.worker.rpartition(":")[2] or 0)


def _of_trial(trial: Trial, at_us: float) -> Iterator[dict[str, Any]]:
    spent = [(name, trial.phases_ms[name] * 1e3) for name in _PHASES if name in trial.phases_ms]
    told: dict[str, Any] = {"state": trial.state, "configuration": trial.configuration.id}
    if trial.measurement:
        told |= {"time_ms": trial.measurement.time_ms, "samples": trial.measurement.samples}
    if trial.reason:
        told["reason"] = trial.reason
    whole = {"ph": "X", "cat": "trial", "name": trial.configuration.id, "args": told}
    colour = {"cname": _COLOURS[trial.state]} if trial.state in _COLOURS else {}
    edges = [round(edge) for edge in accumulate((us for _, us in spent), initial=at_us)]
    yield {**whole, **colour, "ts": edges[0], "dur": edges[-1] - edges[0]}
    for (name, _), (begin, end) in zip(spent, pairwise(edges), strict=True):
        yield {"ph": "X", "cat": "phase", "name": name, "ts": begin, "dur": end - begin}
