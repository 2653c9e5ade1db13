"""The exact answer is the one that trying all assignments finds, on programs that are generated."""

import random
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from autotune.errors import UsageError
from autotune.program.costs import Choice, Port, Problem, cost, traffic
from autotune.program.schedule import segments
from autotune.program.solve import solve
from autotune.program.steps import KernelCall, Read, Repeat, Swap

ARRAYS = ("a", "b", "c")


def generated(seed: int) -> Any:
    """A program of a few steps in a loop, some of them now and then, with swaps and reads."""
    drawn = random.Random(seed)
    calls: dict[str, tuple[Any, ...]] = {}

    def call(name: str) -> KernelCall:
        reads = drawn.sample(ARRAYS, drawn.randint(1, 2))
        (written,) = drawn.sample(ARRAYS, 1)
        arrays = {**{f"in{n}": array for n, array in enumerate(reads)}, "out": written}
        places = drawn.choice((1, 1, 2))
        calls[name] = tuple(
            SimpleNamespace(
                place=at, arrays=arrays, reads={data: n for data, n in arrays.items() if data != "out"}
            )
            for at in range(places)
        )
        return KernelCall("", name, every=drawn.choice((1, 1, 2, 3)))

    inner: list[Any] = [call(f"s{n}") for n in range(drawn.randint(2, 4))]
    if drawn.random() < 0.3:
        inner.insert(drawn.randrange(len(inner)), Swap("a", "b"))
    if drawn.random() < 0.3:
        inner.append(Read(["c"], every=2))
    steps = [*([call("before")] if drawn.random() < 0.3 else []), Repeat(drawn.randint(2, 7), inner)]
    return SimpleNamespace(
        data=dict.fromkeys(ARRAYS),
        calls=calls,
        scalars={},
        program=SimpleNamespace(steps=steps),
        count=lambda s: s.count,
    )


def problem_of(bound: Any, seed: int, limit: float = float("inf")) -> Problem:
    drawn = random.Random(seed)
    options = {
        step: tuple(
            Choice(
                ms=drawn.choice((1.0, 2.0, 5.0, 9.0)) + drawn.random(),
                forms={Port(step, call.place, data): drawn.randrange(3) for data in call.arrays},
                own_bytes=drawn.choice((0, 50)),
            )
            for call in choices
            for _ in range(drawn.randint(1, 3))
        )
        for step, choices in bound.calls.items()
    }
    ms = {(array, f, g): 4 * drawn.random() for array in ARRAYS for f in range(3) for g in range(3)}
    reads = {(array, form): drawn.random() for array in ARRAYS for form in range(3)}

    def kind(array: str) -> str:
        return array.replace("b", "a")  # which may change names

    return Problem(
        options=options, traffic=traffic(bound, segments(bound, {})),
        convert_ms=lambda array, f, g: ms[kind(array), f, g],
         read_ms=lambda array, form: reads[kind(array), form],
        nbytes=lambda _array, form: 100 + form, limit_bytes=limit,
    )  # fmt: skip


def simulated(bound: Any, problem: Problem, picks: dict[str, Choice]) -> float:
    """What a run takes, by walking through it: each array with the forms in which it is there."""
    total = 0.0
    there: dict[str, tuple[str, list[Any]]] = {name: (name, []) for name in ARRAYS}
    for event in (event for segment in segments(bound, {}) for event in segment):
        if event.kind == "swap":
            first, second = event.names
            there[first], there[second] = there[second], there[first]
            continue
        if event.kind == "read":
            for name in event.names:
                total += problem.read_ms(name, there[name][1][0]) if there[name][1] else 0.0
            continue
        (step,) = event.names
        option = picks[step]
        total += option.ms
        written = {}
        for port, form in option.forms.items():
            call = bound.calls[step][port.place]
            name = call.arrays[port.data]
            _, forms = there[name]
            if port.data in call.reads and forms and form not in forms:
                total += problem.convert_ms(name, forms[0], form)
                forms.append(form)
            if port.data not in call.reads:
                written[name] = form
        for name, form in written.items():
            there[name] = there[name][0], [form]
    return total


def all_picks(problem: Problem) -> list[dict[str, Choice]]:
    names = list(problem.options)
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*problem.options.values())]


@pytest.mark.parametrize("tens", range(20))
def test_the_exact_answer_is_the_best_of_all(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        bound = generated(seed)
        problem = problem_of(bound, seed)
        best = min(simulated(bound, problem, picks) for picks in all_picks(problem))
        found = solve(problem)
        assert found.cost.ms == pytest.approx(best), seed
        assert found.cost.ms == pytest.approx(simulated(bound, problem, dict(found.picks))), seed
        assert found.bound == pytest.approx(best, rel=1e-6), seed
        assert found.gap < 1e-6


def test_what_an_assignment_costs_is_what_walking_through_the_run_says() -> None:
    for seed in range(60):
        bound = generated(seed)
        problem = problem_of(bound, seed)
        for picks in all_picks(problem)[:50]:
            assert cost(problem, picks).ms == pytest.approx(simulated(bound, problem, picks)), seed


def test_memory_is_a_limit() -> None:
    tighter = 0
    for seed in range(40):
        bound = generated(seed)
        free = problem_of(bound, seed)
        fitting = sorted({cost(free, picks).nbytes for picks in all_picks(free)})
        limit = fitting[len(fitting) // 3]
        found = solve(problem_of(bound, seed, limit))
        allowed = [c for picks in all_picks(free) if (c := cost(free, picks)).nbytes <= limit]
        assert found.cost.nbytes <= limit
        assert found.cost.ms == pytest.approx(min(one.ms for one in allowed)), seed
        tighter += found.cost.ms > solve(free).cost.ms * (1 + 1e-9)
    assert tighter > 5  # of some the best does not fit


def test_what_fits_nowhere_is_refused() -> None:
    bound = generated(1)
    with pytest.raises(UsageError, match=r"no assignment fits into 10 bytes"):
        solve(problem_of(bound, 1, 10))
