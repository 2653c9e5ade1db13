"""``tune``: measure little, solve exactly, prove the whole; what was found, as a value."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from autotune.compile import Cache, default_root
from autotune.device import Backend, open_backend
from autotune.errors import NothingMeasured
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
    measure_conversion,
    measure_in_loop,
    measure_read,
    selected,
    survey,
)  # fmt: skip
from autotune.program.proving import WholeProof, time_in_turn
from autotune.program.record import Record, digests
from autotune.program.schedule import Segment, default_periods, period_of, segments
from autotune.program.solve import Solution, solve
from autotune.program.steps import Repeat, Swap, walk
from autotune.record import Study

CONTROL, CHOSEN, OWN_BEST, GREEDY = "control", "chosen", "own best", "greedy"
_COLD_BYTES = 32 << 20  # of arrays; a loop over less may find them in a cache
_MEMORY_SHARE = 0.8  # of the device's
_TIMED_MS = 40.0  # about what a timed run of the whole takes
_MOST_TURNS = 400
_MOST_QUEUE_MS = 0.004
_SURVEY, _PROOF = (
    0.5,
    0.85,
)  # shares of the budget's seconds after which no configuration, no comparison is begun
_FEWEST = 4  # configurations of a call, however little time there is
_FIRST_GUESS = 0.4  # seconds that a configuration takes in a sweep, as long as none was swept


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
        UsageError, WorkloadError: steps that do not fit together, or arrays that do not fit them.
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
        self._configurations = 0
        self._queue_ms = 0.0  # what an action takes more in a whole run than between two marks

    def tuned(self) -> Tuned:
        found = self._timed("survey", self._surveyed)
        options = {step: self._candidates(step, one) for step, one in found.items()}
        with Machine(self._bound, self._backend, self._cache, keeps=True) as machine:
            self._timed("loop", measure_in_loop, machine, self._control, options, self._record, self._where)
            self._timed("queueing", self._measure_queueing, machine, options)
            periods, aged = self._control.periods, ()
            problem = self._problem(machine, options, periods)
            solution = self._timed("solve", solve, problem)
            if self._bound.program.chosen_periods:
                periods, aged = self._timed("aging", self._aged, machine, solution)
                problem = self._problem(machine, options, periods)
                solution = solve(problem)
            rows, turns, compared = self._timed("prove", self._proved, machine, problem, solution, periods)
        failed = {step: dict(one.failed) for step, one in found.items()}
        for line in self._record.find(kind="step"):
            if "failed" in line:
                failed[line["step"]][line["configuration"]] = line["failed"]
        many = [len(listed) for listed in options.values()]
        counts = Counts(
            configurations=self._configurations, in_loop=sum(many), runs=max(many),
            conversions=len(self._record.find(kind="convert")), assignments=float(math.prod(many)),
        )  # fmt: skip
        return Tuned(
            bound=self._bound, workload=self._workload, device=self._backend.device,
            compiler=self._backend.toolchain().identity, identity=self._record.identity, digests=digests(self._bound),
            problem=problem, solution=solution, rows=rows, counts=counts, aged=aged, failed=failed, turns=turns,
            compared=compared, seconds=self._seconds,
        )  # fmt: skip

    def _timed(self, phase: str, work: Callable[..., Any], *given: Any) -> Any:
        begin = time.perf_counter()
        try:
            return work(*given)
        finally:
            self._seconds[phase] = time.perf_counter() - begin
            self._where.note(f"{phase}: {self._seconds[phase]:.1f} s")

    # -- each call alone

    def _surveyed(self) -> dict[str, Surveyed]:
        """A sweep of each call, one for those that are alike; by step."""
        bound, where, limits = self._bound, self._where, self._backend.device.limits
        with Machine(bound, self._backend, self._cache, apart=True) as machine:
            inputs = captured(machine, self._control)
        found: dict[str, Surveyed] = {}
        studies: list[tuple[BoundCall, Study]] = []
        calls, began = list(each_call(bound)), time.perf_counter()
        for at, call in enumerate(calls):
            spent = (
                (time.perf_counter() - began) / self._configurations if self._configurations else _FIRST_GUESS
            )
            room = max(_FEWEST, where.seconds_until(_SURVEY) / (len(calls) - at) / spent)
            budget = replace(where.budget, configurations=int(min(where.budget.configurations, room)))
            known = {policy.name for policy in call.family.space.policies}
            named = [bound.program.held(name).get(call.step, {}) for name in bound.program.presets]
            chosen, forms, possible = selected(
                call, limits, budget, [held for held in named if held and held.keys() <= known]
            )
            first = self._control.chosen[call.step]
            chosen += [first] if first.call is call and first not in chosen else []
            alike = next((study for other, study in studies if call.is_like(other)), None)
            if alike is None:
                where.note(f"{call.step}: {len(chosen)} of {possible} configurations in {forms} forms")
                alike = survey(call, chosen, inputs[call.step, call.place], where)
                studies.append((call, alike))
                self._configurations += len(alike.trials)
            found.setdefault(call.step, Surveyed()).add(call, chosen, alike)
        for step, one in found.items():
            if not one.times:
                reasons = "; ".join(sorted({*one.failed.values()})[:3])
                raise NothingMeasured(f"step {step}: none of its configurations could be measured: {reasons}")
        return found

    def _candidates(self, step: str, found: Surveyed) -> list[Runnable]:
        """The control, what presets name, and the fastest of each form, the best forms first."""
        ranked = [one for _, one in sorted(found.times, key=lambda pair: pair[0])]
        best: dict[Any, Runnable] = {}
        for one in ranked:
            best.setdefault(one.key, one)
        kept = [self._control.chosen[step]]
        for preset in self._bound.program.presets:
            held = self._bound.program.held(preset).get(step)
            kept += [one for one in ranked if held and _is_held(one, held)][:1]
        kept += list(best.values())[: self._where.budget.forms]
        return list({(one.call.place, one.configuration): one for one in kept}.values())

    # -- the choice

    def _problem(
        self, machine: Machine, options: Mapping[str, Sequence[Runnable]], periods: Mapping[str, int]
    ) -> Problem:
        bound, record, queue_ms = self._bound, self._record, self._queue_ms
        choices: dict[str, tuple[Choice, ...]] = {}
        for step, many in options.items():
            lines = [(one, record.of(one)) for one in many]
            timed = [(one, max(0.0, line["ms"] + queue_ms)) for one, line in lines if "ms" in line]
            choices[step] = tuple(_choice(one, ms) for one, ms in timed)
            if not timed:
                why = "; ".join(line.get("failed", "") for _, line in lines)
                raise NothingMeasured(f"step {step}: none of its candidates ran in the loop: {why}")
        passed = traffic(bound, segments(bound, periods))
        machine.converter.prepare(_conversions(bound, choices, passed, record))

        @cache
        def convert_ms(array: str, before: Form, after: Form) -> float:
            ms = measure_conversion(machine, array, before, after, record, self._where.budget.samples)
            return max(0.0, ms + queue_ms)

        return Problem(
            options=choices, traffic=passed, convert_ms=convert_ms,
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
        if not all(many and "ms" in self._record.of(many[0]) for many in first.values()):
            return
        problem = self._problem(machine, first, self._control.periods)
        picks = {step: one for step, (one,) in problem.options.items()}
        listed, _ = self._whole(cost(problem, picks).ms, self._control.periods)
        took = median(time_in_turn(machine, {CONTROL: self._control}, listed, 3)[CONTROL])
        once, twice = self._passes(problem, picks, listed)
        apart = (took - twice.ms + once.ms) / (twice.actions - once.actions)
        self._queue_ms = min(10 * _MOST_QUEUE_MS, max(-_MOST_QUEUE_MS, apart))
        self._record.add({"kind": "queue", "ms": self._queue_ms})

    def _passes(self, problem: Problem, picks: Mapping[str, Choice], listed: list[Segment]) -> list[Cost]:
        """What the segments cost once and twice over: the second time begins where the first one ended."""
        return [
            cost(replace(problem, traffic=traffic(self._bound, listed * times)), picks) for times in (1, 2)
        ]

    def _aged(self, machine: Machine, solution: Solution) -> tuple[dict[str, int], tuple[Aged, ...]]:
        """The best period of each step that restores an order, by how the loop slows down behind it."""
        periods, found = dict(self._control.periods), []
        for step, values in self._bound.program.chosen_periods.items():
            found.append(
                measure_aging(machine, _assignment(solution.picks, periods), step, values, self._record)
            )
            periods[step] = found[-1].chosen
        return periods, tuple(found)

    # -- the whole

    def _proved(
        self, machine: Machine, problem: Problem, solution: Solution, periods: Mapping[str, int]
    ) -> tuple[tuple[ProgramRow, ...], int, int]:
        """The table, the chosen one first; how many turns its times are of, and how many arrays were compared."""
        bound, rows = self._bound, dict[str, ProgramRow]()
        listed, turns = self._whole(solution.cost.ms, periods)
        always = {
            step: period or 2 for step, period in periods.items()
        }  # none is left out, so that each is compared
        few = [period for period in _periods(bound, periods) if period <= 8]
        first = list(segments(bound, always, max(3, *few) + 1))
        with Machine(bound, self._backend, self._cache, apart=True, keeps=True) as reference:
            proof = WholeProof(reference, replace(self._control, periods=always))
            known: dict[str, str] = {}
            for name, picks in self._named(problem, solution).items():
                is_needed = name in (CHOSEN, CONTROL, *bound.program.presets)
                if not is_needed and self._where.seconds_until(_PROOF) < 0:
                    self._where.note(f"{name}: not compared, no time is left")
                    continue
                assignment = _assignment(picks, periods)
                if assignment.id not in known:
                    known[assignment.id] = proof.refusal(machine, assignment, first)
                once, twice = self._passes(problem, picks, listed)
                rows[name] = ProgramRow(
                    name=name, assignment=assignment, cost=cost(problem, picks), refusal=known[assignment.id],
                    predicted_ms=(twice.ms - once.ms) / turns,
                )  # fmt: skip
                self._where.note(
                    f"{name}: {rows[name].refusal or 'equal to the program as declared, step by step'}"
                )
        right = {row.assignment.id: row.assignment for row in rows.values() if not row.refusal}
        if not right:
            raise NothingMeasured(
                f"program {bound.program.name}: no assignment is right: {rows[CHOSEN].refusal}"
            )
        rounds = self._where.budget.samples if rows[CHOSEN].predicted_ms * turns < 2.5 * _TIMED_MS else 3
        times = time_in_turn(machine, right, listed, rounds)
        for name, row in rows.items():
            if not row.refusal:
                took = [ms / turns for ms in times[row.assignment.id]]
                wide = (max(took) - min(took)) / 2 / median(took)
                rows[name] = replace(row, measured_ms=median(took), spread=wide)
        chosen = rows.pop(CHOSEN)
        best = min(
            (row for row in (chosen, *rows.values()) if not row.refusal), key=lambda row: row.measured_ms
        )
        if chosen.refusal or best.measured_ms < 0.99 * chosen.measured_ms:
            chosen = replace(best, name=CHOSEN)
        return (chosen, *rows.values()), turns, proof.compared

    def _named(self, problem: Problem, solution: Solution) -> dict[str, Mapping[str, Choice]]:
        """The assignments of the table: the chosen one, those it is compared with, and the next best."""
        program, options = self._bound.program, problem.options
        found: dict[str, Mapping[str, Choice]] = {CHOSEN: solution.picks}
        declared = {
            step: [c for c in many if c.of == self._control.chosen[step]] for step, many in options.items()
        }
        if all(declared.values()):
            found[CONTROL] = {step: many[0] for step, many in declared.items()}
        for preset in program.presets:
            held = program.held(preset)
            narrowed = {
                step: tuple(one for one in many if _is_held(one.of, held.get(step, {})))
                for step, many in options.items()
            }
            if all(narrowed.values()):
                found[preset] = solve(replace(problem, options=narrowed)).picks
        found[OWN_BEST] = {step: min(many, key=lambda one: one.ms) for step, many in options.items()}
        found[GREEDY] = greedy(problem)
        return found | {
            f"runner-up {at}": picks for at, picks in enumerate(runners_up(problem, solution, 2), 1)
        }

    def _whole(self, whole_ms: float, periods: Mapping[str, int]) -> tuple[list[Segment], int]:
        """The segments that a whole run is timed by, and how many turns these are: a multiple of all periods where that
        is not too long, and long enough to be timed."""
        bound = self._bound
        count = max(
            (bound.count(step) for step in bound.program.steps if isinstance(step, Repeat)), default=1
        )
        turn_ms, beat = max(1e-3, whole_ms / count), math.lcm(*_periods(bound, periods))
        turns = max(2, math.ceil(_TIMED_MS / turn_ms))
        if beat * turn_ms <= 10 * _TIMED_MS:
            turns = max(beat, turns // beat * beat)
        turns = min(turns, count, _MOST_TURNS)
        return list(segments(bound, periods, turns)), turns


def _conversions(
    bound: BoundProgram, choices: Mapping[str, Sequence[Choice]], passed: Traffic, record: Record
) -> set[FormConversion]:
    """Those that some assignment makes due and that were not measured yet."""

    def forms(ports: Iterable[Port]) -> set[Any]:
        return {one.forms[port] for port in ports for one in choices[port.step] if port in one.forms}

    made = {
        FormConversion(before, after, bound.shapes[epoch.array])
        for epoch in passed.epochs
        for before, after in product(forms(epoch.writer), forms(epoch.readers))
        if before != after
    }
    return {one for one in made if not record.find(**conversion_key(one.before, one.after, one.shape))}


def _choice(candidate: Runnable, ms: float) -> Choice:
    call = candidate.call
    forms = {Port(call.step, call.place, data): form for data, form in candidate.forms.items()}
    return Choice(ms, forms, candidate.own_bytes, candidate)


def _is_held(candidate: Runnable, held: Mapping[str, Any]) -> bool:
    """Whether the configuration has the values."""
    told = candidate.configuration
    return all(name in told and str(told[name]) in map(str, values) for name, values in held.items())


def _assignment(picks: Mapping[str, Choice], periods: Mapping[str, int]) -> Assignment:
    return Assignment({step: one.of for step, one in picks.items()}, dict(periods))


def _periods(bound: BoundProgram, periods: Mapping[str, int]) -> list[int]:
    """How often the steps run, in turns; of one that never runs, 1."""
    steps = [step for step in walk(bound.program.steps) if not isinstance(step, Repeat | Swap)]
    return [period_of(bound, step, periods) or 1 for step in steps]


# -- other ways to choose


def greedy(problem: Problem) -> dict[str, Choice]:
    """The steps one after the other, that which takes the most first: each takes what is cheapest beside those that
    chose before it, the others as they are fastest alone."""
    picks = {step: min(many, key=lambda one: one.ms) for step, many in problem.options.items()}

    def with_it(one: Choice, step: str) -> float:
        return cost(problem, {**picks, step: one}).ms

    for step in sorted(picks, key=lambda one: -picks[one].ms * problem.traffic.runs.get(one, 0)):
        picks[step] = min(problem.options[step], key=partial(with_it, step=step))
    return picks


def runners_up(problem: Problem, solution: Solution, most: int) -> list[Mapping[str, Choice]]:
    """The next best assignments in which one step is another than in the best."""
    best = solution.picks
    others = [
        {**best, step: one} for step, many in problem.options.items() for one in many if one is not best[step]
    ]
    fitting = [
        (found.ms, picks) for picks in others if (found := cost(problem, picks)).nbytes <= problem.limit_bytes
    ]
    return [picks for _, picks in sorted(fitting, key=lambda pair: pair[0])[:most]]
