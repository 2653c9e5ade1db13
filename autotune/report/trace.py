"""A sweep's timeline as a Chrome trace: Perfetto (ui.perfetto.dev) and chrome://tracing open it.

A process of the trace is a host with a study, a thread of it one measuring process. Times are microseconds (Trace Event
Format, "complete events") from the first trial on, and whole: a trial ends exactly with its last phase, or a viewer
draws the next one inside of it.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from autotune.errors import StoreError
from autotune.files import write_file, write_text
from autotune.record import Study, Trial

_PHASES = ("place", "verify", "measure", "fault")  # of a trial, one behind the other
_COLOURS = {"measured": "good", "wrong_result": "terrible", "crashed": "terrible", "timed_out": "bad"}


def write_trace(studies: Sequence[Study], path: Path) -> Path:
    """Raises StoreError where no trial says when it began, as in a table."""
    begun = [trial.begun_s for study in studies for trial in study.trials if trial.begun_s]
    if not begun:
        raise StoreError(
            "no trial of this record has a start time, so there is no timeline: only a sweep's own folder or --store "
            "has them"
        )
    events = list(_events(studies, min(begun)))
    return write_text(path, json.dumps({"displayTimeUnit": "ms", "traceEvents": events}) + "\n", write_file)


def _events(studies: Sequence[Study], first_s: float) -> Iterator[dict[str, Any]]:
    hosts: dict[str, list[tuple[int, Trial]]] = {}
    for study in studies:
        for trial in sorted(study.trials, key=lambda trial: trial.begun_s):
            if trial.begun_s:
                host, _, number = trial.worker.rpartition(":")
                where = f"{study.family} on {study.workload}, {host}"
                hosts.setdefault(where, []).append((int(number or 0), trial))
    for pid, (where, trials) in enumerate(hosts.items(), 1):
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": where}}
        for process in dict.fromkeys(process for process, _ in trials):
            named = {"name": f"measuring process {process}"}
            yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": process, "args": named}
        for process, trial in trials:
            for event in _trace_trial(trial, (trial.begun_s - first_s) * 1e6):
                yield {"pid": pid, "tid": process, **event}


def _trace_trial(trial: Trial, at_us: float) -> Iterator[dict[str, Any]]:
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
