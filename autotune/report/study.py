"""A sweep from a program, and what it found: as ``autotune sweep``, with the same record, and nothing printed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.declaration import (
    Configuration,
    Family,
    Inputs,
    Workload,
    bind,
    load_family,
    load_workload,
    workloads,
)
from autotune.device import device_names, foreign
from autotune.engine import TRIAL_SECONDS, Case, SweepRequest, Swept, Watched, raise_unless_measured, sweeping
from autotune.errors import NothingMeasured, UnknownName, UsageError, suggestion
from autotune.figures import duration, energy
from autotune.measure import Reference
from autotune.policy import PolicyFile, merged, update
from autotune.record import (
    ENERGY,
    FAILED,
    Decision,
    Trial,
    cost,
    latest,
    read_record,
    time_ms,
    unbeaten,
)
from autotune.record import (
    Study as Recorded,
)
from autotune.report.given import given_workload
from autotune.report.meter import live, watching
from autotune.search import Strategy

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Best:
    """The winner: its ``ms``, how many times of that the control takes (``speedup``, with the 95 % ``interval``; NaN
    where the control was not measured), and the ``tie_set``, whose times noise cannot tell from the best one. Where the
    objective is energy, ``joules`` of a call, and all but ``ms`` are of those."""

    configuration: Configuration
    ms: float
    speedup: float
    interval: tuple[float, float]
    tie_set: tuple[Configuration, ...]
    joules: float = 0.0


@dataclass(frozen=True)
class Study:
    """What a sweep found for one family, workload and device; ``autotune.load(study)`` is the kernel with its winner.

    ``record`` is all that was recorded. ``request`` is what was asked for, ``wall_s`` and ``phases`` are the seconds of
    this call alone."""

    family: Family
    record: Recorded
    request: SweepRequest
    wall_s: float
    phases: Mapping[str, float]

    @property
    def workload(self) -> str:
        """Its name; for arrays that were given, one that follows from what is in them."""
        return self.record.workload

    @property
    def device(self) -> str:
        """What it was swept on, as ``autotune.load`` takes it: cpu, cuda or cuda:N."""
        name = device_names(self.request.device)[0]
        return str(self.record.about.device_kind) if name == "auto" else name

    @property
    def folder(self) -> Path:
        """Where the family lies."""
        return self.family.folder

    @property
    def out(self) -> Path:
        """Where the record lies, and the workload of arrays that were given."""
        return self.request.folder

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every configuration that was tried, with its time or the reason why it has none; the control too."""
        return self.record.trials

    @property
    def failures(self) -> tuple[Trial, ...]:
        """The trials that failed: that did not compile or launch, were wrong, crashed or took too long."""
        return tuple(trial for trial in self.trials if trial.state in FAILED)

    @cached_property
    def decision(self) -> Decision:
        """Winner, tie set, runner-up and margins. Raises NothingMeasured."""
        found = self.record.decided(self.request.objective)
        if found is None:
            raise NothingMeasured(f"no configuration of {self.family.name} was measured; look at failures")
        return found

    @property
    def best(self) -> Best:
        decision = self.decision
        over, winner = decision.over_control, decision.winner
        is_energy = decision.objective == ENERGY
        return Best(
            winner.configuration,
            time_ms(winner) if is_energy else cost(winner, decision.objective),
            over.ratio,
            (over.low, over.high),
            tuple(trial.configuration for trial in decision.tie_set),
            cost(winner, ENERGY) if is_energy else 0.0,
        )

    @cached_property
    def policy_file(self) -> PolicyFile:
        """What ``save_policy`` writes where there is no policy file yet."""
        return merged(None, [self.record], self.request.objective)

    def to_pandas(self) -> "pd.DataFrame":
        """A row for each trial, with the columns of results.csv."""
        from autotune.record import results_frame

        return results_frame([self.record])

    def report(self, folder: str | Path | None = None) -> Path:
        """``report.html``, with the tables beside it, of the newest study of each workload in the record, in ``folder``
        or beside the record. Raises StoreError."""
        from autotune.report.files import write_all

        place = Path(folder) if folder else self.out
        known = {self.family.name: self.family}
        return write_all(self._newest, place, known, self.out, [self.request.policy_folder])["report"]

    def save_policy(self, folder: str | Path | None = None) -> Path:
        """Merge the winner, with those of the same device that the record has for other workloads, into the policy file
        below ``folder`` (by default AUTOTUNE_POLICIES, else ./policies), where ``autotune.load`` finds it. Raises
        PolicyFileError, NothingMeasured."""
        assert self.decision
        place = Path(folder) if folder else self.request.policy_folder
        return saved(place, self._newest, self.record, self.request.objective)

    @property
    def _newest(self) -> list[Recorded]:
        return latest(read_record(self.request.store or str(self.out)), [self.record])

    def __repr__(self) -> str:
        where = f"{self.family.name} on {self.workload}, {self.record.about.device_name or self.device}"
        decision = self.record.decided(self.request.objective)
        if decision is None:
            return f"<Study {where}: {len(self.trials)} trials, none measured>"
        best = self.best
        told = f"{energy(best.joules)} in {duration(best.ms)}" if best.joules else duration(best.ms)
        if not math.isnan(best.speedup):
            better = f"{best.speedup:.2f} x {'less' if best.joules else 'faster'} than control"
            told += f", {unbeaten(decision) or better}"
        changes = best.configuration.changes(self.record.control)
        return f"<Study {where}: {len(self.trials)} trials, best {changes}: {told}>"

    def _repr_html_(self) -> str:
        from autotune.report.notebook import study_html

        return study_html(self.record)


def saved(folder: Path, newest: Sequence[Recorded], study: Recorded, objective: str) -> Path:
    """The policy file below ``folder`` with what of ``newest`` won for the family and device of ``study``. Raises
    PolicyFileError."""
    same = [one for one in newest if (one.family, one.device) == (study.family, study.device)]
    return update(folder, [one for one in same if one.decision], objective)


def sweep(
    family: Any,
    /,
    *,
    workload: str | Path | Workload | None = None,
    inputs: Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the command's own word
    preset: str = "full",
    search: str = "exhaustive",
    trials: int | None = None,
    time: float | None = None,
    seed: int = 0,
    device: str = "auto",
    reference: Reference | None = None,
    expected: Any = None,
    cold: bool = True,
    objective: str = "kernel",
    clocks: str | int = "",
    samples: int | None = None,
    race: float = 0.0,
    compiler: str = "",
    processes: int = 0,
    trial_seconds: float = TRIAL_SECONDS,
    sanitize: bool = False,
    again: bool = False,
    retime: bool = False,
    out: str | Path | None = None,
    store: str | Path | None = None,
    data: str | Path | None = None,
    progress: bool | Watched = True,
    **named: Any,
) -> Study:
    """Compile, verify and time configurations of a family: a name, a folder, or what has one (``autotune.Kernel``).

    Inputs, scalars and options of the family are given by their names (arrays of numpy, torch, cupy and others), or in
    ``inputs`` where a name is taken here; else ``workload`` names a workload of the family, or its file, by default the
    family's own. ``set`` holds policies to values (``{"packing": "u8"}``, ``{"block": [64, 128]}``), ``preset`` names a
    part of the space. ``search``, ``trials``, ``time``, ``seed``, ``device``, ``objective``, ``clocks``, ``samples``,
    ``race``, ``compiler``, ``processes``, ``trial_seconds``, ``sanitize``, ``out``, ``store`` and ``data`` are the
    command's options of those names; ``cold`` flushes the last-level cache before each sample of given arrays.

    What is right is the family's reference, or ``reference(inputs, options)`` of yours, which runs in this process, or
    the ``expected`` outputs themselves (an array, or several by name).

    What was recorded before, here or by the command, is not tried again: ``again`` tries everything anew, ``retime``
    times the finalists again. Ctrl-C leaves a record that the same call goes on from. A bar shows how far it is on a
    terminal and in a notebook, unless ``progress`` is off or makes another watch; nothing else is printed. Raises
    AutotuneError.
    """
    found = _family(family)
    asked_for = locals()
    _check_arguments(found, {name: asked_for[name] for name in _ARGUMENTS})
    request = SweepRequest(
        family=found,
        device=device,
        preset=preset,
        narrowed={name: _values(value) for name, value in (set or {}).items()},
        out=Path(out) if out else None,
        store=str(store) if store else None,
        data=Path(data) if data else None,
        compiler=compiler,
        processes=processes,
        trial_seconds=trial_seconds,
        samples=samples or 0,
        race=race,
        objective=objective,
        clocks=str(clocks),
        strategy=Strategy(sampler=search, trials=trials, seconds=time, seed=seed),
        sanitize=sanitize,
        again=again,
        retime=retime,
    )
    given = _given(inputs or {}, named, workload)
    request.check()
    asked = _case(request, workload, given, cold, _reference(found, reference, expected))
    swept = _swept(request, asked, progress)
    return Study(found, swept.study, request, swept.wall_s, dict(swept.phases))


_ARGUMENTS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "workload": ((str, PathLike, Workload), "the name of a workload, its file, or one"),
    "inputs": ((Mapping,), "a mapping of names to arrays"),
    "set": ((Mapping,), "a mapping of policies to values"),
    **dict.fromkeys(("preset", "search", "device", "objective", "compiler"), ((str,), "a text")),
    **dict.fromkeys(("trials", "seed", "samples", "processes"), ((Integral,), "a whole number")),
    **dict.fromkeys(("time", "race", "trial_seconds"), ((Real,), "a number")),
    "clocks": ((str, Integral), "a text or a number"),
    **dict.fromkeys(("out", "store", "data"), ((str, PathLike), "a folder")),
}


def _check_arguments(family: Family, asked: Mapping[str, Any]) -> None:
    """Raise UsageError for an argument of another type than it has, an input of the family by that name above all."""
    for name, value in asked.items():
        kinds, words = _ARGUMENTS[name]
        if value is None or isinstance(value, kinds):
            continue
        is_input = name in family.data or name in family.scalars
        told = (
            f"; {family.name} has an input of that name, which goes in inputs={{{name!r}: …}}"
            if is_input
            else ""
        )
        raise UsageError(f"{name} is a {type(value).__name__}, and sweep takes {words} there{told}")
    if asked["samples"] is not None and asked["samples"] < 1:
        raise UsageError(
            f"samples {asked['samples']}: at least 1 of each configuration; leave it out for as many as needed"
        )


def _swept(request: SweepRequest, case: Case, progress: bool | Watched) -> Swept:
    """A whole sweep, with something measured. Raises KeyboardInterrupt, NothingMeasured."""
    watch = progress if callable(progress) else partial(live, err=watching(progress))
    with sweeping(request, [case], watch) as session:
        (swept,) = session.sweeps()
    if swept.interrupted:
        raise KeyboardInterrupt(f"{swept.interrupted}; the same call goes on from there")
    raise_unless_measured([swept.study], f"the record ({request.store or request.folder})")
    return swept


def _family(named: Any) -> Family:
    """Of a name, a folder, or what has a family (a kernel, another study)."""
    if isinstance(named, Family):
        return named
    own = getattr(named, "family", None)
    if isinstance(own, Family):
        return own
    if not isinstance(named, str | PathLike):
        raise UsageError(
            f"cannot sweep a {type(named).__name__}: give a family's name or its folder, or what has a family"
        )
    return load_family(named)


def _values(value: Any) -> list[str]:
    many = isinstance(value, Iterable) and not isinstance(value, str)
    return [str(one) for one in (value if many else [value])]


def _given(inputs: Mapping[str, Any], named: Mapping[str, Any], workload: object) -> Mapping[str, Any]:
    """All that is given by name, where no workload is. Raises UsageError."""
    if twice := [name for name in inputs if name in named]:
        raise UsageError(f"{twice[0]!r} is given twice: by its name, and in inputs=")
    given = {**inputs, **named}
    if given and workload is not None:
        raise UsageError(
            f"{next(iter(given))} is given, and workload={str(workload)!r} too: name a workload, or give its inputs"
        )
    return given


def _reference(family: Family, reference: Reference | None, expected: Any) -> Reference | None:
    if expected is None:
        return reference
    if reference is not None:
        raise UsageError("reference= computes what is right, expected= is what is right: give one of them")
    if isinstance(expected, Mapping):
        return expected
    names = [data.name for data in family.outputs]
    if len(names) > 1:
        raise UsageError(
            f"{family.name} has several outputs: give expected={{name: array}} ({', '.join(names)})"
        )
    return {names[0]: expected}


def _case(
    request: SweepRequest,
    workload: str | Path | Workload | None,
    given: Mapping[str, Any],
    cold: bool,
    reference: Reference | None,
) -> Case:
    family = request.family
    if isinstance(workload, Workload):
        return Case(workload=workload, reference=reference)
    if not given:
        return Case(workload=_named(family, workload), reference=reference)
    inputs = _bound(family, given)
    scalars = {name: inputs.scalars[name] for name in given if name in family.scalars}
    kept = given_workload(family, inputs, scalars, cold, request.folder)
    return Case(workload=kept, inputs=inputs, reference=reference)


def _named(family: Family, workload: str | Path | None) -> Workload:
    """The workload of that name, in that file, or the family's own. Raises UnknownName, UsageError, WorkloadError."""
    if workload is not None or family.default_workload or len(workloads(family)) == 1:
        return load_workload(family, workload or "")
    names = ", ".join(data.name for data in family.inputs)
    known = ", ".join(workloads(family)) or "(none)"
    raise UsageError(
        f"family {family.name} has no default workload: name one of {known} with workload=, or give its inputs "
        f"({names})"
    )


def _bound(family: Family, given: Mapping[str, Any]) -> Inputs:
    """Arrays, scalars and options by name, checked. Raises WorkloadError, UnknownName."""
    known = [*(data.name for data in family.inputs), *family.callers_scalars, *family.options]
    for name in given:
        if name not in known and suggestion(name, _ARGUMENTS):
            raise UnknownName("input", name, [*known, *_ARGUMENTS], f"family {family.name}, or argument")
    options = {name: value for name, value in given.items() if name in family.options}
    arrays = {
        name: foreign.fetched(value) if name in family.data else value
        for name, value in given.items()
        if name not in options
    }
    return bind(family, arrays, options, {})
