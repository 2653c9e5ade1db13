"""A photobleaching experiment in physical units, and the lattice's numbers and arrays that follow."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import UnknownName, WorkloadError

from .beam import gaussian_factors, rate_of
from .outline import open_sides

__all__ = ["PRECISIONS", "Experiment"]

PRECISIONS = ("float32", "float64")
# Of D dt / h^2 in float32: then 4 of it and 1 less them are exact, and a uniform field stays uniform to the bit.
_QUANTUM = 2.0**-26
_MOST_OFF = 1e-3  # of D, by rounding to quanta
_SAME = 1e-9  # a relative difference of the order of what decimal numbers lose in binary
_MOST_STEPS = 2**31


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Fluorescence microphotolysis: a Gaussian beam bleaches with first order while molecules diffuse.

    ``D`` in um^2/s, ``spacing`` of the lattice in um, ``dt`` and ``seconds`` (of the whole experiment) in s, ``k``, the
    bleaching rate at the beam's centre, in 1/s, ``beam_radius`` (1/e^2) in um, ``sample_seconds`` from one sample of F
    to the next; F is taken over a disc of ``detector_radius`` um around the beam (0: everywhere). ``seed`` gives a
    random concentration to begin with, else it is 1 inside. ``precision`` is the option of that name; float32
    takes D in quanta of 2^-26 spacing^2 / dt. Raises WorkloadError, UnknownName."""

    D: float = 10.0
    spacing: float = 0.2
    dt: float = 1e-4
    seconds: float = 1.0
    k: float = 20.0
    beam_radius: float = 2.0
    sample_seconds: float = 0.01
    detector_radius: float = 4.0
    seed: int = -1
    precision: str = PRECISIONS[0]

    def __post_init__(self) -> None:
        for name in ("spacing", "dt", "seconds", "beam_radius", "sample_seconds"):
            self._check(name, getattr(self, name) > 0, "above 0")
        for name in ("D", "k", "detector_radius"):
            self._check(name, getattr(self, name) >= 0, "at least 0")
        stable = self.largest_stable_dt
        if self.dt > stable * (1 + 1e-12):
            raise WorkloadError(
                f"a step of {self.dt:g} s is unstable: 4 D dt / spacing^2 + k dt is "
                f"{self.dt / stable:.3g} and must be at most 1; take dt of at most {_rounded_down(stable)} s"
            )
        if self.steps > _MOST_STEPS:
            raise WorkloadError(
                f"{self.steps} steps are more than {_MOST_STEPS}; take a longer dt or fewer seconds"
            )
        if self.precision not in PRECISIONS:
            raise UnknownName("precision", self.precision, PRECISIONS)
        if self.precision == "float32":
            self._check_quanta()

    def _check_quanta(self) -> None:
        off = abs(self.effective_D - self.D)
        if off <= _MOST_OFF * self.D:
            return
        quantum = _QUANTUM * self.spacing**2 / self.dt
        raise WorkloadError(
            f"D is {self.D:g} um^2/s, and float32 takes it in quanta of 2^-26 spacing^2 / dt = {quantum:.3g} um^2/s, "
            f"so as {self.effective_D:g}: {off / self.D:.2%} off, of which {_MOST_OFF:.1%} are allowed; take D of at "
            f"least {quantum / (2 * _MOST_OFF):.3g}, a smaller spacing, a longer dt, or precision float64"
        )

    def _check(self, name: str, good: bool, allowed: str) -> None:
        value = getattr(self, name)
        if not (good and math.isfinite(value)):
            raise WorkloadError(f"{name} is {value!r}; a number {allowed} is needed")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Experiment":
        """From values by name, numbers or their text."""
        known = [field.name for field in fields(cls)]
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                raise UnknownName(
                    "parameter", name, [*known, "grid", "outline"], "a photobleaching experiment"
                )
            try:
                values[name] = _TYPES.get(name, float)(value)
            except (TypeError, ValueError):
                raise WorkloadError(f"{name} is {value!r}; a number is needed") from None
        return cls(**values)

    @property
    def largest_stable_dt(self) -> float:
        """In s. Up to here no weight of the step is negative, which is the maximum principle (Morton and Mayers,
        Numerical Solution of Partial Differential Equations, section 2.11): 4 D dt / h^2 + k dt <= 1."""
        rate = 4 * self.D / self.spacing**2 + self.k
        return 1 / rate if rate else math.inf

    @property
    def steps(self) -> int:
        return max(1, round(self.seconds / self.dt))

    @property
    def interval(self) -> int:
        """Steps from one sample to the next."""
        return min(self.steps, max(1, round(self.sample_seconds / self.dt)))

    @property
    def diffusion(self) -> float:
        """D dt / h^2; in float32 rounded to a multiple of 2^-26. Not more than is stable, also where D passes that by a
        rounding."""
        exact, most = self.D * self.dt / self.spacing**2, (1 - self.k * self.dt) / 4
        if self.precision == "float32":
            return min(round(exact / _QUANTUM), math.floor(most / _QUANTUM)) * _QUANTUM
        while 4 * most + self.k * self.dt > 1:
            most = math.nextafter(most, -math.inf)
        return max(0.0, min(exact, most))

    @property
    def effective_D(self) -> float:  # noqa: N802
        """The D of `diffusion`, in um^2/s."""
        return self.diffusion * self.spacing**2 / self.dt

    @property
    def rounded(self) -> tuple[str, ...]:
        """A sentence about each length of time that is no whole number of steps."""
        return tuple(
            f"{name} is {asked:g} and is taken as {taken * self.dt:.9g}, "
            + ("one step" if taken == 1 else f"{taken:,} steps")
            + f" of {self.dt:g} s"
            for name, asked, taken in (
                ("seconds", self.seconds, self.steps),
                ("sample_seconds", self.sample_seconds, self.interval),
            )
            if abs(taken * self.dt - asked) > _SAME * asked
        )

    def inputs(self, inside: NDArray[np.bool_]) -> dict[str, Any]:
        """What the kernels take, for a cell ``inside`` (rows, columns), the beam on the middle of the lattice."""
        rows, columns = inside.shape
        centre_y, centre_x = (rows - 1) / 2, (columns - 1) / 2
        rate = rate_of(self.beam_radius / self.spacing)
        beam_columns = gaussian_factors(columns, centre_x, rate)
        beam_rows = gaussian_factors(rows, centre_y, rate)
        initial = inside.astype(np.float32)
        if self.seed >= 0:
            initial *= np.random.default_rng(self.seed).random(inside.shape, np.float32)
        return {
            "initial": initial,
            "beam": beam_rows[:, None] * beam_columns,
            "beam_columns": beam_columns,
            "beam_rows": beam_rows,
            "open_sides": open_sides(inside),
            "detector": self._detector(inside, centre_y, centre_x),
            "steps": self.steps,
            "interval": self.interval,
            "diffusion": self.diffusion,
            "bleaching": self.k * self.dt,
            "beam_rate": rate,
            "centre_x": centre_x,
            "centre_y": centre_y,
        }

    def _detector(self, inside: NDArray[np.bool_], centre_y: float, centre_x: float) -> NDArray[np.uint8]:
        if not self.detector_radius:
            return inside.astype(np.uint8)
        y, x = (
            ((np.arange(count) - centre) * self.spacing) ** 2
            for count, centre in zip(inside.shape, (centre_y, centre_x), strict=True)
        )
        most, seen = self.detector_radius**2, np.zeros(inside.shape, np.uint8)
        around = np.ix_(y <= most, x <= most)  # of a large lattice, little
        seen[around] = (y[y <= most, None] + x[x <= most] <= most) & inside[around]
        return seen


_TYPES: Mapping[str, Callable[[Any], Any]] = {"seed": int, "precision": str}  # the others are float


def _rounded_down(value: float) -> str:
    """Three digits, not more than ``value``."""
    scale = 10.0 ** (math.floor(math.log10(value)) - 2)
    digits = math.floor(value / scale * (1 + 1e-9))  # so that 0.25, a little less in binary, stays 0.25
    text = f"{digits * scale:.3g}"
    return text if float(text) <= value else f"{(digits - 1) * scale:.3g}"
