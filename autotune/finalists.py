"""The last word: the configurations near the best, timed again in turn, checked again, with the control beside
them so that its margin is measured and not pieced together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.cache import Cache
from autotune.compiler import compile_batch
from autotune.crew import Worker
from autotune.jobs import Job, Retime, Retimed
from autotune.measure import Protocol, Samples
from autotune.space import Configuration
from autotune.store import retimed
from autotune.toolchain import Compiled
from autotune.trial import Trial
from autotune.twins import first_of
from autotune.variant import Variant, batch

__all__ = ["Finalists"]

_EXTENSIONS = 3  # how often configurations whose first median beats the best re-timed one are called in


@dataclass(frozen=True)
class Finalists:
    """Timed by one worker. What was recorded with another's figures is not timed, but gets the other's new ones."""

    worker: Worker
    cache: Cache
    protocol: Protocol

    def run(
        self,
        trials: Mapping[Configuration, Trial],
        control: Configuration,
        variant: Callable[[Configuration], Variant],
        record: Callable[[Trial], None],
    ) -> None:
        """Re-time the nearest of ``trials``; then whatever first median is still ahead of the best re-timed one,
        together with that best. ``record`` receives each trial anew. Raises LaunchError."""
        firsts = first_of(trials.values())
        pool = {
            c: t
            for c, t in trials.items()
            if t.measurement and not t.measurement.abandoned and c not in firsts
        }
        ranked = sorted(pool, key=lambda c: _first_ms(pool[c]))
        if not ranked:
            return
        limit = _first_ms(pool[ranked[0]]) * self.protocol.within
        chosen = [c for c in ranked if _first_ms(pool[c]) <= limit][: self.protocol.finalists]
        control = firsts.get(control, control)
        measured_control = trials.get(control)
        beside = (
            [control] if measured_control and measured_control.measurement and control not in chosen else []
        )
        times: dict[Configuration, float] = {}
        for _ in range(1 + _EXTENSIONS):
            if len(chosen) + len(beside) < 2:
                return
            timed = self._timed([variant(c) for c in (*chosen, *beside)], trials, len(beside))
            for configuration, samples in timed.samples.items():
                reason = timed.wrong[configuration]
                alike = [configuration, *(c for c, first in firsts.items() if first == configuration)]
                for trial in (_retimed(trials[c], samples) for c in alike):
                    record(_wrong(trial, reason) if reason else trial)
                if not reason and configuration not in beside:
                    times[configuration] = samples.median_ms
            if not times:
                return
            best = min(times, key=lambda c: times[c])
            ahead = [c for c in ranked if c not in times and _first_ms(pool[c]) < times[best]]
            if not ahead:
                return
            chosen, beside = [best, *ahead[: self.protocol.finalists - 1]], []

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
    """A kernel that was right once and then was not has no time that counts."""
    return Trial(
        family=trial.family,
        workload=trial.workload,
        device=trial.device,
        configuration=trial.configuration,
        state="wrong_result",
        reason=f"right when first verified, wrong after it was timed: {reason}",
        profiles=trial.profiles,
        phases_ms=trial.phases_ms,
    )
