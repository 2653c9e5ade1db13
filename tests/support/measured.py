"""Measurements with other figures."""

from dataclasses import replace

from autotune.measure import Figure
from autotune.record import Measurement


def with_figures(measurement: Measurement, **values: float | Figure) -> Measurement:
    """``measurement`` with these figures besides, or in place of its own."""
    more = {name: value if isinstance(value, Figure) else Figure(value) for name, value in values.items()}
    return replace(measurement, figures={**measurement.figures, **more})
