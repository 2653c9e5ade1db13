"""Little is measured: each call's configurations by a sweep of its family; the best of each form again in the loop, as
many steps at a time as there are; each conversion between two forms, and what the host reads."""

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Workload
from autotune.device import Backend, Placed
from autotune.engine import Case, SweepRequest, open_session
from autotune.errors import AutotuneError, NothingMeasured
from autotune.hardware import Limits
from autotune.program.bound import BoundCall, BoundProgram
from autotune.program.candidates import Assignment, Runnable, candidates
from autotune.program.conversion import FormConversion
from autotune.program.declared import Held, Program
from autotune.program.forms import Form
from autotune.program.machine import Action, Machine
from autotune.program.record import Record
from autotune.program.schedule import Segment, segments
from autotune.record import Study
from autotune.report import make_console, show_live

Note = Callable[[str], None]

# Shares of the budget's seconds that sweeps may take, and with them the runs in the loop.
_SURVEY, _LOOP = 0.5, 0.65
_FEWEST = 4  # configurations of a call, however little time there is
_FIRST_GUESS = 0.4  # seconds that a configuration takes in a sweep, as long as none was swept


@dataclass(frozen=True, kw_only=True)
class ProgramBudget:
    """How much is measured: ``configurations`` of each step by a sweep, ``forms`` of each again in the loop, in runs of
    ``turns`` turns, ``samples`` times. ``looked`` configurations of a space are looked at to find its forms. Less is
    measured and compared where ``seconds`` would not be enough: about as long as tuning then takes."""

    configurations: int = 96
    forms: int = 12
    turns: int = 2
    samples: int = 5
    looked: int = 20_000
    seconds: float = math.inf


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
    began: float = field(default_factory=time.perf_counter)

    def seconds_until(self, share: float) -> float:
        """How long it is until that share of the budget's seconds is over; below 0 when it is."""
        return self.began + share * self.budget.seconds - time.perf_counter()


# -- each call alone


@dataclass
class Surveyed:
    """What sweeps found of a step's calls: candidates with their times alone, and those that failed, with reasons."""

    times: list[tuple[float, Runnable]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, call: BoundCall, chosen: Sequence[Runnable], study: Study) -> None:
        """What the record of a sweep, which may be of another call like this one, says of the call's candidates."""
        trials = {trial.configuration: trial for trial in study.trials}
        for one in chosen:
            if (trial := trials.get(one.configuration)) and trial.measurement is None:
                self.failed[one.configuration.id] = f"{trial.state}: {trial.reason}"
            elif trial:
                self.times.append((trial.time_ms, Runnable(call, one.configuration)))

    def select_kept(self, control: Runnable, program: Program, forms: int) -> list[Runnable]:
        """Return the control, each preset's fastest, and the fastest of each of the ``forms`` fastest forms."""
        ranked, kept = [one for _, one in sorted(self.times, key=lambda pair: pair[0])], [control]
        for preset in program.presets:
            held = program.get_held(preset).get(control.call.step)
            kept += [one for one in ranked if held and one.is_held(held)][:1]
        best: dict[Any, Runnable] = {}
        for one in ranked:
            best.setdefault(one.key, one)
        kept += list(best.values())[:forms]
        return list({(one.call.place, one.configuration): one for one in kept}.values())


def survey_calls(machine: Machine, control: Assignment, where: Where) -> tuple[dict[str, Surveyed], int]:
    """A sweep of each call, one for those that are alike; by step, and how many configurations were swept. Raises
    NothingMeasured."""
    bound, limits, program = where.bound, machine.backend.device.limits, where.bound.program
    inputs = capture_inputs(machine, control)
    machine.close()
    surveys: dict[str, Surveyed] = {}
    studies: list[tuple[BoundCall, Study]] = []
    calls, swept, began = list(bound.each_call), 0, time.perf_counter()
    for at, call in enumerate(calls):
        spent = (time.perf_counter() - began) / swept if swept else _FIRST_GUESS
        room = max(_FEWEST, where.seconds_until(_SURVEY) / (len(calls) - at) / spent)
        budget = replace(where.budget, configurations=int(min(where.budget.configurations, room)))
        known = {policy.name for policy in call.family.space.policies}
        named = [program.get_held(name).get(call.step, {}) for name in program.presets]
        presets = [held for held in named if held and held.keys() <= known]
        chosen, forms, possible = select(call, limits, budget, presets)
        first = control.chosen[call.step]
        chosen += [first] if first.call is call and first not in chosen else []
        study = next((study for other, study in studies if call.kind == other.kind), None)
        if study is None:
            where.note(f"{call.step}: {len(chosen)} of {possible} configurations in {forms} forms")
            study = _sweep(call, chosen, inputs[call.step, call.place], where)
            studies.append((call, study))
            swept += len(study.trials)
        surveys.setdefault(call.step, Surveyed()).add(call, chosen, study)
    for step, one in surveys.items():
        if not one.times:
            reasons = "; ".join(sorted({*one.failed.values()})[:3])
            raise NothingMeasured(f"step {step}: none of its configurations could be measured: {reasons}")
    return surveys, swept


def capture_inputs(machine: Machine, control: Assignment) -> dict[tuple[str, int], dict[str, NDArray[Any]]]:
    """The canonical inputs of every call, of each step where it first runs in the program as declared."""
    bound, inputs = machine.bound, dict[tuple[str, int], dict[str, NDArray[Any]]]()
    periods = {step: period or 1 for step, period in control.periods.items()}
    machine.start()
    for event in (event for segment in segments(bound, periods, 1) for event in segment):
        if event.kind == "call":
            for call in bound.calls[event.names[0]]:
                key = call.step, call.place
                if key not in inputs:
                    inputs[key] = {data: np.array(machine.fetch(name)) for data, name in call.reads.items()}
        machine.run(control, [(event,)])
    return inputs


def select(
    call: BoundCall, limits: Limits, budget: ProgramBudget, presets: Sequence[Held]
) -> tuple[list[Runnable], int, int]:
    """The configurations to sweep: of every form, control's choices for the rest first and then the same others of
    each, as many as the budget allows; and the best guesses of each preset. With how many forms and configurations
    there are."""
    groups, space, shared = candidates(call, limits, budget.looked), call.family.space, set(call.arrays)
    kept = sorted(groups.values(), key=lambda listed: listed[0].changes)[: budget.configurations]
    # The choices that make no form: all but the layout of what a program shares, and the memory of that.
    own = [p.name for p in space.policies if p.layout in ("", "memory") or not set(p.data) & shared]

    def draw_number(one: Runnable) -> float:  # the same for all forms, which are compared by the same choices
        return random.Random(str([one.configuration[name] for name in own])).random()  # noqa: S311

    each = budget.configurations // max(1, len(kept))
    chosen = [
        one for many in kept for one in (many[0], *sorted(many[1:], key=draw_number)[: max(0, each - 1)])
    ]
    for held in presets:
        chosen += [many[0] for many in list(candidates(call, limits, budget.looked, held).values())[:4]]
    distinct = {one.configuration: one for one in chosen}
    return list(distinct.values()), len(groups), sum(map(len, groups.values()))


def _sweep(
    call: BoundCall, chosen: Sequence[Runnable], arrays: Mapping[str, NDArray[Any]], where: Where
) -> Study:
    """Sweep ``chosen`` on what the step is given when it first runs; what the record has is not tried again."""
    family, given = call.family, replace(call.inputs, arrays=arrays)
    name = f"{where.bound.program.name}-{call.step}-{given.digest[:8]}"
    workload = Workload(name=name, family=family.name, cold=where.is_cold, options=given.options)
    request = SweepRequest(
        family=family, chosen=tuple(one.configuration for one in chosen), device=where.device,
        out=where.out / "steps" / call.step, samples=where.budget.samples, processes=where.processes,
    )  # fmt: skip
    request.check()
    quiet = partial(show_live, err=make_console(False))
    with open_session(request, [Case(workload=workload, inputs=given)], quiet, where.note) as session:
        (swept,) = session.sweeps()
    if swept.interrupted:
        raise KeyboardInterrupt(f"step {call.step}: {swept.interrupted}; the same call resumes from there")
    return swept.study


# -- all of them in the loop


def time_segments(
    machine: Machine, assignment: Assignment, listed: Sequence[Segment], samples: int
) -> list[list[tuple[Action, float]]]:
    """The times of each action of the segments, which run ``samples`` times over, by segment as they are run."""
    backend = machine.backend
    with backend.current():
        for segment in (*listed, *listed):  # makes all that there is to make
            machine.queue_timed(assignment, segment)
        backend.synchronize()
        readers: list[Callable[[], list[tuple[Action, float]]]] = []

        def queue_one() -> None:
            readers.append(machine.queue_timed(assignment, listed[len(readers) % len(listed)]))

        total = len(listed) * samples
        backend.sample(queue_one, total, False)
        return [read() for read in readers[-total:]]


def measure_in_loop(
    machine: Machine, control: Assignment, options: Mapping[str, Sequence[Runnable]], record: Record, where: Where
) -> None:  # fmt: skip
    """Time every candidate of every step in the loop, a candidate of each step at a time: runs as many as the step with
    the most has, or as there is time for. What is in the record already is not run again."""
    # Every step is due in the first turn.
    listed = list(segments(where.bound, control.periods, where.budget.turns))
    left = {step: [one for one in many if not record.find_step(one)] for step, many in options.items()}
    until = time.perf_counter() + max(where.seconds_until(_LOOP), 0.1 * where.budget.seconds)
    while count := sum(map(len, left.values())):
        is_enough = all(any("ms" in record.find_step(one) for one in many) for many in options.values())
        if is_enough and time.perf_counter() > until:
            where.note(f"{count} candidates are not timed in the loop: no time is left")
            break
        assignment = _choose_next(left, control)
        for step, one in assignment.chosen.items():
            left[step] = [other for other in left[step] if other != one]
        failed = _time(machine, assignment, listed, where.budget.samples, record)
        for one in assignment.chosen.values() if failed else ():  # find which failed: each with control
            if not record.find_step(one):
                machine.trim()
                alone = replace(control, chosen={**control.chosen, one.call.step: one})
                if problem := _time(machine, alone, listed, 1, record):
                    record.add({"kind": "step", **record.key(one), "failed": problem})
        if machine.nbytes > 0.5 * machine.backend.device.limits.memory_bytes:
            machine.trim()
    machine.trim()


def _choose_next(left: Mapping[str, Sequence[Runnable]], control: Assignment) -> Assignment:
    """A candidate of each step that has any left, those that share forms together: few conversions lie between."""
    chosen: dict[str, Runnable] = {}
    there: dict[str, Form] = {}

    def fit(one: Runnable) -> int:
        return sum(there.get(name) == form for name, form in one.stored)

    for step, many in left.items():
        chosen[step] = max(many, key=fit, default=control.chosen[step])
        there |= dict(chosen[step].stored)
    return replace(control, chosen=chosen)


def _time(
    machine: Machine, assignment: Assignment, listed: Sequence[Segment], samples: int, record: Record
) -> str:
    """Record what the candidates of an assignment take in the loop; why that failed, or empty."""
    by_step: dict[str, list[float]] = {}
    try:
        machine.start()
        for action, ms in chain(*time_segments(machine, assignment, listed, samples)):
            if action.kind == "call":
                by_step.setdefault(action.name, []).append(ms)
    except AutotuneError as problem:
        return str(problem)
    for step, times in by_step.items():
        if not record.find_step(assignment.chosen[step]):
            record.add({"kind": "step", **record.key(assignment.chosen[step]), "ms": _compute_typical(times)})
    return ""


def _compute_typical(times: Sequence[float]) -> float:
    return float(f"{median(times):.6g}")


# -- conversions and reads


def conversion_key(before: Form, after: Form, shape: tuple[int, ...]) -> dict[str, Any]:
    """What the record knows a conversion by."""
    return {"kind": "convert", "before": before.digest, "after": after.digest, "shape": list(shape)}


def measure_conversion(
    machine: Machine, name: str, before: Form, after: Form, record: Record, samples: int
) -> float:
    """The milliseconds of a conversion of the array ``name``, one of each kind and size once."""
    shape, backend = machine.bound.shapes[name], machine.backend
    conversion = FormConversion(before, after, shape)

    def time_copies(source: Placed) -> list[float]:
        target = backend.place(after.layout.room(shape))
        try:
            run = machine.converter.make_copy(conversion, source, target)
            run()
            is_clocked = conversion.is_on_host
            return _time_by_clock(backend, run) if is_clocked else backend.sample(run, samples, False)
        finally:
            target.free()

    return _measure(machine, conversion_key(before, after, shape), name, before, record, time_copies)


def measure_read(machine: Machine, name: str, form: Form, record: Record) -> float:
    """Measure the milliseconds that the host needs to read an array stored in ``form``."""
    shape, backend = machine.bound.shapes[name], machine.backend
    told = {"kind": "read", "form": form.digest, "shape": list(shape)}

    def time_reads(source: Placed) -> list[float]:
        return _time_by_clock(backend, lambda: form.restore(backend.download(source), shape), 3)

    return _measure(machine, told, name, form, record, time_reads)


def _measure(
    machine: Machine, told: Mapping[str, Any], name: str, form: Form, record: Record,
    timed: Callable[[Placed], list[float]],
) -> float:  # fmt: skip
    """What the record has of it, else what is measured on an array of zeros in ``form``."""
    if known := record.find(**told):
        return float(known[0]["ms"])
    with machine.backend.current():
        source = machine.backend.place(form.layout.room(machine.bound.shapes[name]))
        try:
            machine.backend.fill(source, 0)
            ms = _compute_typical(timed(source))
        finally:
            source.free()
    record.add({**told, "array": name, "ms": ms})
    return ms


def _time_by_clock(backend: Backend, work: Callable[[], object], count: int = 1) -> list[float]:
    """Milliseconds of work that is the host's too."""
    times = []
    for _ in range(count):
        backend.synchronize()
        begin = time.perf_counter()
        work()
        backend.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return times
