"""What makes two inputs alike: the features a family declares, and their distance. For inputs between entries, the
winner that costs the nearest entries least, where that beats the nearest entry.

A regret is a time over the best time on the same workload, minus 1. ``regrets[a][b]`` is what workload ``a`` loses
when it runs the configuration that won on ``b``.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Configuration, Expression, Value
from autotune.errors import FamilyError
from autotune.policy.file import Entry, Neighbours

Features = Mapping[str, float]
Regrets = Mapping[str, Mapping[str, float]]

# (features by workload, regrets, features asked for) -> the workload whose configuration is taken
Chooser = Callable[[Mapping[str, Features], Regrets, Features], str]


_FAR = math.log(1000.0)  # the distance of a feature that only one of two inputs has
_FEWEST = 6  # entries; with fewer weights are a guess, whatever they say of the rest
_BETTER = 0.005  # how much lower the mean regret must be than the nearest entry's
_COUNTS = (3, 4, 5, 6)
_WEIGHTS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)


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


def nearest_entry(known: Mapping[str, Features], _regrets: Regrets, asked: Features) -> str:
    """The nearest entry."""
    return nearest(known, asked)[0]


def left_out(known: Mapping[str, Features], regrets: Regrets, choose: Chooser) -> dict[str, float]:
    """The regret of each workload with what ``choose`` takes for it when it knows all the others; infinite where that
    was not measured on it."""
    found: dict[str, float] = {}
    for name, asked in known.items():
        others = {n: f for n, f in known.items() if n != name}
        seen = {a: {b: r for b, r in row.items() if b != name} for a, row in regrets.items() if a != name}
        taken = choose(others, seen, asked)
        found[name] = regrets.get(name, {}).get(taken, math.inf)
    return found


def mean_regret(regrets: Iterable[float]) -> float:
    """exp of the mean of log(1 + regret), minus 1."""
    logs = [math.log1p(r) for r in regrets]
    return math.expm1(sum(logs) / len(logs))


def fitted(entries: Mapping[str, Entry], compared: Mapping[str, str]) -> Neighbours | None:
    """How ``entries`` (those of the options and accuracy class that most have) are to be asked; None when they are few,
    when one lacks a feature or was not measured with every winner, or when the nearest entry does as well. ``compared``
    are the family's declared features as texts."""
    groups: dict[tuple[object, ...], dict[str, Entry]] = {}
    for name, item in sorted(entries.items()):
        key = item.accuracy, *sorted((k, str(v)) for k, v in item.options.items())
        groups.setdefault(key, {})[name] = item
    group = max(groups.values(), key=len, default={})
    if len(group) < _FEWEST or not compared:
        return None
    declared = {name: Expression(text) for name, text in compared.items()}
    known = {name: feature_values(declared, item.features) for name, item in group.items()}
    regrets = {name: item.regret_with for name, item in group.items()}
    whole = all(row.keys() >= group.keys() - {name} for name, row in regrets.items())
    if not whole or any(f.keys() < declared.keys() or min(f.values()) <= 0 for f in known.values()):
        return None
    count, weights = weighed(known, regrets, {name: item.configuration for name, item in group.items()})
    choosers: dict[str, Chooser] = {
        "nearest": nearest_entry,
        "neighbours": partial(among_neighbours, count=count, weights=weights),
    }
    found = {kind: mean_regret(left_out(known, regrets, c).values()) for kind, c in choosers.items()}
    if found["neighbours"] > found["nearest"] - _BETTER:
        return None
    first = next(iter(group.values()))
    return Neighbours(
        options=dict(first.options),
        accuracy=first.accuracy,
        left_out={kind: round(regret, 4) for kind, regret in found.items()},
        count=count,
        weights=weights,
    )


# -- how much each feature counts ---------------------------------------------------------------------------


def weighed(
    known: Mapping[str, Features], regrets: Regrets, winners: Mapping[str, Mapping[str, object]]
) -> tuple[int, dict[str, float]]:
    """How many neighbours to ask and each feature's weight: what ``among_neighbours`` does best with when each
    entry is left out in turn. One feature after another is given the best of a few weights, for each count.
    ``winners`` are the configurations; every entry has every feature, above 0, and a regret with every winner."""
    names = sorted(known)
    features = sorted(known[names[0]])
    logs = np.log([[known[name][f] for f in features] for name in names])
    alike = [Configuration({k: str(v) for k, v in winners[name].items()}).id for name in names]
    costs = np.array([[0.0 if a == b else math.log1p(max(0.0, regrets[a][b])) for b in names] for a in names])
    same = np.array([[a == b for b in alike] for a in alike])

    best: tuple[float, int, list[float]] | None = None
    for count in _COUNTS:
        weights = [1.0] * len(features)
        for at in range(len(features)):
            tried = [[*weights[:at], weight, *weights[at + 1 :]] for weight in _WEIGHTS]
            losses = [_loss(logs * np.array(each), costs, same, count) for each in tried]
            weights = tried[int(np.argmin(losses))]
            if best is None or min(losses) < best[0] - 1e-12:
                best = min(losses), count, weights
    assert best is not None
    return best[1], dict(zip(features, best[2], strict=True))


def _loss(
    logs: NDArray[np.float64], costs: NDArray[np.float64], same: NDArray[np.bool_], count: int
) -> float:
    """The mean square of log(1 + regret) of ``among_neighbours`` over the rows of ``logs``, each left out in turn: one
    large regret is worse than several small ones."""
    away = np.sqrt(((logs[:, None, :] - logs[None, :, :]) ** 2).sum(axis=2))
    np.fill_diagonal(away, np.inf)
    total = 0.0
    for row, distances in enumerate(away):
        near = np.argsort(distances, kind="stable")[:count]
        shares = 1 / np.maximum(distances[near], 1e-9) ** 2
        found = shares @ costs[near]
        found[row] = np.inf  # itself; another entry with the same winner may stand for it
        taken = int(np.argmin(found))
        total += 0.0 if same[row, taken] else float(costs[row, taken]) ** 2
    return total / len(away)
