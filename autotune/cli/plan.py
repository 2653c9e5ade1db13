"""``autotune plan``: which sizes of a declared range to sweep next, those sweeps, and what the range may then lose."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from autotune.api import save_winners
from autotune.cli import options
from autotune.declaration import (
    Configuration,
    Expression,
    Family,
    Workload,
    load_family,
    load_workload,
    prepare,
    workloads,
)
from autotune.engine import Session, SweepRequest, open_devices, open_session
from autotune.errors import AutotuneError, NothingMeasured, UnknownName, UsageError
from autotune.figures import duration, loss_percent
from autotune.files import policy_folder, write_text
from autotune.policy import prediction, read_policy_file, record_coverage
from autotune.record import Study, merge_latest
from autotune.report import show_live

_RANGE = re.compile(r"\s*(\w+)\s*=\s*(\d+)\s*\.\.\s*(\d+)\s*")
_WHOLE = 5  # sizes that all configurations are tried on; on the others, those that came near the best there
_NEAR, _WITHIN = 150, 1.3
_FEWEST = 6  # sizes, before a promise is made


@options.family_argument
@options.option(
    "--over NAME=LOW..HIGH",
    multiple=True,
    required=True,
    help="Number of the workload and its range; repeat for more.",
)
@options.sweep_options("device", "preset", "narrowed", "search", "trials", "out", "data", "trial_seconds")
@options.option("--regret 5%", default="5%", help="Largest expected regret that 95 % of the range may have.")
@options.option("--where EXPRESSION", default="", help="Use only sizes for which this expression is true.")
@options.make_workload_option(
    "Workload whose numbers the ranges replace; default: the family's first that has them."
)
@options.option("--sizes N", default=40, least=1, help="Sweep at most N sizes.")
@options.option("--time S", "seconds", default=1e9, least=0, help="Start no new size after S seconds.")
@options.policies_option
def plan_command(
    family: str,
    over: tuple[str, ...],
    where: str,
    workload: str,
    regret: str,
    sizes: int,
    seconds: float,
    policies: Path | None,
    **asked: Any,
) -> None:
    loaded, names = load_family(family), ranges(over)
    planned = Plan(
        request=SweepRequest(family=loaded, **asked),
        policies=policy_folder(policies),
        template=template(loaded, workload, list(names)),
        over=prediction.Range(names, condition(where, names)),
        regret=share(regret),
        sizes=sizes,
        seconds=seconds,
    )
    run(planned, options.out, options.err)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sweeps of inputs ``over`` a range until selection should lose at most ``regret`` on 95 % of it, or ``sizes`` were
    swept, or ``seconds`` are over; the policy file goes below ``policies``. ``template`` is the workload whose numbers
    the range's stand in for."""

    request: SweepRequest
    policies: Path
    template: Workload
    over: prediction.Range
    regret: float
    sizes: int
    seconds: float


@dataclass(kw_only=True)
class _Progress:
    points: dict[str, prediction.Point] = field(default_factory=dict)  # by workload
    studies: list[Study] = field(default_factory=list)
    skipped: list[prediction.Point] = field(default_factory=list)
    path: Path | None = None
    began: float = field(default_factory=time.perf_counter)

    @property
    def taught(self) -> prediction.Taught | None:
        """What the policy file knows of the range, by the numbers that were asked for."""
        return prediction.learn_at_points(read_policy_file(self.path) if self.path else None, self.points)


def ranges(items: Sequence[str]) -> dict[str, tuple[int, int]]:
    """``["instances=64..65536"]`` -> {"instances": (64, 65536)}. Raises UsageError."""
    parsed: dict[str, tuple[int, int]] = {}
    for item in items:
        told = _RANGE.fullmatch(item)
        if told is None or not 1 <= int(told[2]) <= int(told[3]) or told[1] in parsed:
            raise UsageError(
                f"cannot read --over {item!r}: write --over NAME=LOW..HIGH with whole numbers from 1, each name once"
            )
        parsed[told[1]] = int(told[2]), int(told[3])
    if not 1 <= len(parsed) <= prediction.Range.most:
        raise UsageError(f"--over names {len(parsed)} numbers; give 1 to {prediction.Range.most}")
    return parsed


def share(text: str) -> float:
    """``5%`` or ``0.05`` -> 0.05. Raises UsageError."""
    number = text.strip().removesuffix("%")
    try:
        part = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        part = -1.0
    if not 0 < part < 10:
        raise UsageError(f"cannot read --regret {text!r}: write a share as 5% or 0.05")
    return part


def condition(text: str, names: Mapping[str, tuple[int, int]]) -> Callable[[prediction.Point], bool]:
    """What ``--where`` says of a point; an empty text holds everywhere. Raises UnknownName, FamilyError."""
    if not text:
        return lambda _point: True
    expression = Expression(text)
    for name in expression.names:
        if name not in names:
            raise UnknownName("number", name, names, "--over")
    return lambda point: bool(expression.evaluate(dict(point)))


def template(family: Family, named: str, names: Sequence[str]) -> Workload:
    """The workload ``named``, or the family's first one that has all the numbers ``names``. Raises UsageError."""
    if named:
        workload = load_workload(family, named)
        if missing := [name for name in names if name not in numbers(family, workload)]:
            listed = ", ".join(numbers(family, workload)) or "none"
            raise UsageError(
                f"--over {missing[0]}: workload {workload.name} has no such number ({listed}); name another with -w"
            )
        return workload
    known = [load_workload(family, name) for name in workloads(family)]
    fitting = [one for one in known if set(names) <= set(numbers(family, one))]
    if not fitting:
        have = "; ".join(f"{one.name}: {', '.join(numbers(family, one)) or 'none'}" for one in known)
        raise UsageError(
            f"no workload of {family.name} has the numbers {', '.join(names)} of --over ({have})"
        )
    return fitting[0]


def numbers(family: Family, workload: Workload) -> list[str]:
    """What of a workload a range may replace: parameters that are whole numbers, extents of arrays it generates."""
    own = [name for name, value in workload.parameters.items() if isinstance(value, int)]
    extents = [extent for name in workload.arrays for extent in _extents(family, workload, name)]
    return list(dict.fromkeys([*own, *extents]))


def _extents(family: Family, workload: Workload, array: str) -> tuple[str, ...]:
    """The extents of an array that the workload generates; none of one that it reads."""
    return family.data[array].shape if "shape" in workload.arrays[array] and array in family.data else ()


def content(family: Family, workload: Workload, point: prediction.Point) -> dict[str, Any]:
    """The workload file of a point: the template with other numbers."""
    name = "-".join(f"{name}{value}" for name, value in point.items())
    arrays: dict[str, Any] = {}
    for array, spec in workload.arrays.items():
        arrays[array] = dict(spec)
        if extents := _extents(family, workload, array):
            given = zip(extents, spec["shape"], strict=True)
            arrays[array]["shape"] = [point.get(extent, size) for extent, size in given]
    own = {n: v for n, v in point.items() if n in workload.parameters}
    parameters = {**workload.parameters, **own}
    return replace(workload, name=name, parameters=parameters, arrays=arrays, doc="").content


def run(plan: Plan, out: Console, err: Console) -> None:
    """Sweep after sweep; the policy file is written after each, so that what is stopped is not lost."""
    request, state = plan.request, _Progress()
    request.check()
    first = content(request.family, plan.template, next(iter(plan.over.corners())))
    start = replace(request, workloads=(str(_write_workload(plan, first)),))
    with open_session(start, start.cases(), partial(show_live, err=err), err.print) as session:
        open_devices(session.workers, request.compiler)
        while (point := _choose_next(plan, state)) is not None:
            _sweep_point(plan, state, session, point, out, err)
            if state.path and _is_done(plan, state, out):
                break
        for worker in session.workers:
            worker.dismiss()
    if state.path is None:
        raise UsageError("no size of the range could be swept; all reasons are above")
    _tell(plan, state, out)


def _choose_next(plan: Plan, state: _Progress) -> dict[str, int] | None:
    if len(state.points) >= plan.sizes or time.perf_counter() - state.began > plan.seconds:
        return None
    seen = [*state.points.values(), *state.skipped]
    return prediction.next_point(plan.over, seen, state.taught, dict)


def _sweep_point(
    plan: Plan, state: _Progress, session: Session, point: prediction.Point, out: Console, err: Console
) -> None:  # fmt: skip
    request, family = plan.request, plan.request.family
    path = _write_workload(plan, content(family, plan.template, point))
    try:
        workload = load_workload(family, path)
        chosen = rank_near_best(state.studies) if len(state.studies) >= _WHOLE else request.chosen
        swept = replace(session, request=replace(request, chosen=chosen)).sweep(
            workload, prepare(family, workload, request.root)
        )
        if not swept.study.decision:
            raise NothingMeasured("nothing could be measured on it")
    except (AutotuneError, MemoryError) as problem:
        err.print(f"{path.stem} is left out: {problem}")
        state.skipped.append(point)
        return
    study = swept.study
    state.studies.append(study)
    state.points[study.workload] = point
    newest = merge_latest(session.store.studies(), state.studies)
    state.path = save_winners(plan.policies, newest, study, "kernel")
    took = duration(min(study.times.values()))
    out.print(f"{study.workload}: {len(study.times)} configurations, the best {took}; {swept.wall_s:.1f} s")


def _write_workload(plan: Plan, told: Mapping[str, Any]) -> Path:
    path = plan.request.folder / "plan" / f"{told['workload']}.yaml"
    return write_text(path, yaml.safe_dump(dict(told), sort_keys=False))


def rank_near_best(studies: Sequence[Study]) -> tuple[Configuration, ...]:
    """The configurations that came so near the best on any of ``studies``, the nearest first."""
    away: dict[Configuration, float] = {}
    for study in studies:
        best = min(study.times.values(), default=0.0)
        for configuration, took in study.times.items():
            away[configuration] = min(away.get(configuration, _WITHIN), took / best)
    ranked = sorted((c for c in away if away[c] < _WITHIN), key=lambda c: (away[c], c.id))
    return tuple(ranked[:_NEAR])


def _promise(plan: Plan, state: _Progress) -> float | None:
    known = state.taught
    return (
        prediction.estimate_promise(plan.over, known, dict) if known and len(known.rows) >= _FEWEST else None
    )


def _is_done(plan: Plan, state: _Progress, out: Console) -> bool:
    found = _promise(plan, state)
    if found is not None:
        out.print(f"             95 % of the range should lose at most {loss_percent(found)}")
    return found is not None and found <= plan.regret


def _tell(plan: Plan, state: _Progress, out: Console) -> None:
    assert state.path is not None
    promise = _promise(plan, state)
    if promise is None:
        out.print(
            f"policy file  {state.path}; {len(state.points)} sizes are too few for a prediction: {_FEWEST} are needed"
        )
        return
    record_coverage(state.path, plan.over.numbers, promise)
    over = ", ".join(f"{name} {low} to {high}" for name, (low, high) in plan.over.numbers.items())
    out.print(f"policy file  {state.path}")
    more = f", which is more than the requested {loss_percent(plan.regret)}: sweep more sizes"
    warning = more if promise > plan.regret else ""
    out.print(f"             covers {over}: 95 % should lose at most {loss_percent(promise)}{warning}")
