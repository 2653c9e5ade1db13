"""What a trial costs by an objective: what winners are chosen by."""

import math

from autotune import figures
from autotune.record.objective import ENERGY, checked_objective, time_of
from autotune.record.trial import Trial

_UNKNOWN = 1.0  # as a ``spread``: what ``measure.spread`` says of a single sample


def time_ms(trial: Trial) -> float:
    """The ranking time in milliseconds; infinite when the trial was not measured."""
    return trial.measurement.time_ms if trial.measurement else math.inf


def once_ms(trial: Trial) -> float:
    """What the layout costs once in milliseconds: transform and transfer."""
    return trial.measurement.transform_ms + trial.measurement.transfer_ms if trial.measurement else math.inf


def cost(trial: Trial, objective: str = "kernel") -> float:
    """What is to be small: milliseconds of the kernels (``kernel``), with the copy of the inputs to the device
    (``with-transfer``: data in their layout already), or with the layout's transform too (``with-transform``: a single
    call that begins with plain arrays); joules of a call (``energy``). Infinite when that was not measured. Raises
    UnknownName."""
    checked_objective(objective)
    measured = trial.measurement
    if measured is None or (objective == ENERGY and not measured.energy_j):
        return math.inf
    if objective == ENERGY:
        return measured.energy_j
    return time_of(objective, measured.time_ms, measured.transfer_ms, measured.transform_ms)


def width(trial: Trial, objective: str) -> float:
    """Relative half-width of the 95 % interval of what ``objective`` counts; NaN where it is not known. A transform and
    a transfer are timed once, so their part has none of its own."""
    total, measured = cost(trial, objective), trial.measurement
    spread = 0.0 if measured is None else measured.energy_spread if objective == ENERGY else measured.spread
    if measured is None or math.isnan(spread) or spread == _UNKNOWN:
        return math.nan
    if objective == ENERGY:
        return spread
    return spread * time_ms(trial) / total if total else 0.0


def cost_text(value: float, objective: str) -> str:
    """A cost by ``objective`` for people."""
    return figures.energy(value) if objective == ENERGY else figures.duration(value)
