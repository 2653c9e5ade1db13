"""How far an output may be off, and still be right: ``tolerance`` of family.yaml, for each number of each output."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autotune.declaration.expression import Expression
from autotune.errors import FamilyError, UnknownName
from autotune.layout import Data

EQUAL, IGNORE, WRONG = "equal", "ignore", "wrong"  # NaN equals NaN; is not compared; is wrong everywhere
FOR_FLOATS = "tolerance"  # where a tolerance is declared that is for every floating point output
_BOUNDS = ("relative", "absolute", "share")


@dataclass(frozen=True)
class Tolerance:
    """An element is right where |result - reference| <= absolute + relative * |reference|. Of all elements a ``share``
    may be wrong. ``nan`` says what a NaN in the reference asks for: one as well (``equal``), nothing (``ignore``), or
    that no result has any (``wrong``). ``declared`` is the key of family.yaml that says so, empty where none does; of
    whole numbers it may be ``FOR_FLOATS``, which is not for them."""

    relative: float = 0.0
    absolute: float = 0.0
    share: float = 0.0
    nan: str = EQUAL
    declared: str = ""

    def may_differ(self, elements: int) -> int:
        """Return how many of ``elements`` may be wrong."""
        return int(self.share * elements)

    def __str__(self) -> str:
        told = [f"{key} {getattr(self, key):g}" for key in _BOUNDS if getattr(self, key)]
        return ", ".join([*told, *([f"nan {self.nan}"] if self.nan != EQUAL else [])]) or "exact"


@dataclass(frozen=True)
class ToleranceRule:
    """A tolerance as it is declared: ``bounds`` has the expressions of relative, absolute and share."""

    bounds: Mapping[str, Expression] = field(default_factory=dict)
    nan: str = EQUAL

    def evaluate(self, names: Mapping[str, Any], declared: str, where: str) -> Tolerance:
        """With ``names`` bound: options, policies, extents and scalars. Raises FamilyError."""
        bounds = {key: float(bound.evaluate(names)) for key, bound in self.bounds.items()}
        whose = "" if declared == FOR_FLOATS else f" of {declared.removeprefix(f'{FOR_FLOATS}.')}"
        for key, value in bounds.items():
            if not 0 <= value < math.inf:
                raise FamilyError(
                    f"{where}: the {key} tolerance{whose} is {value} here; it has to be finite and not negative"
                )
        if bounds.get("share", 0.0) >= 1:
            raise FamilyError(
                f"{where}: the share{whose} that may be wrong is {bounds['share']} here; it has to be below 1"
            )
        return Tolerance(**bounds, nan=self.nan, declared=declared)


def tolerance_rules(
    content: Mapping[str, Any], data: Mapping[str, Data], names: Collection[str], where: str
) -> dict[str, ToleranceRule]:
    """What ``tolerance`` declares, by output or field (``hits``, ``hits.score``); under "" what is for every floating
    point output without one of its own. Raises FamilyError for what is no output, and for what a type cannot have."""
    place = f"{where}: {FOR_FLOATS}"
    told = dict(content.get("tolerance", {}))
    common = {key: told.pop(key) for key in ("relative", "absolute") if key in told}
    outputs = {name: array for name, array in data.items() if array.role == "output"}
    rules = {"": _rule(common, place, names)} if common else {}
    types = {**{name: array.dtype for name, array in outputs.items()}, **_members(outputs)}
    for key, value in told.items():
        if key not in types:
            raise UnknownName("output", key, types, place)
        _check(key, value, types[key], place)
        rules[key] = _rule(value, f"{place}: {key}", names)
    return rules


def tolerances_of(
    rules: Mapping[str, ToleranceRule], outputs: Collection[Data], names: Mapping[str, Any], where: str
) -> dict[str, Tolerance]:
    """The tolerance of each plain output and of each field of a record, ``hits.score``: its own, else its record's,
    else that of the family; whole numbers have only their own. Raises FamilyError."""
    at = {
        key: rule.evaluate(names, f"{FOR_FLOATS}.{key}" if key else FOR_FLOATS, where)
        for key, rule in rules.items()
    }
    tolerances: dict[str, Tolerance] = {}
    for member, dtype in _members({data.name: data for data in outputs}).items():
        if dtype.kind == "f":
            keys = [key for key in (member, member.partition(".")[0], "") if key in at]
            tolerances[member] = at[keys[0]] if keys else Tolerance()
        else:
            tolerances[member] = at.get(member, Tolerance(declared=FOR_FLOATS if "" in at else ""))
    return tolerances


def _members(arrays: Mapping[str, Data]) -> dict[str, np.dtype[Any]]:
    """The numbers that arrays are made of: each plain array, each field of a record."""
    return {
        f"{name}.{part.name}" if array.record else name: np.dtype(part.type)
        for name, array in arrays.items()
        for part in array.fields
    }


def _rule(value: Mapping[str, Any], where: str, names: Collection[str]) -> ToleranceRule:
    bounds = {key: Expression(str(value[key]), where).require(names) for key in _BOUNDS if key in value}
    return ToleranceRule(bounds, value.get("nan", EQUAL))


def _check(key: str, value: Mapping[str, Any], dtype: np.dtype[Any], place: str) -> None:
    """Of a record, what is said of it as a whole is for its floating point fields."""
    kinds = {dtype[name].kind for name in dtype.names} if dtype.names else {dtype.kind}
    if dtype.names and "f" not in kinds:
        fields = ", ".join(f"{key}.{name}" for name in dtype.names)
        raise FamilyError(
            f"{place}: {key} is a record of whole numbers, of which each field has its own: write {fields}"
        )
    if "nan" in value and "f" not in kinds:
        raise FamilyError(f"{place}: {key}: nan is for floating point, and this is {dtype}; delete it")
