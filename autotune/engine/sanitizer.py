"""``autotune sweep --sanitize``: NVIDIA's compute-sanitizer over the kernels that are to win.

It watches a process of its own (``measure.profiled_process``) that runs each configuration once, in arrays without
guards around them. What it finds makes the configuration a ``wrong_result``; the study says which ones it found
nothing in.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.compile import toolkit_program
from autotune.declaration import Configuration
from autotune.engine.proof import mark_failed
from autotune.engine.trials import first_of
from autotune.errors import DeviceError
from autotune.measure import WatchedTask, run_watched
from autotune.processes import python
from autotune.record import Study, decide_classes

if TYPE_CHECKING:
    from autotune.record import Store

# The first finding in each of these configurations, by its id; those without are left out.
Check = Callable[[Sequence[Configuration]], Mapping[str, str]]


# Accesses outside of arrays, hazards in shared memory, reads of global memory that nobody wrote.
TOOLS = ("memcheck", "racecheck", "initcheck")
_PROGRAM = "compute-sanitizer"
_SECONDS = 1800.0  # memcheck takes some ten times as long as the kernels alone, racecheck some hundred
_LEAD = "========="
_COUNT = re.compile(r"SUMMARY: .*?\(?(\d+) errors?\b")

# What is said of the process, and not of a kernel.
_ASIDE = ("COMPUTE-SANITIZER", "Error: process", "Target application", "Program hit", "Warning:")
_MOST_LINES = 3  # of a finding: what, where, by which thread


def find_sanitizer() -> str:
    """The program. Raises DeviceError where it is not installed."""
    if found := toolkit_program(_PROGRAM):
        return found
    raise DeviceError(
        f"{_PROGRAM} was not found (PATH, CUDA_HOME/bin, CUDA_PATH/bin, /usr/local/cuda/bin): it is part of the CUDA "
        "toolkit; install it, or sweep without --sanitize"
    )


# -- a finished study ----------------------------------------------------------------------------------------


def sanitize(study: Study, store: "Store", check: Check, objective: str = "kernel") -> Study:
    """``study`` after a ``check`` of its finalists and winners, but for those that passed one before. The record has it
    too. Raises DeviceError."""
    opened = store.open(study, {})
    trials = {trial.configuration: trial for trial in study.trials}
    firsts = first_of(trials.values())
    passed = set(study.about.sanitized.get("configurations", ()))
    due = [c for c in _select_leading(study, firsts, objective) if c.id not in passed]
    faults = check(due) if due else {}
    for one in due:
        alike = [one, *(c for c, first in firsts.items() if first == one)]
        if one.id not in faults:
            passed.update(c.id for c in alike)
            continue
        for configuration in alike:
            wrong = f"right results, but {_PROGRAM} {faults[one.id]}"
            trials[configuration] = mark_failed(trials[configuration], "wrong_result", wrong)
            opened.record(trials[configuration])
    about = replace(study.about, sanitized={"by": "+".join(TOOLS), "configurations": sorted(passed)})
    opened.annotate(opened.get_provenance().update(about.to_dict()))
    return replace(study, trials=tuple(trials.values()), about=about)


def _select_leading(
    study: Study, firsts: Mapping[Configuration, Configuration], objective: str
) -> list[Configuration]:
    """What was timed again, and the winners by accuracy class; of those with one code, the one that ran."""
    retimed = [t.configuration for t in study.trials if t.measurement and t.measurement.retimed_ms]
    classes = decide_classes(study.trials, study.control, study.about.accuracy, objective)
    winners = [decision.winner.configuration for decision in classes.values()]
    return list(dict.fromkeys(firsts.get(c, c) for c in (*retimed, *winners)))


# -- the program ---------------------------------------------------------------------------------------------


def findings(task: WatchedTask, program: str, seconds: float = _SECONDS) -> dict[str, str]:
    """The first thing that each configuration of ``task`` does wrong, with the tool that says so; those that do nothing
    wrong are left out. All run in one process for each tool; only where that finds something, one by one. Raises
    DeviceError when the program does not come to its end."""
    faults: dict[str, str] = {}
    for tool in TOOLS:
        left = tuple(one for one in task.configurations if one not in faults)
        if not left or not _run_tool(tool, replace(task, configurations=left), program, seconds):
            continue
        for one in left:
            if said := _run_tool(tool, replace(task, configurations=(one,)), program, seconds):
                faults[one] = f"{tool}: {said}"
    return faults


def first_finding(log: str) -> str:
    """The first error in what the program printed, on one line; empty where it counts none."""
    lines = [line.removeprefix(_LEAD) for line in log.splitlines() if line.startswith(_LEAD)]
    counts = [int(match[1]) for line in lines if (match := _COUNT.search(line))]
    if counts and not any(counts):
        return ""
    for number, line in enumerate(lines):
        text = line.strip()
        if not text or line.startswith("  ") or "SUMMARY" in text or text.startswith(_ASIDE):
            continue
        details = []
        for further in lines[number + 1 : number + _MOST_LINES]:
            if not further.startswith("  "):
                break
            details.append(further.strip())
        return " ".join((text, *details))
    return ""


def build_command(program: str, tool: str, log: Path, task: Path) -> list[str]:
    """The command line. Errors of driver calls are left out: some are how autotune asks whether something is there."""
    return [
        program, "--tool", tool, "--report-api-errors", "no", "--log-file", str(log),
        *python("autotune.measure.profiled_process", str(task)),
    ]  # fmt: skip


def _run_tool(tool: str, task: WatchedTask, program: str, seconds: float) -> str:
    seen = run_watched(task, partial(build_command, program, tool), f"{_PROGRAM} {tool}", seconds)
    if finding := first_finding(seen.log):
        return finding
    unseen = seen.result.failed if seen.result else {"": f"exit code {seen.code}: {seen.tail}"}
    if unseen:
        named, reason = next(iter(unseen.items()))
        raise DeviceError(f"{_PROGRAM} {tool} could not watch {named or 'the process'} to its end: {reason}")
    return ""
