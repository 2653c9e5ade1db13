"""Whether a decision tree over a policy file's entries would choose better than the nearest entry: it does not.

    python benchmarks/decision_tree.py --out benchmarks/results/decision-tree.csv

Each entry is left out in turn and asked for with all the others known: of every policy file that ships, as far as its
``regret_with`` tells, and of the recorded sweeps of several workloads. Of the record that is large enough, some
workloads are drawn too, as the entries of a policy file would be, and all the others asked for. The rules:

    nearest entry    what selection takes without a rule
    neighbours       what it takes with one (``autotune.policy.neighbours``), by the weights that serve the known best
    decision tree    a tree grown over the known entries (below), as policy files held until this was measured

A regret is the time of what a rule takes over the best one's, minus 1. A row counts the inputs ``asked`` for, and those
whose regret is ``told``: not every winner was timed on every workload. ``mean_regret`` is that of the logarithms.
"""

import argparse
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import selection_regret
from harness import write_rows
from neighbour_rules import weighed

from autotune.declaration import Configuration, Expression, Family, PolicyValue, load_family
from autotune.files import bundled
from autotune.policy import (
    Features,
    PolicyFile,
    Regrets,
    among_neighbours,
    feature_values,
    mean_regret,
    nearest,
    read_policy_file,
    slowdown,
)
from autotune.record import Study

RESULTS = Path(__file__).parent / "results"
RECORDS = (
    "allpairs-h200.csv.xz",
    "cyclospectrum-h200.csv.xz",
    "mummergpu-h200.csv.xz",
    "allpairs-h200-sizes.csv.xz",
)
LARGE = "allpairs-h200-sizes.csv.xz"
DRAWN = (6, 8, 12, 16, 24, 36)
DRAWS = 12
RULES = ("nearest entry", "neighbours", "decision tree")
_FEWEST = 3  # with two there is but one to choose
_DEEPEST = 4
_GAIN = (
    0.01  # a split must better the sum of logarithmic slowdowns in its node by as much for each leaf it adds
)


# -- the tree -----------------------------------------------------------------------------------------------


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
    costs = {entry: sum(slowdown(regrets, name, entry) for name in names) for entry in names}
    entry = min(names, key=lambda name: (costs[name], name))
    return entry, costs[entry]


# -- entries and their regrets ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """The workloads of one policy file or record that may be chosen among, with their winners."""

    features: Mapping[str, Features]
    regrets: Regrets
    winners: Mapping[str, Mapping[str, PolicyValue]]

    def only(self, names: Iterable[str]) -> "Known":
        kept = sorted(names)
        return Known(
            {name: self.features[name] for name in kept},
            {name: {k: r for k, r in self.regrets[name].items() if k in kept} for name in kept},
            {name: self.winners[name] for name in kept},
        )

    @property
    def is_whole(self) -> bool:
        """Whether every winner was timed on every workload, and every feature has a logarithm."""
        names = self.features.keys()
        timed = all(self.regrets[name].keys() >= names - {name} for name in names)
        return timed and all(min(values.values(), default=0) > 0 for values in self.features.values())


def of_policy_file(file: PolicyFile) -> Iterator[tuple[str, Known]]:
    """By objective, entries that stand beside one another: of the same options and accuracy class."""
    family = load_family(file.family)
    groups: dict[tuple[object, ...], list[str]] = {}
    for name, item in file.entries.items():
        key = item.accuracy, item.objective, *sorted((k, str(v)) for k, v in item.options.items())
        groups.setdefault(key, []).append(name)
    for names in groups.values():
        entries = {name: file.entries[name] for name in names}
        yield (
            file.entries[names[0]].objective,
            Known(
                {name: feature_values(family.features, item.features) for name, item in entries.items()},
                {name: item.regret_with for name, item in entries.items()},
                {name: item.configuration for name, item in entries.items()},
            ),
        )


def of_record(studies: Sequence[Study], declared: Mapping[str, Expression]) -> Known:
    times = {study.workload: selection_regret.times_of(study) for study in studies}
    best = {name: min(row, key=lambda c: (row[c], c.id)) for name, row in times.items()}
    regrets = {
        name: {
            other: row[best[other]] / row[best[name]] - 1 for other in times if other != name and best[other] in row
        }
        for name, row in times.items()
    }  # fmt: skip
    features = {s.workload: feature_values(declared, s.about.features) for s in studies}
    return Known(features, regrets, {name: dict(found) for name, found in best.items()})


# -- the rules ----------------------------------------------------------------------------------------------


def taken(known: Known, asked: Sequence[Features]) -> dict[str, list[str]]:
    """What each rule takes for each input; ``neighbours`` only where its weights can be found."""
    tree = grow(known.features, known.regrets)
    found = {
        "nearest entry": [nearest(known.features, each)[0] for each in asked],
        "decision tree": [decide(tree, each) for each in asked],
    }
    if known.is_whole and len(known.features) > 1:
        count, weights = weighed(known.features, known.regrets, known.winners)
        found["neighbours"] = [
            among_neighbours(known.features, known.regrets, each, count, weights) for each in asked
        ]
    return found


def left_out(known: Known) -> dict[str, list[float | None]]:
    """By rule: the regret of each workload when all the others are known; None where that was not measured."""
    lost: dict[str, list[float | None]] = {}
    for name, values in known.features.items():
        for rule, (choice,) in taken(known.only(known.features.keys() - {name}), [values]).items():
            lost.setdefault(rule, []).append(_regret(known, name, choice))
    return lost


def drawn(known: Known, count: int) -> dict[str, list[float | None]]:
    """By rule: the regrets of all others when ``count`` workloads are known, drawn ``DRAWS`` times."""
    dice, lost = random.Random(0), dict[str, list[float | None]]()
    for _ in range(DRAWS):
        names = dice.sample(sorted(known.features), count)
        others = [name for name in known.features if name not in names]
        for rule, choices in taken(known.only(names), [known.features[name] for name in others]).items():
            regrets = [_regret(known, name, choice) for name, choice in zip(others, choices, strict=True)]
            lost.setdefault(rule, []).extend(regrets)
    return lost


def _regret(known: Known, name: str, choice: str) -> float | None:
    if Configuration(known.winners[name]) == Configuration(known.winners[choice]):
        return 0.0
    return known.regrets[name].get(choice)


def rows_of(
    source: str, count: int, lost: Mapping[str, Sequence[float | None]]
) -> Iterator[dict[str, object]]:
    for rule in RULES:
        regrets = [regret for regret in lost.get(rule, ()) if regret is not None]
        if regrets:
            figures = {
                "mean_regret": mean_regret(regrets),
                "median_regret": median(regrets),
                "worst_regret": max(regrets),
            }
            yield {
                "source": source, "known": count, "rule": rule, "asked": len(lost[rule]), "told": len(regrets),
                **{name: f"{value:.4f}" for name, value in figures.items()},
            }  # fmt: skip


def measured(records: Sequence[str]) -> Iterator[dict[str, object]]:
    for path in sorted(bundled("policies").glob("*/*.yaml")):
        for objective, known in of_policy_file(read_policy_file(path)):
            if (count := len(known.features)) >= _FEWEST:
                source = f"policies/{path.parent.name}/{path.name} {objective}"
                yield from rows_of(source, count - 1, left_out(known))
    for name in records:
        studies = selection_regret.studies_of(RESULTS / name, bundled("policies"))
        family: Family = load_family(studies[0].family)
        known = of_record(studies, family.features)
        yield from rows_of(name, len(studies) - 1, left_out(known))
        for count in DRAWN if name == LARGE else ():
            yield from rows_of(name, count, drawn(known, count))


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--record", action="append", help="of benchmarks/results, in place of all")
    options = parser.parse_args(words)
    rows = list(measured(options.record or RECORDS))
    print(f"{'entries of':54} {'known':>5} {'rule':14} {'mean':>8} {'median':>8} {'worst':>9}  regrets known")
    for row in rows:
        mean, middle, worst = (
            100 * float(str(row[f"{name}_regret"])) for name in ("mean", "median", "worst")
        )
        print(f"{row['source']:54} {row['known']:>5} {row['rule']:14} {mean:6.1f} % {middle:6.1f} % {worst:7.1f} %  "
              f"{row['told']} of {row['asked']}")  # fmt: skip
    if options.out:
        write_rows(options.out, rows)
        print(f"\nwritten to {options.out}")


if __name__ == "__main__":
    main()
