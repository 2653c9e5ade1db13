"""The cheapest assignment, exactly: an integer program that HiGHS solves (through scipy), with its lower bound.

A binary for each option of each step; for each epoch and each pair of forms a number that is 1 where its writer leaves
the one and a reader asks for the other; for each array and form a number that is 1 where the array comes in it, which
bounds the memory.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from autotune.errors import UsageError
from autotune.files import pip_install
from autotune.program.costs import Choice, Cost, Port, Problem, cost

_SECONDS = 60.0  # at most; what is left then is the gap


@dataclass(frozen=True)
class Solution:
    """``picks`` by step, what they cost, and the ``bound`` below which no assignment is, in milliseconds."""

    picks: Mapping[str, Choice]
    cost: Cost
    bound: float

    @property
    def gap(self) -> float:
        """How far the cost may be above the best, relative to it."""
        return max(0.0, self.cost.ms / self.bound - 1) if self.bound > 0 else 0.0


@dataclass
class _Rows:
    """Linear constraints, lower <= coefficients <= upper, over variables with an objective each."""

    objective: list[float] = field(default_factory=list)
    integer: list[int] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)

    def variable(self, objective: float, *, is_integer: bool) -> int:
        self.objective.append(objective)
        self.integer.append(int(is_integer))
        return len(self.objective) - 1

    def limit(self, terms: Mapping[int, float], lower: float = -np.inf, upper: float = np.inf) -> None:
        self.rows.append((dict(terms), lower, upper))


def solve(problem: Problem) -> Solution:
    """The cheapest assignment of ``problem``. Raises UsageError where none fits into memory, or without scipy."""
    model = _Rows()
    runs = problem.traffic.runs
    taken: dict[str, list[int]] = {}
    for step, options in problem.options.items():
        taken[step] = [model.variable(one.ms * runs.get(step, 0), is_integer=True) for one in options]
        model.limit(dict.fromkeys(taken[step], 1.0), 1.0, 1.0)  # one of them

    def forms(ports: Iterable[Port]) -> dict[Hashable, list[int]]:
        """The variables of the options that give one of the ports a form, by form."""
        by_form: dict[Hashable, list[int]] = {}
        for port in ports:
            for number, option in zip(taken[port.step], problem.options[port.step], strict=True):
                if (form := option.forms.get(port)) is not None:
                    by_form.setdefault(form, []).append(number)
        return by_form

    for epoch, count in problem.traffic.epochs.items():
        written = forms(epoch.writer)  # the host stores what it gives in every form that is asked for
        for before, numbers in written.items() if epoch.reads else ():
            for number in numbers:
                model.objective[number] += count * epoch.reads * problem.read_ms(epoch.array, before)
        due: dict[tuple[Hashable, Hashable], int] = {}
        for port in epoch.readers:
            pairs = product(written.items(), forms([port]).items())
            for (before, writers), (after, readers) in pairs:
                if before == after:
                    continue
                if (before, after) not in due:
                    ms = count * problem.convert_ms(epoch.array, before, after)
                    due[before, after] = model.variable(ms, is_integer=False)
                many = Counter((*writers, *readers))  # one that is both counts twice
                model.limit({due[before, after]: 1.0, **{number: -n for number, n in many.items()}}, -1.0)
    _limit_memory(problem, model, taken)
    picks, bound = _solve(problem, model, taken)
    return Solution(picks, cost(problem, picks), bound)


def _limit_memory(problem: Problem, model: _Rows, taken: Mapping[str, list[int]]) -> None:
    """What the arrays take is within the limit."""
    total: dict[int, float] = {}
    worst = 0.0
    for step, options in problem.options.items():
        total |= {number: float(one.own_bytes) for number, one in zip(taken[step], options, strict=True)}
        worst += max(one.own_bytes for one in options)
    for array, ports in problem.traffic.touched.items():
        comes: dict[Hashable, int] = {}
        for step in dict.fromkeys(port.step for port in ports):
            asked: dict[Hashable, list[int]] = {}
            for number, option in zip(taken[step], problem.options[step], strict=True):
                for form in {form for port, form in option.forms.items() if port in ports}:
                    asked.setdefault(form, []).append(number)
            for form, numbers in asked.items():
                if form not in comes:
                    comes[form] = model.variable(0.0, is_integer=False)
                    total[comes[form]] = float(problem.nbytes(array, form))
                    worst += total[comes[form]]
                model.limit({comes[form]: 1.0, **dict.fromkeys(numbers, -1.0)}, 0.0)
    if worst > problem.limit_bytes:
        scale = 1.0 / problem.limit_bytes
        model.limit({number: many * scale for number, many in total.items() if many}, upper=1.0)


def _solve(problem: Problem, model: _Rows, taken: Mapping[str, list[int]]) -> tuple[dict[str, Choice], float]:
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array
    except ImportError:
        raise UsageError(f"to tune a program, scipy is needed: {pip_install('program')}") from None
    terms = [(at, *term) for at, row in enumerate(model.rows) for term in row[0].items()]
    rows, columns, values = (np.array(each) for each in zip(*terms, strict=True))
    matrix = coo_array((values, (rows, columns)), shape=(len(model.rows), len(model.objective)))
    lower, upper = (np.array([row[side] for row in model.rows]) for side in (1, 2))
    scale = max(1e-12, *map(abs, model.objective))  # HiGHS has absolute tolerances
    solution: Any = milp(
        np.array(model.objective) / scale, integrality=np.array(model.integer), bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix.tocsr(), lower, upper),
        options={"time_limit": _SECONDS, "mip_rel_gap": 0.0},
    )  # fmt: skip
    if solution.x is None:
        raise UsageError(
            f"no assignment fits into {problem.limit_bytes:,.0f} bytes of memory ({solution.message}): take a smaller "
            "workload"
        )
    best = {step: int(np.argmax(solution.x[numbers])) for step, numbers in taken.items()}
    picks = {step: problem.options[step][number] for step, number in best.items()}
    return picks, float(solution.mip_dual_bound) * scale


def greedy(problem: Problem) -> dict[str, Choice]:
    """Choose step by step, the one that takes the most time first: each gets its cheapest configuration, given those
    already chosen, and the fastest one alone for the others."""
    picks = {step: min(many, key=lambda one: one.ms) for step, many in problem.options.items()}

    def compute_cost_with(one: Choice, step: str) -> float:
        return cost(problem, {**picks, step: one}).ms

    for step in sorted(picks, key=lambda one: -picks[one].ms * problem.traffic.runs.get(one, 0)):
        picks[step] = min(problem.options[step], key=partial(compute_cost_with, step=step))
    return picks


def runners_up(problem: Problem, solution: Solution, most: int) -> list[Mapping[str, Choice]]:
    """The next best assignments in which one step is another than in the best."""
    best, options = solution.picks, problem.options
    others = [{**best, step: one} for step, many in options.items() for one in many if one is not best[step]]
    costs = [(cost(problem, picks), picks) for picks in others]
    fitting = [(made.ms, picks) for made, picks in costs if made.nbytes <= problem.limit_bytes]
    return [picks for _, picks in sorted(fitting, key=lambda pair: pair[0])[:most]]
