"""Another tuner's parameters as policies: their values as words, what restricts them, and what is computed from them.

The conventions are those of Kernel Tuner 1.5 and of the T1 format: every parameter is a macro of its name,
``block_size_x`` and the like are the threads of a block, and blocks are the problem size over divisors, rounded up.
"""

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from autotune.declaration import Configuration, Constraint, Expression, Policy, PolicyValue, Space, Steps
from autotune.errors import FamilyError
from autotune.kernel_tuner.formula import conditions, expression, listed_conditions, listed_expression, word

BLOCK_NAMES = ("block_size_x", "block_size_y", "block_size_z")
Formula = int | str | Callable[[Mapping[str, Any]], Any]
Restriction = str | Callable[..., Any] | tuple[Callable[..., Any], Sequence[str]]
Divisor = Formula | Sequence[Formula] | None

_MOST_STEPS = 2_000_000
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Parameters:
    """``values`` of each, as they were given; ``defaults`` where one is named. ``restrictions`` are conditions, as
    texts, as functions of the parameters, or as pairs of a function and the parameters that it takes in turn. Raises
    FamilyError for what cannot be a policy."""

    values: Mapping[str, Sequence[Any]]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    restrictions: Sequence[Restriction] = ()

    def __post_init__(self) -> None:
        for name, some in self.values.items():
            if not _NAME.fullmatch(name):
                raise FamilyError(f"parameter {name!r} is no name of a macro")
            if not len(some):
                raise FamilyError(f"parameter {name} has no values")
            if len(self._given[name]) < len(some):
                raise FamilyError(f"parameter {name}: two of its values are the same word in {list(some)}")

    @cached_property
    def _given(self) -> dict[str, dict[PolicyValue, Any]]:
        return {
            name: {word(value, f"parameter {name}"): value for value in some}
            for name, some in self.values.items()
        }

    def given(self, configuration: Mapping[str, PolicyValue]) -> dict[str, Any]:
        """The parameters of ``configuration``, in their own order and as they were given."""
        return {name: self._given[name][configuration[name]] for name in self.values}

    def words(self, chosen: Mapping[str, Any]) -> dict[str, PolicyValue]:
        """What ``given`` was made of."""
        return {name: word(value, f"parameter {name}") for name, value in chosen.items()}

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        return tuple(
            Constraint(Expression(text, "restriction"), reason)
            for number, restriction in enumerate(self.restrictions, 1)
            for text, reason in self._conditions(restriction, number)
        )

    def _conditions(self, restriction: Restriction, number: int) -> Iterator[tuple[str, str]]:
        where = f"restriction {number}"
        if isinstance(restriction, str):
            reason = f"the restriction {restriction.strip()}"
            yield from ((text, reason) for text in conditions(restriction, self.values, where))
            return
        function, taken = restriction if isinstance(restriction, tuple) else (restriction, None)
        reading = _Reading(function, self.values, taken)
        for text in reading.repeated(lambda names: listed_conditions(reading, names, self.values, where)):
            yield text, f"restriction {number}, the function {getattr(function, '__name__', 'given')}"

    @cached_property
    def space(self) -> Space:
        """All combinations that no restriction excludes, in declared order, the defaults first."""
        policies = []
        for name, some in self._given.items():
            first = [word(self.defaults[name], name)] if name in self.defaults else []
            values = tuple(dict.fromkeys([value for value in first if value in some] + list(some)))
            policies.append(Policy(name, values, values[0]))
        return Space(tuple(policies), self.constraints)

    @cached_property
    def control(self) -> Configuration:
        """The first of them. Raises FamilyError."""
        found = next(self.space.walk(steps=Steps(_MOST_STEPS)), None)
        if found is None:
            raise FamilyError(
                "no combination of the parameters is left by the restrictions: "
                f"{' | '.join(sorted({c.reason for c in self.constraints})) or 'there are no values'}"
            )
        return found

    @property
    def policies(self) -> dict[str, dict[str, Any]]:
        """As family.yaml has them."""
        return {
            name: {"values": list(some), "default": self.control[name]} for name, some in self._given.items()
        }

    def text(self, formula: Formula, where: str) -> str:
        """``formula`` as an expression. Raises FamilyError."""
        if callable(formula):
            reading = _Reading(formula, self.values)
            made: str = reading.repeated(lambda names: listed_expression(reading, names, self.values, where))
            return made
        if isinstance(formula, str):
            return expression(formula, self.values, where)
        try:
            return str(int(formula))
        except (TypeError, ValueError, OverflowError):  # NaN, infinity, and what is no number
            raise FamilyError(f"{where}: {formula!r} is neither a number nor a text nor a function") from None

    # -- the launch ---------------------------------------------------------------------------------------------

    def block(self, names: Sequence[str]) -> list[str]:
        """Threads in x, y, z: the parameters of these names, 1 for what is none."""
        return [name if name in self.values else "1" for name in names]

    def grid(
        self, problem_size: Any, divisors: Sequence[Divisor], names: Sequence[str] = BLOCK_NAMES
    ) -> list[str]:
        """Blocks in x, y, z. Where there is no divisor (None), it is the block's size."""
        sizes = self._sizes(problem_size)
        return [
            f"ceil_div({size}, {self._divisor(divisor, name, axis)})"
            for size, divisor, name, axis in zip(sizes, divisors, names, "xyz", strict=True)
        ]

    def _sizes(self, problem_size: Any) -> list[str]:
        given: list[Formula]
        if callable(problem_size):
            given = [partial(_axis, problem_size, axis) for axis in range(3)]
        else:
            given = [_whole(size) for size in _three(problem_size)]
        sizes = [self.text(size, "problem size") for size in given]
        return [f"({size})" if not size.isalnum() else size for size in sizes]

    def _divisor(self, divisor: Divisor, name: str, axis: str) -> str:
        where = f"grid divisor in {axis}"
        if divisor is None:
            return name if name in self.values else "1"
        parts = divisor if isinstance(divisor, Sequence) and not isinstance(divisor, str) else [divisor]
        texts = []
        for part in parts:
            if isinstance(part, str):
                texts.append(
                    part.strip() if part.strip() in self.values else f"({self.text(f'int({part})', where)})"
                )
            elif callable(part):
                texts.append(f"({self.text(part, where)})")
            else:
                texts.append(self.text(part, where))
        return " * ".join(texts) or "1"


def _three(sizes: Any) -> tuple[Any, ...]:
    """A problem size in three dimensions."""
    if isinstance(sizes, str) or not hasattr(sizes, "__len__"):
        sizes = (sizes,)
    return (*sizes, 1, 1, 1)[:3]


def _axis(problem_size: Callable[[Mapping[str, Any]], Any], axis: int, parameters: Mapping[str, Any]) -> Any:
    return _three(problem_size(parameters))[axis]


def _whole(size: Any) -> int | str:
    if isinstance(size, str):
        return size
    with suppress(TypeError, ValueError, OverflowError):  # of what is no number, NaN and infinity
        if int(size) == size and size > 0:
            return int(size)
    raise FamilyError(f"problem size {size!r} is no whole number above 0")


class _Reading:
    """A function of the parameters. It takes those in ``taken`` in turn; else one mapping of all of them, or those that
    it names. Which it reads shows when it is called."""

    def __init__(
        self,
        function: Callable[..., Any],
        values: Mapping[str, Sequence[Any]],
        taken: Sequence[str] | None = None,
    ) -> None:
        if unknown := [name for name in taken or () if name not in values]:
            raise FamilyError(f"{unknown[0]!r} is no parameter (those are {', '.join(values)})")
        self._function = function
        self._usual = {name: some[0] for name, some in values.items()}
        self._reads: set[str] = set()
        self._call = self._in_turn(taken) if taken is not None else self._by_name()

    def _in_turn(self, taken: Sequence[str]) -> Callable[[Mapping[str, Any]], Any]:
        return lambda given: self._function(*(given[name] for name in taken))

    def _by_name(self) -> Callable[[Mapping[str, Any]], Any]:
        try:
            told = inspect.signature(self._function).parameters
        except (TypeError, ValueError):
            return self._function
        if any(one.kind is one.VAR_KEYWORD for one in told.values()):
            return lambda given: self._function(**given)
        if len(told) == 1 and not self._usual.keys() & told.keys():
            return self._function
        taken = [name for name in told if name in self._usual]
        return lambda given: self._function(**{name: given[name] for name in taken})

    def __call__(self, chosen: Mapping[str, Any]) -> Any:
        given = _Watched({**self._usual, **chosen}, self._reads)
        try:
            value = self._call(given)
        except Exception as problem:
            told = ", ".join(f"{name}={value!r}" for name, value in dict.items(given))
            raise FamilyError(
                f"the function {getattr(self._function, '__name__', self._function)!s} has no value for {told}: "
                f"{type(problem).__name__}: {problem}"
            ) from problem
        value = value.item() if hasattr(value, "item") else value
        return int(value) if isinstance(value, float) and math.isfinite(value) and value % 1 == 0 else value

    def repeated(self, made: Callable[[Sequence[str]], Any]) -> Any:
        """``made`` of the parameters that the function reads, when it reads no others."""
        self({})
        while True:
            names = sorted(self._reads)
            found = made(names)
            if len(names) == len(self._reads):
                return found


class _Watched(dict[str, Any]):
    """Notes what is read of it."""

    def __init__(self, values: Mapping[str, Any], reads: set[str]) -> None:
        super().__init__(values)
        self._reads = reads

    def __getitem__(self, name: str) -> Any:
        self._reads.add(name) if name in self.keys() else None
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self.keys() else default

    def __iter__(self) -> Iterator[str]:
        self._reads.update(super().keys())
        return super().__iter__()

    def items(self) -> Any:
        self._reads.update(super().keys())
        return super().items()

    def values(self) -> Any:
        self._reads.update(super().keys())
        return super().values()
