"""What a program is made of: arrays with their roles, calls of families, loops, swaps, and what the host reads."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autotune.errors import UnknownName, UsageError, WorkloadError

NEVER = 0  # of an ``every`` that may be chosen: the step is left out
ROLES = ("input", "state", "output", "scratch")

Number = int | str  # or the name of a scalar of the program


@dataclass(frozen=True, kw_only=True)
class ProgramArray:
    """One array of a program. ``ordered_by`` names an array of whole numbers by which its elements are distinguished
    where a step permutes them. ``tolerance`` is (relative, absolute) where it is not that of the family that writes
    it."""

    name: str
    role: str
    ordered_by: str = ""
    tolerance: tuple[float, float] | None = None

    @property
    def is_given(self) -> bool:
        """Whether the caller gives it."""
        return self.role in ("input", "state")

    @property
    def is_returned(self) -> bool:
        """Whether the host gets it at the end."""
        return self.role in ("state", "output")


@dataclass(frozen=True)
class Choose:
    """How often a step that changes nothing but an order runs: every so-manyth turn, by one of ``values``; NEVER leaves
    it out. The first is the program's as declared."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class KernelCall:
    """One family called with the program's arrays. ``arrays`` has the program's name for data of the family (the same
    name where it has none), ``held`` the values that policies are held to."""

    family: Any  # a name, a folder, or an autotune.Kernel
    name: str = ""
    arrays: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, float | str] = field(default_factory=dict)
    options: Mapping[str, str | int] = field(default_factory=dict)
    held: Mapping[str, Any] = field(default_factory=dict)
    every: Number | Choose = 1

    @property
    def calls(self) -> "tuple[KernelCall, ...]":
        """What there is to choose from: itself."""
        return (self,)


@dataclass(frozen=True)
class Either:
    """Several calls that do the same, of which the tuner takes one; the first is the program's as declared."""

    name: str
    calls: Sequence[KernelCall]
    every: Number | Choose = 1


@dataclass(frozen=True)
class Repeat:
    """The ``steps``, ``count`` times."""

    count: Number
    steps: "Sequence[Step]"


@dataclass(frozen=True)
class Swap:
    """Two arrays of the same kind change names."""

    first: str
    second: str

    @property
    def arrays(self) -> tuple[str, str]:
        return self.first, self.second


@dataclass(frozen=True)
class Read:
    """What the host reads at this place."""

    arrays: Sequence[str]
    every: Number = 1


Step = KernelCall | Either | Repeat | Swap | Read


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """Every step, those in loops too; a loop before what is in it."""
    for step in steps:
        yield step
        if isinstance(step, Repeat):
            yield from walk(step.steps)


def check_known(kind: str, name: str, names: Collection[str], where: str) -> None:
    """Raises UnknownName for a name that is none of them."""
    if name not in names:
        raise UnknownName(kind, name, names, where)


def scalar(value: float | str, scalars: Mapping[str, float], what: str) -> float:
    """A number, or the scalar that names one. Raises UnknownName."""
    if isinstance(value, str):
        check_known("scalar", value, scalars, what)
        return scalars[value]
    return value


def number(value: Number, scalars: Mapping[str, float], what: str) -> int:
    """A whole number of at least 1, or the scalar that names one. Raises UnknownName, WorkloadError."""
    found = scalar(value, scalars, what)
    if found != int(found) or found < 1:
        raise WorkloadError(f"{what}: {value} is {found:g}, and a whole number of at least 1 is needed")
    return int(found)


# What a step of each kind in a program.yaml may say.
_KEYS = {
    "call": {"name", "arrays", "scalars", "options", "set", "every", "doc"},
    "either": {"name", "every", "doc"}, "repeat": {"steps", "doc"}, "swap": {"doc"}, "read": {"every", "doc"},
}  # fmt: skip
_NEEDED = {"either": "name", "repeat": "steps"}


def steps_of(listed: Sequence[Mapping[str, Any]], where: str) -> tuple[Step, ...]:
    """The steps that a program.yaml lists. Raises UsageError for one that is none, or is two."""
    return tuple(_step(one, f"{where}: step {at}") for at, one in enumerate(listed, 1))


def _step(told: Mapping[str, Any], where: str) -> Step:
    kinds = [key for key in _KEYS if key in told]
    if len(kinds) != 1:
        raise UsageError(
            f"{where}: give one of {', '.join(_KEYS)}, and this has {', '.join(kinds) or 'none'}"
        )
    (kind,) = kinds
    if odd := [key for key in told if key not in {kind, *_KEYS[kind]}]:
        raise UsageError(f"{where}: {odd[0]} is not for {kind} (allowed: {', '.join(sorted(_KEYS[kind]))})")
    if (needed := _NEEDED.get(kind, kind)) not in told:
        raise UsageError(f"{where}: {kind} needs {needed}")
    every: Any = told.get("every", 1)
    if isinstance(every, Mapping):
        every = Choose(tuple(NEVER if value == "never" else int(value) for value in every["choose"]))
        if kind == "read":
            raise UsageError(f"{where}: the tuner does not choose when the host reads: give every a number")
    if kind == "call":
        return _call(told, every)
    if kind == "either":
        calls = tuple(_call({"name": told["name"], **one}) for one in told["either"])
        return Either(told["name"], calls, every)
    if kind == "repeat":
        return Repeat(told["repeat"], steps_of(told["steps"], where))
    return Swap(*told["swap"]) if kind == "swap" else Read(tuple(told["read"]), every)


def _call(told: Mapping[str, Any], every: Number | Choose = 1) -> KernelCall:
    arrays, scalars, options, held = (told.get(key, {}) for key in ("arrays", "scalars", "options", "set"))
    return KernelCall(told["call"], told.get("name", ""), arrays, scalars, options, held, every)
