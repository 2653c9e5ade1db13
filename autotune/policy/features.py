"""What makes two inputs alike: the features that a family declares, and their distance."""

import math
from collections.abc import Mapping

from autotune.declaration import Expression, Value
from autotune.errors import FamilyError

Features = Mapping[str, float]

_FAR = math.log(1000.0)  # the distance of a feature that only one of two inputs has


def feature_values(declared: Mapping[str, Expression], numbers: Mapping[str, Value]) -> dict[str, float]:
    """The declared features with ``numbers`` (extents and scalars) bound. One that has no value there (a
    division by zero) is left out."""
    found: dict[str, float] = {}
    for name, expression in declared.items():
        try:
            value = float(expression.evaluate(numbers))
        except (FamilyError, TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(value):
            found[name] = value
    return found


def distance(a: Features, b: Features) -> float:
    """Euclidean distance of the logarithms; a feature that only one side has, or that is not above 0 on one side only,
    counts as a factor of 1000."""
    total = 0.0
    for name in a.keys() | b.keys():
        x, y = a.get(name), b.get(name)
        apart = 0.0
        if x is not None and y is not None and x > 0 and y > 0:
            apart = math.log(x / y)
        elif x != y:
            apart = _FAR
        total += apart**2
    return math.sqrt(total)


def nearest(known: Mapping[str, Features], asked: Features) -> list[str]:
    """The names in ``known``, nearest first; equally near ones by name."""
    return sorted(known, key=lambda name: (distance(known[name], asked), name))
