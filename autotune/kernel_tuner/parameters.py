"""Another tuner's parameters as policies: their values as words, what restricts them, and what is computed from them.

The conventions are those of Kernel Tuner 1.5 and of the T1 format: every parameter is a macro of its name,
``block_size_x`` and the like are the threads of a block, and blocks are the problem size over divisors, rounded up.
"""

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any

from autotune.declaration import Configuration, Constraint, Policy, PolicyValue, Space, Steps
from autotune.errors import FamilyError
from autotune.kernel_tuner.formula import conditions, expression, tabulate, to_plain, word

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
                raise FamilyError(f"parameter {name!r} is not a macro name")
            if not len(some):
                raise FamilyError(f"parameter {name} has no values")
            if len(self._given[name]) < len(some):
                raise FamilyError(f"parameter {name}: two of its values are the same word in {list(some)}")

    @cached_property
    def _given(self) -> dict[str, dict[PolicyValue, Any]]:
        values = self.values.items()
        return {name: {word(one, f"parameter {name}"): one for one in some} for name, some in values}

    def get_given(self, configuration: Mapping[str, PolicyValue]) -> dict[str, Any]:
        """The parameters of ``configuration``, in their own order and as they were given."""
        return {name: self._given[name][configuration[name]] for name in self.values}

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        numbered = enumerate(self.restrictions, 1)
        each = (self._constraints(restriction, f"restriction {number}") for number, restriction in numbered)
        return tuple(chain.from_iterable(each))

    def _constraints(self, restriction: Restriction, where: str) -> list[Constraint]:
        if isinstance(restriction, str):
            reason = f"the restriction {restriction.strip()}"
            return [Constraint(one, reason) for one in conditions(restriction, self.values, where)]
        function, taken = restriction if isinstance(restriction, tuple) else (restriction, None)
        called = _adapt(function, self.values, taken)
        found = tabulate(lambda given: bool(called(given)), self.values, where)
        reason = f"{where}, the function {getattr(function, '__name__', 'given')}"
        return [] if found.text == "True" else [Constraint(found, reason)]

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
        control = next(self.space.walk(steps=Steps(_MOST_STEPS)), None)
        if control is None:
            raise FamilyError(
                "no combination of the parameters is left by the restrictions: "
                f"{' | '.join(sorted({c.reason for c in self.constraints})) or 'there are no values'}"
            )
        return control

    @property
    def declared(self) -> dict[str, Any]:
        """``policies`` and ``constraints`` in the words of ``autotune.Kernel``."""
        control = self.control
        policies = {n: {"values": list(some), "default": control[n]} for n, some in self._given.items()}
        constraints = [{"require": c.require.text, "reason": c.reason} for c in self.constraints]
        return {"policies": policies, "constraints": constraints}

    def text(self, formula: Formula, where: str) -> str:
        """``formula`` as an expression. Raises FamilyError."""
        if callable(formula):
            return tabulate(_adapt(formula, self.values), self.values, where).text
        if isinstance(formula, str):
            return expression(formula, self.values, where).text
        try:
            return str(int(formula))
        except (TypeError, ValueError, OverflowError):  # NaN, infinity, and what is no number
            raise FamilyError(f"{where}: {formula!r} is neither a number nor a text nor a function") from None

    def block(self, names: Sequence[str]) -> list[str]:
        """Threads in x, y, z: the parameters of these names, 1 for what is none."""
        return [name if name in self.values else "1" for name in names]

    def grid(
        self, problem_size: Any, divisors: Sequence[Divisor], names: Sequence[str] = BLOCK_NAMES
    ) -> list[str]:
        """Blocks in x, y, z. Where there is no divisor (None), it is the block's size."""
        axes = zip(self._sizes(problem_size), divisors, self.block(names), "xyz", strict=True)
        return [f"ceil_div({size}, {self._divisor(given, block, axis)})" for size, given, block, axis in axes]

    def _sizes(self, problem_size: Any) -> list[str]:
        given: list[Formula]
        if callable(problem_size):
            given = [partial(_axis, problem_size, axis) for axis in range(3)]
        else:
            given = [_to_size(size) for size in _pad_to_three(problem_size)]
        sizes = [self.text(size, "problem size") for size in given]
        return [size if size.isalnum() else f"({size})" for size in sizes]

    def _divisor(self, divisor: Divisor, block: str, axis: str) -> str:
        if divisor is None:
            return block
        parts = divisor if isinstance(divisor, Sequence) and not isinstance(divisor, str) else [divisor]
        texts = []
        for part in parts:
            is_formula = isinstance(part, str) and part.strip() not in self.values
            text = self.text(f"int({part})" if is_formula else part, f"grid divisor in {axis}")
            texts.append(text if text.isidentifier() or text.isdecimal() else f"({text})")
        return " * ".join(texts) or "1"


def _pad_to_three(sizes: Any) -> tuple[Any, ...]:
    """A problem size in three dimensions."""
    if isinstance(sizes, str) or not hasattr(sizes, "__len__"):
        sizes = (sizes,)
    return (*sizes, 1, 1, 1)[:3]


def _axis(problem_size: Callable[[Mapping[str, Any]], Any], axis: int, parameters: Mapping[str, Any]) -> Any:
    return _pad_to_three(problem_size(parameters))[axis]


def _to_size(size: Any) -> int | str:
    if isinstance(size, str):
        return size
    with suppress(TypeError, ValueError, OverflowError):  # of what is no number, NaN and infinity
        if int(size) == size and size > 0:
            return int(size)
    raise FamilyError(f"problem size {size!r} is no whole number above 0")


def _adapt(
    function: Callable[..., Any], values: Mapping[str, Sequence[Any]], taken: Sequence[str] | None = None
) -> Callable[[Mapping[str, Any]], Any]:
    """A function of the parameters as one of a mapping of them. It takes those in ``taken`` in turn; else one mapping,
    or those that it names. Raises FamilyError where it has no value."""
    if unknown := [name for name in taken or () if name not in values]:
        raise FamilyError(f"{unknown[0]!r} is no parameter (those are {', '.join(values)})")
    named = None if taken is not None else _find_named(function, values)

    def call(given: Mapping[str, Any]) -> Any:
        try:
            if taken is not None:
                value = function(*(given[name] for name in taken))
            elif named is None:
                value = function(given)
            else:
                value = function(**{name: given[name] for name in named})
        except Exception as problem:
            told = ", ".join(f"{name}={value!r}" for name, value in given.items())
            raise FamilyError(
                f"the function {getattr(function, '__name__', function)!s} has no value for {told}: "
                f"{type(problem).__name__}: {problem}"
            ) from problem
        value = to_plain(value)
        return int(value) if isinstance(value, float) and math.isfinite(value) and value % 1 == 0 else value

    return call


def _find_named(function: Callable[..., Any], values: Mapping[str, Sequence[Any]]) -> list[str] | None:
    """The parameters that the function names; None for one that takes a mapping."""
    try:
        told = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_KEYWORD for one in told.values()):
        return list(values)
    if len(told) == 1 and not values.keys() & told.keys():
        return None
    return [name for name in told if name in values]
