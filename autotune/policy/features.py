"""What makes two inputs alike: the features a family declares, their distance, neighbours, and a small tree.

A regret is a time over the best time on the same workload, minus 1. ``regrets[a][b]`` is what workload ``a`` loses
when it runs the configuration that won on ``b``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from autotune.declaration import Expression, Value
from autotune.errors import FamilyError

__all__ = [
    "Features",
    "Leaf",
    "Node",
    "Regrets",
    "Tree",
    "decide",
    "distance",
    "feature_values",
    "grow",
    "nearest",
]


Features = Mapping[str, float]

Regrets = Mapping[str, Mapping[str, float]]


_FAR = math.log(1000.0)  # the distance of a feature that only one of two inputs has

_DEEPEST = 4

_GAIN = (
    0.01  # a split must better the sum of logarithmic slowdowns in its node by as much for each leaf it adds
)


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


def among_neighbours(
    known: Mapping[str, Features], regrets: Regrets, asked: Features, count: int, weights: Mapping[str, float]
) -> str:
    """The workload in ``known`` whose configuration costs the ``count`` nearest ones least: the mean of
    log(1 + regret), each weighted by one over the square of its distance. Near a boundary between two neighbours that
    want different configurations it so takes one that both can live with."""
    near = nearest(known, asked, weights)[:count]
    shares = {name: 1 / max(distance(known[name], asked, weights), 1e-9) ** 2 for name in near}
    return min(
        sorted(known), key=lambda entry: sum(shares[name] * _cost(regrets, name, entry) for name in near)
    )


# -- a small decision tree ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaf:
    """``entry`` names the workload whose configuration is taken."""

    entry: str


@dataclass(frozen=True)
class Node:
    """Inputs whose ``feature`` is below ``below`` go to ``then``, others (and those without it) to ``otherwise``."""

    feature: str
    below: float
    then: "Tree"
    otherwise: "Tree"


Tree = Leaf | Node


def decide(tree: Tree, asked: Features) -> str:
    """The workload whose configuration ``tree`` takes for ``asked``."""
    while isinstance(tree, Node):
        tree = tree.then if asked.get(tree.feature, math.inf) < tree.below else tree.otherwise
    return tree.entry


def asks(tree: Tree) -> set[str]:
    """The features that ``tree`` decides by."""
    return {tree.feature} | asks(tree.then) | asks(tree.otherwise) if isinstance(tree, Node) else set()


def grow(known: Mapping[str, Features], regrets: Regrets, depth: int = _DEEPEST) -> Tree:
    """A tree over the workloads ``known``: each split lessens the sum of log(1 + regret) under the best single
    configuration on either side (recursive partitioning; Breiman et al., Classification and Regression Trees,
    section 2.4, with the cost of a leaf in place of its impurity). Thresholds lie at geometric means."""
    names = sorted(known)
    entry, cost = _best_entry(names, regrets)
    if depth == 0 or len(names) < 2 or cost <= 0.0:
        return Leaf(entry)
    best: tuple[float, str, float] | None = None
    for feature in sorted(set.intersection(*(set(known[name]) for name in names))):
        values = sorted({known[name][feature] for name in names})
        for low, high in pairwise(values):
            threshold = math.sqrt(low * high) if low > 0 else (low + high) / 2
            sides = [
                [n for n in names if (known[n][feature] < threshold) is below] for below in (True, False)
            ]
            found = sum(_best_entry(side, regrets)[1] for side in sides), feature, threshold
            best = min(best, found) if best else found
    if best is None or best[0] > cost - _GAIN:
        return Leaf(entry)
    _, feature, threshold = best
    then = {n: f for n, f in known.items() if f[feature] < threshold}
    otherwise = {n: f for n, f in known.items() if n not in then}
    return Node(feature, threshold, grow(then, regrets, depth - 1), grow(otherwise, regrets, depth - 1))


def _best_entry(names: Sequence[str], regrets: Regrets) -> tuple[str, float]:
    """Of ``names`` the one whose configuration serves them all best, and the sum of their log(1 + regret) with it."""
    costs = {entry: sum(_cost(regrets, name, entry) for name in names) for entry in names}
    entry = min(names, key=lambda name: (costs[name], name))
    return entry, costs[entry]


def _cost(regrets: Regrets, name: str, entry: str) -> float:
    """Logarithmic slowdown; a configuration that was not measured on a workload counts as 10 times slower."""
    return math.log1p(0.0 if name == entry else max(0.0, regrets.get(name, {}).get(entry, 9.0)))
