"""The last word: the configurations near the best, timed again in turn, checked again, with the control beside
them so that its margin is measured and not pieced together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from autotune.backends import Backend
from autotune.cache import Cache
from autotune.compiler import Compiled, compile_batch
from autotune.execution import Execution
from autotune.measure import Protocol, interleave
from autotune.resident import Resident
from autotune.space import Configuration
from autotune.store import retimed
from autotune.trial import Trial
from autotune.variant import Variant, batch
from autotune.verify import Verifier

__all__ = ["Finalists"]

_EXTENSIONS = 3  # how often configurations whose first median beats the best re-timed one are called in


@dataclass(frozen=True)
class Finalists:
    """``cold`` as in Backend.sample; ``compiler`` as in Backend.toolchain."""

    backend: Backend
    resident: Resident
    cache: Cache
    protocol: Protocol
    cold: bool
    compiler: str = ""

    def run(
        self,
        trials: Mapping[Configuration, Trial],
        control: Configuration,
        variant: Callable[[Configuration], Variant],
        verifier: Verifier | None,
        record: Callable[[Trial], None],
    ) -> None:
        """Re-time the nearest of ``trials``; then whatever first median is still ahead of the best re-timed one,
        together with that best. ``record`` receives each trial anew. Raises LaunchError."""
        pool = {c: t for c, t in trials.items() if t.measurement and not t.measurement.abandoned}
        ranked = sorted(pool, key=lambda c: _first_ms(pool[c]))
        if not ranked:
            return
        limit = _first_ms(pool[ranked[0]]) * self.protocol.within
        chosen = [c for c in ranked if _first_ms(pool[c]) <= limit][: self.protocol.finalists]
        measured_control = trials.get(control)
        beside = (
            [control] if measured_control and measured_control.measurement and control not in chosen else []
        )
        times: dict[Configuration, float] = {}
        for _ in range(1 + _EXTENSIONS):
            if len(chosen) + len(beside) < 2:
                return
            bound = self._bound([variant(c) for c in (*chosen, *beside)])
            timed = interleave(
                self.backend,
                {c: e.run for c, e in bound.items()},
                self.protocol,
                cold=self.cold,
                before={c: e.prepare for c, e in bound.items()},
                estimate_ms=sum(_first_ms(trials[c]) for c in chosen),
                few=frozenset(beside),
            )
            for configuration, samples in timed.items():
                trial, reason = retimed(trials[configuration], samples), ""
                if verifier:
                    reason, _ = verifier.run(bound[configuration], self.cold)
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

    def _bound(self, variants: Sequence[Variant]) -> dict[Configuration, Execution]:
        """Each variant loaded and bound to resident data."""
        binaries = compile_batch(
            batch(variants[0].family, tuple(variants)), self.backend.toolchain(self.compiler), self.cache
        )
        bound = {}
        for variant, binary in zip(variants, binaries, strict=True):
            assert isinstance(binary, Compiled), "a measured configuration was compiled before"
            bound[variant.configuration] = self.resident.execution(variant, self.backend.load(binary))
        return bound


def _first_ms(trial: Trial) -> float:
    assert trial.measurement is not None
    return trial.measurement.median_ms


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
