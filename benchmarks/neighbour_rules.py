"""A rule between entries that predictions took the place of: several neighbours are asked, and the winner that costs
them least is taken. What policy files of earlier versions have, fitted as it was.

``regrets[a][b]`` is what workload ``a`` loses when it runs the configuration that won on ``b``.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Configuration
from autotune.policy import Features, Regrets, nearest

# (features by workload, regrets, features asked for) -> the workload whose configuration is taken
Chooser = Callable[[Mapping[str, Features], Regrets, Features], str]

_COUNTS = (3, 4, 5, 6)
_WEIGHTS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)


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
