"""Little is measured: each call's configurations by a sweep of its family; the best of each form again in the loop, as
many steps at a time as there are; each conversion between two forms, and what the host reads."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Inputs, Workload
from autotune.engine import Case, SweepRequest, sweeping
from autotune.errors import AutotuneError
from autotune.hardware import Limits
from autotune.program.bound import BoundCall, BoundProgram
from autotune.program.candidates import Assignment, Runnable, candidates
from autotune.program.conversion import FormConversion
from autotune.program.declared import Held
from autotune.program.forms import Form
from autotune.program.machine import Machine, TimedAction
from autotune.program.record import Record
from autotune.program.schedule import Segment, segments
from autotune.record import Study, Trial

Note = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class ProgramBudget:
    """How much is measured: ``configurations`` of each step by a sweep, ``forms`` of each again in the loop, in runs of
    ``turns`` turns, ``samples`` times. ``looked`` configurations of a space are looked at to find its forms."""

    configurations: int = 96
    forms: int = 12
    turns: int = 2
    samples: int = 5
    looked: int = 20_000


@dataclass
class Surveyed:
    """What a sweep found of one call: the candidates of each form with their times alone, fastest first; ``failed``
    has those that failed, with the reason. ``groups`` counts the forms that there are."""

    best: dict[str, list[tuple[float, Runnable]]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    groups: int = 0
    possible: int = 0
    tried: int = 0


# -- each call alone


def selected(
    call: BoundCall, limits: Limits, budget: ProgramBudget, presets: Sequence[Held]
) -> tuple[list[Runnable], int, int]:
    """The configurations to sweep: of every form, control's choices for the rest first and then the same others of
    each, as many as the budget allows; and the best guess of each preset. With how many forms and configurations there
    are."""
    groups = candidates(call, limits, budget.looked)
    near = sorted(groups.values(), key=lambda listed: _changes(listed[0]))
    drawn = random.Random(0)  # noqa: S311 - the same for all forms, which are compared by the same choices
    kept = near[: budget.configurations]
    each = max(1, budget.configurations // max(1, len(kept)))
    order = {own: drawn.random() for own in sorted({_own(one) for listed in kept for one in listed})}
    chosen: dict[str, Runnable] = {}
    for listed in kept:
        rest = sorted(listed[1:], key=lambda one: order[_own(one)])
        for one in (listed[0], *rest[: each - 1]):
            chosen[one.configuration.id] = one
    for held in presets:
        for listed in [*candidates(call, limits, budget.looked, held).values()][:4]:
            chosen[listed[0].configuration.id] = listed[0]
    return list(chosen.values()), len(groups), sum(map(len, groups.values()))


def _changes(candidate: Runnable) -> int:
    control = candidate.call.family.space.control
    return sum(candidate.configuration[name] != control[name] for name in control)


def _own(candidate: Runnable) -> tuple[str, ...]:
    """The choices that make no form: all but the layout of what a program shares, and the memory of that."""
    policies = candidate.call.family.space.policies
    return tuple(
        f"{p.name}={candidate.configuration[p.name]}"
        for p in policies
        if not p.layout or p.layout == "memory" or not set(p.data) & set(candidate.call.arrays)
    )


class _Quiet:
    """Who watches a sweep and says nothing."""

    unfinished = ""

    def compiled(self, done: int, total: int) -> None: ...

    def update(self, trial: Trial, done: int, best_ms: float, busy_share: float) -> None: ...


@contextmanager
def _quiet(_title: str, _total: int | None) -> Iterator[_Quiet]:
    yield _Quiet()


def survey(
    call: BoundCall, chosen: Sequence[Runnable], arrays: Mapping[str, NDArray[Any]], where: "Where"
) -> tuple[Surveyed, Study]:
    """Sweep ``chosen`` on what the step is given when it first runs; what the record has is not tried again."""
    family, inputs = call.family, call.inputs
    given = Inputs(arrays=arrays, sizes=inputs.sizes, options=inputs.options, scalars=inputs.scalars)
    name = f"{where.bound.program.name}-{call.step}-{given.digest[:8]}"
    workload = Workload(name=name, family=family.name, cold=where.is_cold, options=inputs.options)
    request = SweepRequest(
        family=family, chosen=tuple(one.configuration for one in chosen), device=where.device,
        out=where.out / "steps" / call.step, samples=where.budget.samples, processes=where.processes,
    )  # fmt: skip
    request.check()
    with sweeping(request, [Case(workload=workload, inputs=given)], _quiet, where.note) as session:
        (swept,) = session.sweeps()
    if swept.interrupted:
        raise KeyboardInterrupt(f"step {call.step}: {swept.interrupted}; the same call goes on from there")
    return surveyed(call, chosen, swept.study), swept.study


def surveyed(call: BoundCall, chosen: Sequence[Runnable], study: Study) -> Surveyed:
    """What the record of a sweep says of the candidates of a call, which may be that of another like it."""
    found = Surveyed(tried=len(study.trials))
    trials = {trial.configuration.id: trial for trial in study.trials}
    for one in chosen:
        trial = trials.get(one.configuration.id)
        if trial is None:
            continue
        if trial.measurement is None:
            found.failed[one.configuration.id] = f"{trial.state}: {trial.reason}"
            continue
        mine = Runnable(call, one.configuration)
        found.best.setdefault(form_key(mine), []).append((trial.time_ms, mine))
    for listed in found.best.values():
        listed.sort(key=lambda pair: pair[0])
    return found


def form_key(candidate: Runnable) -> str:
    """Equal for candidates of a step that ask for the same forms."""
    place, forms = candidate.key
    return f"{place} " + " ".join(form.digest for form in forms)


# -- all of them in the loop


@dataclass(frozen=True, kw_only=True)
class Where:
    """Where and how a program is measured: on which device, into which folder, within which budget."""

    bound: BoundProgram
    device: str
    out: Path
    budget: ProgramBudget
    is_cold: bool
    processes: int
    note: Note


def loop_segments(bound: BoundProgram, periods: Mapping[str, int], turns: int) -> list[Segment]:
    """The first turns of the program, in the first of which every step is due."""
    return list(segments(bound, periods, turns))


def time_segments(
    machine: Machine, assignment: Assignment, listed: Sequence[Segment], samples: int
) -> list[list[TimedAction]]:
    """The times of each action of the segments, which run ``samples`` times over, by segment as they are run."""
    backend = machine.backend
    with backend.current():
        for segment in (*listed, *listed):  # makes all that there is to make
            machine.timed(assignment, segment)
        backend.synchronize()
        readers: list[Callable[[], list[TimedAction]]] = []

        def one() -> None:
            readers.append(machine.timed(assignment, listed[len(readers) % len(listed)]))

        total = len(listed) * samples
        backend.sample(one, total, False)
        return [read() for read in readers[-total:]]


def measure_in_loop(
    machine: Machine,
    control: Assignment,
    options: Mapping[str, Sequence[Runnable]],
    record: Record,
    where: Where,
) -> None:
    """Time every candidate of every step in the loop, a candidate of each step at a time: runs as many as the step with
    the most has. What is in the record already is not run again."""
    budget, bound = where.budget, where.bound
    listed = loop_segments(bound, control.periods, budget.turns)
    left = {
        step: [one for one in many if not record.find(kind="step", **_named(one))]
        for step, many in options.items()
    }
    while any(left.values()):
        assignment = _next(left, control)
        try:
            machine.start()
            _record_times(record, assignment, time_segments(machine, assignment, listed, budget.samples))
        except AutotuneError as problem:
            _blame(machine, control, assignment, listed, record, problem)
        done = {step: {one.configuration.id for one in left[step]} - {assignment.chosen[step].configuration.id}
                for step in left}  # fmt: skip
        left = {
            step: [one for one in many if one.configuration.id in done[step]] for step, many in left.items()
        }
        if machine.nbytes > 0.5 * machine.backend.device.limits.memory_bytes:
            machine.trim()
    machine.trim()


def _named(candidate: Runnable) -> dict[str, Any]:
    call = candidate.call
    return {"step": call.step, "place": call.place, "configuration": candidate.configuration.id}


def _next(left: Mapping[str, Sequence[Runnable]], control: Assignment) -> Assignment:
    """A candidate of each step that has any left, those that share forms together: few conversions lie between."""
    chosen: dict[str, Runnable] = {}
    there: dict[str, Form] = {}
    for step, many in left.items():
        if many:
            best = max(
                many, key=lambda one: sum(there.get(n) == one.forms[d] for d, n in one.call.arrays.items())
            )
        else:
            best = control.chosen[step]
        chosen[step] = best
        there |= {name: best.forms[data] for data, name in best.call.arrays.items()}
    return replace(control, chosen=chosen)


def _record_times(record: Record, assignment: Assignment, runs: Sequence[Sequence[TimedAction]]) -> None:
    by_step: dict[str, list[float]] = {}
    for timed in (one for run in runs for one in run):
        if timed.action.kind == "call":
            by_step.setdefault(timed.action.name, []).append(timed.ms)
    for step, times in by_step.items():
        if not record.find(kind="step", **_named(assignment.chosen[step])):
            record.add(
                {
                    "kind": "step",
                    **_named(assignment.chosen[step]),
                    "ms": _typical(times),
                    "samples": len(times),
                }
            )


def _typical(times: Sequence[float]) -> float:
    return float(f"{median(times):.6g}")


def _blame(
    machine: Machine, control: Assignment, failed: Assignment, listed: Sequence[Segment], record: Record,
    problem: AutotuneError,
) -> None:  # fmt: skip
    """Record which candidate of ``failed`` it was: each runs with control for the others."""
    for step, candidate in failed.chosen.items():
        if candidate == control.chosen[step] or record.find(kind="step", **_named(candidate)):
            continue
        alone = replace(control, chosen={**control.chosen, step: candidate})
        try:
            machine.trim()
            machine.start()
            _record_times(record, alone, time_segments(machine, alone, listed, 1))
        except AutotuneError as own:
            record.add({"kind": "step", **_named(candidate), "failed": str(own) or str(problem)})


# -- conversions and reads


def conversion_key(before: Form, after: Form, shape: tuple[int, ...]) -> dict[str, Any]:
    """What the record knows a conversion by."""
    return {"kind": "convert", "before": before.digest, "after": after.digest, "shape": list(shape)}


def measure_conversion(
    machine: Machine, name: str, before: Form, after: Form, record: Record, samples: int
) -> float:
    """The milliseconds of a conversion of the array ``name``, one of each kind and size once."""
    shape = machine.bound.shapes[name]
    told = conversion_key(before, after, shape)
    if known := record.find(**told):
        return float(known[0]["ms"])
    conversion, backend = FormConversion(before, after, shape), machine.backend
    with backend.current():
        rooms = [form.layout.room(shape) for form in (before, after)]
        source, target = (backend.place(room) for room in rooms)
        try:
            backend.fill(source, 0)
            run = machine.converter.made(conversion, source, target)
            run()
            if conversion.is_on_host:
                backend.synchronize()
                begin = time.perf_counter()
                run()
                backend.synchronize()
                times = [1e3 * (time.perf_counter() - begin)]
            else:
                times = backend.sample(run, samples, False)
        finally:
            source.free()
            target.free()
    record.add({**told, "array": name, "ms": _typical(times)})
    return _typical(times)


def measure_read(machine: Machine, name: str, form: Form, record: Record) -> float:
    """The milliseconds in which the host has an array that lies in ``form``."""
    shape = machine.bound.shapes[name]
    told = {"kind": "read", "form": form.digest, "shape": list(shape)}
    if known := record.find(**told):
        return float(known[0]["ms"])
    backend, room = machine.backend, form.layout.room(shape)
    with backend.current():
        placed = backend.place(room)
        try:
            backend.fill(placed, 0)
            backend.synchronize()
            times = []
            for _ in range(3):
                begin = time.perf_counter()
                form.layout.restore(replace(room, buffer=backend.download(placed)), shape)
                times.append(1e3 * (time.perf_counter() - begin))
        finally:
            placed.free()
    record.add({**told, "array": name, "ms": _typical(times)})
    return _typical(times)


# -- what steps are given


def captured(machine: Machine, control: Assignment) -> dict[tuple[str, int], dict[str, NDArray[Any]]]:
    """The canonical inputs of every call, of each step where it first runs in the program as declared."""
    bound = machine.bound
    found: dict[tuple[str, int], dict[str, NDArray[Any]]] = {}
    periods = {step: period or 1 for step, period in control.periods.items()}
    machine.start()
    for event in (event for segment in segments(bound, periods, 1) for event in segment):
        if event.kind == "call":
            for call in bound.calls[event.names[0]]:
                key = call.step, call.place
                if key not in found:
                    found[key] = {data: np.array(machine.fetch(name)) for data, name in call.reads.items()}
        machine.run(control, [(event,)])
    return found
