"""What is measured of a call: figures, each by a name that ends in its unit; and what a winner is best in: objectives,
each of which names figures.

A new objective is a row of ``QUANTITIES`` and one of ``OBJECTIVES``, and a place where its figure is measured:
``engine.measurer`` if every measurement has it, a row of ``sampling.PRODUCERS`` if it takes calls of its own. The
record, results.csv, the report, the policy file and the commands have it then.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from autotune import figures as units
from autotune.errors import UnknownName


def spread(values: Sequence[float]) -> float:
    """Relative half-width of the median's 95 % interval from order statistics: ranks n/2 -+ 0.98 sqrt(n)
    (Le Boudec, Performance Evaluation, section 2.2). With fewer than 6 samples, half the range; a single one
    says nothing, which is 1."""
    ordered, n = sorted(values), len(values)
    if n < 2:
        return 1.0
    low, high = 0, n - 1
    if n >= 6:
        low = max(0, math.floor(n / 2 - 0.98 * math.sqrt(n)) - 1)
        high = min(n - 1, math.ceil(n / 2 + 1 + 0.98 * math.sqrt(n)) - 1)
    middle = median(ordered)
    return (ordered[high] - ordered[low]) / 2 / middle if middle > 0 else 0.0


@dataclass(frozen=True)
class Figure:
    """A median, with the relative half-width of its 95 % interval (see ``spread``); None where that is not known, as
    of what is taken once."""

    value: float
    spread: float | None = None

    @property
    def width(self) -> float:
        """The relative half-width; NaN where a single sample says nothing of it."""
        return math.nan if self.spread is None or self.spread == 1.0 else self.spread


@dataclass(frozen=True)
class Quantity:
    """What a figure is of: ``label`` as a heading (docs/reference/results-csv.md). One that ``is_extra`` has a column
    only in tables of trials that have it."""

    label: str
    is_extra: bool = False


TIME = "time_ms"

QUANTITIES: Mapping[str, Quantity] = {
    TIME: Quantity("time"),
    "transform_ms": Quantity("transform"),
    "transfer_ms": Quantity("transfer"),
    "transfer_bytes": Quantity("sent"),
    "footprint_bytes": Quantity("footprint"),
    "energy_j": Quantity("energy", is_extra=True),
    "power_w": Quantity("power", is_extra=True),
    "idle_w": Quantity("idle power", is_extra=True),
}

_TEXTS: Mapping[str, Callable[[float], str]] = {
    "ms": units.duration,
    "bytes": units.size,
    "j": units.energy,
    "w": units.power,
    "s": units.seconds,
}


def unit(name: str) -> str:
    """The unit of the figure of that name: ``ms``, ``bytes``, ``j``, ``w`` or ``s``."""
    return name.rpartition("_")[2]


def figure_text(name: str, value: float) -> str:
    """The figure of that name for people."""
    return _TEXTS[unit(name)](value)


@dataclass(frozen=True)
class Objective:
    """What is to be small: the sum of ``figures``. Finalists are chosen by the first of them, which is measured again
    of them; the others are paid once. ``doc`` says what it counts, ``beside`` which figures are shown with it."""

    name: str
    figures: tuple[str, ...]
    doc: str
    beside: tuple[str, ...] = ()

    @property
    def figure(self) -> str:
        """The figure that finalists are chosen by."""
        return self.figures[0]

    @property
    def is_sum(self) -> bool:
        return len(self.figures) > 1

    @property
    def is_time(self) -> bool:
        return self.figure == TIME

    @property
    def noun(self) -> str:
        """What it counts, in one word."""
        return QUANTITIES[self.figure].label

    @property
    def better(self) -> str:
        """``faster``, or ``less`` of what is no time."""
        return "faster" if self.is_time else "less"

    def text(self, cost: float) -> str:
        """A sum of its figures for people."""
        return figure_text(self.figure, cost)

    def texts(self, figures: Mapping[str, Figure]) -> list[str]:
        """Its figure with its interval, and those that are shown with it, for people."""
        own = figures[self.figure]
        spread = "" if own.spread is None else f" ± {own.spread:.1%}"
        beside = [name for name in self.beside if name in figures]
        return [
            f"{self.text(own.value)}{spread}",
            *(f"{QUANTITIES[name].label} {figure_text(name, figures[name].value)}" for name in beside),
        ]


OBJECTIVES: Mapping[str, Objective] = {
    one.name: one
    for one in (
        Objective("kernel", (TIME,), "the kernels' time"),
        Objective(
            "with-transfer",
            (TIME, "transfer_ms"),
            "that and the copy of the inputs to the device: data in their layout already",
        ),
        Objective(
            "with-transform",
            (TIME, "transfer_ms", "transform_ms"),
            "that and the layout's transform: a single call that begins with plain arrays",
        ),
        Objective("energy", ("energy_j",), "the joules of a call", beside=("power_w", "idle_w")),
    )
}

KERNEL, ONE_CALL = "kernel", "with-transform"


def find_objective(name: str) -> Objective:
    """Raises UnknownName."""
    if name not in OBJECTIVES:
        raise UnknownName("objective", name, OBJECTIVES)
    return OBJECTIVES[name]
