"""What the files of other tuners have in common: a trial in Kernel Tuner's words, and a study made of theirs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from autotune.declaration import Configuration, PolicyValue
from autotune.errors import StoreError
from autotune.measure import Figure, spread
from autotune.record import STATES, Measurement, Provenance, State, Study, Trial

# Kernel Tuner knows three failures; an entry also has the state itself.
ERRORS: Mapping[State, str] = {
    "excluded": "InvalidConfig", "compile_failed": "CompilationFailedConfig",
    "launch_failed": "RuntimeFailedConfig", "wrong_result": "RuntimeFailedConfig",
    "timed_out": "RuntimeFailedConfig", "crashed": "RuntimeFailedConfig",
}  # fmt: skip

# The other way round: of several states, the first.
FAILED: Mapping[str, State] = {name: state for state, name in reversed([*ERRORS.items()])}

# Kernel Tuner's name of a phase, and ours; they count for its budgets in seconds.
PHASES: Mapping[str, tuple[str, ...]] = {
    "compile_time": ("compile",), "verification_time": ("verify",), "benchmark_time": ("measure", "place"),
    "strategy_time": (), "framework_time": (),
}  # fmt: skip

_FIGURES = ("transfer_bytes", "footprint_bytes")


def entry(trial: Trial) -> dict[str, Any]:
    """Return a trial in Kernel Tuner's terms, with the compiler's figures of each kernel; milliseconds."""
    phases = {name: sum(trial.phases_ms.get(one, 0.0) for one in ours) for name, ours in PHASES.items()}
    measured = trial.measurement
    if not measured:
        return {"__error__": ERRORS[trial.state], "state": trial.state, "reason": trial.reason, **phases}
    used = [profile for profile in trial.profiles if profile.registers]
    return {
        "time": trial.time_ms,
        **phases,
        "minimum_ms": measured.minimum_ms,
        "spread_relative": measured.spread,
        "samples": measured.samples,
        **{name: int(measured.value(name)) for name in _FIGURES},
        **{f"registers_{profile.kernel}": profile.registers for profile in used},
        **{f"occupancy_{profile.kernel}": profile.occupancy for profile in used},
    }


def policy_value(value: Any) -> PolicyValue:
    """A parameter's value as a policy's: whole numbers stay numbers, everything else is a word."""
    return value if type(value) is int else str(value)


@contextmanager
def reading(where: str, form: str) -> Iterator[None]:
    """Raise StoreError for a file that is not of the ``form`` that it is read in."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        raise StoreError(f"cannot read {where} as {form}: {type(problem).__name__}: {problem}") from None


class Foreign:
    """A study in the making, from another tuner's file: ``family``, ``workload`` and ``device`` are what it says, where
    autotune did not write it; ``ours`` is what autotune ``added``. What raises ValueError here says what the file
    lacks."""

    def __init__(self, ours: Mapping[str, Any], family: str, workload: str, device: str) -> None:
        self._ours = ours
        given = {"family": family, "workload": workload, "device": device}
        self._key: dict[str, Any] = {name: str(ours.get(name, value)) for name, value in given.items()}
        self._trials: list[Trial] = []

    def add(
        self, configuration: Mapping[str, Any], line: Mapping[str, Any], state: State, reason: str
    ) -> None:
        """What came of one: ``line`` is as ``entry`` makes it, in milliseconds, with single ``times`` where there are
        any. Autotune's own state and reason in it stand before ``state`` and ``reason``. Raises ValueError."""
        chosen = Configuration({str(name): policy_value(value) for name, value in configuration.items()})
        phases = {ours[0]: float(line[name]) for name, ours in PHASES.items() if ours and line.get(name)}
        known: dict[str, Any] = {**self._key, "configuration": chosen, "phases_ms": phases}
        if state != "measured":
            own = line.get("state", state)
            state = own if own in STATES and own != "measured" else state
            self._trials.append(Trial(**known, state=state, reason=str(line.get("reason") or reason)))
            return
        samples = [float(one) for one in line.get("times") or ()]
        ms = median(samples) if samples else float(line["time"])
        if not (math.isfinite(ms) and ms > 0):
            raise ValueError(f"the time {ms} of {chosen.id} is none")
        measurement = Measurement(
            median_ms=ms,
            minimum_ms=float(line.get("minimum_ms", min(samples, default=ms))),
            spread=float(line.get("spread_relative", spread(samples) if samples else 1.0)),
            samples=int(line.get("samples", len(samples) or 1)),
            figures={name: Figure(int(line[name])) for name in _FIGURES if name in line},
        )
        self._trials.append(Trial(**known, state=state, measurement=measurement))

    def study(self, about: Provenance, values: Mapping[str, Sequence[PolicyValue]] | None = None) -> Study:
        """``values`` are the declared ones of each policy, else those that were met. Raises ValueError when nothing was
        timed, or not every configuration has the same policies."""
        met = [self._configuration(trial.configuration) for trial in self._trials]
        if values is None:
            values = {name: list(dict.fromkeys(one[name] for one in met)) for name in (met[0] if met else ())}
        ours = self._ours
        control = self._configuration(ours["control"]) if "control" in ours else self._control(values)
        presets = {str(name): self._configuration(one) for name, one in ours.get("presets", {}).items()}
        policies = {n: {"values": list(values.get(n, ())), "default": control[n]} for n in control}
        return Study(
            **self._key, identity=str(ours.get("identity", "")), control=control,
            presets={"control": control, **presets}, about=about.update({"policies": policies}),
            trials=tuple(self._trials),
        )  # fmt: skip

    def _configuration(self, told: Mapping[str, Any]) -> Configuration:
        declared = set(self._trials[0].configuration) if self._trials else set()
        if set(told) != declared:
            wrong = min(declared ^ set(map(str, told)), default="")
            raise ValueError(f"not every configuration in it has a value of {wrong!r}")
        return Configuration({name: policy_value(value) for name, value in told.items()})

    def _control(self, values: Mapping[str, Sequence[PolicyValue]]) -> Configuration:
        """What stands in as control where a file names none: every parameter at its first declared value, if that was
        measured, else the first configuration that was."""
        timed = [trial.configuration for trial in self._trials if trial.measurement]
        if not timed:
            raise ValueError("no configuration in it has a time")
        first = Configuration({name: some[0] for name, some in values.items() if some})
        return first if first in timed else timed[0]
