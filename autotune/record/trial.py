"""One configuration tried on one workload: its state, its static profile, its measurement."""

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from autotune.compile import KernelProfile
from autotune.declaration import Configuration
from autotune.measure import KERNEL, TIME, Figure, find_objective

# Who decides which: excluded, compile.Variant.exclusion; compile_failed, compile.batches; launch_failed and
# wrong_result, engine.measurer; timed_out and crashed, engine.process_worker. A measured trial whose sampling stopped
# early, because it is too slow to win, is ``abandoned`` (measure.sampling.hopeless_ms).
State = Literal[
    "measured", "excluded", "compile_failed", "launch_failed", "wrong_result", "timed_out", "crashed"
]

STATES: tuple[State, ...] = get_args(State)
FAILED: tuple[State, ...] = STATES[2:]  # what was tried and has no time; none of them is as it should be


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Times in milliseconds. ``median_ms`` is over ``samples`` timings of the whole plan, ``spread`` the relative
    half-width of its 95 % interval, ``kernel_ms`` the median of each kernel. ``retimed_ms`` is the median from the
    interleaved re-timing of the finalists (0 when the configuration was not one); ``spread`` and ``samples`` are
    then of that re-timing. ``figures`` is what was measured of a call besides, by the names of ``QUANTITIES``.
    ``abandoned`` tells that sampling stopped early because the first samples proved the configuration hopeless.
    ``times_ms`` are the samples behind ``median_ms`` in the order they were taken; they are not recorded."""

    median_ms: float
    minimum_ms: float
    spread: float
    samples: int
    kernel_ms: Mapping[str, float] = field(default_factory=dict)
    retimed_ms: float = 0.0
    figures: Mapping[str, Figure] = field(default_factory=dict)
    abandoned: bool = False
    times_ms: tuple[float, ...] = field(default=(), compare=False)

    @property
    def time_ms(self) -> float:
        """The figure to rank by: the interleaved re-timing where there is one, else the first median."""
        return self.retimed_ms or self.median_ms

    def figure(self, name: str) -> Figure | None:
        """The figure of that name; None where it was not measured."""
        return Figure(self.time_ms, self.spread) if name == TIME else self.figures.get(name)

    def value(self, name: str) -> float:
        """The median of that figure; 0 where it was not measured."""
        return found.value if (found := self.figure(name)) else 0.0

    def get_first(self, name: str) -> float:
        """As ``value``, of the time as it was before finalists were timed again."""
        return self.median_ms if name == TIME else self.value(name)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """``reason`` is empty exactly when the state is ``measured``. ``phases_ms`` is wall time by phase
    (compile, place, verify, measure). ``notes`` are remarks a reader should see (throttled, …); ``same_as`` is the
    configuration with the same code, data and launches whose figures these are, where it was not measured itself.
    ``proof`` is the version of the verification that it was verified with (``verify.PROOF_VERSION``; 0 where it was not
    kept), ``proved`` the odd sizes, by extent, that it gave right results for as well. ``begun_s`` is when placing
    its data began, in seconds since 1970, and ``worker`` the process that did it, as host:number; 0 and empty where
    none did, or nobody kept it. ``errors`` is how far each floating point output was off, relative to the reference's
    largest magnitude (``measure.deviation``); nothing where no number can be stored in fewer bits. ``reproducible``
    says that repeated runs gave the same bits; only what is to enter a policy file is looked at."""

    family: str
    workload: str
    device: str
    configuration: Configuration
    state: State
    reason: str = ""
    profiles: tuple[KernelProfile, ...] = ()
    measurement: Measurement | None = None
    phases_ms: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    same_as: Configuration | None = None
    proof: int = 0
    proved: tuple[Mapping[str, int], ...] = ()
    begun_s: float = 0.0
    worker: str = ""
    errors: Mapping[str, float] = field(default_factory=dict)
    reproducible: bool = False

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader sees of it: its notes, and whose figures these are."""
        return self.notes if self.same_as is None else (*self.notes, f"same code as {self.same_as.id}")

    @property
    def kernel_ms(self) -> Mapping[str, float]:
        """The time of each kernel; empty if unknown."""
        return self.measurement.kernel_ms if self.measurement else {}

    @property
    def time_ms(self) -> float:
        """The time to rank by in milliseconds; infinite when the trial was not measured."""
        return self.measurement.time_ms if self.measurement else math.inf

    @property
    def once_ms(self) -> float:
        """What the layout costs once in milliseconds, transform and transfer; infinite when it was not measured."""
        measured = self.measurement
        return measured.value("transform_ms") + measured.value("transfer_ms") if measured else math.inf

    @property
    def footprint_bytes(self) -> float:
        """The device memory that the data takes; infinite when it was not measured."""
        return self.measurement.value("footprint_bytes") if self.measurement else math.inf

    def value(self, figure: str) -> float:
        """The median of that figure; infinite where it was not measured."""
        found = self.measurement.figure(figure) if self.measurement else None
        return found.value if found else math.inf

    def cost(self, objective: str = KERNEL) -> float:
        """What is to be small: the sum of the objective's figures. Infinite where the first of them was not measured.
        Raises UnknownName."""
        first, *once = find_objective(objective).figures
        measured = self.measurement
        if measured is None or measured.figure(first) is None:
            return math.inf
        return sum((measured.value(name) for name in once), measured.value(first))

    def width(self, objective: str = KERNEL) -> float:
        """Relative half-width of the 95 % interval of ``cost``; NaN where it is not known. What is paid once is
        measured once, so its part has none of its own."""
        figure = self.measurement.figure(find_objective(objective).figure) if self.measurement else None
        total = self.cost(objective)
        if figure is None:
            return math.nan
        return figure.width * figure.value / total if total else 0.0

    @property
    def error(self) -> float | None:
        """The largest of ``errors``; None where none is known."""
        return max(self.errors.values(), default=None)

    @property
    def registers(self) -> int | None:
        """The most of a thread, over the plan's kernels; None where nothing tells them, as on a cpu."""
        return max((p.registers for p in self.profiles if p.registers), default=None)

    @property
    def occupancy(self) -> float | None:
        """The least theoretical one, 0 to 1, over the plan's kernels; None where nothing tells it."""
        return min((p.occupancy for p in self.profiles if p.registers), default=None)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dict; ``from_dict`` gives the same trial back."""
        plain = asdict(self)
        if plain["measurement"]:
            del plain["measurement"]["times_ms"]
        plain["configuration"] = dict(self.configuration)
        plain["same_as"] = None if self.same_as is None else dict(self.same_as)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Trial":
        """Raises KeyError, TypeError or ValueError for a dict that is none."""
        require_types(cls, plain)
        measurement = plain["measurement"]
        if plain["state"] not in STATES or (plain["state"] == "measured") is not bool(measurement):
            raise ValueError(
                f"state {plain['state']!r} is not one of {', '.join(STATES)}, or has no measurement"
            )
        if not all(0 <= value < 2**63 for value in _numbers(measurement or {})):
            raise ValueError(f"a time or a size is negative or not finite: {measurement}")
        if measurement:
            figures = {name: Figure(**one) for name, one in measurement["figures"].items()}
            measurement = Measurement(**{**measurement, "figures": figures})
        return cls(
            **{
                **plain,
                "configuration": Configuration(plain["configuration"]),
                "profiles": tuple(KernelProfile(**p) for p in plain["profiles"]),
                "measurement": measurement,
                "notes": tuple(plain["notes"]),
                "same_as": Configuration(plain["same_as"]) if plain["same_as"] else None,
                "proved": tuple(plain["proved"]),
            }
        )


def _numbers(told: Mapping[str, Any]) -> Iterator[float]:
    """The times and sizes of a measurement; a spread may be any number."""
    for name, value in told.items():
        if isinstance(value, Mapping):
            yield from _numbers(value)
        elif name != "spread":
            yield value


# -- plain values, believed as little as any other file

_hints = lru_cache(maxsize=16)(get_type_hints)


def require_types(kind: type, plain: Mapping[str, Any]) -> None:
    """Raise TypeError for the first of the plain values that the field of its name cannot hold: anybody can write a
    line with the right checksum. A list may stand for a tuple, and a mapping for a record."""
    hints = _hints(kind)
    for name, value in plain.items():
        if name in hints and not _fits(value, hints[name]):
            raise TypeError(f"{name} is {str(value)[:40]!r}, a {type(value).__name__}")


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is float:
        return type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)
    if hint is int:
        return type(value) is int and -(2**63) <= value < 2**63
    if hint in (str, bool, NoneType):
        return type(value) is hint
    if hint is Configuration:
        return _fits(value, Mapping[str, int | str])
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(one, inner[1]) for key, one in value.items()
        )
    if origin is tuple:
        return isinstance(value, list | tuple) and all(_fits(one, inner[0]) for one in value)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if hint is Any:
        return True
    if isinstance(value, Mapping):
        require_types(hint, value)
    return isinstance(value, Mapping)
