"""``tune``: measure little, solve exactly, prove the whole; what was found, as a value."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
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
from autotune.program.bound import BoundProgram, bind_program
from autotune.program.candidates import Assignment, Runnable, control
from autotune.program.conversion import FormConversion
from autotune.program.costs import Choice, Cost, Port, Problem, Traffic, cost, traffic
from autotune.program.declared import Given, Program
from autotune.program.machine import Machine
from autotune.program.proving import WholeProof, time_in_turn
from autotune.program.record import Record, digests
from autotune.program.schedule import Segment, default_periods, period_of, segments
from autotune.program.solve import Solution, greedy, runners_up, solve
from autotune.program.steps import Repeat, Swap, walk
from autotune.program.survey import (
    Note,
    ProgramBudget,
    Where,
    conversion_key,
    measure_conversion,
    measure_in_loop,
    measure_read,
    survey_calls,
)

CONTROL, CHOSEN, OWN_BEST, GREEDY = "control", "chosen", "own best", "greedy"
_COLD_BYTES = 32 << 20  # of arrays; a loop over less may find them in a cache
_MEMORY_SHARE = 0.8  # of the device's
_TIMED_MS = 40.0  # about what a timed run of the whole takes
_MOST_TURNS = 400
_MOST_QUEUE_MS = 0.004
_PROOF = 0.85  # the share of the budget's seconds after which no comparison is begun that is not needed


@dataclass(frozen=True, kw_only=True)
class ProgramRow:
    """One assignment of the table: what it was predicted to take and what it took, in milliseconds a turn of the
    loop; ``refusal`` says why it is not right, or could not run. ``picks`` are its options, ``cost`` is of the whole
    program."""

    name: str
    assignment: Assignment
    picks: Mapping[str, Choice]
    cost: Cost
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
    """The numbers of measurements: ``configurations`` by sweeps, ``in_loop`` candidates in ``runs`` of the program, and
    ``conversions``; and the ``assignments`` of these candidates, each of which would be a run too."""

    configurations: int
    in_loop: int
    runs: int
    conversions: int
    assignments: float

    @property
    def share(self) -> float:
        """Runs and conversions, of the runs that all assignments would need."""
        return (self.runs + self.conversions) / self.assignments


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """What tuning a program found on one device. ``rows`` are the assignments that were run whole, the chosen one
    first; ``solution`` is the exact answer by prediction; ``failed`` has reasons by step and configuration; ``turns``
    is how many of the loop a time is of, ``compared`` how many arrays were compared, step by step."""

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
    aged: tuple[Aged, ...]
    failed: Mapping[str, Mapping[str, str]]
    turns: int
    compared: int
    seconds: Mapping[str, float] = field(default_factory=dict)  # by phase

    @property
    def chosen(self) -> ProgramRow:
        return self.rows[0]

    def row(self, name: str) -> ProgramRow | None:
        return next((row for row in self.rows if row.name == name), None)

    @property
    def regret(self) -> float:
        """How much slower the chosen one was predicted to be than the exact answer's bound, relative to that."""
        bound = self.solution.bound
        return max(0.0, self.chosen.cost.ms / bound - 1) if bound > 0 else 0.0


def tune(
    program: Program, given: Given, device: str = "auto", out: Path | None = None,
    budget: ProgramBudget | None = None, cache: Path | None = None, processes: int = 0,
    note: Note = lambda _text: None,
) -> Tuned:  # fmt: skip
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
        CompilerError, DeviceError, StoreError, NothingMeasured: what the machine rejected; the record keeps the rest.
    """
    bound = bind_program(program, given)
    place = out or Path("autotune-results") / program.name
    writable(place)
    with open_backend(device) as backend:  # type: ignore[attr-defined]
        where = Where(
            bound=bound, device=device if device != "auto" else backend.device.kind, out=place,
            budget=budget or ProgramBudget(), is_cold=bound.nbytes > _COLD_BYTES, processes=processes, note=note,
        )  # fmt: skip
        return _Tuning(where, given.workload, backend, Cache(cache or default_root())).tune()


class _Tuning:
    """One run of ``tune``, phase by phase."""

    def __init__(self, where: Where, workload: str, backend: Backend, cache: Cache) -> None:
        self._where, self._bound, self._workload = where, where.bound, workload
        self._backend, self._cache = backend, cache
        self._record = Record(where.out / "program.jsonl", where.bound, backend)
        self._control = control(where.bound, default_periods(where.bound), backend.device.limits)
        self._seconds: dict[str, float] = {}
        self._queue_ms = 0.0  # what an action takes more in a whole run than between two marks

    def tune(self) -> Tuned:
        bound, record = self._bound, self._record
        with Machine(bound, self._backend, self._cache, apart=True) as machine:
            surveyed = self._time_phase("survey", survey_calls, machine, self._control, self._where)
            surveys, configurations = surveyed
        options = {
            step: one.select_kept(self._control.chosen[step], bound.program, self._where.budget.forms)
            for step, one in surveys.items()
        }
        with Machine(bound, self._backend, self._cache, keeps=True) as machine:
            self._time_phase("loop", measure_in_loop, machine, self._control, options, record, self._where)
            self._time_phase("queueing", self._measure_queueing, machine, options)
            periods, aged = self._control.periods, ()
            problem = self._problem(machine, options, periods)
            solution = self._time_phase("solve", solve, problem)
            if bound.program.chosen_periods:
                periods, aged = self._time_phase("aging", self._choose_periods, machine, solution)
                problem = self._problem(machine, options, periods)
                solution = solve(problem)
            proved = self._time_phase("prove", self._prove, machine, problem, solution, periods)
            rows, turns, compared = proved
        failed = {step: dict(one.failed) for step, one in surveys.items()}
        for line in record.find(kind="step"):
            if "failed" in line:
                failed[line["step"]][line["configuration"]] = line["failed"]
        many = [len(listed) for listed in options.values()]
        counts = Counts(
            configurations=configurations, in_loop=sum(many), runs=max(many),
            conversions=len(record.find(kind="convert")), assignments=float(math.prod(many)),
        )  # fmt: skip
        return Tuned(
            bound=bound, workload=self._workload, device=self._backend.device,
            compiler=self._backend.toolchain().identity, identity=record.identity, digests=digests(bound),
            problem=problem, solution=solution, rows=rows, counts=counts, aged=aged, failed=failed, turns=turns,
            compared=compared, seconds=self._seconds,
        )  # fmt: skip

    def _time_phase(self, phase: str, work: Callable[..., Any], *given: Any) -> Any:
        begin = time.perf_counter()
        try:
            return work(*given)
        finally:
            self._seconds[phase] = time.perf_counter() - begin
            self._where.note(f"{phase}: {self._seconds[phase]:.1f} s")

    def _problem(
        self, machine: Machine, options: Mapping[str, Sequence[Runnable]], periods: Mapping[str, int]
    ) -> Problem:
        bound, record, queue_ms = self._bound, self._record, self._queue_ms
        choices: dict[str, tuple[Choice, ...]] = {}
        for step, many in options.items():
            lines = [(one, record.find_step(one)) for one in many]
            timed = ((one, max(0.0, line["ms"] + queue_ms)) for one, line in lines if "ms" in line)
            choices[step] = tuple(_choice(*pair) for pair in timed)
            if not choices[step]:
                why = "; ".join(line.get("failed", "") for _, line in lines)
                raise NothingMeasured(f"step {step}: none of its candidates ran in the loop: {why}")
        passed = traffic(bound, segments(bound, periods))
        machine.converter.prepare(_conversions(bound, choices, passed, record))

        @cache
        def convert_ms(array: str, before: Any, after: Any) -> float:
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
        chosen = self._control.chosen
        if known := self._record.find(kind="queue"):
            self._queue_ms = float(known[0]["ms"])
        elif all(
            chosen[n] in many and "ms" in self._record.find_step(chosen[n]) for n, many in options.items()
        ):
            alone = {step: [one] for step, one in chosen.items()}
            problem = self._problem(machine, alone, self._control.periods)
            picks = {step: one for step, (one,) in problem.options.items()}
            listed, _ = self._choose_whole(cost(problem, picks).ms, self._control.periods)
            took = median(time_in_turn(machine, {CONTROL: self._control}, listed, 3)[CONTROL])
            once, twice = self._passes(problem, picks, listed)
            apart = (took - twice.ms + once.ms) / (twice.actions - once.actions)
            self._queue_ms = min(10 * _MOST_QUEUE_MS, max(-_MOST_QUEUE_MS, apart))
            self._record.add({"kind": "queue", "ms": self._queue_ms})

    def _passes(self, problem: Problem, picks: Mapping[str, Choice], listed: list[Segment]) -> list[Cost]:
        """What the segments cost once and twice over: the second time begins where the first one ended."""
        passes = (traffic(self._bound, listed * times) for times in (1, 2))
        return [cost(replace(problem, traffic=each), picks) for each in passes]

    def _choose_periods(
        self, machine: Machine, solution: Solution
    ) -> tuple[dict[str, int], tuple[Aged, ...]]:
        """The best period of each step that restores an order, by how the loop slows down behind it."""
        periods, aged = dict(self._control.periods), []
        for step, values in self._bound.program.chosen_periods.items():
            assignment = _assignment(solution.picks, periods)
            aged.append(measure_aging(machine, assignment, step, values, self._record))
            periods[step] = aged[-1].chosen
        return periods, tuple(aged)

    def _prove(
        self, machine: Machine, problem: Problem, solution: Solution, periods: Mapping[str, int]
    ) -> tuple[tuple[ProgramRow, ...], int, int]:
        """The table, the chosen one first; how many turns its times are of, and how many arrays were compared."""
        bound, where, rows = self._bound, self._where, dict[str, ProgramRow]()
        listed, turns = self._choose_whole(solution.cost.ms, periods)
        always = {step: period or 2 for step, period in periods.items()}  # so that each step is compared
        few = [period for period in _periods(bound, periods) if period <= 8]
        first = list(segments(bound, always, max(3, *few) + 1))
        with Machine(bound, self._backend, self._cache, apart=True, keeps=True) as reference:
            proof = WholeProof(reference, replace(self._control, periods=always))
            known: dict[str, str] = {}
            for name, picks in self._list_assignments(problem, solution).items():
                is_needed = name in (CHOSEN, CONTROL, *bound.program.presets)
                if not is_needed and where.seconds_until(_PROOF) < 0:
                    where.note(f"{name}: not compared, no time is left")
                    continue
                assignment = _assignment(picks, periods)
                if assignment.id not in known:
                    known[assignment.id] = proof.find_difference(machine, assignment, first)
                refusal = known[assignment.id]
                once, twice = self._passes(problem, picks, listed)
                rows[name] = ProgramRow(
                    name=name, assignment=assignment, picks=picks, cost=cost(problem, picks), refusal=refusal,
                    predicted_ms=(twice.ms - once.ms) / turns,
                )  # fmt: skip
                where.note(f"{name}: {refusal or 'equal to the program as declared, step by step'}")
        right = {row.assignment.id: row.assignment for row in rows.values() if not row.refusal}
        if not right:
            raise NothingMeasured(
                f"program {bound.program.name}: no assignment is right: {rows[CHOSEN].refusal}"
            )
        rounds = where.budget.samples if rows[CHOSEN].predicted_ms * turns < 2.5 * _TIMED_MS else 3
        times = time_in_turn(machine, right, listed, rounds)
        for name, row in rows.items():
            if not row.refusal:
                took = [ms / turns for ms in times[row.assignment.id]]
                wide = (max(took) - min(took)) / 2 / median(took)
                rows[name] = replace(row, measured_ms=median(took), spread=wide)
        chosen = rows.pop(CHOSEN)
        timed = [row for row in (chosen, *rows.values()) if not row.refusal]
        best = min(timed, key=lambda row: row.measured_ms)
        if chosen.refusal or best.measured_ms < 0.99 * chosen.measured_ms:
            chosen = replace(best, name=CHOSEN)
        return (chosen, *rows.values()), turns, proof.compared

    def _list_assignments(self, problem: Problem, solution: Solution) -> dict[str, Mapping[str, Choice]]:
        """The assignments of the table: the chosen one, those it is compared with, and the next best."""
        program, options, declared = self._bound.program, problem.options, self._control.chosen
        listed: dict[str, Mapping[str, Choice]] = {CHOSEN: solution.picks}
        for name in (CONTROL, *program.presets):
            held = program.get_held(name) if name in program.presets else {}
            narrowed = {
                step: tuple(
                    one for one in many
                    if (one.of == declared[step] if name == CONTROL else one.of.is_held(held.get(step, {})))
                )
                for step, many in options.items()
            }  # fmt: skip
            if all(narrowed.values()):
                listed[name] = solve(replace(problem, options=narrowed)).picks
        listed[OWN_BEST] = {step: min(many, key=lambda one: one.ms) for step, many in options.items()}
        listed[GREEDY] = greedy(problem)
        next_best = enumerate(runners_up(problem, solution, 2), 1)
        return listed | {f"runner-up {at}": each for at, each in next_best}

    def _choose_whole(self, whole_ms: float, periods: Mapping[str, int]) -> tuple[list[Segment], int]:
        """The segments that a whole run is timed by, and how many turns these are: a multiple of all periods where that
        is not too long, and long enough to be timed."""
        bound = self._bound
        loops = [bound.count(step) for step in bound.program.steps if isinstance(step, Repeat)]
        count = max(loops, default=1)
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

    made = set()
    for epoch in passed.epochs:
        pairs = product(forms(epoch.writer), forms(epoch.readers))
        made |= {FormConversion(*pair, bound.shapes[epoch.array]) for pair in pairs if pair[0] != pair[1]}
    return {one for one in made if not record.find(**conversion_key(one.before, one.after, one.shape))}


def _choice(candidate: Runnable, ms: float) -> Choice:
    call = candidate.call
    forms = {Port(call.step, call.place, data): form for data, form in candidate.forms.items()}
    return Choice(ms, forms, candidate.own_bytes, candidate)


def _assignment(picks: Mapping[str, Choice], periods: Mapping[str, int]) -> Assignment:
    return Assignment({step: one.of for step, one in picks.items()}, dict(periods))


def _periods(bound: BoundProgram, periods: Mapping[str, int]) -> list[int]:
    """How often the steps run, in turns; of one that never runs, 1."""
    steps = [step for step in walk(bound.program.steps) if not isinstance(step, Repeat | Swap)]
    return [period_of(bound, step, periods) or 1 for step in steps]
