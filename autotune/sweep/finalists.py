"""The last word: the configurations near the best, proved on ragged sizes, timed again in turn, checked again, with the
control beside them so that its margin is measured and not pieced together."""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.compile import Cache, Compiled, Variant, batch, compile_batch
from autotune.declaration import Configuration
from autotune.measure import Protocol, Samples, median
from autotune.record import OBJECTIVES, Trial, decide_classes
from autotune.sweep.messages import Job, Retime, Retimed
from autotune.sweep.proof import Proving, failed
from autotune.sweep.trials import first_of
from autotune.sweep.worker import Worker

__all__ = ["Finalists", "fingerprint"]


def retimed(trial: Trial, samples: Samples) -> Trial:
    """``trial`` with the figures of the interleaved re-timing in place of the first sampling's spread and count."""
    assert trial.measurement is not None
    measurement = replace(
        trial.measurement,
        retimed_ms=samples.median_ms,
        spread=samples.spread,
        samples=len(samples.times_ms),
    )
    return replace(trial, measurement=measurement)


_EXTENSIONS = 3  # how often configurations whose first median beats the best re-timed one are called in


@dataclass
class Finalists:
    """Proved and timed by one worker. What was recorded with another's figures is not timed, but gets the other's new
    ones. ``ratio`` is the median over those timed of their time now over their first one (0 before any was)."""

    worker: Worker
    cache: Cache
    protocol: Protocol
    proving: Proving
    ratio: float = 0.0

    def run(
        self,
        trials: Mapping[Configuration, Trial],
        control: Configuration,
        accuracy: Sequence[str],
        variant: Callable[[Configuration], Variant],
        record: Callable[[Trial], None],
        aside: frozenset[Configuration] = frozenset(),
    ) -> None:
        """Prove the nearest of ``trials`` and time those again that are right; then whatever first median is still
        ahead of the best re-timed one, together with that best; last, prove whatever wins by another objective or in
        another accuracy class. What is ``aside`` is no finalist: a control there is to compare with. ``record``
        receives each trial anew. Raises LaunchError."""
        known = dict(trials)

        def noted(trial: Trial) -> None:
            known[trial.configuration] = trial
            record(trial)

        self._time(known, control, variant, noted, aside)
        self._prove_winners(known, control, accuracy, noted, aside)

    def _time(
        self,
        known: dict[Configuration, Trial],
        control: Configuration,
        variant: Callable[[Configuration], Variant],
        record: Callable[[Trial], None],
        aside: frozenset[Configuration],
    ) -> None:
        firsts = first_of(t for c, t in known.items() if c not in aside)
        pool = {
            c: t
            for c, t in known.items()
            if t.measurement and not t.measurement.abandoned and c not in firsts and c not in aside
        }
        ranked = sorted(pool, key=lambda c: _first_ms(pool[c]))
        self.proving.near = ranked[: self.protocol.finalists]
        chosen = self._right(ranked, self.protocol.finalists, self.protocol.within, known, record)
        control = firsts.get(control, control)
        measured_control = known.get(control)
        beside = []
        if chosen and control not in chosen and measured_control and measured_control.measurement:
            beside = self._right([control], 1, math.inf, known, record)
        times: dict[Configuration, float] = {}
        for _ in range(1 + _EXTENSIONS):
            if len(chosen) + len(beside) < 2:
                return
            timed = self._timed([variant(c) for c in (*chosen, *beside)], known, len(beside))
            self.ratio = self.ratio or median(
                [s.median_ms / _first_ms(known[c]) for c, s in timed.samples.items()]
            )
            for configuration, samples in timed.samples.items():
                reason = timed.wrong[configuration]
                alike = [configuration, *(c for c, first in firsts.items() if first == configuration)]
                for trial in (_retimed(known[c], samples) for c in alike):
                    record(_wrong(trial, reason) if reason else trial)
                if not reason and configuration not in beside:
                    times[configuration] = samples.median_ms
            if not times:
                return
            best = min(times, key=lambda c: times[c])
            ahead = [
                c
                for c in ranked
                if c not in times and known[c].measurement and _first_ms(pool[c]) < times[best]
            ]
            called = self._right(ahead, self.protocol.finalists - 1, math.inf, known, record)
            if not called:
                return
            chosen, beside = [best, *called], []

    def _right(
        self,
        ranked: Sequence[Configuration],
        most: int,
        within: float,
        known: Mapping[Configuration, Trial],
        record: Callable[[Trial], None],
    ) -> list[Configuration]:
        """The first ``most`` of ``ranked`` that are right on ragged sizes too, none slower than the first of those by
        more than the factor ``within``."""
        right: list[Configuration] = []
        for configuration in ranked:
            if len(right) >= most:
                break
            if right and _first_ms(known[configuration]) > _first_ms(known[right[0]]) * within:
                break
            if self._is_right(known[configuration], record):
                right.append(configuration)
        return right

    def _is_right(self, trial: Trial, record: Callable[[Trial], None]) -> bool:
        if self.proving.is_proved(trial):
            return True
        proved = self.proving.proved(trial)
        if proved != trial:
            record(proved)
        return proved.measurement is not None

    def _prove_winners(
        self,
        known: Mapping[Configuration, Trial],
        control: Configuration,
        accuracy: Sequence[str],
        record: Callable[[Trial], None],
        aside: frozenset[Configuration],
    ) -> None:
        """Until every winner that a policy file may get is proved: one that turns out wrong makes room for the next."""
        while True:
            trials = [trial for c, trial in known.items() if c not in aside]
            decided = (decide_classes(trials, control, accuracy, objective) for objective in OBJECTIVES)
            winners = {d.winner.configuration: d.winner for found in decided for d in found.values()}
            due = [trial for trial in winners.values() if not self.proving.is_proved(trial)]
            if not due:
                return
            for trial in due:
                self._is_right(trial, record)

    def _timed(
        self, variants: Sequence[Variant], trials: Mapping[Configuration, Trial], beside: int
    ) -> Retimed:
        """The variants timed in turn, the last ``beside`` of them in a few rounds only."""
        binaries = compile_batch(
            batch(variants[0].family, tuple(variants)), self.worker.toolchain, self.cache
        )
        jobs = []
        for variant, binary in zip(variants, binaries, strict=True):
            assert isinstance(binary, Compiled), "a measured configuration was compiled before"
            jobs.append(Job(variant.configuration, binary))
        often, few = jobs[: len(jobs) - beside], jobs[len(jobs) - beside :]
        estimate_ms = sum(_first_ms(trials[job.configuration]) for job in often)
        request = Retime(tuple(jobs), frozenset(job.configuration for job in few), estimate_ms)
        answer: Retimed = self.worker.ask(request, len(jobs))
        return answer


def _first_ms(trial: Trial) -> float:
    assert trial.measurement is not None
    return trial.measurement.median_ms


def _retimed(trial: Trial, samples: Samples) -> Trial:
    notes = tuple(dict.fromkeys((*trial.notes, *samples.notes)))
    return replace(retimed(trial, samples), notes=notes)


def _wrong(trial: Trial, reason: str) -> Trial:
    return failed(trial, "wrong_result", f"right when first verified, wrong after it was timed: {reason}")


def fingerprint(trials: Iterable[Trial]) -> str:
    """Equal for the same measured trials with the same figures and proofs; empty where none was measured. The record
    keeps it when finalists are done, so that it can be seen whether they were."""
    rows = sorted(
        (t.configuration.id, t.measurement.median_ms, t.measurement.retimed_ms, t.proof, len(t.proved))
        for t in trials
        if t.measurement
    )
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16] if rows else ""
