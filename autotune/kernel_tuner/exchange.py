"""What the files of other tuners have in common: a study made of theirs, and the figures that they take."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from autotune.declaration import Configuration, PolicyValue
from autotune.measure import spread
from autotune.record import STATES, Measurement, Provenance, State, Study, Trial


def figures(trial: Trial) -> dict[str, float]:
    """What the compiler told of each kernel, as another tuner's own figures."""
    used = [p for p in trial.profiles if p.registers]
    found: dict[str, float] = {f"registers_{p.kernel}": p.registers for p in used}
    return found | {f"occupancy_{p.kernel}": p.occupancy for p in used}


def policy_value(value: Any) -> PolicyValue:
    """A parameter's value as a policy's: whole numbers stay numbers, everything else is a word."""
    return value if type(value) is int else str(value)


class Foreign:
    """A study in the making, from another tuner's file: ``family``, ``workload`` and ``device`` are what it says, where
    autotune did not write it; ``ours`` is what autotune ``added``. What raises ValueError here says what the file
    lacks."""

    def __init__(self, ours: Mapping[str, Any], family: str, workload: str, device: str) -> None:
        self._ours = ours
        given = {"family": family, "workload": workload, "device": device}
        self._key: dict[str, Any] = {name: str(ours.get(name, value)) for name, value in given.items()}
        self._trials: list[Trial] = []

    def failed(self, told: Mapping[str, Any], phases: Mapping[str, float], state: State, reason: str) -> None:
        """One that has no time, for a ``reason`` of the other tuner's; ``told`` may have autotune's own, and state."""
        own = told.get("state", state)
        state = own if own in STATES and own != "measured" else state
        self._add(told, state=state, reason=str(told.get("reason") or reason), phases_ms=phases)

    def measured(
        self,
        told: Mapping[str, Any],
        phases: Mapping[str, float],
        samples: Sequence[float],
        ms: float,
        minimum: float,
    ) -> None:
        """``samples`` are single times, where there are any; ``ms`` the figure that stands for them. Raises
        ValueError."""
        if not (math.isfinite(ms) and ms > 0):
            raise ValueError(f"the time {ms} of {told['configuration'].id} is none")
        measurement = Measurement(
            median_ms=ms,
            minimum_ms=min(samples, default=minimum),
            spread=float(told.get("spread_relative", spread(samples) if samples else 1.0)),
            samples=int(told.get("samples", len(samples) or 1)),
            transfer_bytes=int(told.get("transfer_bytes", 0)),
            footprint_bytes=int(told.get("footprint_bytes", 0)),
        )
        self._add(told, state="measured", measurement=measurement, phases_ms=phases)

    def _add(self, told: Mapping[str, Any], **more: Any) -> None:
        self._trials.append(Trial(**self._key, configuration=told["configuration"], **more))

    def study(self, about: Provenance, values: Mapping[str, Sequence[PolicyValue]] | None = None) -> Study:
        """``values`` are the declared ones of each policy, else those that were met. Raises ValueError when nothing was
        timed, or not every configuration has the same policies."""
        for trial in self._trials:
            self._configuration(trial.configuration)
        names = self._trials[0].configuration if self._trials else ()
        met = {n: list(dict.fromkeys(t.configuration[n] for t in self._trials)) for n in names}
        values = met if values is None else values
        control = (
            self._configuration(self._ours["control"]) if "control" in self._ours else self._control(values)
        )
        presets = {str(name): self._configuration(one) for name, one in self._ours.get("presets", {}).items()}
        policies = {
            name: {"values": list(values.get(name, ())), "default": control[name]} for name in control
        }
        return Study(
            **self._key, identity=str(self._ours.get("identity", "")), control=control,
            presets={"control": control, **presets}, about=about.told({"policies": policies}),
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
