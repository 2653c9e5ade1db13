"""The final round: configurations near the best are proved on odd sizes, timed again in turn and checked again. The
control takes part, so that its margin is measured in the same round."""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from autotune.compile import CompileFailure, Variant, batch, compile_batch, profiles
from autotune.declaration import Configuration, Family
from autotune.device import LaunchError
from autotune.engine.jobs import JobCompiler
from autotune.engine.measuring_process import Measuring
from autotune.engine.messages import Retimed
from autotune.engine.proof import Prover, mark_failed
from autotune.engine.trials import first_of
from autotune.errors import AutotuneError
from autotune.figures import duration
from autotune.measure import OBJECTIVES, Figure, Protocol, Samples
from autotune.record import Baseline, Trial, decide, decide_classes

_EXTENSIONS = 3  # how often configurations whose first median beats the best re-timed one are called in
_TENFOLD = 10.0  # a second time that differs so from the first was taken in a busy moment, or the first was
_MOST_TURNS = 3  # of one group, where times differ so


@dataclass(kw_only=True)
class Finalists:
    """Proved and timed by the ``prover``'s worker. What was recorded with another's figures is not timed, but gets the
    other's new ones. What is ``aside`` is no finalist: a ``control`` there is to compare with. ``record`` receives each
    new trial. ``ratio`` is the median over those timed of their time now over their first one (0 before any was)."""

    prover: Prover
    protocol: Protocol
    control: Configuration
    accuracy: Sequence[str]
    aside: frozenset[Configuration]
    record: Callable[[Trial], None]
    ratio: float = 0.0
    _known: dict[Configuration, Trial] = field(default_factory=dict)

    def run(self, trials: Mapping[Configuration, Trial]) -> None:
        """Prove the nearest of ``trials`` and time those again that are right; then whatever first median is still
        ahead of the best re-timed one, together with that best; last, prove whatever wins by another objective or in
        another accuracy class. Raises LaunchError."""
        self._known = dict(trials)
        self._time()
        self._prove_winners()

    def _note(self, trial: Trial) -> None:
        self._known[trial.configuration] = trial
        self.record(trial)

    def _time(self) -> None:
        firsts = first_of(t for c, t in self._known.items() if c not in self.aside)
        first = {
            c: self._get_first_figure(t)
            for c, t in self._known.items()
            if t.measurement and not t.measurement.abandoned and c not in firsts and c not in self.aside
        }
        ranked = sorted(first, key=lambda c: first[c])
        self.prover.near = ranked[: self.protocol.finalists]
        chosen = self._select_right(ranked, self.protocol.finalists, self.protocol.within)
        beside = self._add_control(chosen, firsts)
        costs: dict[Configuration, float] = {}
        for _ in range(1 + _EXTENSIONS):
            if len(chosen) + len(beside) < 2:
                return
            timed, given_up = self._time_until_steady(chosen, beside)
            self._note_timed(timed, given_up, firsts)
            right = [c for c in timed.samples if not timed.wrong[c] and c not in beside]
            costs |= {c: self._known[c].value(self.protocol.figure) for c in right}
            if not costs:
                return
            best = min(costs, key=lambda c: costs[c])
            ahead = [
                c for c in ranked
                if c not in costs and self._known[c].measurement and first[c] < costs[best]
            ]  # fmt: skip
            if not (called := self._select_right(ahead, self.protocol.finalists - 1)):
                return
            chosen, beside = [best, *called], []

    def _add_control(
        self, chosen: Sequence[Configuration], firsts: Mapping[Configuration, Configuration]
    ) -> list[Configuration]:
        """The control, where it is right and is not among those chosen."""
        control = firsts.get(self.control, self.control)
        trial = self._known.get(control)
        if not chosen or control in chosen or not trial or not trial.measurement:
            return []
        return self._select_right([control], 1)

    def _time_until_steady(
        self, often: Sequence[Configuration], few: Sequence[Configuration]
    ) -> tuple[Retimed, dict[Configuration, list[float]]]:
        """All timed in turn, and again while one has a time that is tenfold, or a tenth of, each that it had before: a
        single busy moment decides nothing. Also the medians of those that were given up for the last ones."""
        before = {c: [_first_ms(self._known[c])] for c in (*often, *few)}
        given_up: dict[Configuration, list[float]] = {}
        for turn in range(1, _MOST_TURNS + 1):
            timed = self._time_in_turn(often, few)
            now = {c: samples.median_ms for c, samples in timed.samples.items()}
            near = {c for c, ms in now.items() for was in before[c] if was / _TENFOLD < ms < was * _TENFOLD}
            apart = [c for c in now if c not in near]
            if not apart or any(timed.wrong.values()) or turn == _MOST_TURNS:
                break
            for configuration in apart:
                given_up.setdefault(configuration, []).append(now[configuration])
                before[configuration].append(now[configuration])
        return timed, given_up

    def _note_timed(
        self,
        timed: Retimed,
        given_up: Mapping[Configuration, Sequence[float]],
        firsts: Mapping[Configuration, Configuration],
    ) -> None:
        """The new figures for what was timed, and for what has its code."""
        self.ratio = self.ratio or median(
            [samples.median_ms / _first_ms(self._known[c]) for c, samples in timed.samples.items()]
        )
        for configuration, samples in timed.samples.items():
            reason = timed.wrong[configuration]
            alike = [configuration, *(c for c, first in firsts.items() if first == configuration)]
            figures = timed.figures.get(configuration, {})
            for known in (self._known[c] for c in alike):
                trial = _update_trial(known, samples, figures, given_up.get(configuration, ()))
                told = f"right when first verified, wrong after it was timed: {reason}"
                self._note(mark_failed(trial, "wrong_result", told) if reason else trial)

    def _select_right(
        self, ranked: Sequence[Configuration], most: int, within: float = math.inf
    ) -> list[Configuration]:
        """The first ``most`` of ``ranked`` that are right on odd sizes too, none slower than the first of those by
        more than the factor ``within``."""
        right: list[Configuration] = []
        for configuration in ranked:
            if len(right) >= most:
                break
            trial = self._known[configuration]
            if (
                right
                and self._get_first_figure(trial) > self._get_first_figure(self._known[right[0]]) * within
            ):
                break
            if self._is_right(trial):
                right.append(configuration)
        return right

    def _get_first_figure(self, trial: Trial) -> float:
        """The figure of its first measurement that finalists are chosen by."""
        assert trial.measurement is not None
        return trial.measurement.get_first(self.protocol.figure)

    def _is_right(self, trial: Trial) -> bool:
        if self.prover.is_proved(trial):
            return True
        proved = self.prover.prove(trial)
        if proved != trial:
            self._note(proved)
        return proved.measurement is not None

    def _prove_winners(self) -> None:
        """Until every winner that a policy file may get is proved: one that turns out wrong makes room for the next."""
        while True:
            trials = [trial for c, trial in self._known.items() if c not in self.aside]
            decided = (
                decide_classes(trials, self.control, self.accuracy, objective) for objective in OBJECTIVES
            )
            winners = {d.winner.configuration: d.winner for found in decided for d in found.values()}
            due = [trial for trial in winners.values() if not self.prover.is_proved_to_win(trial)]
            if not due:
                return
            self.prover.compile_filled([trial.configuration for trial in due])  # in one call of the compiler
            for trial in due:
                if self._is_right(trial):
                    self._note(self.prover.prove_to_win(self._known[trial.configuration]))

    def _time_in_turn(self, often: Sequence[Configuration], few: Sequence[Configuration]) -> Retimed:
        """All timed in turn, those in ``few`` in a few rounds only."""
        jobs = self.prover.compiler.jobs([*often, *few])
        estimate_ms = sum(_first_ms(self._known[configuration]) for configuration in often)
        return self.prover.worker.ask(len(jobs), Measuring.retime, jobs, frozenset(few), estimate_ms)


def _first_ms(trial: Trial) -> float:
    assert trial.measurement is not None
    return trial.measurement.median_ms


def _update_trial(
    trial: Trial, samples: Samples, figures: Mapping[str, Figure], given_up: Sequence[float]
) -> Trial:
    """``trial`` with what was measured in turn in place of the first sampling's spread and count, and of its
    ``figures``; what was ``given_up`` for them is a note."""
    assert trial.measurement is not None
    measurement = replace(
        trial.measurement, retimed_ms=samples.median_ms, spread=samples.spread, samples=len(samples.times_ms),
        figures={**trial.measurement.figures, **figures},
    )  # fmt: skip
    busy = [
        f"timed again with the finalists: it took {duration(ms)} there, after {duration(measurement.median_ms)} "
        f"before; {duration(samples.median_ms)} counts"
        for ms in given_up
    ]
    return replace(
        trial, measurement=measurement, notes=tuple(dict.fromkeys((*trial.notes, *samples.notes, *busy)))
    )


def fingerprint(trials: Iterable[Trial]) -> str:
    """Equal for the same measured trials with the same figures and proofs; empty where none was measured. The record
    keeps it when finalists are done, so that it can be seen whether they were."""
    rows = sorted(
        (t.configuration.id, t.measurement.median_ms, t.measurement.retimed_ms, t.proof, len(t.proved))
        for t in trials
        if t.measurement
    )
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16] if rows else ""


def baseline_digest(family: Family) -> str:
    """Return a digest of all that decides the baseline's time, without the configurations."""
    text = f"{family.space_digest}\0{family.source_digest}\0{family.compile_options}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def time_baseline(
    family: Family, compiler: JobCompiler, trials: Mapping[Configuration, Trial], control: Configuration
) -> Baseline:
    """``family`` is the baseline. A message says what keeps it from being timed; the sweep goes on."""
    worker, inputs = compiler.worker, compiler.inputs
    kernel = next(iter(family.kernels))
    untimed = Baseline(source=family.source.name, kernel=kernel, digest=baseline_digest(family))
    variant = Variant.make(family, family.space.control, inputs.options)
    names = inputs.names(variant.configuration)
    try:
        if reason := variant.explain_exclusion(names, worker.device.limits):
            return replace(untimed, reason=reason)
        (compiled,) = compile_batch(batch(family, (variant,)), worker.toolchain, compiler.cache)
        if isinstance(compiled, CompileFailure):
            return replace(untimed, reason=f"it does not compile: {compiled.message}")
        decision = decide([trial for trial in trials.values() if trial.measurement], control)
        beside = [one for one in (control, decision.winner.configuration if decision else None) if one]
        measured = [one for one in dict.fromkeys(beside) if one in trials and trials[one].measurement]
        estimate_ms = sum(trials[one].time_ms for one in measured)
        jobs = compiler.jobs(measured)
        answer = worker.ask(1 + len(jobs), Measuring.compare, compiled, jobs, estimate_ms)
    except (LaunchError, AutotuneError) as problem:
        return replace(untimed, reason=str(problem))
    if answer.baseline is None:
        return replace(untimed, reason=answer.reason)
    (profile, *_) = profiles(variant, compiled, names, worker.device)
    times = {one: samples.median_ms for one, samples in answer.beside.items()}
    winner = decision.winner.configuration if decision else control
    return replace(
        untimed, median_ms=answer.baseline.median_ms, spread=answer.baseline.spread,
        samples=len(answer.baseline.times_ms), registers=profile.registers, control_ms=times.get(control, 0.0),
        winner_ms=times.get(winner, 0.0), winner=winner.id if winner in times else "",
    )  # fmt: skip
