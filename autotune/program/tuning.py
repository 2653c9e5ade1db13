"""``tune``: measure little, solve exactly, prove the whole; what was found, as a value."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from autotune.compile import Cache, default_root
from autotune.device import Backend, open_backend
from autotune.errors import AutotuneError, NothingMeasured
from autotune.files import writable
from autotune.hardware import Device
from autotune.program.aging import Aged, measure_aging
from autotune.program.bound import BoundCall, BoundProgram, bind_program, each_call
from autotune.program.candidates import Assignment, Runnable, control
from autotune.program.conversion import FormConversion
from autotune.program.costs import Choice, Cost, Port, Problem, Traffic, cost, traffic
from autotune.program.declared import Given, Program
from autotune.program.forms import Form
from autotune.program.machine import Machine
from autotune.program.measuring import (
    Note,
    ProgramBudget,
    Surveyed,
    Where,
    captured,
    conversion_key,
    form_key,
    measure_conversion,
    measure_in_loop,
    measure_read,
    selected,
    survey,
    surveyed,
)
from autotune.program.proving import WholeProof, time_in_turn
from autotune.program.record import Record, digests
from autotune.program.schedule import Segment, default_periods, segments
from autotune.program.solve import Solution, solve
from autotune.program.steps import Repeat, number, walk
from autotune.record import Study

CONTROL, CHOSEN, OWN_BEST, GREEDY = "control", "chosen", "own best", "greedy"
_COLD_BYTES = 32 << 20  # of arrays; a loop over less may find them in a cache
_MEMORY_SHARE = 0.8  # of the device's
_TIMED_MS = 40.0  # about what a timed run of the whole takes
_MOST_TURNS = 400
_MOST_QUEUE_MS = 0.004


@dataclass(frozen=True, kw_only=True)
class ProgramRow:
    """One assignment of the table: what it was predicted to take and what it took, in milliseconds a turn of the
    loop; ``refusal`` says why it is not right, or could not run."""

    name: str
    assignment: Assignment
    cost: Cost  # of the whole program
    predicted_ms: float
    measured_ms: float = math.nan
    spread: float = math.nan
    refusal: str = ""

    @property
    def error(self) -> float:
        """How far the prediction is off, relative to the measurement."""
        return self.predicted_ms / self.measured_ms - 1


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What was measured, and what trying every assignment would have needed."""

    configurations: int  # by sweeps, in this run and before
    in_loop: int  # candidates timed in the loop
    runs: int  # of the program, to do so
    conversions: int
    assignments: float  # of the candidates that are timed in the loop

    @property
    def share(self) -> float:
        """Runs and conversions, of the runs that all assignments would need."""
        return (self.runs + self.conversions) / self.assignments if self.assignments else math.inf


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """What tuning a program found on one device. ``rows`` are the assignments that were run whole, the chosen one
    first; ``solution`` is the exact answer by prediction; ``turns`` is how many of the loop a time is of."""

    bound: BoundProgram
    workload: str
    device: Device
    compiler: str
    identity: str
    digests: Mapping[str, str]
    problem: Problem
    solution: Solution
    rows: tuple[ProgramRow, ...]
    counts: Counts
    aged: tuple[Aged, ...] = ()
    failed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by step and configuration
    surveys: Mapping[str, Surveyed] = field(default_factory=dict)
    turns: int = 1
    compared: int = 0  # arrays, step by step
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def chosen(self) -> ProgramRow:
        return self.rows[0]

    def picks(self, row: ProgramRow) -> dict[str, Choice]:
        """The options that a row takes."""
        return {
            step: next(one for one in self.problem.options[step] if one.of == candidate)
            for step, candidate in row.assignment.chosen.items()
        }

    def row(self, name: str) -> ProgramRow | None:
        return next((row for row in self.rows if row.name == name), None)

    @property
    def regret(self) -> float:
        """How much slower the chosen one was predicted to be than the exact answer's bound, relative to that."""
        bound = self.solution.bound
        return max(0.0, self.chosen.cost.ms / bound - 1) if bound > 0 else 0.0


def tune(
    program: Program,
    given: Given,
    device: str = "auto",
    out: Path | None = None,
    budget: ProgramBudget | None = None,
    cache: Path | None = None,
    processes: int = 0,
    note: Note = lambda _text: None,
) -> Tuned:
    """Find the cheapest layouts of ``program`` on ``given`` and prove them.

    Args:
        program: what is tuned.
        given: its arrays and scalars.
        device: cpu, cuda or cuda:N; auto is the first GPU, else the cpu with a warning.
        out: the folder of records, from which a later run goes on; default ./autotune-results/NAME.
        budget: how much is measured.
        cache: where compiled kernels are kept, by default the user's cache.
        processes: compiler processes; 0 is one a core.
        note: called with a line on each thing that is done.

    Returns:
        What was found: the table of assignments with predicted and measured times, the chosen one first.

    Raises:
        UsageError, UnknownName, WorkloadError: steps that do not fit together, or arrays that do not fit them.
        CompilerError, DeviceError, StoreError, NothingMeasured: what the machine refused; the record keeps the rest.
    """
    bound = bind_program(program, given)
    place = out or Path("autotune-results") / program.name
    writable(place)
    kept = Cache(cache or default_root())
    with open_backend(device) as backend:  # type: ignore[attr-defined]
        where = Where(
            bound=bound, device=device if device != "auto" else backend.device.kind, out=place,
            budget=budget or ProgramBudget(), is_cold=bound.nbytes > _COLD_BYTES, processes=processes, note=note,
        )  # fmt: skip
        return _Tuning(bound, given.workload, backend, kept, where).tuned()


class _Tuning:
    """One run of ``tune``, phase by phase."""

    def __init__(
        self, bound: BoundProgram, workload: str, backend: Backend, cache: Cache, where: Where
    ) -> None:
        self._bound, self._workload, self._backend, self._cache, self._where = (
            bound,
            workload,
            backend,
            cache,
            where,
        )
        self._record = Record(where.out / "program.jsonl", bound, backend)
        self._control = control(bound, default_periods(bound), backend.device.limits)
        self._seconds: dict[str, float] = {}
        self._studies: list[tuple[BoundCall, Study]] = []
        self._configurations = 0
        self._queue_ms = 0.0  # what an action takes more in a whole run than between two marks

    def tuned(self) -> Tuned:
        surveys = self._timed("survey", self._surveyed)
        options = self._candidates(surveys)
        with Machine(self._bound, self._backend, self._cache, keeps=True) as machine:
            self._timed(
                "loop", lambda: measure_in_loop(machine, self._control, options, self._record, self._where)
            )
            self._timed("queueing", lambda: self._measure_queueing(machine, options))
            problem = self._problem(machine, options, self._control.periods)
            solution = self._timed("solve", lambda: solve(problem))
            periods, aged = self._timed("aging", lambda: self._aged(machine, solution))
            if dict(periods) != dict(self._control.periods):
                problem = self._problem(machine, options, periods)
                solution = solve(problem)
            rows, turns, compared = self._timed(
                "prove", lambda: self._proved(machine, problem, solution, periods)
            )
        device = self._backend.device
        failed = {
            step: {key: why for s in found.values() for key, why in s.failed.items()}
            for step, found in surveys.items()
        }
        for line in self._record.find(kind="step"):
            if "failed" in line:
                failed.setdefault(line["step"], {})[line["configuration"]] = line["failed"]
        return Tuned(
            bound=self._bound, workload=self._workload, device=device,
            compiler=self._backend.toolchain().identity, identity=self._record.identity, digests=digests(self._bound),
            problem=problem, solution=solution, rows=rows, counts=self._counts(options), aged=aged, failed=failed,
            surveys={step: one for step, found in surveys.items() for one in found.values()}, turns=turns,
            compared=compared, seconds=self._seconds,
        )  # fmt: skip

    def _timed(self, phase: str, work: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        try:
            return work()
        finally:
            self._seconds[phase] = self._seconds.get(phase, 0.0) + time.perf_counter() - begin

    # -- each call alone

    def _surveyed(self) -> dict[str, dict[int, Surveyed]]:
        """A sweep of each call, one for those that are alike."""
        bound, where = self._bound, self._where
        with Machine(bound, self._backend, self._cache, apart=True) as machine:
            inputs = captured(machine, self._control)
        found: dict[str, dict[int, Surveyed]] = {}
        for call in each_call(bound):
            presets = [bound.program.held(name).get(call.step, {}) for name in bound.program.presets]
            presets = [held for held in presets if held and self._is_for(call, held)]
            chosen, forms, possible = selected(call, self._backend.device.limits, where.budget, presets)
            first = self._control.chosen[call.step]
            if first.call == call and first.configuration.id not in {one.configuration.id for one in chosen}:
                chosen.insert(0, first)
            alike = next((study for known, study in self._studies if call.is_like(known)), None)
            if alike is not None:
                here = surveyed(call, chosen, alike)
            else:
                where.note(f"{call.step}: {len(chosen)} of {possible} configurations in {forms} forms")
                here, study = survey(call, chosen, inputs[call.step, call.place], where)
                self._studies.append((call, study))
                self._configurations += len(study.trials)
            here.groups, here.possible = forms, possible
            found.setdefault(call.step, {})[call.place] = here
        for step, places in found.items():
            if not any(one.best for one in places.values()):
                reasons = "; ".join(
                    sorted({why for one in places.values() for why in one.failed.values()})[:3]
                )
                raise NothingMeasured(f"step {step}: none of its configurations could be measured: {reasons}")
        return found

    def _is_for(self, call: BoundCall, held: Mapping[str, Any]) -> bool:
        """Whether the call's family has the policies; a preset of a step with several calls is of some."""
        return held.keys() <= {policy.name for policy in call.family.space.policies}

    def _candidates(self, surveys: Mapping[str, Mapping[int, Surveyed]]) -> dict[str, list[Runnable]]:
        """Of each step the fastest of each form, the best forms first, with the control and what presets name."""
        options: dict[str, list[Runnable]] = {}
        for step, places in surveys.items():
            ranked = sorted(
                (pair for one in places.values() for listed in one.best.values() for pair in listed),
                key=lambda pair: pair[0],
            )
            taken: dict[str, Runnable] = {}
            for _, candidate in ranked:
                if len(taken) < self._where.budget.forms:
                    taken.setdefault(form_key(candidate), candidate)
            kept = {one.configuration.id + str(one.call.place): one for one in taken.values()}
            wanted = [self._control.chosen[step]]
            for preset in self._bound.program.presets:
                held = self._bound.program.held(preset).get(step)
                wanted += [one for _, one in ranked if held and _is_held(one, held)][:1]
            for one in wanted:
                kept.setdefault(one.configuration.id + str(one.call.place), one)
            options[step] = list(kept.values())
        return options

    # -- the choice

    def _problem(
        self, machine: Machine, options: Mapping[str, Sequence[Runnable]], periods: Mapping[str, int]
    ) -> Problem:
        bound, record, samples = self._bound, self._record, self._where.budget.samples
        queue_ms = self._queue_ms
        choices: dict[str, tuple[Choice, ...]] = {}
        for step, many in options.items():
            timed = [(one, line[0]) for one in many if (line := _lines(record, one)) and "ms" in line[0]]
            choices[step] = tuple(_option(one, max(0.0, line["ms"] + queue_ms)) for one, line in timed)
            if not choices[step]:
                why = "; ".join(line[0].get("failed", "") for one in many if (line := _lines(record, one)))
                raise NothingMeasured(f"step {step}: none of its candidates ran in the loop: {why}")
        passed = traffic(bound, segments(bound, periods))
        machine.converter.prepare(_conversions(bound, choices, passed, record))
        known: dict[tuple[str, Any, Any], float] = {}

        def convert_ms(array: str, before: Any, after: Any) -> float:
            key = array, before, after
            if key not in known:
                ms = measure_conversion(machine, array, before, after, record, samples)
                known[key] = max(0.0, ms + queue_ms)
            return known[key]

        return Problem(
            options=choices, traffic=passed, convert_ms=convert_ms,
            given={name: Form.plain(data, bound.shapes[name]) for name, data in bound.data.items()},
            read_ms=lambda array, form: measure_read(machine, array, form, record),
            nbytes=lambda array, form: form.nbytes(bound.shapes[array]),
            limit_bytes=_MEMORY_SHARE * self._backend.device.limits.memory_bytes,
        )  # fmt: skip

    def _measure_queueing(self, machine: Machine, options: Mapping[str, Sequence[Runnable]]) -> None:
        """What an action takes more, or less, in a whole run than between two marks: by the program as declared."""
        if known := self._record.find(kind="queue"):
            self._queue_ms = float(known[0]["ms"])
            return
        first = {
            step: [one for one in many if one == self._control.chosen[step]] for step, many in options.items()
        }
        if not all(first.values()) or not all(
            "ms" in (_lines(self._record, one) or [{}])[0] for (one,) in first.values()
        ):
            return
        problem = self._problem(machine, first, self._control.periods)
        picks = {step: one for step, (one,) in problem.options.items()}
        listed, _ = self._whole(cost(problem, picks).ms, self._control.periods)
        took = median(time_in_turn(machine, {CONTROL: self._control}, listed, 3)[CONTROL])
        made, actions = [], []
        for times in (1, 2):
            part = replace(problem, traffic=traffic(self._bound, [*listed] * times))
            found = cost(part, picks)
            made.append(found.ms)
            actions.append(sum(part.traffic.runs.values()) + sum(one.count for one in found.conversions))
        self._queue_ms = max(
            -_MOST_QUEUE_MS, min(10 * _MOST_QUEUE_MS, (took - made[1] + made[0]) / (actions[1] - actions[0]))
        )
        self._record.add({"kind": "queue", "ms": self._queue_ms})

    # -- orders that age

    def _aged(self, machine: Machine, solution: Solution) -> tuple[dict[str, int], tuple[Aged, ...]]:
        """The best period of each step that restores an order, by how the loop slows down behind it."""
        periods, found = dict(self._control.periods), []
        for step, values in self._bound.program.chosen_periods.items():
            assignment = _assignment(solution.picks, periods)
            aged = measure_aging(machine, assignment, step, values, self._record)
            periods[step] = aged.chosen
            found.append(aged)
        return periods, tuple(found)

    # -- the whole

    def _proved(
        self, machine: Machine, problem: Problem, solution: Solution, periods: Mapping[str, int]
    ) -> tuple[tuple[ProgramRow, ...], int, int]:
        bound = self._bound
        named = self._named(problem, solution)
        assignments = {name: _assignment(picks, periods) for name, picks in named.items()}
        listed, turns = self._whole(solution.cost.ms, periods)
        once, twice = (replace(problem, traffic=traffic(bound, [*listed] * times)) for times in (1, 2))
        rows: dict[str, ProgramRow] = {}
        first = list(segments(bound, _every_one(periods), _turns_to_prove(bound, periods)))
        with Machine(bound, self._backend, self._cache, apart=True, keeps=True) as reference:
            proof = WholeProof(reference, replace(self._control, periods=dict(periods)))
            for name, assignment in assignments.items():
                same = next((row for row in rows.values() if row.assignment.id == assignment.id), None)
                refusal = same.refusal if same else proof.refusal(machine, assignment, first)
                rows[name] = ProgramRow(
                    name=name, assignment=assignment, cost=cost(problem, named[name]), refusal=refusal,
                    predicted_ms=(cost(twice, named[name]).ms - cost(once, named[name]).ms) / turns,
                )  # fmt: skip
                self._where.note(f"{name}: {refusal or 'equal to the program as declared, step by step'}")
        right = {row.assignment.id: row.assignment for row in rows.values() if not row.refusal}
        if not right:
            raise NothingMeasured(
                f"program {bound.program.name}: no assignment is right: {rows[CHOSEN].refusal}"
            )
        times = time_in_turn(machine, right, listed, self._where.budget.samples)
        for name, row in rows.items():
            if not row.refusal:
                took = [ms / turns for ms in times[row.assignment.id]]
                middle = median(took)
                spread = (max(took) - min(took)) / middle / 2 if middle else math.nan
                rows[name] = replace(row, measured_ms=middle, spread=spread)
        best = min((row for row in rows.values() if not row.refusal), key=lambda row: row.measured_ms)
        chosen = rows[CHOSEN]
        if chosen.refusal or best.measured_ms < 0.99 * chosen.measured_ms:
            chosen = replace(best, name=CHOSEN)
        rest = [row for name, row in rows.items() if name != CHOSEN]
        return (chosen, *rest), turns, proof.compared

    def _named(self, problem: Problem, solution: Solution) -> dict[str, Mapping[str, Choice]]:
        """The assignments of the table: the chosen one, those it is compared with, and the next best."""
        program = self._bound.program
        first = {
            step: next(
                one for one in many if one.of.configuration == self._control.chosen[step].configuration
            )
            if any(one.of.configuration == self._control.chosen[step].configuration for one in many)
            else many[0]
            for step, many in problem.options.items()
        }
        found: dict[str, Mapping[str, Choice]] = {CHOSEN: solution.picks, CONTROL: first}
        for preset in program.presets:
            held = program.held(preset)
            narrowed = {
                step: tuple(one for one in many if _is_held(one.of, held.get(step, {})))
                for step, many in problem.options.items()
            }
            if all(narrowed.values()):
                found[preset] = solve(replace(problem, options=narrowed)).picks
        found[OWN_BEST] = {step: min(many, key=lambda one: one.ms) for step, many in problem.options.items()}
        found[GREEDY] = greedy(problem)
        for number_, picks in enumerate(runners_up(problem, solution, 2)):
            found[f"runner-up {number_ + 1}"] = picks
        return found

    def _whole(self, whole_ms: float, periods: Mapping[str, int]) -> tuple[list[Segment], int]:
        """The segments that a whole run is timed by, and how many turns these are: a multiple of all periods where
        that is not too long, and long enough to be timed."""
        bound = self._bound
        counts = [bound.count(step) for step in bound.program.steps if isinstance(step, Repeat)]
        if not counts:
            return list(segments(bound, periods)), 1
        most = min(max(counts), _MOST_TURNS)
        beat = math.lcm(*_periods(bound, periods))
        turn_ms = max(1e-3, whole_ms / max(counts))
        turns = max(2, math.ceil(_TIMED_MS / turn_ms))
        turns = max(beat, turns // beat * beat) if beat <= most else turns
        turns = min(turns, most)
        return list(segments(bound, periods, turns)), min(turns, max(counts))

    def _counts(self, options: Mapping[str, Sequence[Runnable]]) -> Counts:
        many = [len(listed) for listed in options.values()]
        return Counts(
            configurations=self._configurations, in_loop=sum(many), runs=max(many),
            conversions=len(self._record.find(kind="convert")), assignments=float(math.prod(many)),
        )  # fmt: skip


def _conversions(
    bound: BoundProgram, choices: Mapping[str, Sequence[Choice]], passed: Traffic, record: Record
) -> set[FormConversion]:
    """Those that some assignment makes due and that were not measured yet."""
    found = set()
    for epoch in passed.epochs:
        shape = bound.shapes[epoch.array]
        written, read = (
            {option.forms[port] for port in ports for option in choices[port.step] if port in option.forms}
            for ports in (epoch.writer, epoch.readers)
        )
        for before, after in product(written, read):
            if before != after and not record.find(**conversion_key(before, after, shape)):
                found.add(FormConversion(before, after, shape))
    return found


def _lines(record: Record, candidate: Runnable) -> list[dict[str, Any]]:
    call = candidate.call
    return record.find(
        kind="step", step=call.step, place=call.place, configuration=candidate.configuration.id
    )


def _option(candidate: Runnable, ms: float) -> Choice:
    call = candidate.call
    forms = {Port(call.step, call.place, data): form for data, form in candidate.forms.items()}
    return Choice(ms, forms, candidate.own_bytes, candidate)


def _is_held(candidate: Runnable, held: Mapping[str, Any]) -> bool:
    """Whether the configuration has the values."""
    told = candidate.configuration
    return all(name in told and str(told[name]) in map(str, values) for name, values in held.items())


def _assignment(picks: Mapping[str, Choice], periods: Mapping[str, int]) -> Assignment:
    return Assignment({step: option.of for step, option in picks.items()}, dict(periods))


def _periods(bound: BoundProgram, periods: Mapping[str, int]) -> list[int]:
    """How often the steps run, in turns."""
    found = []
    for step in walk(bound.program.steps):
        every = getattr(step, "every", 1)
        name = getattr(step, "name", "")
        told = periods[name] if name in periods else number(every, bound.scalars, "every")
        found.append(told or 1)
    return found


def _every_one(periods: Mapping[str, int]) -> dict[str, int]:
    """With no step left out, so that each is compared."""
    return {step: period or 2 for step, period in periods.items()}


def _turns_to_prove(bound: BoundProgram, periods: Mapping[str, int]) -> int:
    """Enough that steps that are not always due run twice, where that is not many."""
    few = [period for period in _periods(bound, periods) if period <= 8]
    return max(3, max(few) + 1)


# -- other ways to choose


def greedy(problem: Problem) -> dict[str, Choice]:
    """The steps one after the other, that which takes the most first: each takes what is cheapest beside those that
    chose before it, the others as they are fastest alone."""
    runs = problem.traffic.runs
    picks = {step: min(many, key=lambda one: one.ms) for step, many in problem.options.items()}
    for step in sorted(picks, key=lambda one: -picks[one].ms * runs.get(one, 0)):
        picks[step] = min(problem.options[step], key=partial(_with, problem, dict(picks), step))
    return picks


def _with(problem: Problem, picks: Mapping[str, Choice], step: str, option: Choice) -> float:
    """What ``picks`` cost with that option of the step."""
    return cost(problem, {**picks, step: option}).ms


def runners_up(problem: Problem, solution: Solution, most: int) -> list[Mapping[str, Choice]]:
    """The next best assignments: the best of those in which one step at least is another than in the best."""
    found: list[tuple[float, Mapping[str, Choice]]] = []
    for step, best in solution.picks.items():
        others = tuple(one for one in problem.options[step] if one is not best)
        if others:
            try:
                other = solve(replace(problem, options={**problem.options, step: others}))
            except AutotuneError:
                continue
            found.append((other.cost.ms, other.picks))
    distinct: dict[str, Mapping[str, Choice]] = {}
    for _, picks in sorted(found, key=lambda pair: pair[0]):
        distinct.setdefault(_assignment(picks, {}).id, picks)
    return list(distinct.values())[:most]
