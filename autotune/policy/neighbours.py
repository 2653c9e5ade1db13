"""What makes two inputs alike: the features a family declares, and their distance. For policy files of earlier
versions, the winner that costs the nearest entries least.

A regret is a time over the best time on the same workload, minus 1. ``regrets[a][b]`` is what workload ``a`` loses
when it runs the configuration that won on ``b``.
"""

import math
from collections.abc import Iterable, Mapping

from autotune.declaration import Expression, Value
from autotune.errors import FamilyError

Features = Mapping[str, float]
Regrets = Mapping[str, Mapping[str, float]]

_FAR = math.log(1000.0)  # the distance of a feature that only one of two inputs has


def feature_values(declared: Mapping[str, Expression], numbers: Mapping[str, Value]) -> dict[str, float]:
    """The declared features with ``numbers`` (extents and scalars) bound. One that has no value there (an entry from
    before a scalar was recorded, a division by zero) is left out."""
    found: dict[str, float] = {}
    for name, expression in declared.items():
        try:
            value = float(expression.evaluate(numbers))
        except (FamilyError, TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(value):
            found[name] = value
    return found


def distance(a: Features, b: Features, weights: Mapping[str, float] | None = None) -> float:
    """Euclidean distance of the logarithms, each times the feature's weight (1 where none is given); a feature that
    only one side has, or that is not above 0 on one side only, counts as a factor of 1000."""
    total = 0.0
    for name in a.keys() | b.keys():
        x, y = a.get(name), b.get(name)
        apart = 0.0
        if x is not None and y is not None and x > 0 and y > 0:
            apart = math.log(x / y)
        elif x != y:
            apart = _FAR
        total += (apart * (weights or {}).get(name, 1.0)) ** 2
    return math.sqrt(total)


def nearest(
    known: Mapping[str, Features], asked: Features, weights: Mapping[str, float] | None = None
) -> list[str]:
    """The names in ``known``, nearest first; equally near ones by name."""
    return sorted(known, key=lambda name: (distance(known[name], asked, weights), name))


# -- asking several of them ---------------------------------------------------------------------------------


def among_neighbours(
    known: Mapping[str, Features], regrets: Regrets, asked: Features, count: int, weights: Mapping[str, float]
) -> str:
    """The workload in ``known`` whose configuration costs the ``count`` nearest ones least: the mean of
    log(1 + regret), each weighted by one over the square of its distance. Near a boundary between two neighbours that
    want different configurations it so takes one that both can live with."""
    near = nearest(known, asked, weights)[:count]
    shares = {name: 1 / max(distance(known[name], asked, weights), 1e-9) ** 2 for name in near}
    return min(
        sorted(known), key=lambda entry: sum(shares[name] * slowdown(regrets, name, entry) for name in near)
    )


def slowdown(regrets: Regrets, name: str, entry: str) -> float:
    """The logarithm; a configuration that was not measured on a workload counts as 10 times slower."""
    return math.log1p(0.0 if name == entry else max(0.0, regrets.get(name, {}).get(entry, 9.0)))


def mean_regret(regrets: Iterable[float]) -> float:
    """exp of the mean of log(1 + regret), minus 1."""
    logs = [math.log1p(r) for r in regrets]
    return math.expm1(sum(logs) / len(logs))
